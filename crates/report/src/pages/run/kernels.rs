//! `kernels.md`: what ran on the device, longest first.

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
        page.paragraph("No kernel was recorded.");
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
            format!(" The first {ROWS} of {} rows; `metrics.json` has them all.", grouped(rows as u64))
        }
        _ => String::new(),
    };
    format!(
        "{} took {} ms on the device (measured). One row covers all launches of one kernel in one stage on one device; shares \
         are of the time of all kernels.{shown}",
        count(run.kernels.calls, "launch"),
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
    page.paragraph("The family follows from the kernel's name; `other` is what no rule recognises.");
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
        "Counted while kernels were replayed, usually at base clocks and with cold caches, so these times are not those of a \
         plain run. Shares are means over launches, weighted by time.",
    );
    let mut table =
        Table::new("kernel or range | >calls | >total ms | >device memory | >compute | >memory | >occupancy");
    for row in facts.counters.iter().take(FEW) {
        table.row([
            code(&row.short_name),
            grouped(row.calls),
            known(row.total_ns.map(exact_milliseconds)),
            known(row.dram_bytes),
            percent(row.compute_share),
            percent(row.memory_share),
            percent(row.occupancy),
        ]);
    }
    page.table(&table);
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
