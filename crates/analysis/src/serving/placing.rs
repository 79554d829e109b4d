//! Which step made which token of a request, by when its output arrived.
//!
//! A sequence that decodes takes part in every step that decodes, one token a step, from the step that ends its prompt on. So the
//! first step fixes all others, and every token must have arrived after its step ended. The latest first step for which that
//! holds is the right one: output follows its step closely, if not always, and one token of a request that came promptly is
//! enough to tell.

use types::{Nanos, RequestLog};

use super::server_steps::{ServerStep, ServerSteps, middle};

/// Of so many outputs one may seem to arrive before its step ended: a client may split what a server sends at once.
const EARLY: usize = 10;

/// Tokens that one chunk may hold; a count beyond that is not one of tokens.
const MOST_TOGETHER: usize = 64;
/// Share of requests that show how many tokens are in a chunk: of some, the network may join two.
const REGULAR: f64 = 0.5;
/// Fewer prompt outputs say nothing.
const FEWEST: usize = 50;
/// No output takes longer than this to arrive.
const SLOWEST: Nanos = Nanos::new(1_000_000_000);

/// A request as it is placed: when it was due and when output arrived, on the clock of the steps.
#[derive(Clone, Debug)]
pub(super) struct Arrival {
    /// Its place in the log.
    pub(super) index: usize,
    /// When it was due.
    pub(super) due: Nanos,
    /// When every chunk arrived.
    pub(super) chunks: Vec<Nanos>,
    /// Steps that made output for it.
    pub(super) outputs: usize,
    /// Outputs in a chunk, the first chunk apart.
    interval: usize,
    /// Tokens of its prompt.
    pub(super) prompt: Option<u64>,
}

impl Arrival {
    /// The requests of a log that got output, on its own clock.
    ///
    /// Steps make a token each, as without speculation, or a chunk each. Where nothing annotates them, the former is believed if as
    /// many tokens are in nearly every chunk.
    pub(super) fn of_log(log: &RequestLog, steps: &ServerSteps) -> Vec<Self> {
        let interval = interval(log);
        let one_token_each = log.every_chunk && steps.one_token_each() && (interval.is_some() || !steps.unannotated);
        let arrival = |(index, record): (usize, &types::RequestRecord)| {
            let due = record.due_ns.filter(|_| record.succeeded())?;
            let chunks: Vec<_> = record.chunks_ns.iter().map(|chunk| due + *chunk).collect();
            let tokens = record.output_tokens.and_then(|tokens| usize::try_from(tokens).ok()).unwrap_or(0);
            // A chunk may hold the tokens of several steps, where the server was quicker than the stream.
            let most = chunks.len().saturating_mul(MOST_TOGETHER);
            let outputs = if one_token_each { tokens.clamp(chunks.len(), most) } else { chunks.len() };
            let interval = interval.filter(|_| one_token_each).unwrap_or(1);
            Some(Self { index, due, chunks, outputs, interval, prompt: record.input_tokens })
        };
        log.requests.iter().enumerate().filter_map(arrival).collect()
    }

    /// The latest moment at which the step of an output may have ended.
    fn latest(&self, output: usize) -> Nanos {
        self.chunks[output.div_ceil(self.interval).min(self.chunks.len() - 1)]
    }

    /// The output that a chunk ends with; `None` where that is not known.
    fn ended_by(&self, chunk: usize) -> Option<usize> {
        let last = self.outputs - 1;
        let is_regular = self.chunks.len() == 1 + last.div_ceil(self.interval);
        (is_regular || chunk + 1 == self.chunks.len())
            .then(|| if is_regular { (chunk * self.interval).min(last) } else { last })
    }

    /// From a moment of every step to the arrival of its output, with the place of the step in those of the request: as far as chunks
    /// show it.
    pub(super) fn delays<'a>(
        &'a self,
        steps: &'a ServerSteps,
        placement: &'a Placement,
        moved: Nanos,
        since: fn(&ServerSteps, usize) -> Nanos,
    ) -> impl Iterator<Item = (usize, Nanos)> + 'a {
        self.chunks.iter().enumerate().filter_map(move |(chunk, arrival)| {
            let place = self.ended_by(chunk)?.checked_sub(placement.before)?;
            Some((place, *arrival + moved - since(steps, *placement.steps.get(place)?)))
        })
    }
}

/// How many tokens every chunk holds but the first, which holds one, and the last, which holds what is left; `None` where that differs
/// between chunks, as under speculation.
fn interval(log: &RequestLog) -> Option<usize> {
    let counts = log.requests.iter().filter(|request| request.succeeded());
    let counts: Vec<(u64, u64)> =
        counts.filter_map(|request| Some((request.chunks_ns.len() as u64, request.output_tokens?))).collect();
    let fits = |interval: u64| {
        let is_regular = |(chunks, tokens): &&(u64, u64)| *chunks == 1 + tokens.saturating_sub(1).div_ceil(interval);
        counts.iter().filter(is_regular).count() as f64 >= REGULAR * counts.len() as f64
    };
    (1..=MOST_TOGETHER).find(|interval| fits(*interval as u64))
}

