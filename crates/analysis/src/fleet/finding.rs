//! What stands out among ranks, each with its evidence and a bound on its cost.

use std::collections::{BTreeMap, BTreeSet};

use types::{Base, Bytes, Facts, FleetFinding, FleetRank, IdleCause, Nanos};

use super::clock::Clocks;
use super::exchange;
use super::facts::RankFacts;
use super::meeting::{Meeting, Waits};
use super::pace::Pace;
use crate::statistics::median;

/// Fewest collectives that one rank reaches last, whichever, for a rank to be late.
const FEWEST: u64 = 8;
/// A straggler is last at least this often, or, among many ranks, this many times as often as one of equals.
const MOSTLY: f64 = 0.5;
const TIMES_ITS_SHARE: f64 = 2.0;
/// Chance, over all ranks, that one of equals is last so often.
const DOUBT: f64 = 0.01;
/// What costs less of the span than this is not worth a word.
const WORTH: f64 = 0.01;
/// A device is slow beyond this, if nearly all of its kernels are.
const SLOW_DEVICE: f64 = 1.05;
const NEARLY_ALL: f64 = 0.8;
/// Groups that a slow one is held against, calls of each, and how much longer its transfers take.
const FEWEST_GROUPS: usize = 3;
const FEWEST_TRANSFERS: usize = 5;
const SLOW_GROUP: f64 = 1.25;
/// An exchange is uneven where a rank has this many times the messages of the mean rank.
const UNEVEN_EXCHANGE: f64 = 1.25;
/// Compute is uneven beyond this multiple of the median.
const UNEVEN: f64 = 1.1;

/// All that a rule may look at.
pub(super) struct Scene<'a> {
    pub(super) ranks: &'a [RankFacts],
    pub(super) rows: &'a [FleetRank],
    pub(super) meetings: &'a [Meeting],
    pub(super) paces: &'a [Option<Pace>],
    pub(super) clocks: &'a Clocks,
    pub(super) waits: &'a [Option<Waits>],
}

/// All findings, what costs most first.
pub(super) fn findings(scene: &Scene<'_>) -> Vec<FleetFinding> {
    let mut found = stragglers(scene);
    let late: BTreeSet<u32> = found.iter().flat_map(|finding| finding.ranks.iter().copied()).collect();
    found.extend(slow_devices(scene));
    found.extend(slow_groups(scene));
    found.extend(uneven_exchange(scene));
    let known: BTreeSet<u32> = found.iter().flat_map(|finding| finding.ranks.iter().copied()).chain(late).collect();
    found.extend(uneven_compute(scene).filter(|finding| finding.ranks.iter().all(|rank| !known.contains(rank))));
    found.sort_by_key(|finding| std::cmp::Reverse(finding.costs_ns));
    found
}

/// A rank that the others wait for, again and again.
fn stragglers(scene: &Scene<'_>) -> Vec<FleetFinding> {
    let rule = |(place, row): (usize, &FleetRank)| {
        let (arrived_last, waited_for) = (row.arrived_last?, row.waited_for_ns?);
        // Where all arrive together nobody is late, however often that happens.
        let decided = scene.waits[place].map_or(0, |of_rank| of_rank.decided);
        let expected = scene.waits[place].map_or(0.0, |of_rank| of_rank.expected);
        let worth = waited_for.get() as f64 >= WORTH * row.span_ns.get() as f64;
        if !worth || !stands_out(arrived_last, decided, expected, scene.ranks.len()) {
            return None;
        }
        let facts = Facts::new()
            .with("last", arrived_last)
            .with("decided", decided)
            .with("waited_for", waited_for)
            .with("span", row.span_ns)
            .with_known("clock_error", scene.clocks.uncertainty());
        let facts = cause(scene, place, waited_for, facts);
        Some(finding("straggling-rank", vec![row.rank?], Some(waited_for), facts))
    };
    scene.rows.iter().enumerate().filter_map(rule).collect()
}

