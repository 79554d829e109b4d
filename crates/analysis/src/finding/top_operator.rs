//! One operator takes much of the time and runs well below what the device allows for it.

use types::{Base, EstimatedSaving, Facts, Finding, Nanos, Severity};

use super::{Claim, Found, Run};
use crate::loss::Cause;
use crate::operators::priced::{Sum, sums};
use crate::statistics::share;

/// Share of all operators above which one of them decides the run.
const MOST_SHARE: f64 = 0.4;
/// How many times its least time it must take; below it there is little to gain.
const LEAST_RATIO: f64 = 1.5;

/// The rule's name.
pub(super) const RULE: &str = "top-operator";

pub(super) fn check(run: &Run<'_>) -> Option<Found> {
    let operators = run.operators;
    let placed = operators.iter().filter(|operator| operator.record.stage.is_some());
    let groups = sums(placed, |operator| (operator.record.stage.map(types::Stage::top), operator.record.name.as_str()));
    let ((stage, name), sum) = groups.into_iter().next()?;
    let stage = stage?;
    let all = Sum::of(operators).time.get() as f64;
    let part = share(sum.time.get() as f64, all).filter(|part| *part > MOST_SHARE)?;
    let least = sum.least.filter(|least| *least > Nanos::ZERO)?;
    let ratio = share(sum.time.get() as f64, least.get() as f64).filter(|ratio| *ratio >= LEAST_RATIO)?;
    let facts = Facts::new()
        .with("where", Base::Stage(stage))
        .with("operator", name)
        .with_share("operator_share", part, Base::OperatorTime)
        .with("calls", sum.calls)
        .with("time", sum.time)
        .with("roofline", least)
        .with("ratio", ratio)
        .with_known("rate", sum.rate());
    let saving = EstimatedSaving::at_most(run.carried_over(sum.time - least, stage));
    let finding = Finding::new(RULE, Severity::Info, Some(stage), facts).saving(saving);
    Some(Found::new(finding, Claim::Lost(vec![Cause::Operator(name.to_owned())])))
}

#[cfg(test)]
mod tests {
    use types::Stage;

    use super::*;
    use crate::finding::fired;
    use crate::sample::{Case, case, operator, timed};

    fn run(time: i64, least: Option<i64>) -> Vec<Finding> {
        let mut operators = vec![
            operator("linear", "lm_head", Stage::Decode, time),
            operator("add", "model", Stage::Decode, 1_000 - time),
        ];
        operators[0].roofline_ns = least.map(Nanos::new);
        let samples = vec![timed(Stage::Decode, "a", 0, 2_000)];
        let profiled = vec![timed(Stage::Decode, "a", 0, 1_000)];
        fired(&Case { operators, samples, profiled, ..case() }, RULE)
    }

    #[test]
    fn the_distance_to_the_least_time_is_what_it_could_save() {
        // 600 - 200 of 1,000 instrumented ns, so 40% of the 2,000 measured ones.
        let found = run(600, Some(200));
        assert_eq!(
            (found.len(), found[0].saving.saves_ns, found[0].saving.saves_share),
            (1, Some(Nanos::new(800)), Some(0.4))
        );
        let facts = &found[0].quantities;
        assert_eq!((facts.name("operator"), facts.share("operator_share")), (Some("linear"), Some(0.6)));
        assert_eq!((facts.time("roofline"), facts.number("ratio")), (Some(Nanos::new(200)), Some(3.0)));
    }

    #[test]
    fn an_operator_near_its_least_time_does_not_fire() {
        assert_eq!(run(600, Some(401)), []);
        assert_eq!(run(600, None), []);
    }

    #[test]
    fn two_operators_of_similar_time_do_not_fire() {
        let mut operators: Vec<_> =
            ["a", "b", "c"].map(|name| operator(name, "model", Stage::Decode, 400)).into_iter().collect();
        operators.iter_mut().for_each(|operator| operator.roofline_ns = Some(Nanos::new(1)));
        let samples = vec![timed(Stage::Decode, "a", 0, 2_000)];
        assert_eq!(fired(&Case { operators, samples, ..case() }, RULE), []);
    }
}
