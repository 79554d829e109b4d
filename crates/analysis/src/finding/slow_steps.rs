//! A few steps take much longer than the others.

use types::{Facts, Finding, Severity, StepBasis, StepSummary, Steps};

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

pub(super) fn check(run: &Run<'_>) -> Option<Found> {
    run.steps.and_then(found)
}

fn found(steps: &Steps) -> Option<Found> {
    if steps.list.len() < FEWEST_STEPS || !are_alike(steps, 0) {
        return None;
    }
    let others = &steps.list[1..];
    let usual = median(&others.iter().map(|step| step.wall_ns.get() as f64).collect::<Vec<_>>())?;
    let mut slow: Vec<_> = others.iter().filter(|step| step.wall_ns.get() as f64 >= usual * LEAST_RATIO).collect();
    if slow.is_empty() || slow.len() * 4 > others.len() {
        return None;
    }
    slow.sort_by_key(|step| std::cmp::Reverse(step.wall_ns));
    let row = |step: &&StepSummary| {
        Facts::new().with("name", &step.name).with("wall", step.wall_ns).with("device", step.device_ns)
    };
    let facts = Facts::new()
        .with("slow", slow.len())
        .with("steps", others.len())
        .with("ratio", LEAST_RATIO)
        .with("median", rounded(usual))
        .with("slowest", slow.iter().take(NAMED).map(row).collect::<Vec<_>>());
    Some(Found::plain(Finding::new(RULE, Severity::Info, None, facts)))
}

/// Whether all steps do the same, as far as is known: an engine says what its steps do, or else they may do anything; and all run
/// about as many kernels, from the given step on.
pub(super) fn are_alike(steps: &Steps, from: usize) -> bool {
    /// How far kernels may be from the median: a step that logs or accumulates runs a few more.
    const APART: f64 = 0.1;
    let Some(first) = steps.list.first() else { return false };
    let is_known = steps.basis != StepBasis::EngineAnnotations || first.label.is_some();
    let kernels: Vec<f64> = steps.list.iter().skip(from).map(|step| step.kernels as f64).collect();
    let usual = median(&kernels).unwrap_or_default();
    is_known
        && steps.list.iter().all(|step| (step.label, step.batch) == (first.label, first.batch))
        && kernels.iter().all(|kernels| (kernels - usual).abs() <= APART * usual)
}

#[cfg(test)]
mod tests {
    use types::{Nanos, StepLabel};

    use super::*;

    fn steps(times: &[i64]) -> Steps {
        let step = |(place, time): (usize, &i64)| StepSummary {
            name: format!("ProfilerStep#{place}"),
            wall_ns: Nanos::new(*time),
            device_ns: Nanos::new(50),
            ..StepSummary::default()
        };
        let list = times.iter().enumerate().map(step).collect();
        Steps { basis: StepBasis::ProfilerSteps, wall_ms: None, device_ms: None, list }
    }

    #[test]
    fn one_slow_step_is_named() {
        let found = found(&steps(&[900, 100, 101, 99, 300, 100])).unwrap();
        let facts = &found.finding.quantities;
        assert_eq!((facts.count("slow"), facts.count("steps")), (Some(1), Some(5)));
        assert_eq!((facts.number("ratio"), facts.time("median")), (Some(1.5), Some(Nanos::new(100))));
        let step = Facts::new().with("name", "ProfilerStep#4").with("wall", Nanos::new(300));
        assert_eq!(facts.rows("slowest"), [step.with("device", Nanos::new(50))]);
    }

    #[test]
    fn a_verification_between_drafts_is_no_slow_step() {
        let mut rounds = steps(&[100, 100, 101, 99, 300, 100]);
        rounds.basis = StepBasis::EngineAnnotations;
        assert!(found(&rounds).is_none(), "nothing says what they do");
        rounds.list.iter_mut().for_each(|step| step.label = Some(StepLabel::Draft));
        assert!(found(&rounds).is_some());
        rounds.list[4].label = Some(StepLabel::Verify);
        assert!(found(&rounds).is_none());
    }

    #[test]
    fn a_step_that_runs_other_kernels_is_no_slow_one() {
        let mut found_steps = steps(&[100, 100, 101, 99, 300, 100]);
        found_steps.list.iter_mut().for_each(|step| step.kernels = 200);
        found_steps.list[4].kernels = 219;
        assert!(found(&found_steps).is_some());
        found_steps.list[4].kernels = 221;
        assert!(found(&found_steps).is_none(), "a prefill between decode steps");
    }

    #[test]
    fn a_slow_first_step_and_steps_that_all_differ_do_not_fire() {
        assert!(found(&steps(&[900, 100, 101, 99, 100, 100])).is_none());
        assert!(found(&steps(&[100, 100, 200, 300, 50, 400])).is_none());
    }
}
