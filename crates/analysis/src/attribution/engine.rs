//! Steps that a serving engine annotates with their batch, and the stages that follow from it.
//!
//! vLLM writes `execute_T_context_N(sqA skB sqsqC sqskD)_generation_M(...)`: T tokens, N prompts, M decoding sequences, and
//! for each group the sums over its sequences of query lengths, key lengths and their products. SGLang writes
//! `step[DECODE bs=32]` and `step[EXTEND bs=15 toks=15360]`. A step with prompts alone is prefill, one with decoding
//! sequences alone is decode; one with both is neither.

use std::collections::BTreeMap;

use types::timeline::{ThreadId, Timeline};
use types::{Facts, Nanos, Remark, Stage, StepBatch, StepGroup};

use super::aside::Asides;
use super::launch::{Launches, NONE};
use super::stage::{Inference, StageInstance, StageOrigin};
use super::stages::Stages;
use super::step::StepInstance;
use crate::time::Span;

/// One annotated step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EngineStep {
    /// The annotation.
    pub(crate) name: String,
    /// What it says.
    pub(crate) batch: StepBatch,
    /// On the host.
    pub(crate) host: Span,
    /// Who ran it.
    pub(crate) thread: ThreadId,
}

/// What an annotation says of its step; `None` for any other range.
pub(crate) fn batch(name: &str) -> Option<StepBatch> {
    executed(name).or_else(|| stepped(name))
}

/// `execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)_generation_37(...)`, or without the first number.
fn executed(name: &str) -> Option<StepBatch> {
    let rest = name.strip_prefix("execute_")?;
    let (tokens, rest) = match rest.split_once("context_")? {
        ("", rest) => (None, rest),
        (tokens, rest) => (Some(tokens.strip_suffix('_')?.parse().ok()?), rest),
    };
    let (context, generation) = rest.split_once("_generation_")?;
    let (context, generation) = (group(context)?, group(generation)?);
    let summed = context.query_tokens.zip(generation.query_tokens).map(|(one, two)| one + two);
    Some(StepBatch { tokens: tokens.or(summed), context, generation })
}

/// `9(sq8155sk8430sqsq7475785sqsk7671310)` or `9(8155)`.
fn group(text: &str) -> Option<StepGroup> {
    let (sequences, sums) = match text.split_once('(') {
        Some((sequences, sums)) => (sequences, sums.strip_suffix(')')?),
        None => (text, ""),
    };
    let sequences = sequences.parse().ok()?;
    let sums: String = sums.chars().filter(|sign| !sign.is_whitespace()).collect();
    if let Ok(query_tokens) = sums.parse() {
        return Some(StepGroup { sequences, query_tokens: Some(query_tokens), ..StepGroup::default() });
    }
    let after = |mark: &str, until: &str| {
        let (_, rest) = sums.split_once(mark)?;
        let (number, _) = if until.is_empty() { (rest, "") } else { rest.split_once(until)? };
        number.parse::<u64>().ok()
    };
    Some(StepGroup {
        sequences,
        query_tokens: sums.strip_prefix("sq").and_then(|rest| rest.split_once("sk")?.0.parse().ok()),
        key_tokens: after("sk", "sqsq"),
        query_squared: after("sqsq", "sqsk"),
        query_key: after("sqsk", ""),
    })
}

/// `step[EXTEND bs=15 toks=15360]`.
fn stepped(name: &str) -> Option<StepBatch> {
    let (mode, rest) = name.strip_prefix("step[")?.strip_suffix(']')?.split_once(' ')?;
    let of =
        |key: &str| rest.split(' ').find_map(|part| part.strip_prefix(key)?.strip_prefix('=')?.parse::<u64>().ok());
    let (sequences, tokens) = (of("bs")?, of("toks"));
    let filled = |tokens| StepGroup { sequences, query_tokens: tokens, ..StepGroup::default() };
    match mode {
        "EXTEND" => Some(StepBatch { tokens, context: filled(tokens), generation: StepGroup::default() }),
        // Each sequence takes one token.
        "DECODE" => {
            let tokens = tokens.or(Some(sequences));
            Some(StepBatch { tokens, context: StepGroup::default(), generation: filled(tokens) })
        }
        _ => None,
    }
}

