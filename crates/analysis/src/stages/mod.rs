//! Stages and the rates a user sees.
//!
//! In: samples, sorted by [`crate::timings`], or the stages that timelines mark or show ([`traced`]). Out: a summary per stage and
//! the throughput.

pub(crate) mod traced;

use std::collections::BTreeMap;

use types::{
    Base, Count, Facts, InputFacts, Nanos, Origin, QualityCounter, Sample, Severity, Stage, StageSummary, StepLabel,
    StepSummary, Steps, Throughput,
};

use crate::device::DeviceSums;
use crate::evidence::PlacedTimeline;
use crate::loss::Ledger;
use crate::scope::Scope;
use crate::statistics::share;
use crate::subject::{InputRoofline, Subject};
use crate::timings::{Timings, rounded};
use crate::utilisation::Utilisation;

/// Tokens one instance of a stage handles, over all sequences of a batch: the prompt for prefill, its image tokens for vision, and for decode every
/// token but the first, which prefill gives. The encoders see patches, not tokens; a network without a prompt sees none.
fn tokens(stage: Stage, input: &InputFacts) -> Option<u64> {
    match stage {
        Stage::Prefill => input.prompt_tokens.checked_mul(input.batch).filter(|tokens| *tokens > 0),
        Stage::Vision => input.image_tokens.checked_mul(input.batch),
        Stage::Decode => input.generated_tokens.saturating_sub(1).checked_mul(input.batch),
        Stage::Sam | Stage::Clip | Stage::Projector => None,
    }
}

/// What the stages of a run are summed up from.
pub(crate) struct StageSources<'a> {
    pub(crate) timings: &'a Timings<'a>,
    pub(crate) subject: &'a Subject,
    pub(crate) used: &'a BTreeMap<Stage, Utilisation>,
    pub(crate) lost: &'a Ledger,
    /// Device work of the timelines.
    pub(crate) sums: &'a DeviceSums,
    /// Steps of the timelines.
    pub(crate) steps: Option<&'a Steps>,
    /// The timelines, where the times of the stages are theirs.
    pub(crate) traced: Option<&'a [PlacedTimeline<'a>]>,
}

/// Every measured stage, parents before children.
pub(crate) fn summaries(sources: &StageSources<'_>) -> Vec<StageSummary> {
    let StageSources { timings, subject, used, lost, sums, steps, traced } = *sources;
    let has_work = sums.whole.pieces > 0;
    let summary = |stage: Stage| {
        let used = used.get(&stage);
        let wall_ns = match traced {
            Some(timelines) => traced::wall(timelines, stage),
            None => timings.total(stage),
        };
        let is_inferred = traced.is_some_and(|timelines| traced::is_inferred(timelines, stage));
        let (roofline, lost) = if subject.roofline.is_empty() {
            let roofline = lost.stages().iter().find(|one| one.stage == Scope::Stage(stage)).and_then(|one| one.least);
            (roofline, roofline.map(|_| lost.lost(Scope::Stage(stage), |_| true)))
        } else {
            let roofline = roofline(timings, &subject.roofline, stage);
            let lost = wall_ns.zip(roofline).map(|(wall, roofline)| wall - roofline);
            (roofline, lost.filter(|lost| *lost >= Nanos::ZERO))
        };
        let device = sums.stages.get(&stage).copied().unwrap_or_default();
        StageSummary {
            name: stage,
            parent: stage.parent(),
            instances: timings.instances(stage),
            wall_ns,
            gpu_busy_ns: has_work.then_some(device.busy),
            kernel_ns: has_work.then_some(device.kernel_time),
            kernel_count: has_work.then_some(device.kernels),
            tokens: match steps.and_then(|steps| annotated_tokens(steps, stage)) {
                Some(tokens) => Some(tokens),
                None => all_tokens(timings, &subject.inputs, stage),
            },
            mfu: used.and_then(Utilisation::mfu),
            mbu: used.and_then(Utilisation::mbu),
            origin: if is_inferred { Origin::Assumed } else { Origin::Measured },
            speed_of_light_ns: roofline,
            lost_ns: lost,
        }
    };
    timings.stages().map(summary).collect()
}

/// Roofline time of all measured instances of a stage; absent where one input's is not known.
fn roofline(timings: &Timings<'_>, known: &[InputRoofline], stage: Stage) -> Option<Nanos> {
    let of_input = |(input, runs): (&str, &[&Sample])| {
        let one = known.iter().find(|one| one.stage == stage && one.input == input)?.time;
        Some(Nanos::new(one.get().saturating_mul(runs.len() as i64)))
    };
    let all: Nanos = timings.inputs(stage).map(of_input).sum::<Option<Nanos>>()?;
    (all > Nanos::ZERO).then_some(all)
}

