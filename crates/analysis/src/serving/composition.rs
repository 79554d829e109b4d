//! What every step of a server processes: the tokens of each of its sequences, and how long its context is.

use types::{Count, RequestWork, ServedRequest};

use crate::evidence::{JoinedRequests, PlacedTimeline};
use crate::steps::placed_steps;

/// A sequence in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequencePart {
    /// Its tokens that the step processes.
    pub tokens: u64,
    /// Its tokens that were processed before.
    pub context: u64,
}

/// Per step of the trace, its sequences; `None` where not all of them are known.
pub fn compositions(joined: &JoinedRequests, timelines: &[PlacedTimeline<'_>]) -> Vec<Option<Vec<SequencePart>>> {
    let Some(placed) = timelines.get(joined.timeline) else { return Vec::new() };
    let Some(steps) = placed_steps(placed.timeline, placed.attribution) else { return Vec::new() };
    let mut found: Vec<Option<Vec<SequencePart>>> = vec![Some(Vec::new()); steps.list.len()];
    for request in &joined.served.requests {
        let mut context = known_start(request);
        for step in &request.steps {
            let Some(parts) = usize::try_from(step.step).ok().and_then(|place| found.get_mut(place)) else { continue };
            // What a preemption dropped is processed from the beginning.
            if step.work == RequestWork::Recompute {
                context = None;
            }
            match (parts.as_mut(), context) {
                (Some(parts), Some(context)) => parts.push(SequencePart { tokens: step.tokens, context }),
                _ => *parts = None,
            }
            context = context.and_then(|context| context.checked_add(step.tokens));
        }
    }
    for (parts, (_, step)) in found.iter_mut().zip(&steps.list) {
        let is_whole = |parts: &Vec<SequencePart>| {
            let batch = step.batch?;
            let sequences = batch.context.sequences.checked_add(batch.generation.sequences)?;
            let tokens = parts.iter().map(|part| part.tokens).sum::<Count>().get();
            Some(sequences > 0 && parts.len() as u64 == sequences && batch.tokens == Some(tokens))
        };
        *parts = parts.take().filter(|parts| is_whole(parts) == Some(true));
    }
    found
}

/// The context of a request before its first step: what of its prompt no step processes was in a cache. `None` where it was
/// processed before the trace.
fn known_start(request: &ServedRequest) -> Option<u64> {
    let first = request.steps.first()?;
    let is_prompt = |work: RequestWork| work == RequestWork::Prefill;
    let prompt: Count = request.steps.iter().filter(|step| is_prompt(step.work)).map(|step| step.tokens).sum();
    request.input_tokens.filter(|_| is_prompt(first.work))?.checked_sub(prompt.get())
}
