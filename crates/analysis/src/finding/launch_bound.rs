//! The device waits for the host to launch work: the launches decide the time, not the work.

use types::{EstimatedSaving, Finding, Nanos, Severity};

use super::{Claim, Found, Run, percent};
use crate::device::StageWork;
use crate::loss::Cause;
use crate::replay::Change;
use crate::scope::Scope;
use crate::statistics::share;
use crate::timings::rounded;
use types::IdleCause;

/// Share of a stage that the device waits for launches above which they decide its time.
const LEAST_SHARE: f64 = 0.3;

/// The rule's name.
pub(super) const RULE: &str = "launch-bound";

pub(super) fn check(run: &Run<'_>) -> Vec<Found> {
    let Some(device) = run.device else { return Vec::new() };
    device.stages.iter().filter_map(|(stage, work)| of_stage(run, *stage, work)).collect()
}

fn of_stage(run: &Run<'_>, stage: Scope, work: &StageWork) -> Option<Found> {
    let waiting = work.waits.get(&IdleCause::Launching).copied()?;
    let part = share(waiting.get() as f64, work.wall.get() as f64).filter(|part| *part >= LEAST_SHARE)?;
    let busy = share(work.busy().get() as f64, work.wall.get() as f64)?;
    let mut evidence = vec![
        format!("the device waits for launches {} of {stage} ({waiting} of {})", percent(part), work.wall),
        format!("it is busy {} of the time", percent(busy)),
    ];
    let per = |what: &str, count: u64| {
        let launches = share(work.launches as f64, count as f64)?;
        let each = share(work.wall.get() as f64, work.launches as f64)?;
        Some(format!("{launches:.0} kernels, copies and memsets per {what}, one every {}", rounded(each)))
    };
    evidence.extend(match work.steps {
        Some(steps) => per("step", steps),
        None if stage.stage().is_none() => per("recording", 1),
        None => per("pass", work.instances),
    });
    if let (Some(least), Some(steps)) = (work.least(), work.steps.filter(|steps| *steps > 0)) {
        let each = |time: Nanos| rounded(time.get() as f64 / steps as f64);
        evidence.push(format!("a token takes {}; its work needs {} at least (modelled)", each(work.wall), each(least)));
    }
    // Launched in one go, pieces of work still follow each other no closer than they ever did in this run.
    let remaining = work.shortest_wait.unwrap_or_default().get().saturating_mul(work.launches as i64);
    let saves = (waiting - Nanos::new(remaining)).max(Nanos::ZERO);
    if let Some(shortest) = work.shortest_wait {
        evidence.push(format!("the shortest wait between two kernels is {shortest}, which is taken to stay for each"));
    }
    let finding = Finding {
        quantities: Default::default(),
        rule: RULE.to_owned(),
        severity: Severity::Warning,
        stage: stage.stage(),
        evidence,
        saving: EstimatedSaving::at_most(saves),
        advice: advice(run, work),
    };
    let claim = Claim::Lost(vec![Cause::Waiting(IdleCause::Launching)]);
    Some(Found::new(finding, claim).replayed(Change::CudaGraphs))
}

/// Only what repeats can be captured once and launched again.
fn advice(run: &Run<'_>, work: &StageWork) -> String {
    let repeats = work.steps.is_some_and(|steps| steps > 1) || run.steps.is_some_and(|steps| steps.list.len() > 1);
    let how = match repeats {
        true => {
            "Launch the whole step at once: capture it in a graph (`torch.compile(mode=\"reduce-overhead\")`, \
             `torch.cuda.graph`, or a serving engine that does), then fuse what is left."
        }
        false => {
            "Give each launch more work: a larger batch, or fused operators. Where the same pass runs again with the same \
             shapes, a graph launches it at once."
        }
    };
    let rest = "A faster host processor helps in proportion; a faster device does not help at all. Profilers slow the host \
                down, so check the figure without one.";
    format!("{how} {rest}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use types::Stage;

    use super::*;
    use crate::device::DeviceRecords;
    use crate::finding::fired_on_device;

    /// Ten steps of ten launches in 10,000 ns.
    fn device(waiting: i64) -> DeviceRecords {
        let decode = StageWork {
            wall: Nanos::new(10_000),
            instances: 1,
            steps: Some(10),
            launches: 100,
            waits: BTreeMap::from([(IdleCause::Launching, Nanos::new(waiting))]),
            shortest_wait: Some(Nanos::new(2)),
            ..StageWork::default()
        };
        DeviceRecords { stages: BTreeMap::from([(Scope::Stage(Stage::Decode), decode)]), ..DeviceRecords::default() }
    }

    #[test]
    fn a_device_that_waits_for_launches_fires_with_what_graphs_would_save() {
        let found = fired_on_device(&device(8_000), RULE);
        assert_eq!((found.len(), found[0].stage), (1, Some(Stage::Decode)));
        // 8,000 ns of waiting, less 100 launches that still need 2 ns each.
        assert_eq!(found[0].saving.saves_ns, Some(Nanos::new(7_800)));
        assert_eq!(found[0].evidence[0], "the device waits for launches 80.0% of decode (8.00 us of 10.0 us)");
        assert_eq!(found[0].evidence[2], "10 kernels, copies and memsets per step, one every 100 ns");
    }

    #[test]
    fn a_device_that_is_mostly_busy_does_not_fire() {
        assert_eq!(fired_on_device(&device(2_900), RULE), []);
    }
}