/// Tokens of all instances; absent where one ran on an input that nothing is known of.
fn all_tokens(timings: &Timings<'_>, inputs: &[InputFacts], stage: Stage) -> Option<u64> {
    let known = |name: &str| inputs.iter().find(|input| input.name == name);
    timings
        .inputs(stage)
        .map(|(name, runs)| tokens(stage, known(name)?)?.checked_mul(runs.len() as u64))
        .try_fold(0u64, |sum, tokens| sum.checked_add(tokens?))
}

/// Tokens of a stage as a serving engine annotates its steps; absent where one step does not say. Drafts process the tokens of
/// the steps that they draft for.
fn annotated_tokens(steps: &Steps, stage: Stage) -> Option<u64> {
    let is_of_stage = |step: &&StepSummary| match step.label {
        Some(StepLabel::Prefill) => stage == Stage::Prefill,
        Some(StepLabel::Decode | StepLabel::Verify) => stage == Stage::Decode,
        Some(StepLabel::Mixed | StepLabel::Draft) | None => false,
    };
    let of_stage = steps.list.iter().filter(is_of_stage);
    let tokens: Option<Count> = of_stage.map(|step| step.batch?.tokens).sum();
    tokens.map(Count::get).filter(|tokens| *tokens > 0)
}

/// Rates of a serving engine's steps. There is no time to a first token: requests wait before their first step, and a step may
/// hold a part of a prompt.
pub(crate) fn engine_throughput(stages: &[StageSummary]) -> Throughput {
    let rate = |name: Stage| {
        let stage = stages.iter().find(|stage| stage.name == name)?;
        share(stage.tokens? as f64 * 1e9, stage.wall_ns?.get() as f64)
    };
    Throughput {
        decode_tokens_per_second: rate(Stage::Decode),
        prefill_tokens_per_second: rate(Stage::Prefill),
        ..Throughput::default()
    }
}

/// Leaves out what cannot be true: a roofline time above the measured time, or arithmetic beyond the time the device was busy.
/// Then the model does not describe this run.
pub(crate) fn checked(
    stages: &mut [StageSummary],
    misfits: Option<&BTreeMap<Stage, Nanos>>,
    same_pass: bool,
) -> Option<QualityCounter> {
    let mut left_out = Vec::new();
    for stage in stages {
        let Some(wall) = stage.wall_ns else { continue };
        let known = misfits.and_then(|misfits| misfits.get(&stage.name)).copied();
        let above = known.or(stage.speed_of_light_ns.filter(|roofline| *roofline > wall));
        let busy = stage.gpu_busy_ns.filter(|_| same_pass).and_then(|busy| share(busy.get() as f64, wall.get() as f64));
        let idle = stage.mfu.zip(busy).filter(|(mfu, busy)| mfu > busy);
        let part = Facts::new().with("part", Base::Stage(stage.name));
        if let Some(roofline) = above {
            left_out.push(part.with("roofline", roofline).with("wall", wall));
        } else if let Some((mfu, busy)) = idle {
            left_out.push(part.with_share("mfu", mfu, Base::PeakCompute).with_share(
                "busy",
                busy,
                Base::Stage(stage.name),
            ));
        } else {
            continue;
        }
        (stage.speed_of_light_ns, stage.lost_ns, stage.mfu, stage.mbu) = (None, None, None, None);
    }
    let counter = QualityCounter::some("model_does_not_fit", Severity::Warning, left_out.len() as u64);
    counter.map(|counter| counter.facts(Facts::new().with("parts", left_out)))
}

/// Rates from medians, so that one interrupted run does not change them.
pub(crate) fn throughput(timings: &Timings<'_>, inputs: &[InputFacts]) -> Throughput {
    let rate = |stage| paired(timings, inputs, stage, |input| tokens(stage, input));
    let (decode_tokens, decode) = rate(Stage::Decode);
    let (prompt_tokens, prefill) = rate(Stage::Prefill);
    // What one user waits for: a step gives one token to every sequence of a batch.
    let (steps, _) = paired(timings, inputs, Stage::Decode, |input| input.generated_tokens.checked_sub(1));
    // A network that generates nothing has no first token to wait for.
    let generates = inputs.is_empty() || inputs.iter().any(|input| input.generated_tokens > 0);
    let first = timings.milliseconds(Stage::Prefill).filter(|_| generates);
    Throughput {
        ttft_ns: first.map(|statistics| rounded(statistics.median * 1e6)),
        time_per_output_token_ns: share(decode, steps).map(rounded),
        decode_tokens_per_second: share(decode_tokens * 1e9, decode).filter(|rate| *rate > 0.0),
        end_to_end_tokens_per_second: end_to_end(timings, inputs),
        prefill_tokens_per_second: share(prompt_tokens * 1e9, prefill).filter(|rate| *rate > 0.0),
    }
}

