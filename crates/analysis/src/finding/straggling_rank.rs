//! One rank reaches most collectives last, and the others wait for it.

use types::{EstimatedSaving, Finding, Nanos, RankArrivals, Severity};

use super::{Found, Run, percent};
use crate::statistics::share;

/// Share of the collectives that one rank must reach last.
const LAST: f64 = 2.0 / 3.0;
/// Share of the other ranks' time that they must wait for it.
const LEAST_SHARE: f64 = 0.05;

/// The rule's name.
pub(super) const RULE: &str = "straggling-rank";

pub(super) fn check(run: &Run<'_>) -> Vec<Found> {
    run.arrivals.and_then(found).into_iter().collect()
}

fn found(arrivals: &RankArrivals) -> Option<Found> {
    let late = arrivals.ranks.iter().max_by_key(|rank| rank.last)?;
    if (late.last as f64) < arrivals.collectives as f64 * LAST {
        return None;
    }
    let others = || arrivals.ranks.iter().filter(|rank| rank.rank != late.rank);
    let waited: Nanos = others().map(|rank| rank.waited_ns).sum();
    let time: f64 = others().filter_map(|rank| share(rank.waited_ns.get() as f64, rank.waited_share?)).sum();
    let part = share(waited.get() as f64, time).filter(|part| *part >= LEAST_SHARE)?;
    Some(Found::plain(Finding {
        quantities: Default::default(),
        rule: RULE.to_owned(),
        severity: Severity::Warning,
        stage: None,
        evidence: vec![
            format!(
                "rank {} reaches {} of {} collectives last that all {} ranks here take part in",
                late.rank,
                late.last,
                arrivals.collectives,
                arrivals.ranks.len()
            ),
            format!("the others wait {waited} for it, {} of their time, inside the collectives", percent(part)),
            format!("these collectives end within {} of each other on all ranks, so that their clocks compare", arrivals.ends_within_ns),
        ],
        saving: EstimatedSaving::default(),
        advice: "Look at what this rank does before its collectives that the others do not: more data, longer sequences or more \
                 experts, a slower device, input on the host. What the others wait is part of the communication time and \
                 is at most what balancing would save."
            .to_owned(),
    }))
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
        let found = found(&arrivals([1, 8], [200, 10])).unwrap().finding;
        assert_eq!(found.evidence[0], "rank 1 reaches 8 of 9 collectives last that all 2 ranks here take part in");
        assert_eq!(found.evidence[1], "the others wait 200 ns for it, 20.0% of their time, inside the collectives");
    }

    #[test]
    fn ranks_that_take_turns_and_short_waits_do_not_fire() {
        assert!(found(&arrivals([4, 5], [200, 200])).is_none());
        assert!(found(&arrivals([0, 9], [40, 0])).is_none());
    }
}
