//! A stage that neither arithmetic nor memory holds back: the time goes into many small operators, or between them.

use types::{EstimatedSaving, Finding, Nanos, Severity, Stage};

use super::{Found, Run, percent, top_stages};
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
    let used = run.used.get(&stage)?;
    let (mfu, mbu) = (used.mfu().filter(|mfu| *mfu < MOST_USE)?, used.mbu().filter(|mbu| *mbu < MOST_USE)?);
    let part = share(run.timings.total(stage)?.get() as f64, run.timings.wall()?.get() as f64);
    let part = part.filter(|part| *part >= LEAST_SHARE)?;
    let mut evidence = vec![
        format!("{stage} reaches {} of peak compute and {} of peak bandwidth", percent(mfu), percent(mbu)),
        format!("it is {} of the run", percent(part)),
    ];
    let operators = Sum::of(run.operators(stage));
    let mean = share(operators.time.get() as f64, operators.calls as f64);
    evidence.extend(mean.map(|mean| format!("{} operators of {} on average", operators.calls, rounded(mean))));
    let between = run.profiled.total(stage).map(|whole| whole - operators.time).filter(|rest| *rest > Nanos::ZERO);
    let between = between.filter(|_| operators.calls > 0);
    let outside = between.and_then(|rest| share(rest.get() as f64, run.instrumented(stage).get() as f64));
    evidence
        .extend(outside.map(|outside| format!("{} of the instrumented time is between operators", percent(outside))));
    Some(Found::plain(Finding {
        quantities: Default::default(),
        rule: RULE.to_owned(),
        severity: Severity::Info,
        stage: Some(stage),
        evidence,
        saving: EstimatedSaving::default(),
        advice: "Look at the operators with the lowest rate for their time first (`operators.md`): fusing small ones, avoiding \
                 copies and running more work per call raise both shares. How much is gained depends on the change."
            .to_owned(),
    }))
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
        assert_eq!(
            found[0].evidence[2..],
            ["2 operators of 400 ns on average", "20.0% of the instrumented time is between operators"]
        );
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
