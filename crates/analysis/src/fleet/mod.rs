//! Many ranks of one job: what no single rank shows.
//!
//! In come the small tables of every rank (`facts`), out goes a [`types::FleetJob`]. Clocks are brought together by the ends of
//! collectives that ranks share (`clock`); on that clock, calls of one collective are found on all of its ranks (`meeting`), which
//! says who came last and how long the transfer itself took. `pace` holds kernels of ranks against each other, `path` says
//! whose work the job waited for, and `finding` concludes. A rank that is not here may be the one that all wait for: of collectives
//! that it takes part in, nothing is said but that they happened.

mod clock;
mod exchange;
mod facts;
mod finding;
mod meeting;
mod pace;
mod path;
#[cfg(test)]
mod sample;
mod trend;

use std::collections::{BTreeMap, BTreeSet};

use types::view::{NamedSpan, RankLane};
use types::{
    BytesPerSecond, ClockBasis, Facts, FleetClock, FleetCollective, FleetIdle, FleetJob, FleetRank, Nanos,
    QualityCounter, Severity,
};

pub use facts::{CollectiveFact, KernelFact, RankFacts};
pub(crate) use finding::stands_out;
pub use trend::{RunQuantities, trends};

use crate::operators::crossing_share;
use crate::statistics::{describe, median};
use clock::Clocks;
use meeting::{Meeting, meetings};

/// Everything the ranks of one job show together.
pub fn job(name: &str, ranks: Vec<RankFacts>) -> FleetJob {
    job_and_lanes(name, ranks).0
}

/// The same, and the collectives of each rank on one clock; none where there is no such clock.
pub fn job_and_lanes(name: &str, mut ranks: Vec<RankFacts>) -> (FleetJob, Vec<RankLane>) {
    ranks.sort_by_key(|rank| rank.rank);
    let world_size = ranks.iter().filter_map(|rank| rank.world_size).max();
    let here: BTreeSet<u32> = ranks.iter().filter_map(|rank| rank.rank).collect();
    let missing: Vec<u32> = (0..world_size.unwrap_or(0)).filter(|rank| !here.contains(rank)).collect();
    let clocks = Clocks::new(&ranks);
    let meetings = meetings(&ranks, &clocks);
    let paces = pace::paces(&ranks);
    let waits = meeting::Waits::of_ranks(ranks.len(), &meetings, &clocks);
    let rows = rank_rows(&ranks, &clocks, &meetings, &paces, &waits);
    let critical_path = if missing.is_empty() { path::critical_path(&ranks, &clocks, &meetings) } else { Vec::new() };
    let slow_kernels = pace::slow_kernels(&ranks, &paces);
    let collectives = collective_rows(&ranks, &meetings);
    let lost = lost_records(&ranks);
    let quality = missing_ranks(world_size, here.len(), missing.len()).into_iter().chain(clocks.quality()).chain(lost);
    let quality = quality.collect();
    let findings = finding::findings(&finding::Scene {
        ranks: &ranks,
        rows: &rows,
        meetings: &meetings,
        paces: &paces,
        clocks: &clocks,
        waits: &waits,
    });
    let lanes = if clocks.basis == ClockBasis::None { Vec::new() } else { lanes(&ranks, &meetings) };
    let job = FleetJob {
        job: name.to_owned(),
        world_size,
        missing_ranks: missing,
        clock: FleetClock {
            basis: clocks.basis,
            reference_rank: ranks.first().and_then(|rank| rank.rank),
            uncertainty_ns: clocks.uncertainty(),
        },
        ranks: rows,
        collectives,
        slow_kernels,
        critical_path,
        findings,
        quality,
    };
    (job, lanes)
}

/// The calls that all of some ranks share, on one clock.
pub(crate) struct Calls {
    clocks: Clocks,
    meetings: Vec<Meeting>,
}

impl Calls {
    pub(crate) fn of(ranks: &[RankFacts]) -> Self {
        let clocks = Clocks::new(ranks);
        let meetings = meetings(ranks, &clocks);
        Self { clocks, meetings }
    }

    pub(crate) fn count(&self) -> usize {
        self.meetings.len()
    }

    pub(crate) fn basis(&self) -> ClockBasis {
        self.clocks.basis
    }

    /// 95% of them end within this on all ranks.
    pub(crate) fn uncertainty(&self) -> Nanos {
        self.clocks.uncertainty().unwrap_or_default()
    }

