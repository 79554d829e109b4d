//! What every step of a server processes: the tokens of each of its sequences, and how long its context is.

use types::{Count, RequestWork, ServedRequest, StepBatch};

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
    let mut found: Vec<StepParts> = vec![StepParts::default(); steps.list.len()];
    for request in &joined.served.requests {
        let start = known_start(request);
        let mut context = start;
        for step in &request.steps {
            let Some(parts) = usize::try_from(step.step).ok().and_then(|place| found.get_mut(place)) else { continue };
            // What a preemption dropped is processed from the beginning.
            if step.work == RequestWork::Recompute {
                context = None;
            }
            parts.are_unknown |= context.is_none();
            parts.are_drafted |= request.output_tokens.is_none_or(|tokens| tokens > request.steps.len() as u64);
            parts.prompts += usize::from(step.work == RequestWork::Prefill);
            parts.are_cached |= step.work == RequestWork::Prefill && start > Some(0);
            parts.list.extend(context.map(|context| SequencePart { tokens: step.tokens, context }));
            context = context.and_then(|context| context.checked_add(step.tokens));
        }
    }
    // Where no engine says how many sequences a step has, those of all requests are all there are.
    let join = joined.served.serving.as_ref().and_then(|serving| serving.join.as_ref());
    let are_all = join.is_some_and(|join| join.requests == join.requests_in_trace);
    let rows = found.into_iter().zip(&steps.list);
    rows.map(|(parts, (_, step))| parts.whole(step.batch.as_ref(), are_all)).collect()
}

/// What requests have in a step.
#[derive(Clone, Default)]
struct StepParts {
    list: Vec<SequencePart>,
    /// Some have a context that is not known.
    are_unknown: bool,
    /// How many are prompts, and whether a cache had the beginning of one.
    prompts: usize,
    are_cached: bool,
    /// A request got more tokens than it had steps.
    are_drafted: bool,
}

impl StepParts {
    /// All sequences of a step. Of several prompts that are partly in a cache, nothing says by how much each; and of prompts in steps
    /// that nothing annotates, how many tokens each step processes.
    fn whole(self, batch: Option<&StepBatch>, are_all: bool) -> Option<Vec<SequencePart>> {
        let is_whole = match batch {
            Some(batch) => {
                let sequences = batch.context.sequences.checked_add(batch.generation.sequences)?;
                let tokens = self.list.iter().map(|part| part.tokens).sum::<Count>().get();
                sequences == self.list.len() as u64 && batch.tokens == Some(tokens)
            }
            None => are_all && self.prompts == 0 && !self.are_drafted,
        };
        let is_known = !(self.are_unknown || self.are_cached && self.prompts > 1);
        (is_whole && is_known && !self.list.is_empty()).then_some(self.list)
    }
}

/// The context of a request before its first step: what of its prompt no step processes was in a cache. `None` where it was
/// processed before the trace.
fn known_start(request: &ServedRequest) -> Option<u64> {
    let first = request.steps.first()?;
    let is_prompt = |work: RequestWork| work == RequestWork::Prefill;
    let prompt: Count = request.steps.iter().filter(|step| is_prompt(step.work)).map(|step| step.tokens).sum();
    request.input_tokens.filter(|_| is_prompt(first.work))?.checked_sub(prompt.get())
}
