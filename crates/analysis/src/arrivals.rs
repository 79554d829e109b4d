//! When ranks of one job reach the collectives they share, and who waits for whom.
//!
//! A collective ends on all of its ranks at about the same time, because none can finish before the last has come; so kernels
//! of two ranks are the same collective where they overlap and end together. The same ends show whether clocks can be
//! compared, and how far: where too few of them agree, nothing is said.

use std::collections::BTreeMap;

use types::timeline::{Timeline, WorkKind};
use types::view::RankClock;
use types::{ClockBasis, Nanos, RankArrival, RankArrivals};

use crate::evidence::PlacedTimeline;
use crate::kernel::{self, Family};
use crate::statistics::{median, share};
use crate::time::{Span, unix_zero};

/// How far ends of one collective may be apart: a share of its length, within these bounds.
const END_SHARE: f64 = 0.05;
const END_BOUNDS: [Nanos; 2] = [Nanos::new(20_000), Nanos::new(1_000_000)];
/// Fewest collectives that show which rank is late.
const FEWEST: usize = 3;

/// One kernel of a collective.
#[derive(Clone, Copy)]
struct Arrival<'a> {
    name: &'a str,
    span: Span,
}

/// Who waits for whom; absent with fewer than two ranks, and where their collectives cannot be matched.
pub(crate) fn arrivals(timelines: &[PlacedTimeline<'_>]) -> Option<RankArrivals> {
    let ranks: Vec<u32> = timelines.iter().map(|placed| placed.rank).collect::<Option<_>>()?;
    if ranks.len() < 2 {
        return None;
    }
    let found: Vec<_> = timelines.iter().map(|placed| collectives(placed, ranks.len())).collect();
    let (first, others) = found.split_first()?;
    let matched = others.iter().map(|other| same(first, other)).collect::<Option<Vec<_>>>()?;
    let matched: Vec<Vec<Pair>> = matched.into_iter().map(|(_, pairs)| pairs).collect();
    let error = matched.iter().flat_map(|pairs| pairs.iter().map(|pair| pair.ends_apart)).max()?;
    let shared: Vec<Vec<Span>> = (0..first.len())
        .filter_map(|place| {
            let of_rank = |pairs: &Vec<Pair>| pairs.iter().find(|pair| pair.first == place).map(|pair| pair.other);
            let others = matched.iter().map(of_rank).collect::<Option<Vec<_>>>()?;
            Some(std::iter::once(first[place].span).chain(others).collect())
        })
        .collect();
    (shared.len() >= FEWEST).then(|| summed_up(&ranks, timelines, &shared, error))
}

/// One clock for timelines that were recorded apart: that of the first. Ends of collectives they share show how far the clocks are
/// apart; without them the clocks of the day are taken as they are, and without those each timeline starts with the first.
pub fn rank_clock(timelines: &[PlacedTimeline<'_>]) -> RankClock {
    let zero = |placed: &PlacedTimeline<'_>| unix_zero(placed.timeline);
    let Some((first, others)) = timelines.split_first() else { return RankClock::default() };
    let of_first = collectives(first, timelines.len());
    let matched = others.iter().map(|other| same(&of_first, &collectives(other, timelines.len())));
    if let Some(matched) = matched.collect::<Option<Vec<_>>>().filter(|matched| !matched.is_empty()) {
        let from_first =
            |placed: &PlacedTimeline<'_>| zero(placed).unwrap_or_default() - zero(first).unwrap_or_default();
        let shift = |(other, (offset, _)): (&PlacedTimeline<'_>, &(Nanos, _))| from_first(other) + *offset;
        let shifts = std::iter::once(Nanos::ZERO).chain(others.iter().zip(&matched).map(shift)).collect();
        let within = matched.iter().flat_map(|(_, pairs)| pairs.iter().map(|pair| pair.ends_apart)).max();
        return RankClock { shifts, basis: ClockBasis::Collectives, within };
    }
    let zeros: Option<Vec<Nanos>> = timelines.iter().map(zero).collect();
    if let Some(zeros) = zeros.filter(|_| !others.is_empty()) {
        let shifts = zeros.iter().map(|zero| *zero - zeros[0]).collect();
        return RankClock { shifts, basis: ClockBasis::WallClock, within: None };
    }
    let starts = timelines.iter().map(|placed| placed.timeline.work.iter().map(|work| work.start).min());
    let starts: Vec<Nanos> = starts.map(Option::unwrap_or_default).collect();
    let shifts = starts.iter().map(|start| starts[0] - *start).collect();
    RankClock { shifts, basis: ClockBasis::None, within: None }
}

fn summed_up(ranks: &[u32], timelines: &[PlacedTimeline<'_>], shared: &[Vec<Span>], error: Nanos) -> RankArrivals {
    let mut rows: Vec<_> = ranks
        .iter()
        .map(|rank| RankArrival { rank: *rank, last: 0, waited_ns: Nanos::ZERO, waited_share: None })
        .collect();
    for spans in shared {
        let Some((last, arrival)) = spans.iter().map(|span| span.start).enumerate().max_by_key(|(_, start)| *start)
        else {
            continue;
        };
        let before = spans.iter().enumerate().filter(|(place, _)| *place != last).map(|(_, span)| span.start).max();
        // Nearer together than clocks can tell is together.
        if before.is_some_and(|before| arrival - before > error) {
            rows[last].last += 1;
        }
        for (row, span) in rows.iter_mut().zip(spans) {
            let waited = (arrival - span.start).min(span.length());
            row.waited_ns += if waited > error { waited } else { Nanos::ZERO };
        }
    }
    for (row, placed) in rows.iter_mut().zip(timelines) {
        row.waited_share = share(row.waited_ns.get() as f64, extent(placed.timeline).get() as f64);
    }
    RankArrivals { collectives: shared.len() as u64, ends_within_ns: error, ranks: rows }
}

/// From the first work of a timeline to the end of its last.
fn extent(timeline: &Timeline) -> Nanos {
    let spans = timeline.work.iter().map(|work| Span::new(work.start, work.end()));
    spans.reduce(Span::hull).map_or(Nanos::ZERO, Span::length)
}

/// Kernels of collectives in which all of so many ranks can take part, in order of their end, on the clock of the day where
/// the trace has one.
fn collectives<'a>(placed: &'a PlacedTimeline<'_>, ranks: usize) -> Vec<Arrival<'a>> {
    let PlacedTimeline { timeline, attribution, .. } = placed;
    let communicates: Vec<_> =
        timeline.names.iter().map(|(_, name)| kernel::family(name) == Family::Communication).collect();
    let zero = unix_zero(timeline).unwrap_or_default();
    let found = timeline.work.iter().enumerate().filter_map(|(row, work)| {
        if work.kind != WorkKind::Kernel || !communicates[work.name.index()] || attribution.is_aside(row) {
            return None;
        }
        let operator = attribution.operator[row].map(|row| &timeline.operators[row as usize]);
        let signature = operator.and_then(|operator| operator.signature).map(|id| timeline.signatures.get(id));
        let called = signature.and_then(|signature| signature.collective.as_ref());
        // A smaller group exists several times, each with collectives of its own.
        if called.and_then(|called| called.group_size).is_some_and(|size| (size as usize) < ranks) {
            return None;
        }
        let name = called.map_or_else(|| timeline.name(work.name), |called| called.name.as_str());
        Some(Arrival { name, span: Span::new(work.start + zero, work.end() + zero) })
    });
    let mut found: Vec<_> = found.collect();
    found.sort_by_key(|arrival| arrival.span.end);
    found
}

/// One collective on two ranks.
struct Pair {
    /// Place among those of the first rank.
    first: usize,
    /// The other rank's part, on the first rank's clock.
    other: Span,
    ends_apart: Nanos,
}

/// The collectives that two ranks share, in order, and how far the clock of the other is behind; `None` where at least half of the
/// fewer cannot be matched.
fn same(first: &[Arrival<'_>], other: &[Arrival<'_>]) -> Option<(Nanos, Vec<Pair>)> {
    let offsets = std::iter::once(Nanos::ZERO).chain(offset(first, other));
    let found = offsets.map(|offset| (offset, at_offset(first, other, offset)));
    let (offset, best) = found.max_by_key(|(_, pairs)| pairs.len())?;
    (best.len() >= FEWEST && best.len() * 2 >= first.len().min(other.len())).then_some((offset, best))
}

/// How far the clock of the other is behind, if both recorded the same collectives: the median of their ends.
fn offset(first: &[Arrival<'_>], other: &[Arrival<'_>]) -> Option<Nanos> {
    let names = |all: &[Arrival<'_>]| all.iter().map(|arrival| arrival.name.to_owned()).collect::<Vec<_>>();
    if names(first) != names(other) {
        return None;
    }
    let apart = first.iter().zip(other).map(|(one, two)| (one.span.end - two.span.end).get() as f64);
    Some(Nanos::new(median(&apart.collect::<Vec<_>>())?.round() as i64))
}

/// Matches by name, overlap and end, each at most once and in order.
fn at_offset(first: &[Arrival<'_>], other: &[Arrival<'_>], offset: Nanos) -> Vec<Pair> {
    let mut by_name: BTreeMap<&str, Vec<Span>> = BTreeMap::new();
    for arrival in other {
        let span = Span::new(arrival.span.start + offset, arrival.span.end + offset);
        by_name.entry(arrival.name).or_default().push(span);
    }
    let mut from: BTreeMap<&str, usize> = BTreeMap::new();
    let mut pairs = Vec::new();
    for (place, arrival) in first.iter().enumerate() {
        let Some(spans) = by_name.get(arrival.name) else { continue };
        let from = from.entry(arrival.name).or_default();
        let most = |span: Span| {
            let longer = arrival.span.length().max(span.length()).get() as f64;
            Nanos::new((longer * END_SHARE) as i64).clamp(END_BOUNDS[0], END_BOUNDS[1])
        };
        let apart = |span: &Span| Nanos::new((span.end - arrival.span.end).get().abs());
        // Both are ordered by their end, so that the candidates stand together.
        let begin = (*from).max(spans.partition_point(|span| span.end + END_BOUNDS[1] < arrival.span.end));
        let near =
            spans[begin..].iter().enumerate().take_while(|(_, span)| span.end <= arrival.span.end + END_BOUNDS[1]);
        let overlapping = near.filter(|(_, span)| {
            span.start < arrival.span.end && arrival.span.start < span.end && apart(span) <= most(**span)
        });
        if let Some((step, span)) = overlapping.min_by_key(|(_, span)| apart(span)) {
            *from = begin + step + 1;
            pairs.push(Pair { first: place, other: *span, ends_apart: apart(span) });
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribution::{AttributionSettings, attribute};
    use crate::device::sample::{Launch, timeline};

    const ALL_REDUCE: &str = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)";

    /// Four collectives, a second apart, that all end at 900 us; each rank arrives at its own time.
    fn rank(arrivals: [i64; 4], clock: i64) -> Timeline {
        let launches: Vec<_> = arrivals
            .iter()
            .enumerate()
            .map(|(place, arrival)| {
                let start = clock + place as i64 * 1_000_000_000 + arrival * 1_000;
                Launch::new(start - 1_000, start, 900_000 - arrival * 1_000).named(ALL_REDUCE)
            })
            .collect();
        timeline(clock + 4_000_000_000, &launches)
    }

    fn found(timelines: &[Timeline]) -> Option<RankArrivals> {
        of_placed(timelines, arrivals)
    }

    fn of_placed<T>(timelines: &[Timeline], what: fn(&[PlacedTimeline<'_>]) -> T) -> T {
        let attributed: Vec<_> =
            timelines.iter().map(|timeline| attribute(timeline, &AttributionSettings::default())).collect();
        let placed: Vec<_> = (0..)
            .zip(timelines.iter().zip(&attributed))
            .map(|(rank, (timeline, attribution))| PlacedTimeline {
                timeline,
                attribution,
                rank: Some(rank),
                devices: BTreeMap::new(),
            })
            .collect();
        what(&placed)
    }

    #[test]
    fn the_rank_that_comes_last_is_named_and_the_others_wait_for_it() {
        let found = found(&[rank([0, 0, 700, 0], 0), rank([500, 600, 0, 400], 0)]).unwrap();
        assert_eq!((found.collectives, found.ends_within_ns), (4, Nanos::ZERO));
        let rows: Vec<_> = found.ranks.iter().map(|row| (row.rank, row.last, row.waited_ns.get())).collect();
        assert_eq!(rows, [(0, 1, 1_500_000), (1, 3, 700_000)]);
    }

    #[test]
    fn clocks_of_two_machines_are_set_by_the_ends_of_collectives() {
        let found = found(&[rank([0, 0, 0, 0], 0), rank([500, 600, 300, 400], 7_000_000)]).unwrap();
        assert_eq!((found.ranks[1].last, found.ranks[0].waited_ns.get()), (4, 1_800_000));
    }

    #[test]
    fn ranks_are_drawn_on_the_clock_of_the_first_and_what_it_rests_on_is_known() {
        let ahead = [rank([0, 0, 0, 0], 0), rank([500, 600, 300, 400], 7_000_000)];
        let clock = of_placed(&ahead, rank_clock);
        assert_eq!((clock.basis, clock.within), (ClockBasis::Collectives, Some(Nanos::ZERO)));
        assert_eq!(clock.shifts, [Nanos::ZERO, Nanos::new(-7_000_000)]);
        let mut other = rank([0, 0, 0, 0], 5_000);
        for (work, late) in other.work.iter_mut().zip([5_000_000, 90_000_000, 1_000_000, 40_000_000]) {
            work.start += Nanos::new(late);
        }
        let start = other.work.iter().map(|work| work.start).min().unwrap();
        let mut apart = [rank([0, 0, 0, 0], 0), other];
        let clock = of_placed(&apart, rank_clock);
        assert_eq!((clock.basis, clock.shifts[1]), (ClockBasis::None, apart[0].work[0].start - start));
        for (timeline, zero) in apart.iter_mut().zip([5, 12]) {
            timeline.clock.unix_ns_at_zero = Some(Nanos::new(zero));
        }
        let clock = of_placed(&apart, rank_clock);
        assert_eq!((clock.basis, clock.shifts[1], clock.within), (ClockBasis::WallClock, Nanos::new(7), None));
        assert_eq!(of_placed(&[], rank_clock).shifts, []);
    }

    #[test]
    fn nothing_is_said_where_ends_do_not_agree() {
        let mut other = rank([0, 0, 0, 0], 0);
        for (work, late) in other.work.iter_mut().zip([5_000_000, 90_000_000, 1_000_000, 40_000_000]) {
            work.start += Nanos::new(late);
        }
        assert_eq!(found(&[rank([0, 0, 0, 0], 0), other]), None);
        assert_eq!(found(&[rank([0, 0, 0, 0], 0)]), None, "one rank alone");
    }
}
