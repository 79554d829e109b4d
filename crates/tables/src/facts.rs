//! The small tables of one rank, as the analysis of a fleet takes them.

use analysis::fleet::{CollectiveFact, KernelFact, RankFacts};
use types::timeline::Job;
use types::{Bytes, Nanos};

use crate::{Table, TableColumns};

/// What the tables of one rank say; `find` gives a table, or `None` where it has no rows.
pub fn rank_facts<E>(find: &mut dyn FnMut(Table) -> Result<Option<TableColumns>, E>) -> Result<RankFacts, E> {
    let mut facts = RankFacts::default();
    if let Some(runs) = find(Table::Runs)? {
        facts.rank = small(&runs, 0, "rank");
        facts.world_size = small(&runs, 0, "world_size").filter(|size| *size <= Job::LARGEST_WORLD);
        facts.device_name = text(&runs, 0, "device_name");
        facts.machine_devices = small(&runs, 0, "devices_described");
        facts.unix = runs.text(0, "clock") == Some("unix");
        facts.first = time(&runs, 0, "first_ns");
        facts.last = time(&runs, 0, "last_ns");
        facts.lost = runs.integer(0, "lost_records").and_then(|count| u64::try_from(count).ok()).unwrap_or(0);
    }
    if let Some(devices) = find(Table::DeviceTime)? {
        let sum = |column: &str| (0..devices.rows()).map(|row| time(&devices, row, column)).sum();
        facts.span = sum("span_ns");
        facts.busy = sum("busy_ns");
        // A rank that waits does not compute.
        facts.compute = sum("compute_ns") - sum("communication_awaited_ns");
        facts.communication_exposed = sum("communication_exposed_ns") + sum("communication_awaited_ns");
        facts.copies_exposed = sum("copies_exposed_ns");
    }
    if let Some(idle) = find(Table::Idle)? {
        for row in 0..idle.rows() {
            let (cause, ns) = (text(&idle, row, "cause").unwrap_or_default(), time(&idle, row, "ns"));
            match facts.idle.iter_mut().find(|(known, _)| *known == cause) {
                Some((_, sum)) => *sum += ns,
                None => facts.idle.push((cause, ns)),
            }
        }
    }
    if let Some(steps) = find(Table::Steps)? {
        facts.steps = (0..steps.rows()).map(|row| time(&steps, row, "wall_ns")).collect();
    }
    if let Some(calls) = find(Table::Collectives)? {
        facts.collectives = (0..calls.rows()).map(|row| collective(&calls, row)).collect();
    }
    if let Some(kernels) = find(Table::KernelSums)? {
        facts.kernels = (0..kernels.rows()).map(|row| kernel(&kernels, row)).collect();
    }
    Ok(facts)
}

fn collective(calls: &TableColumns, row: usize) -> CollectiveFact {
    let start = time(calls, row, "start_ns");
    CollectiveFact {
        name: text(calls, row, "name").unwrap_or_default(),
        dtype: text(calls, row, "dtype"),
        bytes: calls.integer(row, "bytes").and_then(|bytes| u64::try_from(bytes).ok()).map(Bytes::new),
        group: text(calls, row, "process_group"),
        group_size: small(calls, row, "group_size"),
        members: text(calls, row, "group_ranks"),
        start,
        end: start + time(calls, row, "duration_ns").max(Nanos::ZERO),
        exposed: time(calls, row, "exposed_ns"),
    }
}

fn kernel(kernels: &TableColumns, row: usize) -> KernelFact {
    KernelFact {
        name: text(kernels, row, "name").unwrap_or_default(),
        short_name: text(kernels, row, "short_name").unwrap_or_default(),
        communicates: kernels.text(row, "family") == Some(analysis::kernel::Family::Communication.name()),
        calls: kernels.integer(row, "calls").and_then(|calls| u64::try_from(calls).ok()).unwrap_or(0),
        total: time(kernels, row, "total_ns"),
        median: time(kernels, row, "median_ns"),
    }
}

/// A time that a sum of many cannot carry out of its range.
fn time(table: &TableColumns, row: usize, column: &str) -> Nanos {
    let largest = types::timeline::Timeline::LARGEST_TIME;
    Nanos::new(table.integer(row, column).unwrap_or(0).clamp(-largest, largest))
}

fn small(table: &TableColumns, row: usize, column: &str) -> Option<u32> {
    table.integer(row, column).and_then(|number| u32::try_from(number).ok())
}

fn text(table: &TableColumns, row: usize, column: &str) -> Option<String> {
    table.text(row, column).map(str::to_owned)
}
