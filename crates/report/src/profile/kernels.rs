//! `kernels.md`: what ran on the device, longest first.

use std::collections::BTreeMap;

use types::{CounterSummary, KernelSummary, Metrics, Nanos};

use super::page::Page;
use super::phrase::{device, known, model};
use crate::markdown::{code, prose};
use crate::number::{UNKNOWN, count, grouped, percent, share};
use crate::table::{Column, Table};

/// Kernels shown; `metrics.json` has them all.
const ROWS: usize = 50;
/// Copies, fills and counters shown.
const FEW: usize = 20;

/// The kernels as Markdown.
pub fn kernels_markdown(metrics: &Metrics) -> String {
    let mut page = timeline(metrics);
    counters(&mut page, metrics);
    full_names(&mut page, metrics);
    page.finish()
}

/// What the timeline shows: kernels by time and by family, copies and fills.
pub(crate) fn timeline(metrics: &Metrics) -> Page {
    let mut page = Page::new(&format!("Kernels of {} on {}", prose(model(metrics)), prose(&device(metrics))));
    if metrics.breakdown.kernels.is_empty() {
        page.paragraph("No kernel was recorded.");
    } else {
        page.paragraph(&introduction(metrics));
        page.heading("By time");
        page.table(&by_time(metrics, metrics.breakdown.kernels.iter(), ROWS));
        families(&mut page, metrics);
    }
    copies(&mut page, metrics);
    page
}

fn introduction(metrics: &Metrics) -> String {
    let calls: u64 = metrics.breakdown.kernels.iter().map(|kernel| kernel.calls).sum();
    let time = all(metrics);
    let shown = match metrics.breakdown.kernels.len() {
        rows if rows > ROWS => {
            format!(" The first {ROWS} of {} rows; `metrics.json` has them all.", grouped(rows as u64))
        }
        _ => String::new(),
    };
    format!(
        "{} took {} ms on the device (measured). One row is all launches of one kernel in one stage on one device; shares \
         are of the time of all kernels.{shown}",
        count(calls, "launch").replace("launchs", "launches"),
        milliseconds(time)
    )
}

/// The first of these kernels, with their share of the time of all, and their stage.
pub(crate) fn by_time<'a>(
    metrics: &Metrics,
    kernels: impl Iterator<Item = &'a KernelSummary>,
    rows: usize,
) -> Table<10> {
    let time = all(metrics);
    let mut table = Table::new([
        Column::text("kernel"),
        Column::text("family"),
        Column::text("stage"),
        Column::text("device"),
        Column::number("total ms"),
        Column::number("of time"),
        Column::number("calls"),
        Column::number("mean ms"),
        Column::number("min ms"),
        Column::number("max ms"),
    ]);
    for kernel in kernels.take(rows) {
        table.row([
            code(&kernel.short_name),
            kernel.family.clone(),
            known(kernel.stage),
            kernel.device.to_string(),
            milliseconds(kernel.total_ns),
            percent(share(kernel.total_ns.get() as f64, time.get() as f64)),
            grouped(kernel.calls),
            mean(kernel.total_ns, kernel.calls),
            milliseconds(kernel.min_ns),
            milliseconds(kernel.max_ns),
        ]);
    }
    table
}

/// Kernels that a stage launched, where any has one: what loads a model is not what a user waits for. Whether some are left out
/// comes along.
pub(crate) fn of_stages(metrics: &Metrics) -> (Vec<&KernelSummary>, bool) {
    let staged: Vec<_> = metrics.breakdown.kernels.iter().filter(|kernel| kernel.stage.is_some()).collect();
    match staged.is_empty() {
        true => (metrics.breakdown.kernels.iter().collect(), false),
        false => {
            let fewer = staged.len() < metrics.breakdown.kernels.len();
            (staged, fewer)
        }
    }
}

