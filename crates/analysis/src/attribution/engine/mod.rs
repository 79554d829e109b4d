//! Steps that a serving engine annotates with their batch, and the stages that follow from it.
//!
//! `annotation` reads what engines write, `draft` tells a draft model's steps from those of its target, and `round` puts the
//! two together again: a stage runs once for each step of the target.

mod annotation;
mod draft;
mod round;
mod step;

use std::collections::{BTreeMap, BTreeSet};

use types::timeline::{ThreadId, Timeline};
use types::{Facts, Nanos, Remark, Stage, StepLabel};

use super::aside::Asides;
use super::launch::{Launches, NONE};
use super::stage::{Inference, StageInstance, StageOrigin};
use super::stages::Stages;
use super::step::StepInstance;
use crate::time::{Span, Spans};
use annotation::annotation;
pub(crate) use step::EngineStep;

/// Sequences verify few tokens at a time. A sequence that was evicted computes all of its own again.
const MOST_VERIFIED: u64 = 32;

/// A pause between two steps that is no lull: a scheduler may need as long...
const LULL: Nanos = Nanos::new(10_000_000);
/// ...or as long as this many usual steps, or usual pauses.
const LULL_OF_USUAL: i64 = 3;

/// The outermost annotations, in order of their start. Where only launches of graphs were timed, those that have one: nothing says when
/// the others ended.
pub(crate) fn steps(timeline: &Timeline, call_of_work: &[Option<u32>], last: Nanos) -> Vec<EngineStep> {
    let mut found = annotated(timeline, last);
    if timeline.graphs_only {
        let timed = |call: u32| (timeline.calls[call as usize].thread, timeline.calls[call as usize].start);
        let timed: BTreeSet<_> = call_of_work.iter().flatten().map(|call| timed(*call)).collect();
        let launches = |step: &EngineStep| {
            timed.range((step.thread, step.host.start)..(step.thread, step.host.end)).next().is_some()
        };
        found.retain(launches);
    }
    label_verifying(&mut found);
    draft::label(timeline, call_of_work, &mut found);
    found
}

/// The outermost annotations, in order of their start.
pub(crate) fn annotated(timeline: &Timeline, last: Nanos) -> Vec<EngineStep> {
    let said: Vec<_> = timeline.names.iter().map(|(_, name)| annotation(name)).collect();
    let found = timeline.ranges.iter().filter_map(|range| {
        let annotation::Annotation { label, stage, batch } = said[range.name.index()]?;
        let host = Span::new(range.start, range.end.unwrap_or(last));
        Some(EngineStep { name: timeline.name(range.name).to_owned(), label, stage, batch, host, thread: range.thread })
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

/// Pauses between two steps that are long for this server: no step was in progress on any thread. Where every pause is long, the
/// scheduler is slow.
pub(super) fn between(steps: &[EngineStep]) -> Spans {
    let Some(all) = steps.iter().map(|step| step.host).reduce(Span::hull) else { return Spans::default() };
    let gaps = Spans::union(steps.iter().map(|step| step.host)).gaps(all);
    let usual_step = median(steps.iter().map(|step| step.host.length()));
    let usual_gap = median(gaps.as_slice().iter().map(|gap| gap.length()));
    let least = Nanos::new(usual_step.max(usual_gap).get().saturating_mul(LULL_OF_USUAL)).max(LULL);
    Spans::union(gaps.as_slice().iter().copied().filter(|gap| gap.length() >= least))
}

/// The median length; zero of none.
fn median(lengths: impl Iterator<Item = Nanos>) -> Nanos {
    let mut lengths: Vec<Nanos> = lengths.collect();
    lengths.sort_unstable();
    lengths.get(lengths.len() / 2).copied().unwrap_or_default()
}

/// Decoding several tokens of a sequence at once is verifying them, where most steps do so.
fn label_verifying(steps: &mut [EngineStep]) {
    let decodes = |step: &EngineStep| step.label == Some(StepLabel::Decode);
    let verifies = |step: &EngineStep| {
        let group = step.batch.map(|batch| batch.generation).filter(|group| group.is_wide());
        decodes(step)
            && group.is_some_and(|group| group.query_tokens <= Some(group.sequences.saturating_mul(MOST_VERIFIED)))
    };
    let [all, wide] = [&decodes as &dyn Fn(&EngineStep) -> bool, &verifies]
        .map(|is: &dyn Fn(&EngineStep) -> bool| steps.iter().filter(|step| is(step)).count());
    if wide * 2 > all {
        steps.iter_mut().filter(|step| verifies(step)).for_each(|step| step.label = Some(StepLabel::Verify));
    }
}

/// Stages of annotated steps; `None` where there is no annotation.
pub(super) fn stages(timeline: &Timeline, launches: &Launches, found: &[EngineStep]) -> Option<Stages> {
    if found.is_empty() {
        return None;
    }
    let (mut stages, mut steps) = (Vec::new(), Vec::new());
    let mut lanes: BTreeMap<u32, Vec<(Span, u32, Option<u32>)>> = BTreeMap::new();
    for round in round::rounds(timeline, found) {
        let place = stages.len() as u32;
        let step = (round.stage == Stage::Decode && round.has_target).then(|| {
            steps.push(StepInstance::new(steps.len() as u32, Some(place), round.host));
            steps.len() as u32 - 1
        });
        stages.push(StageInstance::new(round.stage, round.host, round.thread, StageOrigin::Engine));
        lanes.entry(round.thread.0).or_default().push((round.host, place, step));
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
    Some(Stages {
        instance: launches.per_work(&instance).collect(),
        step: launches.per_work(&step).collect(),
        stages,
        steps,
        inference: Inference::Done { evidence: evidence(found) },
        asides: Asides::default(),
    })
}

/// How many steps do what.
fn evidence(steps: &[EngineStep]) -> Remark {
    let of = |label: Option<StepLabel>| {
        let count = steps.iter().filter(|step| step.label == label).count();
        (count > 0).then_some(count)
    };
    let (verifications, drafts) = (of(Some(StepLabel::Verify)), of(Some(StepLabel::Draft)));
    let facts = Facts::new()
        .with_known("prefills", of(Some(StepLabel::Prefill)))
        .with_known("decodes", of(Some(StepLabel::Decode)))
        .with_known("mixed", of(Some(StepLabel::Mixed)))
        .with_known("others", of(None))
        .with_if("speculative", verifications.is_some() || drafts.is_some())
        .with_known("verifications", verifications)
        .with_known("drafts", drafts);
    Remark::new("stages.engine", facts)
}
