//! How far the clock of a client is from that of a trace.
//!
//! Where both are known to be Unix time, nothing is to be done but to see that no output precedes its step. Otherwise prompts whose
//! lengths are those of steps vote for an offset, offsets around the winners are tried, and the one counts with which most
//! steps have the sequences their engine says. What remains is the time of the shortest way back to the client, which no trace
//! shows: it is assumed.

use std::collections::HashMap;

use types::{Nanos, OffsetBasis};

use super::improving::improved;
use super::placing::{Arrival, Placement, Places};
use super::server_steps::ServerSteps;

/// The share of outputs that arrive so quickly.
const QUICK: f64 = 0.01;
/// Outputs of one step come as late as this, where the host is busy with the next: offsets are tried that far.
pub(super) const LATEST: i64 = 60_000_000;
/// Votes for offsets no further apart are for one.
const TOGETHER: i64 = 8_000_000;
/// Winners of the vote around which offsets are tried.
const WINNERS: usize = 3;
/// A prompt in a step with as many tokens says as much as this many steps with as many sequences: where requests are preempted,
/// few of those agree at first.
const PROMPT_COUNTS: usize = 4;
/// Requests and steps that vote and are tried.
pub(super) const VOTERS: usize = 400;
/// Share of steps that must agree, and of requests that must be in them, for the two files to be of one run. Of two replicas, one may be
/// recorded.
const LEAST_AGREEING: f64 = 0.5;
const LEAST_PLACED: f64 = 0.3;

/// An offset, and where it puts every request.
#[derive(Clone, Debug)]
pub(super) struct Offset {
    /// Added to the client's times.
    pub(super) ns: Nanos,
    /// Where it comes from.
    pub(super) basis: OffsetBasis,
    /// Every request.
    pub(super) placed: Vec<Option<Placement>>,
}

/// The offset with which requests fit the steps best; `None` where they do not.
///
/// What is searched is the offset less the time that output takes at least to arrive: only the difference decides where requests are.
pub(super) fn offset(steps: &ServerSteps, requests: &[Arrival], known: Option<Nanos>) -> Option<Offset> {
    let places = Places::new(steps);
    let at = |moved: Nanos| -> Vec<_> { requests.iter().map(|request| places.place(request, moved)).collect() };
    let score = |moved: &Nanos| {
        let placed = at(*moved);
        places.agreeing(&placed) + PROMPT_COUNTS * places.prompts_fitting(requests, &placed)
    };
    let fine = (places.median_step.get() / 8).clamp(100_000, 1_000_000);
    let best_of = |offsets: Vec<Nanos>| {
        let coarse = best(offsets.into_iter(), score)?;
        best((-4..=4).map(|place| coarse + Nanos::new(place * fine)), score)
    };
    let joined = |moved: Nanos| {
        let placed = improved(steps, &places, requests, at(moved), moved);
        let during = within(steps, &placed);
        let agreeing = places.agreeing(&placed) as f64 >= LEAST_AGREEING * steps.list.len().min(during) as f64;
        let fits = agreeing && places.holds_most(requests, &placed, moved, LEAST_PLACED);
        // Other clients may have sent requests too.
        let quick = quick_return(steps, requests, &placed, moved, ServerSteps::emitted)?;
        (during > 0 && (fits || places.are_prompt(requests, &placed, moved - quick))).then_some(placed)
    };
    if let Some(known) = known
        && let Some(placed) = best_of(before(known, fine * 4).collect()).and_then(joined)
        && quick_return(steps, requests, &placed, known, ServerSteps::ended) >= Some(Nanos::ZERO)
    {
        return Some(Offset { ns: known, basis: OffsetBasis::SameClock, placed });
    }
    let moved = best_of(winners(votes(steps, requests)).into_iter().flat_map(|one| around(one, fine * 4)).collect())?;
    let placed = joined(moved)?;
    let quick = quick_return(steps, requests, &placed, moved, ServerSteps::emitted)?;
    let ns = moved - quick + steps.shortest_return();
    Some(Offset { ns, basis: OffsetBasis::Fitted, placed })
}

