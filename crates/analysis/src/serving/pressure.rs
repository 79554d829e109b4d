//! What requests of a load waited for, beyond what one alone would.

use types::{Count, Nanos, RequestWork};

use super::membership::Member;
use super::parts::Division;
use super::placing::Arrival;
use super::server_steps::{ServerSteps, middle};
use crate::pressure::{Between, Interrupted, Limit, Preempted, Pressure, Queue, WayBack};
use crate::statistics::{percentile, share};
use crate::time::Span;

/// Share of waiting during which a limit is reached for it to be the reason.
const MOSTLY: f64 = 0.5;

/// Requests with their steps, on the clock of the steps.
pub(super) struct Joined<'a> {
    pub(super) steps: &'a ServerSteps,
    pub(super) division: &'a Division<'a>,
    pub(super) rows: Vec<(&'a Arrival, &'a [Member], types::RequestParts)>,
    pub(super) offset: Nanos,
}

impl Joined<'_> {
    /// What held them up.
    pub(super) fn pressure(&self) -> Pressure {
        Pressure {
            latency: self.rows.iter().map(|(.., parts)| parts.sum()).sum(),
            requests: self.rows.len(),
            interrupted: self.interrupted(),
            queue: self.queue(),
            preempted: self.preempted(),
            back: self.way_back(),
            between: self.between(),
        }
    }

    fn interrupted(&self) -> Interrupted {
        let is_mixed = |place: &usize| {
            let step = &self.steps.list[*place];
            step.context.sequences > 0 && step.generation.sequences > 0
        };
        let all = 0..self.steps.list.len();
        let mixed: Vec<_> = all.clone().filter(is_mixed).collect();
        let time = |place: usize| self.steps.list[place].device.length();
        let decode_step = self.decode_step();
        let spans = || mixed.iter().map(|place| self.steps.list[*place].device);
        let busy: Nanos = spans().map(|span| self.steps.busy.total_within(span)).sum();
        let length: Nanos = spans().map(Span::length).sum();
        let (mut tokens, mut prompts) = (Count::default(), 0.0);
        for place in all.filter(|place| self.steps.list[*place].context.sequences > 0) {
            tokens += self.steps.list[place].context.tokens;
            prompts += time(place).get() as f64 * self.division.prompts(place);
        }
        let per_token = share(prompts, tokens.get() as f64).filter(|time| *time > 0.0);
        let of_prompts =
            |place: usize| Nanos::new((time(place).get() as f64 * self.division.prompts(place)).round() as i64);
        let held = |members: &[Member]| -> Nanos {
            let decoding =
                members.iter().filter(|member| member.work == RequestWork::Decode && is_mixed(&member.place));
            decoding.map(|member| of_prompts(member.place)).sum()
        };
        let gaps = self.rows.iter().flat_map(|(_, members, _)| members.windows(2));
        let gaps = gaps.filter(|pair| pair[1].work == RequestWork::Decode).map(|pair| {
            let gap = self.steps.ended(pair[1].place) - self.steps.ended(pair[0].place);
            (gap.get() as f64, (gap - of_prompts(pair[1].place)).get() as f64)
        });
        let (gaps, alone): (Vec<_>, Vec<_>) = gaps.unzip();
        let p99 = |gaps: &[f64]| percentile(gaps, 0.99).map(|gap| Nanos::new(gap.round() as i64));
        let times: Vec<_> = self.rows.iter().map(|(_, members, _)| held(members)).collect();
        Interrupted {
            time: times.iter().copied().sum(),
            requests: times.iter().filter(|time| **time > Nanos::ZERO).count(),
            steps: mixed.len(),
            mixed_step: middle(mixed.iter().map(|place| time(*place))),
            decode_step,
            idle: share((length - busy).get() as f64, length.get() as f64),
            // Tokens of a step are inferred where nothing annotates them: too little for a limit.
            chunk: decode_step
                .zip(per_token)
                .filter(|_| !self.steps.unannotated)
                .map(|(step, token)| (step.get() as f64 / token) as u64),
            gap: p99(&gaps),
            gap_alone: p99(&alone),
        }
    }

    /// The median device time of steps without prompts.
    fn decode_step(&self) -> Option<Nanos> {
        let alone = self.steps.list.iter().filter(|step| step.context.sequences == 0);
        middle(alone.map(|step| step.device.length()))
    }

    fn queue(&self) -> Queue {
        let starts_here = |members: &[Member]| members.first().is_some_and(|one| one.work == RequestWork::Prefill);
        let waited: Vec<_> = self.rows.iter().filter(|(_, members, _)| starts_here(members)).collect();
        let times = || waited.iter().map(|(.., parts)| parts.queue_ns);
        let usual = self.decode_step().unwrap_or_default();
        // Where every request waits, the shortest wait is more than the way to the server and the rest of a step.
        let quick = usual + self.way_back().shortest.max(Nanos::ZERO);
        let shortest = times().min().unwrap_or_default().min(quick);
        let long: Vec<_> = waited.iter().filter(|(.., parts)| parts.queue_ns - shortest > usual).collect();
        Queue {
            time: times().map(|time| time - shortest).sum(),
            shortest,
            longest: times().max().unwrap_or_default(),
            requests: long.len(),
            limit: self.limit(long.iter().map(|(arrival, members, _)| {
                let first = self.steps.list[members[0].place].host.start;
                (arrival.due + self.offset + shortest, first)
            })),
        }
    }

    /// What was full while requests waited, if that is one and the same most of the time.
    fn limit(&self, waits: impl Iterator<Item = (Nanos, Nanos)>) -> Option<Limit> {
        let list = &self.steps.list;
        let sequences =
            |place: usize| (Count::from(list[place].context.sequences) + list[place].generation.sequences).get();
        let tokens = |place: usize| list[place].tokens();
        let most_sequences = (0..list.len()).map(sequences).max()?;
        let most_tokens = (0..list.len()).map(tokens).max()?;
        let (mut all, mut full, mut used) = (0, 0, 0);
        for (from, to) in waits {
            let first = list.partition_point(|step| step.host.start < from);
            for place in (first..list.len()).take_while(|place| list[*place].host.start < to) {
                all += 1;
                full += usize::from(sequences(place) == most_sequences);
                let is_known = !self.steps.unannotated && list[place].context.sequences > 0;
                used += usize::from(is_known && tokens(place) == most_tokens);
            }
        }
        let mostly = |count: usize| share(count as f64, all as f64).is_some_and(|part| part >= MOSTLY);
        let limits = [(full, Limit::Sequences(most_sequences)), (used, Limit::Tokens(most_tokens))];
        limits.into_iter().find(|(count, _)| mostly(*count)).map(|(_, limit)| limit)
    }

    fn preempted(&self) -> Preempted {
        let again = |members: &[Member]| members.iter().filter(|one| one.work == RequestWork::Recompute).count();
        let members = || self.rows.iter().flat_map(|(_, members, _)| members.iter());
        Preempted {
            time: self.rows.iter().map(|(.., parts)| parts.recompute_ns).sum(),
            requests: self.rows.iter().filter(|(_, members, _)| again(members) > 0).count(),
            times: self.rows.iter().map(|(_, members, _)| preemptions(members)).sum(),
            tokens: members()
                .filter(|one| one.work == RequestWork::Recompute)
                .map(|one| one.tokens)
                .sum::<Count>()
                .get(),
        }
    }

    /// Pauses behind steps that a request has been in and is not done with.
    fn between(&self) -> Between {
        let list = &self.steps.list;
        let mut is_waited_for = vec![false; list.len()];
        for (_, members, _) in &self.rows {
            let places = members.first().zip(members.last()).map(|(first, last)| first.place..last.place);
            is_waited_for[places.unwrap_or_default()].fill(true);
        }
        let idle = |place: usize| {
            let pause = Span::new(list[place].device.end, list[place + 1].device.start.max(list[place].device.end));
            pause.length() - self.steps.busy.total_within(pause)
        };
        let places = (0..list.len().saturating_sub(1)).filter(|place| is_waited_for[*place]);
        let pauses: Vec<Nanos> = places.map(idle).collect();
        Between {
            time: self.rows.iter().map(|(.., parts)| parts.host_ns).sum(),
            pauses: pauses.len(),
            median: middle(pauses.iter().copied()),
            longest: pauses.into_iter().max().unwrap_or_default(),
        }
    }

    fn way_back(&self) -> WayBack {
        let back = || self.rows.iter().map(|(.., parts)| parts.return_ns);
        let shortest = back().min().unwrap_or_default();
        WayBack { time: back().map(|time| time - shortest).sum(), shortest, longest: back().max().unwrap_or_default() }
    }
}

/// Runs of steps that process everything again.
fn preemptions(members: &[Member]) -> usize {
    let is_again = |member: &Member| member.work == RequestWork::Recompute;
    members.chunk_by(|one, next| is_again(one) == is_again(next)).filter(|run| is_again(&run[0])).count()
}
