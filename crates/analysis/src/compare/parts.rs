//! Device time, operators, kernels and modules. Each run times them once, in its profiled pass, so how sure a change is can be told
//! from several runs only.

use std::collections::{BTreeMap, BTreeSet};

use types::{Change, Count, DeviceId, Facts, Measured, Nanos, Remark, Replication, Stage};

use super::pairing::Pairing;
use super::row::{Evidence, Row, geometric_mean, judged, log_ratio, time};
use super::{CONFIDENCE, RunRecords, Sides};
use crate::kernel::short_name;
use crate::statistics::{relative_spread, student_test};

/// Which of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    DeviceTime,
    Operators,
    Kernels,
    Modules,
}

/// What makes rows of different runs the same row.
type Key = (String, Option<Stage>, Option<DeviceId>);

/// Time and calls of one run.
#[derive(Clone, Copy, Debug)]
struct Spent {
    nanoseconds: f64,
    calls: Option<u64>,
}

/// Every row that a run has, the largest change in time first.
pub(super) fn changes(sides: Sides<'_>, pairing: &Pairing, part: Part) -> Vec<Change> {
    let on_device = part == Part::Operators && sides.runs().all(has_device_times);
    // The only device of a run is the same thing as the only device of another, whatever its number.
    let several = sides.runs().any(|run| run.metrics.devices.len() > 1);
    let spent = |run: &RunRecords| spent(run, part, on_device, several);
    let mut tables: Vec<BTreeMap<Key, Spent>> = sides.runs().map(spent).collect();
    if part == Part::Kernels {
        join_by_short_name(&mut tables);
    }
    let mut keys: Vec<&Key> = tables.iter().flat_map(BTreeMap::keys).collect();
    keys.sort();
    keys.dedup();
    let rows = keys.into_iter().map(|key| {
        let found: Vec<Option<Spent>> = tables.iter().map(|table| table.get(key).copied()).collect();
        row(sides, pairing, key, &found)
    });
    let mut changes = judged(rows.collect());
    if part == Part::Kernels {
        changes.iter_mut().for_each(|change| change.short_name = Some(short_name(&change.name)));
    }
    let moved = |change: &Change| {
        let nanoseconds = |side: &Measured| side.time_ns.map_or(0, |time| time.get());
        nanoseconds(&change.with).abs_diff(nanoseconds(&change.base))
    };
    changes.sort_by_key(|change| std::cmp::Reverse(moved(change)));
    changes
}

/// Tools write the name of one kernel in more than one way, and only some know its stage. Kernels that not every run has
/// are joined by the short form of their name where that joins them with others, and without stages where a run has none.
fn join_by_short_name(tables: &mut [BTreeMap<Key, Spent>]) {
    let knows_stages =
        |table: &BTreeMap<Key, Spent>| table.is_empty() || table.keys().any(|(_, stage, _)| stage.is_some());
    if !tables.iter().all(knows_stages) {
        tables
            .iter_mut()
            .for_each(|table| *table = renamed(table, |(name, _, device)| (name.clone(), None, device.clone())));
    }
    let everywhere = |key: &Key| tables.iter().all(|table| table.contains_key(key));
    let short = |key: &Key| (short_name(&key.0), key.1, key.2.clone());
    let apart = |table: &BTreeMap<Key, Spent>| -> BTreeSet<Key> {
        table.keys().filter(|key| !everywhere(key)).map(short).collect()
    };
    let apart: Vec<BTreeSet<Key>> = tables.iter().map(apart).collect();
    let joins = |key: &Key| apart.iter().all(|keys| keys.contains(key));
    let new = |key: &Key| if !everywhere(key) && joins(&short(key)) { short(key) } else { key.clone() };
    let joined: Vec<_> = tables.iter().map(|table| renamed(table, new)).collect();
    tables.iter_mut().zip(joined).for_each(|(table, joined)| *table = joined);
}

/// The table under other keys; rows that get the same key become one.
fn renamed(table: &BTreeMap<Key, Spent>, new: impl Fn(&Key) -> Key) -> BTreeMap<Key, Spent> {
    let mut renamed: BTreeMap<Key, Spent> = BTreeMap::new();
    for (key, spent) in table {
        let sum = renamed.entry(new(key)).or_insert(Spent { nanoseconds: 0.0, calls: spent.calls.map(|_| 0) });
        sum.nanoseconds += spent.nanoseconds;
        sum.calls = sum.calls.zip(spent.calls).map(|(sum, calls)| sum + calls);
    }
    renamed
}

