//! Whose work the whole job waited for.
//!
//! Walked backwards, from the end of the last work: a rank works since its last collective; that collective began in earnest when
//! the last of its ranks arrived, and before that it is this rank's work that counts. A collective that runs beside compute holds
//! nobody up and is passed over.

use std::collections::BTreeMap;

use types::{FleetPathPart, Nanos};

use super::clock::Clocks;
use super::facts::RankFacts;
use super::meeting::Meeting;

/// The parts, longest first; they add up to the time of the job. Empty where no collective was matched.
pub(super) fn critical_path(ranks: &[RankFacts], clocks: &Clocks, meetings: &[Meeting]) -> Vec<FleetPathPart> {
    let first = ranks.iter().enumerate().filter_map(|(place, rank)| clocks.at(place, rank.first)).min();
    let last = ranks.iter().enumerate().filter_map(|(place, rank)| Some((clocks.at(place, rank.last)?, place))).max();
    let (Some(first), Some((last, mut rank))) = (first, last) else { return Vec::new() };
    // Per rank: meetings that held it up, in order of their end there.
    let mut held: Vec<Vec<(Nanos, &Meeting)>> = vec![Vec::new(); ranks.len()];
    for meeting in meetings {
        let (late, _) = meeting.last();
        let holds_up = meeting.exposed[late].get() * 2 >= meeting.spans[late].length().get();
        for (place, span) in meeting.ranks.iter().zip(&meeting.spans).filter(|_| holds_up) {
            held[*place].push((span.end, meeting));
        }
    }
    if held.iter().all(Vec::is_empty) || last <= first {
        return Vec::new();
    }
    held.iter_mut().for_each(|held| held.sort_by_key(|(end, _)| *end));
    let mut parts: BTreeMap<Option<usize>, Nanos> = BTreeMap::new();
    let mut now = last;
    while let Some((end, meeting)) = before(&held[rank], now) {
        let (late, arrival) = meeting.last();
        // Clocks are not exact: nothing happens before the first work.
        let (end, arrival) = (end.max(first), arrival.min(end).max(first));
        *parts.entry(Some(rank)).or_default() += now - end;
        *parts.entry(None).or_default() += end - arrival;
        (rank, now) = (meeting.ranks[late], arrival);
        if now == first {
            break;
        }
    }
    *parts.entry(Some(rank)).or_default() += (now - first).max(Nanos::ZERO);
    let whole = parts.values().copied().sum::<Nanos>().get() as f64;
    let mut parts: Vec<_> = parts
        .into_iter()
        .filter(|(_, ns)| *ns > Nanos::ZERO)
        .map(|(place, ns)| FleetPathPart {
            rank: place.and_then(|place| ranks[place].rank),
            ns,
            share: ns.get() as f64 / whole,
        })
        .collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.ns));
    parts
}

/// The last meeting that ends before a moment and began in earnest before it, so that the walk goes on backwards.
fn before<'a>(held: &[(Nanos, &'a Meeting)], now: Nanos) -> Option<(Nanos, &'a Meeting)> {
    let count = held.partition_point(|(end, _)| *end <= now);
    held[..count].iter().rev().find(|(_, meeting)| meeting.last().1 < now).copied()
}
