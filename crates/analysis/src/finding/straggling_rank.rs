//! One rank reaches most collectives last, and the others wait for it.

use types::{Base, Facts, Finding, Nanos, RankArrivals, Severity};

use super::{Found, Run};
use crate::fleet::stands_out;
use crate::statistics::share;

/// Share of the other ranks' time that they must wait for it.
const LEAST_SHARE: f64 = 0.05;

/// The rule's name.
pub(super) const RULE: &str = "straggling-rank";

pub(super) fn check(run: &Run<'_>) -> Option<Found> {
    run.arrivals.and_then(found)
}

fn found(arrivals: &RankArrivals) -> Option<Found> {
    let late = arrivals.ranks.iter().max_by_key(|rank| rank.last)?;
    // Where all arrive together nobody is late, however often that happens.
    let (decided, ranks): (u64, usize) = (arrivals.ranks.iter().map(|rank| rank.last).sum(), arrivals.ranks.len());
    if !stands_out(late.last, decided, decided as f64 / ranks as f64, ranks) {
        return None;
    }
    let others = || arrivals.ranks.iter().filter(|rank| rank.rank != late.rank);
    let waited: Nanos = others().map(|rank| rank.waited_ns).sum();
    let time: f64 = others().filter_map(|rank| share(rank.waited_ns.get() as f64, rank.waited_share?)).sum();
    let part = share(waited.get() as f64, time).filter(|part| *part >= LEAST_SHARE)?;
    let facts = Facts::new()
        .with("rank", late.rank)
        .with("last", late.last)
        .with("collectives", decided)
        .with("ranks", ranks)
        .with("waited", waited)
        .with_share("waited_share", part, Base::OtherRanks)
        .with("ends_within", arrivals.ends_within_ns);
    Some(Found::plain(Finding::new(RULE, Severity::Warning, None, facts)))
}

#[cfg(test)]
mod tests {
    use types::RankArrival;

    use super::*;

    fn arrivals(last: [u64; 2], waited: [i64; 2]) -> RankArrivals {
        let row = |rank: u32| RankArrival {
            rank,
            last: last[rank as usize],
            waited_ns: Nanos::new(waited[rank as usize]),
            waited_share: Some(waited[rank as usize] as f64 / 1_000.0),
        };
        RankArrivals { collectives: 9, ends_within_ns: Nanos::new(1), ranks: vec![row(0), row(1)] }
    }

    #[test]
    fn a_rank_that_is_mostly_last_fires_with_what_the_others_wait() {
        let found = found(&arrivals([1, 17], [200, 10])).unwrap().finding;
        let counts = ["rank", "last", "collectives", "ranks"].map(|name| found.quantities.count(name));
        assert_eq!(counts, [1, 17, 18, 2].map(Some));
        let waited = (found.quantities.time("waited"), found.quantities.share("waited_share"));
        assert_eq!(waited, (Some(Nanos::new(200)), Some(0.2)));
    }

    #[test]
    fn collectives_that_all_reach_together_do_not_speak_for_a_late_rank() {
        let of_many = |last| RankArrivals { collectives: 76, ..arrivals(last, [200, 10]) };
        let found = found(&of_many([2, 20])).unwrap().finding;
        assert_eq!(["last", "collectives"].map(|name| found.quantities.count(name)), [20, 22].map(Some));
        assert!(super::found(&of_many([1, 8])).is_none(), "eight of nine may be chance");
    }

    #[test]
    fn ranks_that_take_turns_and_short_waits_do_not_fire() {
        assert!(found(&arrivals([4, 5], [200, 200])).is_none());
        assert!(found(&arrivals([0, 9], [40, 0])).is_none());
    }
}
