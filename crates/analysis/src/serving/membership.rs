//! Which requests every step processes, and how many tokens of each.

use types::{Nanos, RequestWork};

use super::placing::{Arrival, Placement};
use super::server_steps::{ServerStep, ServerSteps};

/// One step of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Member {
    /// The place of the step.
    pub(super) place: usize,
    /// Tokens of the request that it processes.
    pub(super) tokens: u64,
    /// What it does for the request.
    pub(super) work: RequestWork,
}

/// The steps of every request, prompts included, in order.
pub(super) fn members(
    steps: &ServerSteps,
    requests: &[Arrival],
    placed: &[Option<Placement>],
    offset: Nanos,
) -> Vec<Vec<Member>> {
    let mut members: Vec<Vec<Member>> = vec![Vec::new(); requests.len()];
    Prompts::new(steps, requests, placed, offset).fill(&mut members);
    for (members, placement) in members.iter_mut().zip(placed) {
        let Some(placement) = placement else { continue };
        let outputs = placement.steps.iter().copied().enumerate();
        for (_, place) in outputs.filter(|(output, _)| !placement.is_prompt(*output)) {
            let group = steps.list[place].generation;
            let tokens = group.tokens.checked_div(group.sequences).unwrap_or(1).max(1);
            members.push(Member { place, tokens, work: RequestWork::Decode });
        }
        members.sort_by_key(|member| member.place);
    }
    members
}

/// What is processed as a prompt: one, or one with its tokens after a preemption.
struct Prompt {
    /// The step that ends it.
    end: usize,
    request: usize,
    /// The first step that it can be in.
    from: usize,
    /// Tokens left; `None` where its length is not known.
    left: Option<u64>,
    work: RequestWork,
}

/// Prompts, in the order in which steps end them.
struct Prompts<'a> {
    steps: &'a ServerSteps,
    queue: Vec<Prompt>,
}

impl<'a> Prompts<'a> {
    fn new(steps: &'a ServerSteps, requests: &[Arrival], placed: &[Option<Placement>], offset: Nanos) -> Self {
        let mut queue = Vec::new();
        for (request, placement) in placed.iter().enumerate().filter_map(|(place, one)| Some((place, one.as_ref()?))) {
            let due = requests[request].due + offset;
            let arrived = steps.list.partition_point(|step| step.host.start < due);
            let outputs = (0..placement.steps.len()).filter(|output| placement.is_prompt(*output));
            queue.extend(outputs.map(|output| {
                let generated = (placement.before + output) as u64;
                Prompt {
                    end: placement.steps[output],
                    request,
                    from: if output == 0 { arrived } else { placement.steps[output - 1] + 1 },
                    left: requests[request].prompt.map(|prompt| prompt.saturating_add(generated)),
                    work: if output == 0 { RequestWork::Prefill } else { RequestWork::Recompute },
                }
            }));
        }
        queue.sort_by_key(|prompt| (prompt.end, requests[prompt.request].due));
        Self { steps, queue }
    }

    /// Steps process the prompts they end, and parts of those that come next.
    fn fill(&mut self, members: &mut [Vec<Member>]) {
        let most = self.steps.list.iter().map(ServerStep::tokens).max().unwrap_or_default();
        let mut next = 0;
        for (place, step) in self.steps.list.iter().enumerate().filter(|(_, step)| step.context.sequences > 0) {
            let ended = self.queue[next..].iter().take_while(|prompt| prompt.end <= place).count();
            let spare = usize::try_from(step.context.sequences).unwrap_or(usize::MAX).saturating_sub(ended);
            // A prompt is cut only where a step is full; otherwise the sequence is of a request that nobody knows.
            let spare = if self.steps.unannotated || step.tokens() == most { spare } else { 0 };
            let mut budget = step.context.tokens;
            let (ending, later) = self.queue[next..].split_at_mut(ended);
            share_cached(ending, budget.saturating_sub(spare as u64));
            // Whoever was preempted last finds most of it in the cache, and processes least again.
            ending.sort_by_key(|prompt| (prompt.work == RequestWork::Recompute, prompt.from));
            for (position, prompt) in ending.iter_mut().enumerate() {
                // Every prompt behind it has a token at least; a cached prefix is not processed.
                let behind = (ended - 1 - position + spare) as u64;
                let most = budget.saturating_sub(behind).max(1);
                let is_last = behind == 0;
                let tokens = prompt.left.filter(|_| !is_last).map_or(most, |left| left.clamp(1, most));
                budget = budget.saturating_sub(tokens);
                members[prompt.request].push(Member { place, tokens, work: prompt.work });
            }
            let started = later.iter_mut().filter(|prompt| prompt.from <= place && prompt.left != Some(0)).take(spare);
            for prompt in started {
                let tokens = prompt.left.map_or(budget, |left| left.saturating_sub(1).min(budget));
                if tokens == 0 {
                    continue;
                }
                budget -= tokens;
                prompt.left = prompt.left.map(|left| left - tokens);
                members[prompt.request].push(Member { place, tokens, work: prompt.work });
            }
            next += ended;
        }
    }
}

/// Where a step processes fewer tokens than its prompts have left, a cache has some of them. Whose they are nothing says, so all
/// prompts are taken to have the same share there.
fn share_cached(ending: &mut [Prompt], processed: u64) {
    let mut lefts = ending.iter().map(|prompt| prompt.left.filter(|_| prompt.work == RequestWork::Prefill));
    let all = lefts.try_fold(0, |sum: u64, left| Some(sum.saturating_add(left?)));
    let Some(all) = all.filter(|all| *all > processed) else { return };
    for prompt in ending {
        prompt.left = prompt.left.map(|left| (left as f64 * processed as f64 / all as f64) as u64);
    }
}
