//! A few steps take much longer than the others.

use types::{EstimatedSaving, Finding, Severity, Steps};

use super::{Found, Run};
use crate::statistics::median;
use crate::timings::rounded;

/// Fewest steps that tell what is usual; the first is judged by another rule.
const FEWEST_STEPS: usize = 5;
/// How many times the median a step must take.
const LEAST_RATIO: f64 = 1.5;
/// Steps named.
const NAMED: usize = 3;

/// The rule's name.
pub(super) const RULE: &str = "slow-steps";

pub(super) fn check(run: &Run<'_>) -> Vec<Found> {
    run.steps.and_then(found).into_iter().collect()
}

fn found(steps: &Steps) -> Option<Found> {
    let first = steps.list.first()?.batch;
    if steps.list.len() < FEWEST_STEPS || steps.list.iter().any(|step| step.batch != first) {
        return None;
    }
    let others = &steps.list[1..];
    let usual = median(&others.iter().map(|step| step.wall_ns.get() as f64).collect::<Vec<_>>())?;
    let mut slow: Vec<_> = others.iter().filter(|step| step.wall_ns.get() as f64 >= usual * LEAST_RATIO).collect();
    if slow.is_empty() || slow.len() * 4 > others.len() {
        return None;
    }
    slow.sort_by_key(|step| std::cmp::Reverse(step.wall_ns));
    let mut evidence = vec![format!(
        "{} of {} steps take at least {LEAST_RATIO} times the median of {}",
        slow.len(),
        others.len(),
        rounded(usual)
    )];
    evidence.extend(
        slow.iter()
            .take(NAMED)
            .map(|step| format!("`{}`: {}, its device work {}", step.name, step.wall_ns, step.device_ns)),
    );
    Some(Found::plain(Finding {
        quantities: Default::default(),
        rule: RULE.to_owned(),
        severity: Severity::Info,
        stage: None,
        evidence,
        saving: EstimatedSaving::default(),
        advice: "Compare these steps with their neighbours: where the device time grew, the work differs or communication waited; \
                 where it did not, the host was late."
            .to_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use types::{Nanos, StepBasis, StepSummary};

    use super::*;

    fn steps(times: &[i64]) -> Steps {
        let step = |(place, time): (usize, &i64)| StepSummary {
            name: format!("ProfilerStep#{place}"),
            label: None,
            host_ns: Nanos::ZERO,
            wall_ns: Nanos::new(*time),
            device_ns: Nanos::new(50),
            kernels: 0,
            batch: None,
        };
        let list = times.iter().enumerate().map(step).collect();
        Steps { basis: StepBasis::ProfilerSteps, wall_ms: None, device_ms: None, list }
    }

    #[test]
    fn one_slow_step_is_named() {
        let found = found(&steps(&[900, 100, 101, 99, 300, 100])).unwrap();
        assert_eq!(found.finding.evidence[0], "1 of 5 steps take at least 1.5 times the median of 100 ns");
        assert_eq!(found.finding.evidence[1], "`ProfilerStep#4`: 300 ns, its device work 50.0 ns");
    }

    #[test]
    fn a_slow_first_step_and_steps_that_all_differ_do_not_fire() {
        assert!(found(&steps(&[900, 100, 101, 99, 100, 100])).is_none());
        assert!(found(&steps(&[100, 100, 200, 300, 50, 400])).is_none());
    }
}
