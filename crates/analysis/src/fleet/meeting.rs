//! One call of a collective on all of its ranks that are here: a meeting.

use std::collections::{BTreeMap, BTreeSet};

use types::{Bytes, ClockBasis, Nanos};

use super::clock::Clocks;
use super::facts::RankFacts;
use crate::operators::is_exchange;
use crate::time::Span;

/// How far ends of one call may be apart: a share of its length, within these bounds.
const END_SHARE: f64 = 0.05;
const END_BOUNDS: [i64; 2] = [20_000, 5_000_000];

/// What makes calls alike.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kind {
    pub(super) name: String,
    pub(super) dtype: Option<String>,
    /// Of one rank; absent where each has a message of its own size.
    pub(super) bytes: Option<Bytes>,
    pub(super) group: Option<String>,
    pub(super) group_size: Option<u32>,
    pub(super) members: Option<String>,
}

/// One call.
#[derive(Clone, Debug)]
pub(super) struct Meeting {
    pub(super) kind: Kind,
    /// The ranks, by their place, in order.
    pub(super) ranks: Vec<usize>,
    /// Whether these are all that take part.
    pub(super) whole: bool,
    /// On each of them, on the clock of all.
    pub(super) spans: Vec<Span>,
    /// On each of them: no other kernel ran.
    pub(super) exposed: Vec<Nanos>,
    /// Of each of them: its message.
    pub(super) bytes: Vec<Option<Bytes>>,
}

/// A call on one rank.
#[derive(Clone, Copy)]
struct Call {
    span: Span,
    exposed: Nanos,
    bytes: Option<Bytes>,
}

type OfRanks = BTreeMap<usize, Vec<Call>>;

impl Meeting {
    /// The arrival of the last rank, and its place among the ranks of the meeting.
    pub(super) fn last(&self) -> (usize, Nanos) {
        let starts = self.spans.iter().map(|span| span.start).enumerate();
        starts.max_by_key(|(_, start)| *start).unwrap_or((0, Nanos::ZERO))
    }

    pub(super) fn end(&self) -> Nanos {
        self.spans.iter().map(|span| span.end).max().unwrap_or_default()
    }

    /// From the arrival of the last rank to the end: its own part, since only that waited for nobody.
    pub(super) fn transfer(&self) -> Nanos {
        self.spans[self.last().0].length()
    }

    /// How long all ranks together waited for the last.
    pub(super) fn waited(&self) -> Nanos {
        let (_, arrival) = self.last();
        self.spans.iter().map(|span| (arrival - span.start).min(span.length()).max(Nanos::ZERO)).sum()
    }

    /// Of all ranks together.
    pub(super) fn device_time(&self) -> Nanos {
        self.spans.iter().map(|span| span.length()).sum()
    }
}

/// All calls that were found on every rank of their group that is here, in order of their end. None without a common clock.
pub(super) fn meetings(ranks: &[RankFacts], clocks: &Clocks) -> Vec<Meeting> {
    if clocks.basis != ClockBasis::Collectives {
        return Vec::new();
    }
    let tolerance = clocks.uncertainty().unwrap_or_default().get().saturating_mul(3);
    let mut kinds: BTreeMap<Kind, OfRanks> = BTreeMap::new();
    for (place, rank) in ranks.iter().enumerate() {
        for call in &rank.collectives {
            let (Some(start), Some(end)) = (clocks.at(place, call.start), clocks.at(place, call.end)) else { continue };
            let kind = Kind {
                name: call.name.clone(),
                dtype: call.dtype.clone(),
                bytes: call.bytes.filter(|_| !is_exchange(&call.name)),
                group: call.group.clone(),
                group_size: call.group_size,
                members: call.members.clone(),
            };
            let calls = kinds.entry(kind).or_default().entry(place).or_default();
            calls.push(Call { span: Span::new(start, end.max(start)), exposed: call.exposed, bytes: call.bytes });
        }
    }
    let world = ranks.iter().filter_map(|rank| rank.world_size).max();
    let mut found = Vec::new();
    for (kind, mut of_ranks) in kinds {
        for calls in of_ranks.values_mut() {
            calls.sort_by_key(|call| call.span.end);
        }
        for members in groups(&of_ranks, kind.group_size, tolerance) {
            let size = kind.group_size.or(world);
            let whole = size.is_some_and(|size| members.len() == size as usize);
            found.extend(of_members(&kind, &members, whole, &of_ranks, tolerance));
        }
    }
    found.sort_by_key(Meeting::end);
    found
}

