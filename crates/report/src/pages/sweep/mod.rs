//! A sweep written down: one line per point as CSV, a table for the terminal and a page.

pub(crate) mod csv;
mod markdown;
#[cfg(test)]
pub(crate) mod sample;
mod series;
mod table;
mod terminal;

pub use csv::csv;
pub use markdown::page;
pub(crate) use series::Series;
pub(crate) use table::short;
pub use terminal::terminal;
pub(crate) use terminal::{assumed, axes, best, range, stopped};
