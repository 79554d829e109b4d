//! A sweep written down: one line per point as CSV, a table for the terminal, a page and a chart.

mod chart;
pub(crate) mod csv;
mod markdown;
mod panel;
#[cfg(test)]
pub(crate) mod sample;
pub(crate) mod scale;
mod series;
mod table;
mod terminal;

pub use chart::chart;
pub use csv::csv;
pub use markdown::page;
pub use terminal::terminal;
pub(crate) use terminal::{assumed, axes, stopped};