/// Which ranks are in one group. Groups of one name and size may be many, as those of tensor parallelism are: ranks whose calls end
/// together are in one.
fn groups(of_ranks: &OfRanks, size: Option<u32>, tolerance: i64) -> Vec<Vec<usize>> {
    let all: Vec<usize> = of_ranks.keys().copied().collect();
    if size.is_some_and(|size| size < 2) {
        return Vec::new();
    }
    let Some(size) = size.map(|size| size as usize).filter(|size| *size < all.len()) else {
        return if all.len() > 1 { vec![all] } else { Vec::new() };
    };
    let mut left: BTreeSet<usize> = all.into_iter().collect();
    let mut groups = Vec::new();
    while let Some(first) = left.pop_first() {
        let mut alike: Vec<(usize, usize)> = left
            .iter()
            .map(|other| (pairs(&of_ranks[&first], &of_ranks[other], tolerance).len(), *other))
            .filter(|(count, _)| count * 2 >= of_ranks[&first].len())
            .collect();
        alike.sort_by_key(|(count, other)| (std::cmp::Reverse(*count), *other));
        // More ranks than the group holds end together: who is with whom cannot be told.
        let ambiguous = alike.len() >= size;
        let mut members: Vec<usize> = alike.iter().take(size - 1).map(|(_, other)| *other).collect();
        for member in &members {
            left.remove(member);
        }
        members.push(first);
        members.sort_unstable();
        if members.len() > 1 && !ambiguous {
            groups.push(members);
        }
    }
    groups
}

/// Places of the calls of two ranks that end together, each at most once and in order.
fn pairs(first: &[Call], second: &[Call], tolerance: i64) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    let mut from = 0;
    for (place, Call { span, .. }) in first.iter().enumerate() {
        while from < second.len() {
            let other = second[from].span;
            let longer = span.length().max(other.length()).get() as f64;
            let within = ((longer * END_SHARE) as i64).clamp(END_BOUNDS[0], END_BOUNDS[1]).max(tolerance);
            let apart = (other.end - span.end).get();
            if apart > within {
                break;
            }
            from += 1;
            if apart >= -within {
                pairs.push((place, from - 1));
                break;
            }
        }
    }
    pairs
}

/// Calls that every member took part in.
fn of_members(kind: &Kind, members: &[usize], whole: bool, of_ranks: &OfRanks, tolerance: i64) -> Vec<Meeting> {
    let [first, others @ ..] = members else { return Vec::new() };
    let matched: Vec<BTreeMap<usize, usize>> =
        others.iter().map(|other| pairs(&of_ranks[first], &of_ranks[other], tolerance).into_iter().collect()).collect();
    let meeting = |(place, call): (usize, &Call)| {
        let mut calls = vec![*call];
        for (other, pairs) in others.iter().zip(&matched) {
            calls.push(of_ranks[other][*pairs.get(&place)?]);
        }
        Some(Meeting {
            kind: kind.clone(),
            ranks: members.to_vec(),
            whole,
            spans: calls.iter().map(|call| call.span).collect(),
            exposed: calls.iter().map(|call| call.exposed).collect(),
            bytes: calls.iter().map(|call| call.bytes).collect(),
        })
    };
    of_ranks[first].iter().enumerate().filter_map(meeting).collect()
}

/// How one rank waited, and was waited for.
#[derive(Clone, Copy, Default)]
pub(super) struct Waits {
    /// Meetings it was the last to reach, by more than clocks can be off.
    pub(super) last: u64,
    /// Meetings it was in that one rank, whichever, was the last to reach by more than that.
    pub(super) decided: u64,
    /// How many of those it would be the last to reach among equals.
    pub(super) expected: f64,
    /// How long it waited.
    pub(super) waited: Nanos,
    /// How long each of the others waited for it, on average.
    pub(super) waited_for: Nanos,
}

impl Waits {
    /// Of each rank; nothing is known of one that was in no meeting whose ranks are all here.
    pub(super) fn of_ranks(ranks: usize, meetings: &[Meeting], clocks: &Clocks) -> Vec<Option<Self>> {
        let error = clocks.uncertainty().unwrap_or_default();
        let mut waits = vec![None; ranks];
        for meeting in meetings.iter().filter(|meeting| meeting.whole) {
            let (late, arrival) = meeting.last();
            let others = (meeting.ranks.len() - 1).max(1) as i64;
            let before = meeting.spans.iter().enumerate().filter(|(place, _)| *place != late);
            let before = before.map(|(_, span)| span.start).max().unwrap_or(arrival);
            let alone = arrival - before > error;
            let mut caused = Nanos::ZERO;
            for (rank, span) in meeting.ranks.iter().zip(&meeting.spans) {
                let of_rank: &mut Self = waits[*rank].get_or_insert_default();
                let waited = (arrival - span.start).min(span.length());
                if waited > error {
                    of_rank.waited += waited;
                    // What the second to last would have cost too is not the fault of the last.
                    caused += waited.min(arrival - before);
                }
            }
            if alone {
                for rank in &meeting.ranks {
                    let of_rank: &mut Self = waits[*rank].get_or_insert_default();
                    of_rank.decided += 1;
                    of_rank.expected += 1.0 / meeting.ranks.len() as f64;
                }
                let of_last = waits[meeting.ranks[late]].get_or_insert_default();
                of_last.last += 1;
                of_last.waited_for += Nanos::new(caused.get() / others);
            }
        }
        waits
    }
}