/// Where a request is: the place of the step of every output that the trace holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Placement {
    /// Outputs made before the trace began.
    pub(super) before: usize,
    /// Whether the first of `steps` ends its prompt.
    pub(super) from_prompt: bool,
    /// Places in `steps` that end the processing of everything again, after a preemption.
    pub(super) again: Vec<usize>,
    /// Steps in order.
    pub(super) steps: Vec<usize>,
}

impl Placement {
    /// Whether an output comes from a step that ends a prompt, or what was a prompt with its tokens.
    pub(super) fn is_prompt(&self, output: usize) -> bool {
        (output == 0 && self.from_prompt) || self.again.contains(&output)
    }
}

/// What is the same for all requests and offsets.
pub(super) struct Places<'a> {
    steps: &'a ServerSteps,
    /// Places of steps that process prompts.
    context: Vec<usize>,
    /// Places of steps that decode.
    decoding: Vec<usize>,
    /// Per step: how many steps decode up to and including it.
    decoded: Vec<usize>,
    /// The device time of a typical step.
    pub(super) median_step: Nanos,
}

impl<'a> Places<'a> {
    pub(super) fn new(steps: &'a ServerSteps) -> Self {
        let decoding = steps.decoding();
        let context = (0..steps.list.len()).filter(|place| steps.list[*place].context.sequences > 0).collect();
        let decoded = (0..steps.list.len()).map(|place| decoding.partition_point(|one| *one <= place)).collect();
        let median_step = middle(steps.list.iter().map(|step| step.device.length())).unwrap_or_default();
        Self { steps, context, decoding, decoded, median_step }
    }

    /// Whether no step is without sequences that decode.
    pub(super) fn all_decode(&self) -> bool {
        self.decoding.len() == self.steps.list.len()
    }

    fn end(&self, place: usize) -> Nanos {
        self.steps.list[place].device.end
    }

    /// Where a request is, if its times are moved by the offset of the clocks less what output takes at least to arrive.
    pub(super) fn place(&self, request: &Arrival, moved: Nanos) -> Option<Placement> {
        let until = request.latest(0) + moved;
        let candidates = self.context.partition_point(|place| self.end(*place) <= until);
        let least = (request.due + moved).max(until - SLOWEST);
        for first in self.context[..candidates].iter().rev().copied() {
            if self.end(first) < least {
                break;
            }
            if self.holds(request, moved, 1, self.decoded[first]) {
                return Some(self.placement(request, Some(first), 0, self.decoded[first] as i64 - 1));
            }
        }
        self.placed_in_the_middle(request, moved)
    }

    /// Whether outputs from the given one on, in consecutive steps that decode, arrived after their step ended.
    fn holds(&self, request: &Arrival, moved: Nanos, from: usize, position: usize) -> bool {
        let last = self.steps.end();
        let mut early = 0;
        (from..request.outputs).zip(position..).all(|(output, position)| {
            let end = self.decoding.get(position).map_or(last, |place| self.end(*place));
            early += usize::from(request.latest(output) + moved < end);
            early * EARLY <= output + 1 - from
        })
    }

    /// A request whose first output came before the trace began.
    fn placed_in_the_middle(&self, request: &Arrival, moved: Nanos) -> Option<Placement> {
        let first = self.end(*self.decoding.first()?);
        if request.due + moved > first || request.latest(0) + moved >= first + self.median_step {
            return None;
        }
        let from = (0..request.outputs).find(|output| request.latest(*output) + moved >= first)?;
        let until = request.latest(from) + moved;
        let candidates = self.decoding.partition_point(|place| self.end(*place) <= until);
        let position = (0..candidates).rev().find(|position| self.holds(request, moved, from, *position))?;
        // Outputs before it may be in the trace as well, where several arrived at once.
        let before = from.saturating_sub(position).max(1);
        Some(self.placement(request, None, before, position as i64 - from as i64))
    }

    /// The steps of a request: output `n` is in the step that decodes at `shift + n`.
    fn placement(&self, request: &Arrival, first: Option<usize>, before: usize, shift: i64) -> Placement {
        let from = before.max(usize::from(first.is_some()));
        let later = (from..request.outputs).filter_map(|output| {
            let position = usize::try_from(shift + output as i64).ok()?;
            self.decoding.get(position).copied()
        });
        let steps = first.into_iter().chain(later).collect();
        Placement { before, from_prompt: first.is_some(), again: Vec::new(), steps }
    }

