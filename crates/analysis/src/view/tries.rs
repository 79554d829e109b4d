//! Remedies that were tried, by what came of them.

use types::view::TriesView;
use types::{Metrics, Try, TryStatus};

/// The view.
pub(super) fn tries(metrics: &Metrics) -> TriesView<'_> {
    let all = || metrics.trials.tries.iter();
    let with_figures = |one: &&Try| one.saves_share.is_some();
    let tried = || all().filter(|one| one.status == TryStatus::Tried);
    let rate = |one: &Try| one.throughput.map_or(0.0, |rate| rate.ratio);
    let saves = |one: &Try| one.saves_share.unwrap_or(f64::NEG_INFINITY);
    TriesView {
        measured: all().filter(with_figures).collect(),
        unfinished: (all().filter(|one| !matches!(one.status, TryStatus::Tried | TryStatus::NotApplicable))).collect(),
        not_applicable: all().filter(|one| one.status == TryStatus::NotApplicable).collect(),
        rounds: all().flat_map(|one| one.turns.iter().map(|turn| u64::from(turn.round) + 1)).max().unwrap_or_default(),
        // Warm-up changes when one measures, not what is run.
        fastest: tried()
            .filter(|one| one.low.is_some_and(|low| low > 0.0) && combinable(one))
            .max_by(|one, other| saves(one).total_cmp(&saves(other))),
        highest_throughput: tried()
            .filter(|one| one.throughput.and_then(|rate| rate.low).is_some_and(|low| low > 1.0) && combinable(one))
            .max_by(|one, other| rate(one).total_cmp(&rate(other))),
    }
}

/// Whether its baseline is the run's.
fn combinable(one: &Try) -> bool {
    one.remedy.iter().all(|remedy| remedy.kind().is_some())
}
