//! A profiled run written down: the report, its operators, a summary in plain words, its assumptions, and the terminal.
//!
//! Everything comes from the metrics and the environment of the run; here it is arranged, rounded and put into words.

mod assumptions;
mod difference;
mod operators;
mod page;
mod phrase;
mod report;
#[cfg(test)]
mod sample;
mod stakeholder;
mod terminal;

pub use assumptions::{Assumptions, Setting, assumptions_markdown};
pub use difference::{difference_markdown, difference_terminal};
pub use operators::operators_markdown;
pub use report::report_markdown;
pub use stakeholder::stakeholder_markdown;
pub use terminal::terminal;
