//! Steps of a draft model, told apart from those of the model that it drafts for.
//!
//! In speculative decoding a small model drafts tokens that the large one verifies. Some annotations say which of the two ran;
//! the others are alike, so that one batch would count twice. What tells them apart, strongest first: the range or Python
//! function around the step; verification, after which only the draft decodes; or every batch coming twice in a row, the
//! second time with far less work.

use types::timeline::{OperatorKind, Timeline};
use types::{Stage, StepLabel};

use super::step::{EngineStep, by_thread};
use crate::attribution::Amount;
use crate::time::Span;

/// A draft has at most this part of the target's kernels, and of their time.
const MOST_WORK: u64 = 2;
/// Pairs that show a draft where no annotation says that there is one.
const FEWEST_PAIRS: usize = 2;

/// Labels the steps of drafts. `steps` are in order of their start.
pub(super) fn label(timeline: &Timeline, call_of_work: &[Option<u32>], steps: &mut [EngineStep]) {
    for place in surrounded(timeline, steps) {
        steps[place].drafts();
    }
    let speculates = |step: &EngineStep| matches!(step.label, Some(StepLabel::Verify | StepLabel::Draft));
    if steps.iter().any(|step| step.label == Some(StepLabel::Verify)) {
        // The target verifies instead of decoding.
        let decodes = steps.iter_mut().filter(|step| step.label == Some(StepLabel::Decode));
        decodes.filter(|step| step.name.starts_with("step[")).for_each(EngineStep::drafts);
    }
    if steps.iter().any(|step| step.label == Some(StepLabel::Draft) && step.stage == Some(Stage::Prefill)) {
        return;
    }
    let fewest = if steps.iter().any(speculates) { 1 } else { FEWEST_PAIRS };
    for place in second_of_pairs(timeline, call_of_work, steps, fewest) {
        steps[place].drafts();
    }
}

/// Steps inside a range or function that drafts, unless that would leave nothing to draft for.
fn surrounded(timeline: &Timeline, steps: &[EngineStep]) -> Vec<usize> {
    let drafting: Vec<bool> = timeline.names.iter().map(|(_, name)| is_drafting(name)).collect();
    let python = timeline.operators.iter().filter(|row| row.kind == OperatorKind::Python);
    let functions = python.map(|row| (row.name, row.thread, Span::new(row.start, row.end())));
    let ranges = timeline.ranges.iter().filter_map(|row| Some((row.name, row.thread, Span::new(row.start, row.end?))));
    let around: Vec<_> = functions.chain(ranges).filter(|(name, ..)| drafting[name.index()]).collect();
    let unlabelled = |step: &EngineStep| matches!(step.label, Some(StepLabel::Prefill | StepLabel::Decode));
    let is_inside = |step: &EngineStep| {
        around.iter().any(|(_, thread, span)| {
            *thread == step.thread && span.start <= step.host.start && step.host.end <= span.end
        })
    };
    let (inside, outside): (Vec<usize>, Vec<usize>) =
        (0..steps.len()).filter(|place| unlabelled(&steps[*place])).partition(|place| is_inside(&steps[*place]));
    let verifies = steps.iter().any(|step| step.label == Some(StepLabel::Verify));
    if outside.is_empty() && !verifies { Vec::new() } else { inside }
}

/// A range such as `draft_extend`, or a Python function such as `worker.py(521): _draft_extend_for_prefill`. The rest of a
/// Python name is a path, which may be anything.
fn is_drafting(name: &str) -> bool {
    let function = match name.rsplit_once("): ") {
        Some((_, function)) => function,
        None if name.contains(['/', '[']) => return false,
        None => name,
    };
    function.contains("draft") && !["verify", "target"].iter().any(|word| function.contains(word))
}

/// The second step of every pair, where prefill consists of pairs of one batch and the second always does far less.
fn second_of_pairs(
    timeline: &Timeline,
    call_of_work: &[Option<u32>],
    steps: &[EngineStep],
    fewest: usize,
) -> Vec<usize> {
    let lanes = by_thread(timeline, steps);
    let prefills: Vec<Vec<usize>> = lanes
        .into_iter()
        .map(|lane| lane.into_iter().filter(|place| steps[*place].label == Some(StepLabel::Prefill)).collect())
        .collect();
    let is_same = |one: usize, two: usize| steps[one].name == steps[two].name;
    if !prefills.iter().any(|lane: &Vec<usize>| lane.windows(2).any(|pair| is_same(pair[0], pair[1]))) {
        return Vec::new();
    }
    let work = amounts(timeline, call_of_work, steps);
    let is_small = |target: usize, draft: usize| {
        let (target, draft) = (&work[target], &work[draft]);
        draft.count > 0
            && draft.count * MOST_WORK <= target.count
            && draft.time.get() * MOST_WORK as i64 <= target.time.get()
    };
    let mut drafts = Vec::new();
    let mut pairs = 0;
    for lane in prefills {
        let mut rest = lane.as_slice();
        // The recording may begin between the two.
        if let [draft, target, ..] = rest
            && is_small(*target, *draft)
        {
            drafts.push(*draft);
            rest = &rest[1..];
        }
        while let [target, draft, more @ ..] = rest {
            if !is_same(*target, *draft) || !is_small(*target, *draft) {
                return Vec::new();
            }
            drafts.push(*draft);
            pairs += 1;
            rest = more;
        }
    }
    if pairs >= fewest { drafts } else { Vec::new() }
}

/// Device work that each step launched.
fn amounts(timeline: &Timeline, call_of_work: &[Option<u32>], steps: &[EngineStep]) -> Vec<Amount> {
    let lanes = by_thread(timeline, steps);
    let mut amounts = vec![Amount::default(); steps.len()];
    for (work, call) in timeline.work.iter().zip(call_of_work) {
        let Some(call) = call.map(|call| &timeline.calls[call as usize]) else { continue };
        let lane = &lanes[call.thread.0 as usize];
        let before = lane.partition_point(|place| steps[*place].host.start <= call.start);
        let around = before.checked_sub(1).map(|last| lane[last]);
        if let Some(place) = around.filter(|place| steps[*place].host.contains(call.start)) {
            amounts[place].add(work.duration);
        }
    }
    amounts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_and_ranges_draft_and_paths_do_not() {
        assert!(is_drafting("srt/speculative/eagle_worker_v2.py(521): _draft_extend_for_prefill"));
        assert!(is_drafting("draft") && is_drafting("gpu_model_runner: draft"));
        assert!(!is_drafting("draft/worker.py(759): forward_batch_generation"));
        assert!(!is_drafting("worker.py(7): draft_and_verify") && !is_drafting("step[DRAFT_LOOP bs=1]"));
    }
}
