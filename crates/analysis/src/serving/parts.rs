//! The latency of a request, divided by what its server did meanwhile.

use types::{Nanos, RequestParts, RequestWork};

use super::membership::Member;
use super::placing::Arrival;
use super::server_steps::{ServerStep, ServerSteps, middle};
use crate::time::Span;

/// Decode steps of about as many sequences, from which the time of one without prompts follows.
const NEIGHBOURS: usize = 5;

/// Steps whose time is divided between prompts and sequences that decode.
pub(super) struct Division<'a> {
    steps: &'a ServerSteps,
    /// Per step: the share of its device time that its prompts take.
    prompts: Vec<f64>,
}

impl<'a> Division<'a> {
    /// A mixed step takes for its decoding sequences what steps without prompts and about as many sequences took in this run; the
    /// rest is the prompts'. Where the run has no such step, tokens divide it.
    pub(super) fn new(steps: &'a ServerSteps) -> Self {
        let alone = |step: &&ServerStep| step.context.sequences == 0;
        let mut decode: Vec<_> =
            steps.list.iter().filter(alone).map(|step| (step.generation.sequences, step.device.length())).collect();
        decode.sort_unstable();
        let share = |step: &ServerStep| match (step.context.sequences, step.generation.sequences) {
            (0, _) => 0.0,
            (_, 0) => 1.0,
            (_, sequences) => match typical(&decode, sequences) {
                Some(time) => (1.0 - time.get() as f64 / step.device.length().get().max(1) as f64).max(0.0),
                None => step.context.tokens as f64 / (step.context.tokens + step.generation.tokens).max(1) as f64,
            },
        };
        Self { steps, prompts: steps.list.iter().map(share).collect() }
    }

    /// The share of a step's device time that its prompts take.
    pub(super) fn prompts(&self, place: usize) -> f64 {
        self.prompts[place]
    }

    /// The parts of one request, which add up to its latency.
    pub(super) fn parts(&self, request: &Arrival, members: &[Member], offset: Nanos) -> RequestParts {
        let Some(last) = request.chunks.last() else { return RequestParts::default() };
        let life = Span::new(request.due + offset, (*last + offset).max(request.due + offset));
        let mut parts = RequestParts::default();
        let (Some(first), Some(end)) = (members.first(), members.last()) else {
            parts.unexplained_ns = life.length();
            return parts;
        };
        let inside = |moment: Nanos| moment.max(life.start).min(life.end);
        let starts_here = first.work == RequestWork::Prefill;
        let scheduled = inside(self.steps.list[first.place].host.start);
        // Until when it waits for sure: later steps may process its prompt where nothing shows that.
        let waits = match (starts_here, self.steps.hides_prompts) {
            (false, _) => life.start,
            (true, false) => scheduled,
            (true, true) => {
                let next = self.steps.list.partition_point(|step| step.host.start < life.start);
                inside(self.steps.list[next.min(first.place)].host.start)
            }
        };
        parts.queue_ns = waits - life.start;
        parts.unexplained_ns = scheduled - waits;
        let done = inside(self.steps.list[end.place].device.end);
        let mut at = scheduled;
        // From the last step before a preemption to the one that has processed everything again.
        let missing: Vec<(usize, usize)> =
            members.windows(2).filter(|pair| is_again(&pair[1])).map(|pair| (pair[0].place, pair[1].place)).collect();
        let preempted = |place: usize| missing.iter().any(|(from, to)| *from < place && place < *to);
        let mut members = members.iter().peekable();
        let from = self.steps.list.partition_point(|step| step.device.end <= scheduled);
        for place in from..=end.place {
            let step = &self.steps.list[place];
            let begins = inside(step.device.start).max(at).min(done);
            self.waiting(&mut parts, Span::new(at, begins));
            let ends = inside(step.device.end).max(begins).min(done);
            while members.peek().is_some_and(|member| member.place < place) {
                members.next();
            }
            let member = members.peek().filter(|member| member.place == place);
            let phase = Phase { has_begun: place >= first.place, preempted: preempted(place) };
            self.step(&mut parts, place, ends - begins, member.copied(), phase);
            at = ends;
        }
        parts.unexplained_ns += (done - at).max(Nanos::ZERO);
        parts.return_ns = life.end - done;
        parts
    }

    /// Between two steps: the device may still be busy, with sampling.
    fn waiting(&self, parts: &mut RequestParts, gap: Span) {
        if gap.is_empty() {
            return;
        }
        let busy = self.steps.busy.total_within(gap);
        parts.decode_ns += busy;
        parts.host_ns += gap.length() - busy;
    }

    fn step(&self, parts: &mut RequestParts, place: usize, time: Nanos, member: Option<&Member>, phase: Phase) {
        let of_prompts = Nanos::new((time.get() as f64 * self.prompts[place]).round() as i64);
        let rest = time - of_prompts;
        match member.map(|member| (member.work, member.tokens)) {
            Some((RequestWork::Prefill, tokens)) => {
                let all = self.steps.list[place].context.tokens.max(tokens).max(1);
                let own = Nanos::new((of_prompts.get() as f64 * tokens as f64 / all as f64).round() as i64);
                parts.own_prefill_ns += own + rest;
                parts.other_prefill_ns += of_prompts - own;
            }
            Some((RequestWork::Decode, _)) => {
                parts.other_prefill_ns += of_prompts;
                parts.decode_ns += rest;
            }
            Some((RequestWork::Recompute, _)) => parts.recompute_ns += time,
            // Its first step is prepared, and waits for the one that runs.
            None if phase.preempted => parts.recompute_ns += time,
            None if !phase.has_begun => {
                parts.other_prefill_ns += of_prompts;
                parts.own_prefill_ns += rest;
            }
            None => {
                parts.other_prefill_ns += of_prompts;
                parts.unexplained_ns += rest;
            }
        }
    }
}

/// Where in its life a request is while a step runs that leaves it out.
#[derive(Clone, Copy)]
struct Phase {
    has_begun: bool,
    preempted: bool,
}

fn is_again(member: &Member) -> bool {
    member.work == RequestWork::Recompute
}

/// The median time of the steps with the nearest numbers of sequences; `None` where there are none.
fn typical(decode: &[(u64, Nanos)], sequences: u64) -> Option<Nanos> {
    let mut near: Vec<_> = decode.iter().map(|(of, time)| (of.abs_diff(sequences), *time)).collect();
    let count = NEIGHBOURS.min(near.len());
    if count == 0 {
        return None;
    }
    near.select_nth_unstable(count - 1);
    middle(near[..count].iter().map(|(_, time)| *time))
}
