//! `show`: a finished run at a glance.

pub use report::pages::run::Glance;
use types::Metrics;

pub use crate::pipeline::recorded::recording::metrics;

/// The run for a terminal; `strong` sets a heading apart.
pub fn text(metrics: &Metrics, glance: &Glance, strong: impl Fn(&str) -> String) -> String {
    report::pages::run::glance(&analysis::view::run(metrics), glance, strong)
}
