//! The analytic model written down: a summary, a page per module class, JSON, YAML and a table for the terminal.
//!
//! The numbers come from elsewhere; here they are arranged, rounded and, for tables, added up into sums and shares.

mod breakdown;
mod document;
mod evaluate;
mod headline;
mod layer;
#[cfg(test)]
pub(crate) mod sample;
mod stages;
mod summary;
mod terminal;

pub use document::{json, yaml};
pub use evaluate::{FormulaError, Number, check_line, evaluate, formula_lines};
pub use layer::{file_name, layer_markdown};
pub use summary::summary_markdown;
pub use terminal::terminal;
