//! The first step takes longer than the others: it loads, compiles or allocates.

use types::{Facts, Finding, Severity, StepLabel, Steps};

use super::{Found, Run};
use crate::statistics::{median, share};
use crate::timings::rounded;

/// Fewest steps that tell what is usual.
const FEWEST_STEPS: usize = 4;
/// How many times as long as the median of the others the first step must take.
const LEAST_RATIO: f64 = 1.5;

/// The rule's name.
pub(super) const RULE: &str = "cold-first-iteration";

pub(super) fn check(run: &Run<'_>) -> Vec<Found> {
    run.steps.and_then(found).into_iter().collect()
}

fn found(steps: &Steps) -> Option<Found> {
    // Steps of an engine differ by their batch.
    let alike = |label: Option<StepLabel>| matches!(label, None | Some(StepLabel::Decode));
    if !steps.list.iter().all(|step| alike(step.label) && step.batch == steps.list[0].batch) {
        return None;
    }
    let times: Vec<f64> = steps.list.iter().map(|step| step.wall_ns.get() as f64).collect();
    if times.len() < FEWEST_STEPS {
        return None;
    }
    let (first, others) = times.split_first()?;
    let usual = median(others)?;
    let ratio = share(*first, usual).filter(|ratio| *ratio >= LEAST_RATIO)?;
    let facts = Facts::new()
        .with("first", rounded(*first))
        .with("ratio", ratio)
        .with("others", others.len())
        .with("median", rounded(usual));
    Some(Found::plain(Finding::new(RULE, Severity::Info, None, facts)))
}

#[cfg(test)]
mod tests {
    use types::{Nanos, StepBasis, StepSummary};

    use super::*;

    fn steps(times: &[i64]) -> Steps {
        let step = |time: &i64| StepSummary {
            name: String::new(),
            label: None,
            host_ns: Nanos::ZERO,
            wall_ns: Nanos::new(*time),
            device_ns: Nanos::ZERO,
            kernels: 0,
            batch: None,
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
    fn a_first_step_like_the_others_does_not_fire() {
        assert!(found(&steps(&[140, 100, 110, 90])).is_none());
    }
}