/// The offset with the highest score; of several, the middle one.
pub(super) fn best(offsets: impl Iterator<Item = Nanos>, score: impl Fn(&Nanos) -> usize) -> Option<Nanos> {
    let scored: Vec<_> = offsets.map(|offset| (score(&offset), offset)).collect();
    let most = scored.iter().map(|(score, _)| *score).max()?;
    let best: Vec<_> = scored.into_iter().filter(|(score, _)| *score == most).map(|(_, offset)| offset).collect();
    best.get(best.len() / 2).copied()
}

/// How many steps lie between the first and the last that a request is placed in.
fn within(steps: &ServerSteps, placed: &[Option<Placement>]) -> usize {
    let all = || placed.iter().flatten().flat_map(|placement| placement.steps.iter().copied());
    match (all().min(), all().max()) {
        (Some(first), Some(last)) if last < steps.list.len() => last - first + 1,
        _ => 0,
    }
}

/// The time that the quickest outputs take to arrive, from a moment of their step.
pub(super) fn quick_return(
    steps: &ServerSteps,
    requests: &[Arrival],
    placed: &[Option<Placement>],
    offset: Nanos,
    since: fn(&ServerSteps, usize) -> Nanos,
) -> Option<Nanos> {
    let known = requests.iter().zip(placed).filter_map(|(request, placement)| Some((request, placement.as_ref()?)));
    let delays = known.flat_map(|(request, placement)| request.delays(steps, placement, offset, since));
    let mut delays: Vec<Nanos> = delays.map(|(_, delay)| delay).collect();
    delays.sort_unstable();
    delays.get((delays.len() as f64 * QUICK) as usize).copied()
}

/// Offsets worth trying: output comes later than its step ends.
pub(super) fn around(start: i64, apart: i64) -> impl Iterator<Item = Nanos> {
    (-TOGETHER / apart..=LATEST / apart).map(move |place| Nanos::new(start + place * apart))
}

/// Offsets worth trying where the clocks are known: from where output arrives at once to where it comes as late as it may.
pub(super) fn before(known: Nanos, apart: i64) -> impl Iterator<Item = Nanos> {
    (0..=LATEST / apart).map(move |place| known - Nanos::new(place * apart))
}

/// Every pair of a prompt and a step that may have ended it: the step's end without the output's arrival.
fn votes(steps: &ServerSteps, requests: &[Arrival]) -> Vec<i64> {
    let requests = &requests[..requests.len().min(VOTERS)];
    let mut by_length: HashMap<u64, Vec<i64>> = HashMap::new();
    let context = || steps.list.iter().filter(|step| step.context.sequences > 0);
    for step in context().filter(|step| step.context.sequences == 1) {
        by_length.entry(step.context.tokens).or_default().push(step.device.end.get());
    }
    let vote = |request: &Arrival, end: i64| end - request.chunks[0].get();
    let equal = requests.iter().flat_map(|request| {
        let ends = request.prompt.and_then(|prompt| by_length.get(&prompt));
        ends.into_iter().flatten().map(move |end| vote(request, *end))
    });
    let equal: Vec<_> = equal.collect();
    if equal.len() >= 3 {
        return equal;
    }
    let any = |request| context().map(move |step| vote(request, step.device.end.get()));
    requests.iter().flat_map(any).collect()
}

/// The offsets with most votes, no two of them close to each other.
pub(super) fn winners(mut votes: Vec<i64>) -> Vec<i64> {
    votes.sort_unstable();
    let mut first = 0;
    let mut windows: Vec<(usize, i64)> = Vec::with_capacity(votes.len());
    for (last, vote) in votes.iter().enumerate() {
        while votes[first] < vote - TOGETHER {
            first += 1;
        }
        windows.push((last - first, votes[usize::midpoint(first, last)]));
    }
    windows.sort_by_key(|(votes, _)| std::cmp::Reverse(*votes));
    let mut winners: Vec<i64> = Vec::new();
    for (_, offset) in windows {
        if winners.len() == WINNERS {
            break;
        }
        if winners.iter().all(|winner| (winner - offset).abs() > TOGETHER) {
            winners.push(offset);
        }
    }
    winners
}
