//! What profiling costs: the same inputs with and without the profiler.

use types::{Nanos, Overhead, Stage};

use crate::statistics::share;
use crate::timings::{Timings, rounded};

/// Medians of prefill and decode, summed over the stages and inputs that were run both ways.
pub(crate) fn overhead(plain: &Timings<'_>, profiled: &Timings<'_>) -> Overhead {
    let (mut baseline, mut with) = (0.0, 0.0);
    for stage in Stage::ALL.into_iter().filter(|stage| stage.parent().is_none()) {
        let medians = plain.medians(stage);
        for (input, time) in profiled.medians(stage) {
            let Some(without) = medians.get(input) else { continue };
            baseline += without;
            with += time;
        }
    }
    let known = |time: f64| -> Option<Nanos> { (time > 0.0).then(|| rounded(time)) };
    Overhead {
        baseline_ns: known(baseline),
        profiled_ns: known(with),
        share: known(with).and(share(with - baseline, baseline)),
        baseline_spread: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::timed;

    #[test]
    fn only_what_ran_both_ways_is_compared_and_nested_stages_are_not_added() {
        let plain = [
            timed(Stage::Prefill, "a", 0, 100),
            timed(Stage::Vision, "a", 0, 90),
            timed(Stage::Decode, "a", 0, 300),
            timed(Stage::Decode, "b", 0, 5_000),
        ];
        let profiled =
            [timed(Stage::Prefill, "a", 0, 120), timed(Stage::Vision, "a", 0, 99), timed(Stage::Decode, "a", 0, 320)];
        let found = overhead(&Timings::new(&plain, &[]), &Timings::new(&profiled, &[]));
        assert_eq!((found.baseline_ns, found.profiled_ns), (Some(Nanos::new(400)), Some(Nanos::new(440))));
        assert!((found.share.unwrap() - 0.1).abs() < 1e-12);
    }

    #[test]
    fn without_a_profiled_pass_nothing_is_claimed() {
        let plain = [timed(Stage::Prefill, "a", 0, 100)];
        let found = overhead(&Timings::new(&plain, &[]), &Timings::default());
        assert_eq!(found, Overhead::default());
    }
}
