//! Prefill computes logits for every position of the prompt, and only the last one chooses a token.

use types::{Base, Count, EstimatedSaving, Facts, Finding, Severity, Stage};

use super::{Claim, Found, Run};
use crate::device::{DeviceRecords, Mark};
use crate::evidence::PricedOperator;
use crate::kernel::Family;
use crate::loss::Cause;
use crate::operators::priced::Sum;
use crate::replay::{Change, Chosen};
use crate::scope::Scope;
use crate::statistics::{median, share};
use crate::timings::rounded;

/// Share of prefill below which there is nothing worth changing.
const LEAST_SHARE: f64 = 0.01;

/// Module that turns hidden states into logits.
const HEAD: &str = "lm_head";

/// The rule's name.
pub(super) const RULE: &str = "logits-of-all-positions";

pub(super) fn check(run: &Run<'_>) -> Option<Found> {
    run.device.map_or_else(|| found(run), on_device)
}

/// In a trace: the head's own part of the wall time, at prefill and per decode step.
fn on_device(device: &DeviceRecords) -> Option<Found> {
    let (head, prefill) = (device.special.head?, device.stages.get(&Scope::Stage(Stage::Prefill))?);
    let instances = prefill.instances.max(1);
    if head.positions < 2 {
        return None;
    }
    let [all, decode] = head.parts.map(|time| time.get() as f64);
    // What one position costs is known where decode ran; otherwise the time is taken to be in proportion.
    let steps =
        device.stages.get(&Scope::Stage(Stage::Decode)).and_then(|decode| decode.steps).filter(|steps| *steps > 0);
    let one = steps.map(|steps| decode / steps as f64).filter(|one| *one > 0.0);
    let needed = one.unwrap_or(all / head.positions as f64) * instances as f64;
    let saved = (all - needed).max(0.0);
    let saved_share = share(saved, prefill.wall.get() as f64).filter(|share| *share >= LEAST_SHARE)?;
    let facts = Facts::new()
        .with("module", HEAD)
        .with_share("head_share", share(all, prefill.wall.get() as f64)?, Base::Stage(Stage::Prefill))
        .with("positions", head.positions)
        .with_known("one_position", one.map(rounded))
        .with_share("saved_share", saved_share, Base::Stage(Stage::Prefill));
    let saving = EstimatedSaving::at_most(rounded(saved));
    let finding = Finding::new(RULE, Severity::Info, Some(Stage::Prefill), facts).saving(saving);
    let claim = Claim::Work(vec![Cause::Kernels(Family::Gemm), Cause::Kernels(Family::Gemv)]);
    let change = share(needed, all).map(|needed| Change::Share(Chosen::Marked(Mark::Head), needed));
    Some(Found { change, ..Found::new(finding, claim) })
}

fn found(run: &Run<'_>) -> Option<Found> {
    if !run.subject.logits_all_positions {
        return None;
    }
    let head = Sum::of(run.operators(Stage::Prefill).filter(|operator| is_head(operator)));
    let prefills = run.profiled.inputs(Stage::Prefill).map(|(_, runs)| runs.len() as u64).sum::<u64>().max(1);
    let instrumented = run.instrumented(Stage::Prefill);
    let (positions, mean) = positions(run)?;
    let one = one_position(run);
    // What one position costs is known where decode ran: each of its steps computes exactly that. Otherwise the time is
    // taken to be in proportion to the positions.
    let needed = match one {
        Some(one) => one * prefills as f64,
        None => head.time.get() as f64 / mean,
    };
    let saved = (head.time.get() as f64 - needed).max(0.0);
    let saved_share = share(saved, instrumented.get() as f64).filter(|share| *share >= LEAST_SHARE)?;
    let part = share(head.time.get() as f64, instrumented.get() as f64)?;
    let facts = Facts::new()
        .with("module", HEAD)
        .with("head", head.time)
        .with("profiled", instrumented)
        .with_share("head_share", part, Base::Stage(Stage::Prefill))
        .with("positions", positions)
        .with_known("one_position", one.map(rounded))
        .with_share("saved_share", saved_share, Base::Stage(Stage::Prefill))
        .with_if("own_engine", true);
    let saving = EstimatedSaving::at_most(run.carried_over(rounded(saved), Stage::Prefill));
    let finding = Finding::new(RULE, Severity::Info, Some(Stage::Prefill), facts).saving(saving);
    Some(Found::new(finding, Claim::Work(vec![Cause::Operator("linear".to_owned())])))
}

fn is_head(operator: &PricedOperator) -> bool {
    operator.record.module.as_deref().and_then(|path| path.rsplit('.').next()) == Some(HEAD)
}

