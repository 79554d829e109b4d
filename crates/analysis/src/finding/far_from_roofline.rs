//! A stage that neither arithmetic nor memory holds back: the time goes into many small operators, or between them.

use types::{Base, Facts, Finding, Nanos, Severity, Stage, StepBasis};

use super::{Found, Run, top_stages};
use crate::operators::priced::Sum;
use crate::statistics::share;
use crate::timings::rounded;

/// Use of both limits below which neither explains the time.
const MOST_USE: f64 = 0.3;
/// Share of the run below which a stage is not worth a look.
const LEAST_SHARE: f64 = 0.1;

/// The rule's name.
pub(super) const RULE: &str = "far-from-roofline";

pub(super) fn check(run: &Run<'_>) -> Vec<Found> {
    top_stages(run).filter_map(|stage| of_stage(run, stage)).collect()
}

fn of_stage(run: &Run<'_>, stage: Stage) -> Option<Found> {
    // What a server's steps wait for has rules of its own.
    if run.steps.is_some_and(|steps| steps.basis == StepBasis::EngineAnnotations) {
        return None;
    }
    let used = run.used.get(&stage)?;
    let (mfu, mbu) = (used.mfu().filter(|mfu| *mfu < MOST_USE)?, used.mbu().filter(|mbu| *mbu < MOST_USE)?);
    let part = share(run.timings.total(stage)?.get() as f64, run.timings.wall()?.get() as f64);
    let part = part.filter(|part| *part >= LEAST_SHARE)?;
    let operators = Sum::of(run.operators(stage));
    let mean = share(operators.time.get() as f64, operators.calls as f64);
    let between = run.profiled.total(stage).map(|whole| whole - operators.time).filter(|rest| *rest > Nanos::ZERO);
    let between = between.filter(|_| operators.calls > 0);
    let outside = between.and_then(|rest| share(rest.get() as f64, run.instrumented(stage).get() as f64));
    let facts = Facts::new()
        .with("where", Base::Stage(stage))
        .with_share("mfu", mfu, Base::PeakCompute)
        .with_share("mbu", mbu, Base::PeakBandwidth)
        .with_share("run_share", part, Base::Run)
        .with("operators", operators.calls)
        .with_known("mean", mean.map(rounded))
        .with_share("between_share", outside, Base::ProfiledPass);
    Some(Found::plain(Finding::new(RULE, Severity::Info, Some(stage), facts)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::fired;
    use crate::sample::{Case, case, operator, page, peak, timed, work};

    fn run(flops: u64, bytes: u64, other: i64) -> Vec<Finding> {
        let samples = vec![timed(Stage::Decode, "a", 0, 1_000), timed(Stage::Prefill, "a", 0, other)];
        let operators =
            vec![operator("add", "model", Stage::Decode, 300), operator("add", "model", Stage::Decode, 500)];
        let records = Case {
            profiled: samples.clone(),
            samples,
            operators,
            work: vec![work("a", Stage::Decode, flops, bytes)],
            inputs: vec![page("a", 10, 5)],
            peak: Some(peak(1e9, 1e9)),
            ..case()
        };
        fired(&records, RULE)
    }

    #[test]
    fn idle_arithmetic_and_idle_memory_fire_and_show_the_operators() {
        let found = run(100, 200, 10);
        assert_eq!((found.len(), found[0].stage, found[0].saving.saves_ns), (1, Some(Stage::Decode), None));
        let facts = &found[0].quantities;
        assert_eq!((facts.share("mfu"), facts.share("mbu")), (Some(0.1), Some(0.2)));
        assert_eq!((facts.count("operators"), facts.time("mean")), (Some(2), Some(Nanos::new(400))));
        assert_eq!(facts.share("between_share"), Some(0.2));
    }

    #[test]
    fn one_busy_limit_is_enough_not_to_fire() {
        assert_eq!(run(300, 0, 10), []);
        assert_eq!(run(0, 300, 10), []);
    }

    #[test]
    fn a_stage_that_hardly_matters_does_not_fire() {
        assert_eq!(run(100, 200, 9_001), []);
    }
}