/// Tokens generated per second of prefill and decode, over the inputs that have both.
fn end_to_end(timings: &Timings<'_>, inputs: &[InputFacts]) -> Option<f64> {
    let (prefill, decode) = (timings.medians(Stage::Prefill), timings.medians(Stage::Decode));
    let of = |input: &InputFacts| {
        let name = input.name.as_str();
        Some((input.generated_tokens as f64 * input.batch as f64, prefill.get(name)? + decode.get(name)?))
    };
    let sums = inputs.iter().filter_map(of).fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    share(sums.0 * 1e9, sums.1).filter(|rate| *rate > 0.0)
}

/// Tokens and median nanoseconds, summed over the inputs that have both.
fn paired(
    timings: &Timings<'_>,
    inputs: &[InputFacts],
    stage: Stage,
    count: impl Fn(&InputFacts) -> Option<u64>,
) -> (f64, f64) {
    let medians = timings.medians(stage);
    let pair = |input: &InputFacts| {
        let tokens = count(input).filter(|tokens| *tokens > 0)?;
        Some((tokens as f64, *medians.get(input.name.as_str())?))
    };
    inputs.iter().filter_map(pair).fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1))
}

#[cfg(test)]
mod tests {
    use types::Nanos;

    use super::*;

    fn summed(timings: &Timings<'_>, inputs: &[InputFacts]) -> Vec<StageSummary> {
        let subject = Subject { inputs: inputs.to_vec(), ..Subject::default() };
        summaries(&StageSources {
            timings,
            subject: &subject,
            used: &BTreeMap::new(),
            lost: &Ledger::default(),
            sums: &DeviceSums::default(),
            steps: None,
            traced: None,
        })
    }
    use crate::sample::{page, timed};

    #[test]
    fn the_first_token_belongs_to_prefill_and_the_others_to_decode() {
        // 5 tokens: one from prefill, four from 800 ns of decode.
        let inputs = [page("a", 100, 5)];
        let samples = [timed(Stage::Prefill, "a", 0, 1_000), timed(Stage::Decode, "a", 0, 800)];
        let timings = Timings::new(&samples, &inputs);
        let rates = throughput(&timings, &inputs);
        assert_eq!(rates.ttft_ns, Some(Nanos::new(1_000)));
        assert_eq!(rates.time_per_output_token_ns, Some(Nanos::new(200)));
        assert_eq!(rates.decode_tokens_per_second, Some(5e6));
        assert_eq!(rates.prefill_tokens_per_second, Some(1e8));
        let stages = summed(&timings, &inputs);
        assert_eq!(stages.iter().map(|stage| stage.tokens).collect::<Vec<_>>(), [Some(100), Some(4)]);
    }

    #[test]
    fn a_step_gives_one_token_to_every_sequence_of_a_batch() {
        let inputs = [InputFacts { batch: 3, ..page("a", 100, 5) }];
        let samples = [timed(Stage::Prefill, "a", 0, 1_000), timed(Stage::Decode, "a", 0, 800)];
        let timings = Timings::new(&samples, &inputs);
        let rates = throughput(&timings, &inputs);
        assert_eq!(rates.time_per_output_token_ns, Some(Nanos::new(200)));
        assert_eq!(rates.decode_tokens_per_second, Some(15e6));
        assert_eq!(rates.prefill_tokens_per_second, Some(3e8));
        let stages = summed(&timings, &inputs);
        assert_eq!(stages.iter().map(|stage| stage.tokens).collect::<Vec<_>>(), [Some(300), Some(12)]);
    }

    #[test]
    fn a_run_that_decodes_nothing_has_no_time_per_token() {
        let inputs = [page("a", 100, 1)];
        let samples = [timed(Stage::Prefill, "a", 0, 1_000)];
        let rates = throughput(&Timings::new(&samples, &inputs), &inputs);
        assert_eq!((rates.time_per_output_token_ns, rates.decode_tokens_per_second), (None, None));
        assert!(rates.ttft_ns.is_some());
    }

    #[test]
    fn a_network_without_tokens_has_no_first_one() {
        let inputs = [page("a", 0, 0)];
        let samples = [timed(Stage::Prefill, "a", 0, 1_000)];
        let timings = Timings::new(&samples, &inputs);
        assert_eq!(throughput(&timings, &inputs), Throughput::default());
        assert_eq!(summed(&timings, &inputs)[0].tokens, None);
    }

    #[test]
    fn an_unknown_input_makes_tokens_unknown_not_zero() {
        let inputs = [page("a", 100, 5)];
        let samples = [timed(Stage::Prefill, "a", 0, 10), timed(Stage::Prefill, "b", 0, 10)];
        let stages = summed(&Timings::new(&samples, &inputs), &inputs);
        assert_eq!(stages[0].tokens, None);
    }
}