/// Positions of the prompts of the instrumented pass, in all and on average; of all inputs where it names none.
fn positions(run: &Run<'_>) -> Option<(u64, f64)> {
    let names: Vec<_> = run.profiled.inputs(Stage::Prefill).map(|(input, _)| input).collect();
    let prompts = run.subject.inputs.iter().filter(|input| names.is_empty() || names.contains(&input.name.as_str()));
    let prompts: Vec<_> = prompts.map(|input| input.prompt_tokens).collect();
    let all = prompts.iter().sum::<Count>().get();
    Some((all, share(all as f64, prompts.len() as f64).filter(|mean| *mean > 1.0)?))
}

/// Time of the head for one position, from the steps of decode.
fn one_position(run: &Run<'_>) -> Option<f64> {
    let steps = run.operators(Stage::Decode).filter(|operator| is_head(operator));
    let times: Vec<_> = steps.map(|operator| operator.record.duration_ns.get() as f64).collect();
    median(&times).filter(|time| *time > 0.0)
}

#[cfg(test)]
mod tests {
    use crate::device::{Head, Special, StageWork};
    use crate::finding::fired_on_device;
    use types::Nanos;

    use super::*;
    use crate::finding::fired;
    use crate::sample::{Case, case, operator, page, timed};

    fn run(head: i64, decode_step: Option<i64>, all: bool) -> Vec<Finding> {
        let mut operators = vec![
            operator("linear", "lm_head", Stage::Prefill, head),
            operator("linear", "model.layers.0.mlp", Stage::Prefill, 10_000 - head),
        ];
        operators.extend(decode_step.map(|time| operator("linear", "lm_head", Stage::Decode, time)));
        // Instruments double the time, and there are two measured runs of 5,000 ns.
        let samples = vec![timed(Stage::Prefill, "a", 0, 5_000), timed(Stage::Prefill, "a", 1, 5_000)];
        let profiled = vec![timed(Stage::Prefill, "a", 0, 10_000)];
        let inputs = vec![page("a", 100, 2)];
        let records = Case { operators, samples, profiled, inputs, logits_all_positions: all, ..case() };
        fired(&records, RULE)
    }

    #[test]
    fn all_but_one_position_is_saved() {
        // 2,000 * (1 - 1/100) of 10,000 ns is 19.8% of prefill, of which 2 * 5,000 ns were measured.
        let found = run(2_000, None, true);
        assert_eq!((found.len(), found[0].saving.saves_ns), (1, Some(Nanos::new(1_980))));
        assert!((found[0].saving.saves_share.unwrap() - 0.198).abs() < 1e-12);
    }

    #[test]
    fn a_step_of_decode_shows_what_one_position_really_costs() {
        // Reading the weights for one position alone takes 500 ns, so 1,500 of 10,000 are saved.
        let found = run(2_000, Some(500), true);
        assert_eq!(found[0].saving.saves_ns, Some(Nanos::new(1_500)));
    }

    #[test]
    fn a_head_of_less_than_a_hundredth_does_not_fire() {
        assert_eq!(run(100, None, true), []);
        assert_eq!(run(2_000, Some(1_950), true), []);
    }

    #[test]
    fn logits_of_the_last_position_do_not_fire() {
        assert_eq!(run(2_000, None, false), []);
    }

    fn traced(positions: u64) -> Vec<Finding> {
        let stage =
            |wall: i64, steps| StageWork { wall: Nanos::new(wall), instances: 1, steps, ..StageWork::default() };
        let stages = [
            (Scope::Stage(Stage::Prefill), stage(10_000, None)),
            (Scope::Stage(Stage::Decode), stage(5_000, Some(10))),
        ];
        let head = Some(Head { positions, parts: [Nanos::new(700), Nanos::new(1_000)] });
        let special = Special { head, ..Special::default() };
        fired_on_device(&DeviceRecords { stages: stages.into(), special, ..DeviceRecords::default() }, RULE)
    }

    #[test]
    fn in_a_trace_the_head_saves_what_it_takes_longer_than_one_step_of_decode() {
        let found = traced(286);
        assert_eq!((found.len(), found[0].saving.saves_ns), (1, Some(Nanos::new(600))));
        let facts = &found[0].quantities;
        assert_eq!((facts.count("positions"), facts.time("one_position")), (Some(286), Some(Nanos::new(100))));
        assert_eq!((facts.share("head_share"), facts.share("saved_share")), (Some(0.07), Some(0.06)));
    }

    #[test]
    fn in_a_trace_a_head_of_one_position_does_not_fire() {
        assert_eq!(traced(1), []);
    }
}