/// Whether a rank is last in so many of those collectives that have a clear last rank that it is no chance. Among equals it would be
/// in `expected` of them.
pub(crate) fn stands_out(last: u64, decided: u64, expected: f64, ranks: usize) -> bool {
    let [often, equal] = [last as f64, expected].map(|count| count / decided.max(1) as f64);
    let chance = at_least(often, equal, decided) * ranks as f64;
    decided >= FEWEST && often >= MOSTLY.min(TIMES_ITS_SHARE * equal) && chance <= DOUBT
}

/// Chernoff's bound on how likely a share at least this large is where each call has this chance.
fn at_least(share: f64, chance: f64, calls: u64) -> f64 {
    if share <= chance {
        return 1.0;
    }
    let part = |one: f64, other: f64| if one > 0.0 { one * (one / other).ln() } else { 0.0 };
    (-(calls as f64) * (part(share, chance) + part(1.0 - share, 1.0 - chance))).exp()
}

/// A finding, still to be said.
fn finding(rule: &str, ranks: Vec<u32>, costs_ns: Option<Nanos>, quantities: Facts) -> FleetFinding {
    FleetFinding { rule: rule.to_owned(), ranks, costs_ns, quantities, evidence: Vec::new(), advice: String::new() }
}

/// The facts with what a rank does more of than the others, who wait this long for it.
fn cause(scene: &Scene<'_>, place: usize, waited_for: Nanos, facts: Facts) -> Facts {
    let idle = |row: &FleetRank, cause: &str| {
        row.idle.iter().filter(|part| part.cause == cause).map(|part| part.ns).sum::<Nanos>()
    };
    let row = &scene.rows[place];
    let excess = |of: &dyn Fn(&FleetRank) -> Nanos| {
        let others: Vec<f64> = scene
            .rows
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != place)
            .map(|(_, row)| of(row).get() as f64)
            .collect();
        (of(row).get() as f64 - median(&others).unwrap_or(0.0), median(&others).unwrap_or(0.0))
    };
    let mut parts = vec![("compute", excess(&|row| row.compute_ns)), ("copies", excess(&|row| row.copies_exposed_ns))];
    for cause in IdleCause::ALL {
        parts.push((cause.name(), excess(&|row| idle(row, cause.name()))));
    }
    let most = parts.into_iter().max_by(|one, other| one.1.0.total_cmp(&other.1.0));
    // It must account for a good part of what the others wait.
    let Some((name, (extra, usual))) = most.filter(|part| part.1.0 >= 0.3 * waited_for.get() as f64) else {
        return facts;
    };
    let time = |time: f64| Nanos::new(time.round() as i64);
    let facts = facts.with("extra", time(extra)).with("usual", time(usual));
    if name != "compute" && name != "copies" {
        return facts.with("idle_cause", name);
    }
    let facts = facts.with_if(name, true);
    match scene.paces[place].as_ref().map(|pace| pace.factor) {
        Some(factor) if factor >= SLOW_DEVICE => facts.with("pace", factor),
        Some(_) => facts.with_if("more_work", name == "compute"),
        None => facts,
    }
}

/// A device on which nearly every kernel takes longer.
fn slow_devices(scene: &Scene<'_>) -> Vec<FleetFinding> {
    let rule = |(row, pace): (&FleetRank, &Option<Pace>)| {
        let pace = pace.as_ref()?;
        let worth = pace.extra.get() as f64 >= WORTH * row.span_ns.get() as f64;
        if pace.factor < SLOW_DEVICE || pace.slower_share < NEARLY_ALL || !worth {
            return None;
        }
        let facts = Facts::new().with("pace", pace.factor);
        let facts = facts.with_share("slower_share", pace.slower_share, Base::KernelTime);
        Some(finding("slow-device", vec![row.rank?], Some(pace.extra), facts))
    };
    scene.rows.iter().zip(scene.paces).filter_map(rule).collect()
}

