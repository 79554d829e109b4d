//! When ranks of one job that were imported together reach the collectives they share, who waits for whom, and their one clock. Clocks
//! and collectives are matched as those of a fleet are.

use types::timeline::{Timeline, WorkKind};
use types::view::RankClock;
use types::{ClockBasis, Nanos, RankArrival, RankArrivals};

use crate::evidence::PlacedTimeline;
use crate::fleet::{Calls, CollectiveFact, RankFacts};
use crate::kernel::{self, Family};
use crate::statistics::share;
use crate::time::{Span, unix_zero};

/// Fewest collectives that show which rank is late.
const FEWEST: usize = 3;

/// Who waits for whom; absent with fewer than two ranks, and where their collectives cannot be matched.
pub(crate) fn arrivals(timelines: &[PlacedTimeline<'_>]) -> Option<RankArrivals> {
    let ranks: Vec<u32> = timelines.iter().map(|placed| placed.rank).collect::<Option<_>>()?;
    if ranks.len() < 2 {
        return None;
    }
    let facts = facts(timelines);
    let calls = Calls::of(&facts);
    let fewest = facts.iter().map(|rank| rank.collectives.len()).min().unwrap_or_default();
    if calls.count() < FEWEST || calls.count() * 2 < fewest {
        return None;
    }
    let row = |((rank, placed), (last, waited_ns)): ((u32, &PlacedTimeline<'_>), (u64, Nanos))| RankArrival {
        rank,
        last,
        waited_ns,
        waited_share: share(waited_ns.get() as f64, extent(placed.timeline).get() as f64),
    };
    let rows = ranks.into_iter().zip(timelines).zip(calls.waits()).map(row).collect();
    Some(RankArrivals { collectives: calls.count() as u64, ends_within_ns: calls.uncertainty(), ranks: rows })
}

/// One clock for timelines that were recorded apart: that of the first. Ends of collectives they share show how far the clocks are
/// apart; without them the clocks of the day are taken as they are, and without those each timeline starts with the first.
pub fn rank_clock(timelines: &[PlacedTimeline<'_>]) -> RankClock {
    let facts = facts(timelines);
    let calls = Calls::of(&facts);
    let zero = |placed: &PlacedTimeline<'_>| unix_zero(placed.timeline).unwrap_or_default();
    let start =
        |placed: &PlacedTimeline<'_>| placed.timeline.work.iter().map(|work| work.start).min().unwrap_or_default();
    let Some(first) = timelines.first() else { return RankClock::default() };
    let shift = |(place, placed): (usize, &PlacedTimeline<'_>)| {
        // At the start of its work: clocks that drift are a little further apart elsewhere.
        let begin = start(placed);
        calls.at(place, begin + zero(placed)).map_or(start(first) - begin, |there| there - zero(first) - begin)
    };
    let within = (calls.basis() == ClockBasis::Collectives).then(|| calls.uncertainty());
    RankClock { shifts: timelines.iter().enumerate().map(shift).collect(), basis: calls.basis(), within }
}

/// From the first work of a timeline to the end of its last.
fn extent(timeline: &Timeline) -> Nanos {
    let spans = timeline.work.iter().map(|work| Span::new(work.start, work.end()));
    spans.reduce(Span::hull).map_or(Nanos::ZERO, Span::length)
}

/// What these ranks show of collectives in which all of them can take part, on the clock of the day where a trace has one.
fn facts(timelines: &[PlacedTimeline<'_>]) -> Vec<RankFacts> {
    let of = |placed: &PlacedTimeline<'_>| RankFacts {
        world_size: Some(timelines.len() as u32),
        unix: unix_zero(placed.timeline).is_some(),
        collectives: collectives(placed, timelines.len()),
        ..RankFacts::default()
    };
    timelines.iter().map(of).collect()
}

fn collectives(placed: &PlacedTimeline<'_>, ranks: usize) -> Vec<CollectiveFact> {
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
        let (start, end) = (work.start + zero, work.end() + zero);
        Some(CollectiveFact { name: name.to_owned(), start, end, ..CollectiveFact::default() })
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

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