fn row(sides: Sides<'_>, pairing: &Pairing, key: &Key, found: &[Option<Spent>]) -> Row {
    let (base, with) = found.split_at(sides.base.len());
    let (name, stage, device) = key.clone();
    let (base_times, with_times) = (times(base), times(with));
    let row = Row {
        name,
        stage,
        device,
        base: measured(base, &base_times),
        with: measured(with, &with_times),
        ..Row::default()
    };
    let partly = base_times.len() < base.len() || with_times.len() < with.len();
    let reason = match (base_times.is_empty(), with_times.is_empty()) {
        (true, _) => Some(Remark::new("untested.only-second", Facts::new())),
        (_, true) => Some(Remark::new("untested.only-first", Facts::new())),
        _ if !pairing.is_whole() => Some(Remark::new("untested.other-inputs", Facts::new())),
        _ if partly => Some(Remark::new("untested.some-runs", Facts::new())),
        _ => None,
    };
    if let Some(reason) = reason {
        return Row { evidence: Evidence::untested(reason), ..row };
    }
    let log_ratio = log_ratio(geometric_mean(&base_times), geometric_mean(&with_times));
    let evidence = match sides.replication() {
        Replication::Repeats => Evidence::untested(Remark::new("untested.one-pass", Facts::new())),
        Replication::Runs => student_test(&base_times, &with_times, CONFIDENCE)
            .map_or_else(|| Evidence::untested(Remark::new("untested.equal-times", Facts::new())), Evidence::from),
    };
    Row { log_ratio, evidence, ..row }
}

fn times(found: &[Option<Spent>]) -> Vec<f64> {
    found.iter().flatten().map(|spent| spent.nanoseconds).collect()
}

/// The typical run: the mean on a logarithmic scale, and the plain mean where a time is zero.
fn measured(found: &[Option<Spent>], times: &[f64]) -> Measured {
    let mean = || (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64);
    let calls: Vec<u64> = found.iter().flatten().filter_map(|spent| spent.calls).collect();
    Measured {
        time_ns: time(geometric_mean(times).or_else(mean)),
        samples: times.len() as u64,
        calls: (!calls.is_empty()).then(|| calls.iter().sum::<Count>().get() / calls.len() as u64),
        spread: relative_spread(times),
        ..Measured::default()
    }
}

fn has_device_times(run: &RunRecords) -> bool {
    run.metrics.breakdown.operators.iter().any(|operator| operator.device_ns.is_some())
}

/// Rows of one run by key. Operators count their own time, or that of the device where every run knows it: times that
/// include callees would show one change in every caller again.
fn spent(run: &RunRecords, part: Part, on_device: bool, several: bool) -> BTreeMap<Key, Spent> {
    let device = |device: &DeviceId| several.then(|| device.clone());
    let mut table: BTreeMap<Key, Spent> = BTreeMap::new();
    let mut add = |key: Key, nanoseconds: i64, calls: Option<u64>| {
        let sum = table.entry(key).or_insert(Spent { nanoseconds: 0.0, calls: calls.map(|_| 0) });
        sum.nanoseconds += nanoseconds as f64;
        sum.calls = sum.calls.zip(calls).map(|(sum, calls)| sum + calls);
    };
    match part {
        Part::DeviceTime => run.metrics.breakdown.device_time.iter().for_each(|one| {
            let mut add = |name: String, time: Nanos| add((name, None, device(&one.device)), time.get(), None);
            add("compute".to_owned(), one.compute_ns);
            add("exposed communication".to_owned(), one.communication_exposed_ns);
            add("exposed copies".to_owned(), one.copies_exposed_ns);
            one.idle.iter().for_each(|idle| add(format!("idle: {}", idle.cause.name().replace('_', " ")), idle.ns));
        }),
        Part::Operators => run.metrics.breakdown.operators.iter().for_each(|operator| {
            let own = if on_device { operator.device_ns.unwrap_or_default() } else { operator.self_ns };
            add((operator.name.clone(), None, None), own.get(), Some(operator.calls));
        }),
        Part::Kernels => run.metrics.breakdown.kernels.iter().for_each(|kernel| {
            let key = (kernel.name.clone(), kernel.stage, device(&kernel.device));
            add(key, kernel.total_ns.get(), Some(kernel.calls));
        }),
        Part::Modules => run.metrics.breakdown.modules.iter().for_each(|module| {
            if let Some(measured) = module.measured_ns {
                add((module.path.clone(), Some(module.stage), None), measured.get(), None);
            }
        }),
    }
    table
}
