//! `show`: a finished run at a glance.

use collect::run::StoredRun;
pub use report::pages::run::Glance;
use types::{Metrics, UserError};

use crate::pipeline::recorded::recording;

/// What a run measured.
pub fn metrics(run: &StoredRun) -> Result<Metrics, UserError> {
    recording::metrics(run)
}

/// The run for a terminal; `strong` sets a heading apart.
pub fn text(metrics: &Metrics, glance: &Glance, strong: impl Fn(&str) -> String) -> String {
    report::pages::run::glance(&analysis::view::run(metrics), glance, strong)
}
