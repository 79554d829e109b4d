//! A deep run written down: kernels with their counters, the passes and what they cost, the summary and the terminal.
//!
//! Everything comes from the documents of the run; what the timeline alone shows is written by [`super::run`].

mod counters;
mod pages;
mod terminal;

pub use pages::{kernels_page, summary_page};
pub use terminal::{plan_terminal, terminal};
