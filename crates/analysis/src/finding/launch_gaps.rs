//! The device is idle between launches, although these do not decide its time or are launches of whole graphs.

use types::{Finding, IdleCause, Severity};

use super::launch_bound;
use super::launches::{facts, is_in_graphs, launching, lost_to_launches, without_launches};
use super::{Found, Run};
use crate::replay::Change;

/// Share of a stage from which gaps are told: some remain between kernels that are launched one by one.
const LEAST_SHARE: f64 = 0.05;
/// The same where graphs launch most of the work, which leave none.
const LEAST_SHARE_OF_GRAPHS: f64 = 0.02;
/// Share from which gaps between graphs are worth a warning.
const MUCH: f64 = 0.1;

/// The rule's name.
pub(super) const RULE: &str = "launch-gaps";

pub(super) fn check(run: &Run<'_>) -> Vec<Found> {
    let is_meant = |in_graphs, part| in_graphs || (LEAST_SHARE..launch_bound::LEAST_SHARE).contains(&part);
    let found = launching(run, LEAST_SHARE_OF_GRAPHS).filter_map(|(scope, work, waiting, part)| {
        let in_graphs = is_in_graphs(work);
        let facts = facts(run, scope, work, waiting, part).filter(|_| is_meant(in_graphs, part))?;
        let severity = if in_graphs && part >= MUCH { Severity::Warning } else { Severity::Info };
        let finding = Finding::new(RULE, severity, scope.stage(), facts.with_if("in_graphs", in_graphs));
        // A graph cannot be captured again: what it saves is the work of the host around it.
        Some(match in_graphs {
            true => lost_to_launches(finding, waiting, Change::WithoutHost(IdleCause::Launching)),
            false => lost_to_launches(finding, without_launches(work, waiting), Change::CudaGraphs),
        })
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use types::{Nanos, Stage};

    use super::*;
    use crate::device::{DeviceRecords, GraphWaits, GraphWork, StageWork};
    use crate::finding::fired_on_device;
    use crate::scope::Scope;

    /// Ten steps of 100 pieces of work in 10,000 ns; each is one graph of 90 and ten launches beside it, or all are launched.
    fn device(waiting: i64, in_graphs: bool) -> DeviceRecords {
        let waits = GraphWaits { launching: Nanos::new(100), before_first: Nanos::new(40), ..GraphWaits::default() };
        let graphs = GraphWork { launches: 10, pieces: 900, waits };
        let decode = StageWork {
            wall: Nanos::new(10_000),
            instances: 1,
            steps: Some(10),
            pieces: 1_000,
            launches: if in_graphs { 110 } else { 1_000 },
            graphs: if in_graphs { graphs } else { GraphWork::default() },
            waits: BTreeMap::from([(IdleCause::Launching, Nanos::new(waiting))]),
            ..StageWork::default()
        };
        DeviceRecords { stages: BTreeMap::from([(Scope::Stage(Stage::Decode), decode)]), ..DeviceRecords::default() }
    }

    #[test]
    fn gaps_between_graphs_are_no_missing_graphs() {
        let records = device(6_000, true);
        assert_eq!(fired_on_device(&records, launch_bound::RULE), []);
        let found = fired_on_device(&records, RULE);
        assert_eq!((found.len(), found[0].severity), (1, Severity::Warning));
        let facts = &found[0].quantities;
        assert_eq!((facts.count("graphs"), facts.count("eager")), (Some(10), Some(100)));
        assert_eq!((facts.share("graph_share"), facts.number("launches")), (Some(0.9), Some(11.0)));
        let of_graphs = [facts.time("inside_graphs"), facts.time("before_graphs")];
        assert_eq!(of_graphs, [Some(Nanos::new(100)), Some(Nanos::new(40))]);
    }

    #[test]
    fn gaps_are_told_below_the_share_that_makes_a_stage_launch_bound() {
        let below = device(2_900, false);
        assert_eq!(fired_on_device(&below, launch_bound::RULE), []);
        let found = fired_on_device(&below, RULE);
        assert_eq!((found.len(), found[0].severity, found[0].quantities.has("graphs")), (1, Severity::Info, false));
        let above = device(3_000, false);
        assert_eq!((fired_on_device(&above, launch_bound::RULE).len(), fired_on_device(&above, RULE).len()), (1, 0));
        assert_eq!(fired_on_device(&device(490, false), RULE), []);
        assert_eq!(
            (fired_on_device(&device(490, true), RULE).len(), fired_on_device(&device(190, true), RULE).len()),
            (1, 0)
        );
    }
}