    /// A time of a rank on the clock of all; absent where its clock is not known.
    pub(crate) fn at(&self, rank: usize, time: Nanos) -> Option<Nanos> {
        self.clocks.at(rank, time)
    }

    /// How often each rank comes last, by more than clocks can be off, and how long it waits.
    pub(crate) fn waits(&self) -> impl Iterator<Item = (u64, Nanos)> {
        let waits = meeting::Waits::of_ranks(self.clocks.ranks(), &self.meetings, &self.clocks);
        waits.into_iter().map(|of_rank| of_rank.map_or((0, Nanos::ZERO), |of_rank| (of_rank.last, of_rank.waited)))
    }
}

/// Where ranks wait in collectives, and how long these take once all are there.
fn lanes(ranks: &[RankFacts], meetings: &[Meeting]) -> Vec<RankLane> {
    let lane = |rank: &RankFacts| RankLane { rank: rank.rank, waits: Vec::new(), transfers: Vec::new() };
    let mut lanes: Vec<RankLane> = ranks.iter().map(lane).collect();
    for meeting in meetings {
        let (last, arrival) = meeting.last();
        let late = meeting.ranks.get(last).and_then(|place| ranks[*place].rank);
        // A rank that is not here may be the one that all wait for.
        let (arrival, late) = if meeting.whole { (arrival, late) } else { (Nanos::new(i64::MIN), None) };
        for (place, span) in meeting.ranks.iter().zip(&meeting.spans) {
            let there = arrival.clamp(span.start, span.end);
            let named = |name: String, start, end| NamedSpan { name, start, length: end - start };
            if there > span.start {
                let late = late.map_or("the last rank".to_owned(), |rank| format!("rank {rank}"));
                lanes[*place].waits.push(named(format!("waits for {late}: {}", meeting.kind.name), span.start, there));
            }
            lanes[*place].transfers.push(named(meeting.kind.name.clone(), there, span.end));
        }
    }
    lanes
}

fn rank_rows(
    ranks: &[RankFacts],
    clocks: &Clocks,
    meetings: &[Meeting],
    paces: &[Option<pace::Pace>],
    waits: &[Option<meeting::Waits>],
) -> Vec<FleetRank> {
    let exchanged = exchange::by_rank(ranks.len(), meetings);
    let row = |(place, facts): (usize, &RankFacts)| {
        let mut idle: Vec<_> =
            facts.idle.iter().map(|(cause, ns)| FleetIdle { cause: cause.clone(), ns: *ns }).collect();
        idle.sort_by_key(|part| std::cmp::Reverse(part.ns));
        let steps: Vec<f64> = facts.steps.iter().map(|step| step.as_millis()).collect();
        let offset = clocks.offset(place);
        FleetRank {
            rank: facts.rank,
            device_name: facts.device_name.clone(),
            clock_offset_ns: offset.filter(|_| place > 0).map(|offset| offset.ns),
            clock_uncertainty_ns: offset.and_then(|offset| offset.uncertainty),
            span_ns: facts.span,
            busy_ns: facts.busy,
            compute_ns: facts.compute,
            communication_exposed_ns: facts.communication_exposed,
            copies_exposed_ns: facts.copies_exposed,
            idle,
            step_ms: describe(&steps),
            arrived_last: waits[place].map(|of_rank| of_rank.last),
            waited_ns: waits[place].map(|of_rank| of_rank.waited),
            waited_for_ns: waits[place].map(|of_rank| of_rank.waited_for),
            exchanged_bytes: exchanged[place].map(|sum| sum.bytes),
            kernel_pace: paces[place].as_ref().map(|pace| pace.factor),
        }
    };
    ranks.iter().enumerate().map(row).collect()
}