fn families(page: &mut Page, metrics: &Metrics) {
    page.heading("By family");
    let mut sums: BTreeMap<&str, (Nanos, u64, u64)> = BTreeMap::new();
    for kernel in &metrics.breakdown.kernels {
        let (time, calls, rows) = sums.entry(&kernel.family).or_default();
        (*time, *calls, *rows) = (*time + kernel.total_ns, *calls + kernel.calls, *rows + 1);
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, (time, ..))| std::cmp::Reverse(*time));
    let time = all(metrics);
    let mut table = Table::new([
        Column::text("family"),
        Column::number("total ms"),
        Column::number("of time"),
        Column::number("calls"),
        Column::number("rows"),
    ]);
    for (family, (total, calls, rows)) in sums {
        let part = percent(share(total.get() as f64, time.get() as f64));
        table.row([family.to_owned(), milliseconds(total), part, grouped(calls), grouped(rows)]);
    }
    page.table(&table);
    page.paragraph("A family is what the name of a kernel tells; `other` is what no rule knows.");
}

fn copies(page: &mut Page, metrics: &Metrics) {
    let Some(facts) = metrics.conditions.trace.as_ref().filter(|facts| !facts.copies.is_empty()) else { return };
    page.heading("Copies and fills");
    let mut table = Table::new([
        Column::text("name"),
        Column::text("stage"),
        Column::text("device"),
        Column::number("total ms"),
        Column::number("calls"),
        Column::number("bytes"),
    ]);
    for copy in facts.copies.iter().take(FEW) {
        table.row([
            code(&copy.name),
            known(copy.stage),
            copy.device.to_string(),
            milliseconds(copy.total_ns),
            grouped(copy.calls),
            known(copy.bytes),
        ]);
    }
    page.table(&table);
}

fn counters(page: &mut Page, metrics: &Metrics) {
    let Some(facts) = metrics.conditions.trace.as_ref().filter(|facts| !facts.counters.is_empty()) else { return };
    page.heading("Hardware counters");
    page.paragraph(
        "Counted while kernels were replayed, usually at base clocks and with cold caches, so these times are not those of a \
         plain run. Shares are means over launches, weighted by time.",
    );
    let mut table = Table::new([
        Column::text("kernel or range"),
        Column::number("calls"),
        Column::number("total ms"),
        Column::number("device memory"),
        Column::number("compute"),
        Column::number("memory"),
        Column::number("occupancy"),
    ]);
    for row in facts.counters.iter().take(FEW) {
        table.row(counter_cells(row));
    }
    page.table(&table);
}

fn counter_cells(row: &CounterSummary) -> [String; 7] {
    [
        code(&row.short_name),
        grouped(row.calls),
        row.total_ns.map_or(UNKNOWN.to_owned(), milliseconds),
        known(row.dram_bytes),
        percent(row.compute_share),
        percent(row.memory_share),
        percent(row.occupancy),
    ]
}

/// What the short names of the first table stand for, where they leave something out.
pub(crate) fn full_names(page: &mut Page, metrics: &Metrics) {
    let shortened = |kernel: &&KernelSummary| kernel.name != kernel.short_name;
    let mut names: Vec<_> = metrics.breakdown.kernels.iter().take(ROWS).filter(shortened).collect();
    names.sort_by_key(|kernel| (&kernel.short_name, &kernel.name));
    names.dedup_by_key(|kernel| &kernel.name);
    if names.is_empty() {
        return;
    }
    page.heading("Full names");
    page.list(names.into_iter().map(|kernel| format!("{}: {}", code(&kernel.short_name), code(&kernel.name))));
}

/// Time of all kernels.
fn all(metrics: &Metrics) -> Nanos {
    metrics.breakdown.kernels.iter().map(|kernel| kernel.total_ns).sum()
}

/// Milliseconds to the nanosecond, so that rows add up to what the source says.
pub(crate) fn milliseconds(time: Nanos) -> String {
    let (whole, rest) = (time.get().unsigned_abs() / 1_000_000, time.get().unsigned_abs() % 1_000_000);
    format!("{}.{rest:06}", grouped(whole))
}

fn mean(time: Nanos, calls: u64) -> String {
    let mean = i64::try_from(calls).ok().and_then(|calls| time.get().checked_div(calls));
    mean.map_or(UNKNOWN.to_owned(), |mean| milliseconds(Nanos::new(mean)))
}
