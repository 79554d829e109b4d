//! How far one run is from another of the same thing.

use types::{Metrics, Stage, Statistics};

use crate::statistics::share;

/// One stage of two runs, by its median.
#[derive(Clone, Debug, PartialEq)]
pub struct StageDifference {
    /// Stage.
    pub stage: Stage,
    /// Median of the first run; absent when it has no such stage.
    pub first_ms: Option<f64>,
    /// Median of the second run; absent when it has no such stage.
    pub second_ms: Option<f64>,
    /// How much longer the second is, as a share of the first; negative when it is faster.
    pub share: Option<f64>,
}

/// Every stage that either run has, parents before children.
pub fn distance(first: &Metrics, second: &Metrics) -> Vec<StageDifference> {
    let difference = |stage: Stage| {
        let median = |metrics: &Metrics| metrics.aggregates.stage_ms.get(&stage).map(|found: &Statistics| found.median);
        let (first_ms, second_ms) = (median(first), median(second));
        let change = first_ms.zip(second_ms).and_then(|(first, second)| share(second - first, first));
        (first_ms.is_some() || second_ms.is_some()).then_some(StageDifference {
            stage,
            first_ms,
            second_ms,
            share: change,
        })
    };
    Stage::ALL.into_iter().filter_map(difference).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ProfileRecords;
    use crate::sample::{records, timed};

    #[test]
    fn medians_are_compared_stage_by_stage() {
        let run = |samples| crate::profile(&ProfileRecords { samples, ..records() });
        let first = run(vec![timed(Stage::Prefill, "a", 0, 1_000_000), timed(Stage::Vision, "a", 0, 500_000)]);
        let second = run(vec![timed(Stage::Prefill, "a", 0, 1_250_000), timed(Stage::Decode, "a", 0, 10)]);
        let found = distance(&first, &second);
        assert_eq!(
            found.iter().map(|one| one.stage).collect::<Vec<_>>(),
            [Stage::Prefill, Stage::Vision, Stage::Decode]
        );
        assert_eq!((found[0].first_ms, found[0].second_ms), (Some(1.0), Some(1.25)));
        assert!((found[0].share.unwrap() - 0.25).abs() < 1e-12);
        assert_eq!((found[1].second_ms, found[1].share, found[2].first_ms), (None, None, None));
    }
}