/// Collectives by name, message and group.
fn collective_rows(ranks: &[RankFacts], meetings: &[Meeting]) -> Vec<FleetCollective> {
    let mut kinds: BTreeMap<(&meeting::Kind, &[usize]), Vec<&Meeting>> = BTreeMap::new();
    for meeting in meetings {
        kinds.entry((&meeting.kind, meeting.ranks.as_slice())).or_default().push(meeting);
    }
    let mut rows: Vec<FleetCollective> = kinds
        .into_iter()
        .map(|((kind, members), calls)| {
            let whole = calls.iter().all(|call| call.whole);
            let transfers: Vec<f64> = calls.iter().map(|call| call.transfer().get() as f64).collect();
            let transfer = whole.then(|| median(&transfers)).flatten().map(|ns| Nanos::new(ns.round() as i64));
            let mut sizes = calls.iter().flat_map(|call| call.bytes.iter().copied());
            let size = sizes.next().flatten().filter(|size| sizes.all(|other| other == Some(*size)));
            let crossing = kind.group_size.and_then(|size| crossing_share(&kind.name, size));
            let bus = transfer.zip(size).zip(crossing).and_then(|((time, bytes), crossing)| {
                (time > Nanos::ZERO && bytes.get() > 0)
                    .then(|| BytesPerSecond::new(bytes.get() as f64 * crossing / time.as_seconds().get()))
            });
            // In-network reduction sends less than the definition counts.
            let link = link(ranks, members).filter(|_| whole);
            let link_share = bus.zip(link).map(|(bus, link)| bus.get() / link.get()).filter(|share| *share <= 1.0);
            let mean = |of: &dyn Fn(&Meeting) -> Nanos| {
                let total: Nanos = calls.iter().map(|call| of(call)).sum();
                Nanos::new(total.get() / members.len().max(1) as i64)
            };
            FleetCollective {
                name: kind.name.clone(),
                dtype: kind.dtype.clone(),
                bytes: size,
                process_group: kind.group.clone(),
                group_size: kind.group_size,
                ranks: members.iter().filter_map(|place| ranks[*place].rank).collect(),
                calls: calls.len() as u64,
                transfer_ns: transfer,
                bus_bytes_per_second: bus,
                link_bytes_per_second: link.filter(|_| link_share.is_some()),
                link_share,
                waited_ns: whole.then(|| mean(&Meeting::waited)),
                device_ns: mean(&Meeting::device_time),
            }
        })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.device_ns));
    rows
}

/// The links between ranks of one machine, which are those whose numbers fill it in order.
fn link(ranks: &[RankFacts], members: &[usize]) -> Option<BytesPerSecond> {
    let machine = |place: &usize| {
        let facts = &ranks[*place];
        Some((facts.rank?.checked_div(facts.machine_devices?)?, facts.machine_devices?))
    };
    let first = machine(members.first()?)?;
    let together = members.iter().all(|place| machine(place) == Some(first));
    let links: Option<Vec<BytesPerSecond>> = members.iter().map(|place| ranks[*place].link).collect();
    links?.into_iter().filter(|_| together).min_by(|one, other| one.get().total_cmp(&other.get()))
}

fn missing_ranks(world_size: Option<u32>, here: usize, missing: usize) -> Option<QualityCounter> {
    let world = world_size?;
    let facts = Facts::new().with("here", here).with("world", world).with_if("tables", true);
    let counter = QualityCounter::some("ranks_missing", Severity::Warning, missing as u64);
    counter.map(|counter| counter.of(world.into()).facts(facts))
}

/// What is missing of the traces themselves.
fn lost_records(ranks: &[RankFacts]) -> Option<QualityCounter> {
    let value = ranks.iter().fold(0u64, |sum, rank| sum.saturating_add(rank.lost));
    let touched = ranks.iter().filter(|rank| rank.lost > 0);
    let row =
        |rank: &RankFacts| Facts::new().with("rank", rank.rank.map_or("unknown".to_owned(), |rank| rank.to_string()));
    let counter = QualityCounter::some("records_lost", Severity::Warning, value);
    counter.map(|counter| counter.facts(Facts::new().with("ranks", touched.map(row).collect::<Vec<_>>())))
}

#[cfg(test)]
mod tests {
    use types::{Bytes, ClockBasis, Fact};

    use super::sample::{Script, facts};
    use super::*;

    #[test]
    fn a_straggler_is_named_with_what_the_others_wait() {
        let fleet = job("train", facts(&Script { straggler: Some((5, 300_000)), ..Script::default() }));
        assert_eq!(fleet.clock.basis, ClockBasis::Collectives);
        let [finding, ..] = fleet.findings.as_slice() else { panic!("{fleet:#?}") };
        assert_eq!((finding.rule.as_str(), finding.ranks.as_slice()), ("straggling-rank", &[5][..]));
        let cost = finding.costs_ns.unwrap().get();
        assert!((4_500_000..6_500_000).contains(&cost), "20 steps of 300 us: {cost}");
        let straggler = &fleet.ranks[5];
        assert!(straggler.arrived_last.unwrap() >= 18, "{straggler:#?}");
        assert!(straggler.waited_ns.unwrap() < Nanos::new(200_000), "{straggler:#?}");
        let share = fleet.critical_path.iter().find(|part| part.rank == Some(5)).unwrap().share;
        assert!(share > 0.8, "{:#?}", fleet.critical_path);
        let whole: f64 = fleet.critical_path.iter().map(|part| part.share).sum();
        assert!((whole - 1.0).abs() < 1e-9, "{whole}");
    }

