//! Documents prepared for their readers: shares, sums, rankings and verdicts that pages print beside the figures of a
//! document. Nothing is decided or added up behind this point; `report` arranges and rounds.

mod commands;
mod cost_centres;
mod findings;
mod kernels;
mod run;
mod serving;
mod takeaways;
mod timeline;
mod tries;

pub use run::run;
pub use timeline::timeline;

use types::Nanos;

/// How much of `whole` is `part`; a share of nothing is unknown.
fn share(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// How much of a time another is.
fn time_share(part: Nanos, whole: Nanos) -> Option<f64> {
    share(part.get() as f64, whole.get() as f64)
}

/// Time of one of `calls`.
fn mean(total: Nanos, calls: u64) -> Option<Nanos> {
    Some(Nanos::new(total.get().checked_div(i64::try_from(calls).ok()?)?))
}
