//! The device pauses between kernels that had been launched before: it needs that long to go from one to the next.

use types::{Finding, IdleCause, Nanos, Severity};

use super::idle::{idle, some, waiting};
use super::{Found, Run};
use crate::statistics::share;
use crate::timings::rounded;

/// Share of a part of the run from which the gaps are told: kernels of tens of microseconds have a microsecond between them.
const LEAST_SHARE: f64 = 0.03;

/// The rule's name.
pub(super) const RULE: &str = "kernel-gaps";

pub(super) fn check(run: &Run<'_>) -> Vec<Found> {
    let found =
        waiting(run, IdleCause::BetweenKernels, LEAST_SHARE).filter(|(.., waiting, _)| !run.is_little(*waiting));
    let found = found.map(|(scope, work, waiting, part)| {
        let mean: Option<Nanos> = share(waiting.get() as f64, work.kernel_gaps as f64).map(rounded);
        let in_graphs = some(work.graphs.waits.between_kernels).filter(|time| *time < waiting);
        let facts = idle(scope, waiting, part)
            .with_if("hip", run.is_hip())
            .with_if("graphs", work.graphs.waits.between_kernels >= waiting)
            .with_known("in_graphs", in_graphs)
            .with("gaps", work.kernel_gaps)
            .with_known("mean", mean);
        Found::plain(Finding::new(RULE, Severity::Info, scope.stage(), facts))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use types::Stage;

    use super::*;
    use crate::device::{DeviceRecords, GraphWaits, GraphWork, StageWork};
    use crate::finding::fired_on_device;
    use crate::scope::Scope;

    fn device(waiting: i64, in_graphs: i64) -> DeviceRecords {
        let waits = GraphWaits { between_kernels: Nanos::new(in_graphs), ..GraphWaits::default() };
        let decode = StageWork {
            wall: Nanos::new(10_000),
            kernel_gaps: 100,
            graphs: GraphWork { waits, ..GraphWork::default() },
            waits: BTreeMap::from([(IdleCause::BetweenKernels, Nanos::new(waiting))]),
            ..StageWork::default()
        };
        DeviceRecords { stages: BTreeMap::from([(Scope::Stage(Stage::Decode), decode)]), ..DeviceRecords::default() }
    }

    #[test]
    fn gaps_inside_graphs_are_told_as_such_and_promise_nothing() {
        let found = fired_on_device(&device(500, 400), RULE);
        let facts = &found[0].quantities;
        assert_eq!((found[0].severity, found[0].saving.saves_ns), (Severity::Info, None));
        assert_eq!((facts.share("idle_share"), facts.count("gaps")), (Some(0.05), Some(100)));
        assert_eq!((facts.time("mean"), facts.time("in_graphs")), (Some(Nanos::new(5)), Some(Nanos::new(400))));
        let all = fired_on_device(&device(500, 500), RULE).remove(0).quantities;
        assert!(all.has("graphs") && !all.has("in_graphs"));
    }

    #[test]
    fn few_gaps_are_no_finding() {
        assert_eq!(fired_on_device(&device(290, 290), RULE), []);
    }
}