/// The outermost annotations, in order of their start.
pub(crate) fn steps(timeline: &Timeline, last: Nanos) -> Vec<EngineStep> {
    let batches: Vec<_> = timeline.names.iter().map(|(_, name)| batch(name)).collect();
    let found = timeline.ranges.iter().filter_map(|range| {
        let batch = batches[range.name.index()]?;
        let host = Span::new(range.start, range.end.unwrap_or(last));
        Some(EngineStep { name: timeline.name(range.name).to_owned(), batch, host, thread: range.thread })
    });
    let mut found: Vec<_> = found.collect();
    found.sort_by_key(|step| (step.host.start, std::cmp::Reverse(step.host.end)));
    let mut until: BTreeMap<ThreadId, Nanos> = BTreeMap::new();
    found.retain(|step| {
        let outer = until.get(&step.thread).is_none_or(|until| step.host.start >= *until);
        if outer {
            until.insert(step.thread, step.host.end);
        }
        outer
    });
    found
}

/// Stages of annotated steps; `None` where there is no annotation.
pub(super) fn stages(timeline: &Timeline, launches: &Launches, last: Nanos) -> Option<Stages> {
    let found = steps(timeline, last);
    if found.is_empty() {
        return None;
    }
    let (mut stages, mut steps) = (Vec::new(), Vec::new());
    let mut counts = [0u64; 3];
    let mut lanes: BTreeMap<u32, Vec<(Span, u32, Option<u32>)>> = BTreeMap::new();
    for EngineStep { batch, host, thread, .. } in &found {
        let Some(stage) = batch.stage() else {
            counts[2] += 1;
            continue;
        };
        let place = stages.len() as u32;
        let step = (stage == Stage::Decode).then(|| {
            steps.push(StepInstance::new(steps.len() as u32, Some(place), *host));
            steps.len() as u32 - 1
        });
        counts[usize::from(stage == Stage::Decode)] += 1;
        stages.push(StageInstance::new(stage, *host, *thread, StageOrigin::Engine));
        lanes.entry(thread.0).or_default().push((*host, place, step));
    }
    let mut of_launch = vec![(NONE, NONE); launches.len()];
    for (thread, lane) in &lanes {
        for launch in launches.calls.span(*thread as usize) {
            let moment = launches.starts[launch];
            let before = lane.partition_point(|(host, ..)| host.start <= moment);
            let around = before.checked_sub(1).map(|place| lane[place]).filter(|(host, ..)| host.contains(moment));
            if let Some((_, stage, step)) = around {
                of_launch[launch] = (stage, step.unwrap_or(NONE));
            }
        }
    }
    let (instance, step): (Vec<u32>, Vec<u32>) = of_launch.into_iter().unzip();
    let [prefills, decodes, others] = counts;
    let some = |count: u64| (count > 0).then_some(count);
    let facts = Facts::new()
        .with_known("prefills", some(prefills))
        .with_known("decodes", some(decodes))
        .with_known("others", some(others));
    let evidence = Remark::new("stages.engine", facts);
    Some(Stages {
        instance: launches.per_work(&instance).collect(),
        step: launches.per_work(&step).collect(),
        stages,
        steps,
        inference: Inference::Done { evidence },
        asides: Asides::default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_batch_of_a_mixed_step_is_read_in_full() {
        let found = batch(
            "execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)_generation_37(sq37sk34489sqsq37sqsk34489)",
        );
        let found = found.unwrap();
        assert_eq!((found.tokens, found.stage()), (Some(8_192), None));
        let StepGroup { sequences, query_tokens, key_tokens, query_squared, query_key } = found.context;
        assert_eq!((sequences, query_tokens, key_tokens), (9, Some(8_155), Some(8_430)));
        assert_eq!((query_squared, query_key), (Some(7_475_785), Some(7_671_310)));
        assert_eq!((found.generation.sequences, found.generation.key_tokens), (37, Some(34_489)));
    }

    #[test]
    fn prompts_alone_are_prefill_and_sequences_alone_decode() {
        let stage = |name: &str| batch(name).and_then(|batch| batch.stage());
        assert_eq!(
            stage("execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk32785sqsq32sqsk32785)"),
            Some(Stage::Decode)
        );
        assert_eq!(stage("execute_context_2(512)_generation_0(0)"), Some(Stage::Prefill));
        assert_eq!(stage("step[EXTEND bs=15 toks=15360]"), Some(Stage::Prefill));
        assert_eq!(stage("step[DECODE bs=32]"), Some(Stage::Decode));
        assert_eq!(batch("step[DECODE bs=32]").unwrap().tokens, Some(32));
        assert_eq!((batch("step[IDLE bs=0]"), batch("execute_graph"), batch("ProfilerStep#3")), (None, None, None));
    }
}
