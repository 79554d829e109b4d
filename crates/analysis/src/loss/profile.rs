//! The books of a run on our own engine.
//!
//! The operators of the instrumented pass are carried over to all measured instances: instruments slow a stage down
//! evenly, as far as a run tells, so an operator's share of its stage stays what it is.

use types::{Nanos, Stage};

use super::{Cause, Ledger, StageLoss};
use crate::evidence::PricedOperator;
use crate::operators::priced::{Sum, sums};
use crate::scope::Scope;
use crate::statistics::share;
use crate::timings::{Timings, rounded};

/// What prefill and decode lost.
pub(crate) fn books(operators: &[PricedOperator], timings: &Timings<'_>, profiled: &Timings<'_>) -> Ledger {
    let mut ledger = Ledger::default();
    for stage in timings.stages().filter(|stage| stage.parent().is_none()) {
        let Some(wall) = timings.total(stage) else { continue };
        add_stage(&mut ledger, operators, stage, wall, profiled, timings.instances(stage));
    }
    ledger
}

fn add_stage(
    ledger: &mut Ledger,
    all: &[PricedOperator],
    stage: Stage,
    wall: Nanos,
    profiled: &Timings<'_>,
    instances: u64,
) {
    let of_stage = |found: Stage| found.is_within(stage);
    let operators = || all.iter().filter(move |one| one.record.stage.is_some_and(of_stage));
    let whole = Sum::of(operators());
    let instrumented = profiled.total(stage).unwrap_or(whole.time);
    let slower = share(wall.get() as f64, instrumented.get() as f64);
    let (Some(slower), true) = (slower, whole.calls > 0) else {
        return ledger.open(StageLoss { stage: Scope::Stage(stage), wall, least: None });
    };
    let passes = share(instances as f64, profiled.instances(stage).max(1) as f64).unwrap_or(1.0);
    let carried = |time: Nanos| time.get() as f64 * slower;
    let needed = |least: Nanos| least.get() as f64 * passes;
    ledger.open(StageLoss { stage: Scope::Stage(stage), wall, least: whole.least.map(|least| rounded(needed(least))) });
    for (name, sum) in sums(operators(), |operator| operator.record.name.as_str()) {
        let Some(least) = sum.least else { continue };
        ledger.add(Scope::Stage(stage), Cause::Operator(name.to_owned()), rounded(carried(sum.time) - needed(least)));
    }
    ledger.add(Scope::Stage(stage), Cause::BetweenOperators, wall - rounded(carried(whole.time)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Case, case, operator, timed};

    #[test]
    fn time_beyond_the_least_stands_under_its_operator_and_the_rest_between() {
        // Instrumented: 100 ns, of which `linear` 60 (least 20) and `add` 30 (least 10). Measured: two runs of 80 ns, so
        // that everything is worth 160 / 100 of itself, and the least time counts twice.
        let mut operators = vec![operator("linear", "m", Stage::Decode, 60), operator("add", "m", Stage::Decode, 30)];
        operators[0].roofline_ns = Some(Nanos::new(20));
        operators[1].roofline_ns = Some(Nanos::new(10));
        let samples = vec![timed(Stage::Decode, "a", 0, 80), timed(Stage::Decode, "a", 1, 80)];
        let profiled = vec![timed(Stage::Decode, "a", 0, 100)];
        let records = Case { operators, samples, profiled, ..case() };
        let (timings, profiled) = (Timings::new(&records.samples, &[]), Timings::new(&records.profiled, &[]));
        let ledger = books(&records.operators, &timings, &profiled);
        let rows: Vec<_> = ledger.rows(None).into_iter().map(|row| (row.cause, row.lost_ns.get())).collect();
        let expected = [("operator: linear", 56), ("operator: add", 28), ("between operators", 16)];
        assert_eq!(rows, expected.map(|(cause, lost)| (cause.into(), lost)));
        let stage = &ledger.stages()[0];
        assert_eq!((stage.wall.get(), stage.least.map(Nanos::get)), (160, Some(60)));
    }

    #[test]
    fn without_a_model_of_the_device_nothing_is_called_lost() {
        let operators = vec![operator("linear", "m", Stage::Decode, 100)];
        let samples = vec![timed(Stage::Decode, "a", 0, 100)];
        let records = Case { operators, profiled: samples.clone(), samples, ..case() };
        let (timings, profiled) = (Timings::new(&records.samples, &[]), Timings::new(&records.profiled, &[]));
        let ledger = books(&records.operators, &timings, &profiled);
        assert_eq!(ledger.rows(None), []);
        assert_eq!(ledger.stages()[0].least, None);
    }
}