    #[test]
    fn ranks_that_take_turns_at_being_last_are_no_stragglers() {
        let fleet = job("train", facts(&Script::default()));
        assert_eq!(fleet.findings, [], "{fleet:#?}");
    }

    #[test]
    fn a_rank_that_is_last_far_more_often_than_its_equals_is_named() {
        // Rank 5 is late in every other step, and takes its turn in the rest.
        let script = |straggler| Script { straggler, every: 2, steps: Some(60), ..Script::default() };
        let fleet = job("train", facts(&script(Some((5, 300_000)))));
        let last = fleet.ranks[5].arrived_last.unwrap();
        assert!((24..72).contains(&last), "{last} of 120");
        let [finding] = fleet.findings.as_slice() else { panic!("{:#?}", fleet.findings) };
        assert_eq!((finding.rule.as_str(), finding.ranks.as_slice()), ("straggling-rank", &[5][..]));
        assert_eq!(job("train", facts(&script(None))).findings, []);
    }

    #[test]
    fn a_rank_that_is_late_at_times_is_named_however_often_all_arrive_together() {
        // Rank 5 is late in every other step; in the rest, all ranks arrive within the error of the clocks.
        let script = |straggler| Script { straggler, every: 2, together: true, ..Script::default() };
        let fleet = job("train", facts(&script(Some((5, 300_000)))));
        let [finding] = fleet.findings.as_slice() else { panic!("{:#?}", fleet.findings) };
        assert_eq!((finding.rule.as_str(), finding.ranks.as_slice()), ("straggling-rank", &[5][..]));
        assert_eq!(job("train", facts(&script(None))).findings, []);
    }

    #[test]
    fn clocks_of_hosts_are_brought_together_over_offset_and_drift() {
        let script = Script {
            clock: vec![0, 3_000_000_000, -7_000_000, 12],
            drift: vec![0.0, 2e-5, -1e-5, 0.0],
            ..Script::default()
        };
        let fleet = job("train", facts(&script));
        assert_eq!(fleet.clock.basis, ClockBasis::Collectives);
        let worst = fleet.clock.uncertainty_ns.unwrap();
        assert!(worst < Nanos::new(5_000), "{worst}");
        let offset = fleet.ranks[2].clock_offset_ns.unwrap().get();
        assert!((offset - 7_000_000).abs() < 1_000, "{offset}");
        assert_eq!(fleet.findings, [], "different clocks are no straggling");
    }

    #[test]
    fn a_missing_rank_silences_what_it_may_have_caused() {
        let mut ranks = facts(&Script { straggler: Some((5, 300_000)), ..Script::default() });
        ranks.remove(4);
        let fleet = job("train", ranks);
        assert_eq!(fleet.missing_ranks, [4]);
        assert!(fleet.findings.iter().all(|finding| finding.rule != "straggling-rank"), "{:#?}", fleet.findings);
        let of_all = fleet.collectives.iter().find(|row| row.group_size == Some(8)).unwrap();
        assert_eq!((fleet.critical_path.len(), of_all.waited_ns, of_all.transfer_ns), (0, None, None));
        // Rank 4 was the pair of rank 5, which is in no collective now whose ranks are all here.
        let alone = &fleet.ranks[4];
        assert_eq!((alone.rank, alone.arrived_last, alone.waited_ns, alone.waited_for_ns), (Some(5), None, None, None));
        assert_eq!(fleet.quality[0].counter, "ranks_missing");
    }

    #[test]
    fn a_device_whose_kernels_are_all_slower_is_told_from_one_with_more_work() {
        let slow = job("train", facts(&Script { slow_device: Some((2, 1.3)), ..Script::default() }));
        let rules: Vec<_> =
            slow.findings.iter().map(|finding| (finding.rule.as_str(), finding.ranks.clone())).collect();
        assert!(rules.contains(&("slow-device", vec![2])), "{rules:?}");
        let pace = slow.ranks[2].kernel_pace.unwrap();
        assert!((pace - 1.3).abs() < 0.02, "{pace}");
        let busy = job("train", facts(&Script { straggler: Some((2, 300_000)), ..Script::default() }));
        assert!(busy.findings.iter().all(|finding| finding.rule != "slow-device"), "{:#?}", busy.findings);
    }