/// A group whose transfers take longer than those of its equals.
fn slow_groups(scene: &Scene<'_>) -> Vec<FleetFinding> {
    type Alike<'a> = (&'a str, Option<&'a str>, u64, Option<u32>);
    let mut alike: BTreeMap<Alike<'_>, BTreeMap<&[usize], Vec<f64>>> = BTreeMap::new();
    for meeting in scene.meetings.iter().filter(|meeting| meeting.whole) {
        let kind = &meeting.kind;
        let Some(bytes) = kind.bytes.map(|bytes| bytes.get()) else { continue };
        let key = (kind.name.as_str(), kind.dtype.as_deref(), bytes, kind.group_size);
        let transfers = alike.entry(key).or_default().entry(meeting.ranks.as_slice()).or_default();
        transfers.push(meeting.transfer().get() as f64);
    }
    let error = scene.clocks.uncertainty().unwrap_or_default().get() as f64;
    let mut found: BTreeMap<Vec<u32>, (Nanos, Vec<Facts>)> = BTreeMap::new();
    for ((name, _, bytes, _), groups) in alike {
        let medians: Vec<(&[usize], usize, f64)> = groups
            .into_iter()
            .filter(|(_, transfers)| transfers.len() >= FEWEST_TRANSFERS)
            .filter_map(|(members, transfers)| Some((members, transfers.len(), median(&transfers)?)))
            .collect();
        if medians.len() < FEWEST_GROUPS {
            continue;
        }
        let usual = median(&medians.iter().map(|(_, _, time)| *time).collect::<Vec<_>>()).unwrap_or(0.0);
        for (members, calls, time) in &medians {
            if *time < SLOW_GROUP * usual || time - usual <= 2.0 * error {
                continue;
            }
            let ranks: Vec<u32> = members.iter().filter_map(|place| scene.ranks[*place].rank).collect();
            let costs = Nanos::new(((time - usual) * *calls as f64).round() as i64);
            let transfer = Facts::new()
                .with("name", name)
                .with("bytes", Bytes::new(bytes))
                .with("time", Nanos::new(time.round() as i64))
                .with("calls", *calls)
                .with("usual", Nanos::new(usual.round() as i64))
                .with("groups", medians.len() - 1);
            let (sum, transfers) = found.entry(ranks).or_default();
            *sum += costs;
            transfers.push(transfer);
        }
    }
    let group = |(ranks, (costs, transfers)): (Vec<u32>, (Nanos, Vec<Facts>))| {
        finding("slow-group", ranks, Some(costs), Facts::new().with("transfers", transfers))
    };
    found.into_iter().map(group).collect()
}

/// The rank with the largest messages in all-to-alls. What that costs shows where the others wait for it, which is another finding.
fn uneven_exchange(scene: &Scene<'_>) -> Option<FleetFinding> {
    let of_ranks = exchange::by_rank(scene.ranks.len(), scene.meetings);
    let largest = of_ranks
        .iter()
        .enumerate()
        .filter_map(|(place, sum)| sum.and_then(|sum| Some((place, sum, sum.against_mean()?))))
        .filter(|(_, sum, factor)| sum.calls >= FEWEST && *factor >= UNEVEN_EXCHANGE)
        .max_by(|one, other| one.2.total_cmp(&other.2));
    let (place, sum, factor) = largest?;
    let facts = Facts::new().with("calls", sum.calls).with("bytes", sum.bytes).with("factor", factor);
    Some(finding("uneven-exchange", vec![scene.ranks[place].rank?], None, facts))
}

/// A rank that computes much longer than the median.
fn uneven_compute(scene: &Scene<'_>) -> impl Iterator<Item = FleetFinding> {
    let times: Vec<f64> = scene.rows.iter().map(|row| row.compute_ns.get() as f64).collect();
    let usual = median(&times).unwrap_or(0.0);
    let most = scene.rows.iter().max_by_key(|row| row.compute_ns).filter(|_| scene.rows.len() >= FEWEST_GROUPS);
    let uneven = most.filter(|row| {
        let (time, span) = (row.compute_ns.get() as f64, row.span_ns.get() as f64);
        usual > 0.0 && time >= UNEVEN * usual && time - usual >= WORTH * span
    });
    let found = uneven.and_then(|row| {
        let usual = Nanos::new(usual.round() as i64);
        let facts = Facts::new().with("compute", row.compute_ns).with("usual", usual);
        Some(finding("uneven-compute", vec![row.rank?], Some(row.compute_ns - usual), facts))
    });
    found.into_iter()
}
