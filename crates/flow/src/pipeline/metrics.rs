//! The one way to metrics: `analysis` concludes, `report` says it.

use analysis::{Evidence, Subject};
use report::words::Spoken;
use types::Metrics;

/// The metrics of a run, with their sentences. Nothing changes them afterwards.
pub(crate) fn metrics(subject: &Subject, evidence: &Evidence<'_>) -> Metrics {
    analysis::metrics(subject, evidence).spoken()
}