    #[test]
    fn a_group_whose_transfers_take_longer_than_those_of_its_equals_is_named() {
        let fleet = job("train", facts(&Script { slow_pair: Some((1, 2.0)), ..Script::default() }));
        let finding = fleet.findings.iter().find(|finding| finding.rule == "slow-group").unwrap();
        assert_eq!(finding.ranks, [2, 3], "{finding:#?}");
        assert!(fleet.findings.iter().all(|finding| finding.rule != "straggling-rank"), "{:#?}", fleet.findings);
    }

    #[test]
    fn bandwidth_stands_beside_the_link_only_within_a_machine() {
        let mut ranks = facts(&Script::default());
        for rank in &mut ranks {
            (rank.machine_devices, rank.link) = (Some(4), Some(BytesPerSecond::new(100e9)));
        }
        let rows = job("train", ranks).collectives;
        for row in &rows {
            let (bus, share) = (row.bus_bytes_per_second.unwrap().get(), row.link_share);
            assert_eq!(share, (row.group_size == Some(2)).then_some(bus / 100e9), "{row:#?}");
        }
        assert!(rows.len() == 5 && rows.iter().any(|row| row.group_size == Some(8)), "{rows:#?}");
    }

    #[test]
    fn a_rank_with_more_tokens_for_its_experts_is_named() {
        let fleet = job("train", facts(&Script { hot: Some((6, 1.8)), ..Script::default() }));
        let [finding] = fleet.findings.as_slice() else { panic!("{:#?}", fleet.findings) };
        assert_eq!((finding.rule.as_str(), finding.ranks.as_slice()), ("uneven-exchange", &[6][..]));
        let known = &finding.quantities;
        assert_eq!(
            (known.count("calls"), known.get("bytes")),
            (Some(20), Some(&Fact::Bytes(Bytes::new(20 * 1_887_436))))
        );
        assert!(
            matches!(known.get("factor"), Some(Fact::Number(factor)) if (1.6..1.7).contains(factor)),
            "{finding:?}"
        );
        let exchange = fleet.collectives.iter().find(|row| row.name == "all_to_allv").unwrap();
        assert_eq!((exchange.calls, exchange.bytes, exchange.bus_bytes_per_second), (20, None, None), "sizes differ");
        assert_eq!(fleet.ranks[6].exchanged_bytes.unwrap().get(), 20 * 1_887_436);

        let even = job("train", facts(&Script { hot: Some((6, 1.1)), ..Script::default() }));
        assert_eq!(even.findings, [], "a tenth more is no trouble");
        let mut ranks = facts(&Script { hot: Some((6, 1.8)), ..Script::default() });
        ranks.remove(4);
        let cut = job("train", ranks);
        assert_eq!((cut.findings.len(), cut.ranks[5].exchanged_bytes), (0, None), "the missing rank may have more");
    }

    #[test]
    fn groups_and_times_that_cannot_be_are_no_reason_to_end() {
        for size in [0, 1] {
            let mut ranks = facts(&Script::default());
            for call in ranks.iter_mut().flat_map(|rank| &mut rank.collectives) {
                (call.group_size, call.members) = (Some(size), None);
            }
            assert_eq!(job("odd", ranks).collectives, []);
        }
        let mut ranks = facts(&Script::default());
        let largest = Nanos::new(types::timeline::Timeline::LARGEST_TIME);
        for (place, rank) in ranks.iter_mut().enumerate() {
            rank.first = rank.last;
            rank.collectives[place].end = largest;
            rank.collectives[place + 10].start = Nanos::ZERO - largest;
        }
        assert_eq!(job("odd", ranks).ranks.len(), 8);
    }

    #[test]
    fn one_rank_alone_is_no_fleet_but_no_error() {
        let fleet = job("one", facts(&Script::default()).into_iter().take(1).collect());
        assert_eq!((fleet.clock.basis, fleet.ranks.len(), fleet.missing_ranks.len()), (ClockBasis::None, 1, 7));
        assert!(fleet.findings.is_empty());
    }
}
