//! `kernels.md`: what ran on the device, longest first.

use types::TraceFacts;
use types::view::{KernelView, RunView};

use super::phrase::{device, model};
use crate::render::Page;
use crate::render::table::{Table, shortened_name};
use crate::render::text::{code, prose};
use crate::words::number::{count, exact_milliseconds, grouped, known, percent};

/// Kernels shown; `metrics.json` has them all.
const ROWS: usize = 50;
/// Copies, memsets and counters shown.
const FEW: usize = 20;
/// Most characters of a kernel's name on a terminal.
pub(super) const NAME: usize = 48;

/// The kernels as Markdown.
pub fn kernels_page(run: &RunView<'_>) -> Page {
    let mut page = timeline(run);
    counters(&mut page, run);
    full_names(&mut page, run);
    page
}

/// What the timeline shows: kernels by time and by family, copies and memsets.
pub(crate) fn timeline(run: &RunView<'_>) -> Page {
    let title = format!("Kernels of {} on {}", prose(model(run.metrics)), prose(&device(run.metrics)));
    let mut page = Page::new(&title);
    if run.kernels.rows.is_empty() {
        page.paragraph("No kernels were recorded.");
    } else {
        page.paragraph(&introduction(run));
        page.heading("By time");
        page.table(&by_time(run.kernels.rows.iter().take(ROWS)));
        families(&mut page, run);
    }
    copies(&mut page, run);
    page
}

fn introduction(run: &RunView<'_>) -> String {
    let shown = match run.kernels.rows.len() {
        rows if rows > ROWS => {
            format!(" The table shows the first {ROWS} of {} rows; `metrics.json` has them all.", grouped(rows as u64))
        }
        _ => String::new(),
    };
    format!(
        "{} took {} ms on the device (measured). One row covers all calls of one kernel in one stage on one device; shares are of \
         the total kernel time.{shown}",
        count(run.kernels.calls, "kernel"),
        exact_milliseconds(run.kernels.total_ns)
    )
}

/// Kernels with their share of the time of all kernels.
pub(crate) fn by_time<'a>(kernels: impl Iterator<Item = &'a KernelView<'a>>) -> Table {
    let mut table =
        Table::new("kernel | family | stage | device | >total ms | >share | >calls | >mean ms | >min ms | >max ms");
    for KernelView { kernel, share, mean_ns } in kernels {
        table.row([
            code(&kernel.short_name),
            kernel.family.clone(),
            known(kernel.stage),
            kernel.device.to_string(),
            exact_milliseconds(kernel.total_ns),
            percent(*share),
            grouped(kernel.calls),
            known(mean_ns.map(exact_milliseconds)),
            exact_milliseconds(kernel.min_ns),
            exact_milliseconds(kernel.max_ns),
        ]);
    }
    table
}

fn families(page: &mut Page, run: &RunView<'_>) {
    page.heading("By family");
    let mut table = Table::new("family | >total ms | >share | >calls | >rows");
    for family in &run.kernels.families {
        table.row([
            family.family.to_owned(),
            exact_milliseconds(family.total_ns),
            percent(family.share),
            grouped(family.calls),
            grouped(family.rows),
        ]);
    }
    page.table(&table);
    page.paragraph("Families are derived from kernel names; `other` are names that no pattern matches.");
}

fn copies(page: &mut Page, run: &RunView<'_>) {
    let Some(facts) = run.metrics.conditions.trace.as_ref().filter(|facts| !facts.copies.is_empty()) else { return };
    page.heading("Copies and memsets");
    let mut table = Table::new("name | stage | device | >total ms | >calls | >bytes");
    for copy in facts.copies.iter().take(FEW) {
        table.row([
            code(&copy.name),
            known(copy.stage),
            copy.device.to_string(),
            exact_milliseconds(copy.total_ns),
            grouped(copy.calls),
            known(copy.bytes),
        ]);
    }
    page.table(&table);
}

fn counters(page: &mut Page, run: &RunView<'_>) {
    let Some(facts) = run.metrics.conditions.trace.as_ref().filter(|facts| !facts.counters.is_empty()) else { return };
    page.heading("Hardware counters");
    page.paragraph(
        "Counters are read while kernels are replayed, usually at base clocks and with cold caches, so these times differ from those \
         of a plain run. Shares are means over launches, weighted by time.",
    );
    page.table(&counter_table(facts, "kernel or range", FEW));
}

/// Kernels and ranges with their counters.
pub(super) fn counter_table(facts: &TraceFacts, head: &str, rows: usize) -> Table {
    let heads = "| >calls | >total | >device memory traffic | >compute, of peak | >memory, of peak | >occupancy";
    let mut table = Table::new(&format!("{head} {heads}")).widest(NAME);
    for row in facts.counters.iter().take(rows) {
        table.row([
            code(&row.short_name),
            grouped(row.calls),
            known(row.total_ns),
            known(row.dram_bytes),
            percent(row.compute_share),
            percent(row.memory_share),
            percent(row.occupancy),
        ]);
    }
    table
}

/// What the names of the first table stand for, where they leave something out.
pub(crate) fn full_names(page: &mut Page, run: &RunView<'_>) {
    let kernels = run.metrics.breakdown.kernels.iter().take(ROWS);
    let mut names: Vec<_> = kernels.map(|kernel| (shortened_name(&kernel.short_name), &kernel.name)).collect();
    names.retain(|(shown, full)| shown != *full);
    names.sort();
    names.dedup();
    if names.is_empty() {
        return;
    }
    page.heading("Full names");
    page.list(names.iter().map(|(shown, full)| format!("{}: {}", code(shown), code(full))));
}
