//! The first step takes longer than the others for the same device work: it loads, compiles or allocates. A first step with more
//! work is another kind of step, such as the prefill before decode steps.

use types::{Facts, Finding, Severity, StepBasis, StepLabel, StepSummary, Steps};

use super::slow_steps::are_alike;
use super::{Found, Run};
use crate::statistics::{median, share};
use crate::timings::rounded;

/// Fewest steps that tell what is usual.
const FEWEST_STEPS: usize = 4;
/// How many times as long as the median of the others the first step must take.
const LEAST_RATIO: f64 = 1.5;
/// How many times the kernels of the others the first step may have, or they its own: an optimizer fills its state in the first.
const MOST_KERNELS: f64 = 1.2;
/// The same for the time of the kernels, which cold caches and clocks make a little longer.
const MOST_TIME: f64 = 1.25;

/// The rule's name.
pub(super) const RULE: &str = "cold-first-iteration";

pub(super) fn check(run: &Run<'_>) -> Option<Found> {
    run.steps.and_then(found)
}

fn found(steps: &Steps) -> Option<Found> {
    let is_prefill = steps.list.first()?.label == Some(StepLabel::Prefill);
    // Between two choices of a token lies the prefill, first of all.
    if is_prefill || steps.basis == StepBasis::TokenChoices || !are_alike(steps, 1) || !is_same_work(&steps.list) {
        return None;
    }
    let times: Vec<f64> = steps.list.iter().map(|step| step.wall_ns.get() as f64).collect();
    if times.len() < FEWEST_STEPS {
        return None;
    }
    let (first, others) = times.split_first()?;
    let usual = median(others)?;
    let ratio = share(*first, usual).filter(|ratio| *ratio >= LEAST_RATIO)?;
    // The first step's wall time also holds the queue that the recording found. A cold step keeps the host longer than others do.
    let hosts: Vec<f64> = steps.list.iter().map(|step| step.host_ns.get() as f64).collect();
    let usual_host = median(&hosts[1..])?;
    if hosts[0] < usual_host * LEAST_RATIO {
        return None;
    }
    let facts = Facts::new()
        .with("first", rounded(*first))
        .with("ratio", ratio)
        .with("others", others.len())
        .with("median", rounded(usual));
    Some(Found::plain(Finding::new(RULE, Severity::Info, None, facts)))
}

/// Whether the first step has as many kernels as the others, and as much time of them.
fn is_same_work(steps: &[StepSummary]) -> bool {
    let Some((first, others)) = steps.split_first() else { return false };
    let is_near = |of: fn(&StepSummary) -> f64, most: f64| {
        let usual = median(&others.iter().map(of).collect::<Vec<_>>()).unwrap_or_default();
        of(first) <= usual * most && usual <= of(first) * most
    };
    is_near(|step| step.kernels as f64, MOST_KERNELS) && is_near(|step| step.device_ns.get() as f64, MOST_TIME)
}

#[cfg(test)]
mod tests {
    use types::Nanos;

    use super::*;

    fn steps(times: &[i64]) -> Steps {
        let step = |time: &i64| StepSummary {
            wall_ns: Nanos::new(*time),
            host_ns: Nanos::new(*time),
            ..StepSummary::default()
        };
        let list = times.iter().map(step).collect();
        Steps { basis: StepBasis::ProfilerSteps, wall_ms: None, device_ms: None, list }
    }

    #[test]
    fn a_slow_first_step_fires_with_what_is_usual() {
        let found = found(&steps(&[400, 100, 110, 90])).unwrap();
        let facts = &found.finding.quantities;
        assert_eq!((facts.time("first"), facts.time("median")), (Some(Nanos::new(400)), Some(Nanos::new(100))));
        assert_eq!((facts.number("ratio"), facts.count("others")), (Some(4.0), Some(3)));
    }

    #[test]
    fn a_first_step_that_does_more_is_no_cold_one() {
        let mut prefill = steps(&[88, 19, 19, 19]);
        for (step, device) in prefill.list.iter_mut().zip([80, 18, 18, 18]) {
            (step.device_ns, step.kernels) = (Nanos::new(device), 100);
        }
        assert!(found(&prefill).is_none());
        let mut other = steps(&[88, 19, 19, 19]);
        other.list[0].kernels = 100;
        assert!(found(&other).is_none());
        let mut cold = steps(&[88, 19, 19, 19]);
        cold.list.iter_mut().for_each(|step| (step.device_ns, step.kernels) = (Nanos::new(18), 100));
        assert!(found(&cold).is_some());
        cold.list[0].kernels = 115;
        assert!(found(&cold).is_some(), "an optimizer fills its state");
        assert!(found(&Steps { basis: StepBasis::TokenChoices, ..cold }).is_none(), "the first pass is the prefill");
    }

    #[test]
    fn a_first_step_like_the_others_does_not_fire() {
        assert!(found(&steps(&[140, 100, 110, 90])).is_none());
    }
}