    /// The same request, preempted before an output and processed again in the latest step with prompts that its later outputs
    /// allow.
    pub(super) fn resumed(&self, request: &Arrival, now: &Placement, from: usize, moved: Nanos) -> Option<Placement> {
        let output = now.before + from;
        let until = request.latest(output) + moved;
        let candidates = self.context.partition_point(|place| self.end(*place) <= until);
        let later = self.context[..candidates].iter().rev().copied().take_while(|place| *place > now.steps[from]);
        let mut possible = later.filter(|place| self.holds(request, moved, output + 1, self.decoded[*place]));
        let again = possible.next()?;
        let rest = self.decoding[self.decoded[again]..].iter().copied().take(request.outputs - output - 1);
        let mut steps = now.steps[..from].to_vec();
        steps.push(again);
        steps.extend(rest);
        let kept = now.again.iter().copied().filter(|place| *place < from);
        Some(Placement { before: now.before, from_prompt: now.from_prompt, again: kept.chain([from]).collect(), steps })
    }

    /// How many outputs of a request arrive within half a step of their own.
    pub(super) fn prompt(&self, request: &Arrival, placement: &Placement, moved: Nanos) -> usize {
        let window = 0..=self.median_step.get() / 2;
        request
            .delays(self.steps, placement, moved, ServerSteps::emitted)
            .filter(|(_, delay)| window.contains(&delay.get()))
            .count()
    }

    /// The same of all requests.
    pub(super) fn all_prompt(&self, requests: &[Arrival], placed: &[Option<Placement>], moved: Nanos) -> usize {
        let known = requests.iter().zip(placed).filter_map(|(request, one)| Some((request, one.as_ref()?)));
        known.map(|(request, placement)| self.prompt(request, placement, moved)).sum()
    }

    /// Whether most requests that were served meanwhile are placed, and most of their outputs prompt.
    pub(super) fn are_prompt(&self, requests: &[Arrival], placed: &[Option<Placement>], moved: Nanos) -> bool {
        let known = requests.iter().zip(placed).filter_map(|(request, one)| Some((request, one.as_ref()?)));
        let shown: usize =
            known.map(|(request, one)| request.delays(self.steps, one, moved, ServerSteps::emitted).count()).sum();
        let prompt = self.all_prompt(requests, placed, moved);
        prompt >= FEWEST && prompt * 2 >= shown && self.holds_most(requests, placed, moved, 0.5)
    }

    /// Whether so large a share of the requests that were served meanwhile is placed.
    pub(super) fn holds_most(
        &self,
        requests: &[Arrival],
        placed: &[Option<Placement>],
        moved: Nanos,
        share: f64,
    ) -> bool {
        let (start, end) = (self.steps.start(), self.steps.end());
        let during = |request: &&Arrival| {
            let ended = request.chunks.last().is_some_and(|last| *last + moved > start);
            ended && request.chunks[0] + moved < end
        };
        placed.iter().flatten().count() as f64 > share * requests.iter().filter(during).count() as f64
    }

    /// How many steps have as many decoding sequences as requests are placed in them, and no fewer prompts.
    pub(super) fn agreeing(&self, placed: &[Option<Placement>]) -> usize {
        let (mut decoding, mut prompts) = (vec![0; self.steps.list.len()], vec![0; self.steps.list.len()]);
        for placement in placed.iter().flatten() {
            for (output, step) in placement.steps.iter().enumerate() {
                let counts = if placement.is_prompt(output) { &mut prompts } else { &mut decoding };
                counts[*step] += 1;
            }
        }
        let agrees = |place: &usize| {
            let step = &self.steps.list[*place];
            step.generation.sequences == decoding[*place] && step.context.sequences >= prompts[*place]
        };
        (0..self.steps.list.len()).filter(agrees).count()
    }

    /// How many requests are in steps that process exactly the prompts of the requests placed there, by number and by tokens.
    pub(super) fn prompts_fitting(&self, requests: &[Arrival], placed: &[Option<Placement>]) -> usize {
        let mut ended = vec![(0_u64, 0_u64); self.steps.list.len()];
        for (request, placement) in requests.iter().zip(placed) {
            let first = placement.as_ref().filter(|placement| placement.from_prompt).and_then(|one| one.steps.first());
            let Some(first) = first else { continue };
            ended[*first].0 += 1;
            ended[*first].1 = ended[*first].1.saturating_add(request.prompt.unwrap_or_default());
        }
        let fits = |(step, (sequences, tokens)): (&ServerStep, &(u64, u64))| {
            let is_equal = step.context.sequences == *sequences && step.context.tokens == *tokens;
            if is_equal { *sequences as usize } else { 0 }
        };
        self.steps.list.iter().zip(&ended).map(fits).sum()
    }
}
