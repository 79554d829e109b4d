//! The analytic model written down: a summary, a page per module class and a table for the terminal.
//!
//! The numbers come from the report; here they are arranged, rounded and put into words.

mod headline;
mod layer;
mod likely;
mod modules;
#[cfg(test)]
pub(crate) mod sample;
mod stages;
mod summary;
mod terminal;

pub(crate) use headline::{longest_modules, model, of_forecast, sequences, stage_shares, times, workload};
pub use layer::{file_name, layer_page};
pub(crate) use likely::{largest, name as mode_name, usual};
pub(crate) use modules::{ModuleRole, by_time};
pub(crate) use stages::{StageRow, ordered};
pub(crate) use summary::assumption;
pub use summary::summary_page;
pub use terminal::terminal;
