//! Where time is lost: measured beside the least possible, by stage, cause and module.

use types::{LostTime, Metrics, ModuleSummary, StageSummary};

use super::page::Page;
use super::phrase::{sentence, time};
use crate::markdown::{code, prose};
use crate::number::{UNKNOWN, percent, share};
use crate::table::{Column, Table};

/// Causes shown.
const CAUSES: usize = 12;
/// Modules shown.
const MODULES: usize = 12;

/// The table that ranks lost time, and what it is measured against.
pub(super) fn lost_time(page: &mut Page, metrics: &Metrics) {
    page.heading("Lost time (measured less the least possible)");
    if metrics.conclusions.lost_time.is_empty() && metrics.times.stages.iter().any(|stage| stage.lost_ns.is_some()) {
        limits(page, metrics);
        return page.paragraph("Causes are not known: they are found from device work, and none was recorded.");
    }
    if metrics.conclusions.lost_time.is_empty() {
        return page.paragraph(
            "Not known: the least time needs a model, its workload and a device whose rates are known, and causes need operators \
             or device work.",
        );
    }
    limits(page, metrics);
    if metrics.conditions.trace.as_ref().is_some_and(|facts| facts.traced_pass.is_some()) {
        page.paragraph(
            "Causes are those of the recorded pass, in which the profiler makes the host slower and the device wait longer:",
        );
    }
    let all: i64 = metrics.conclusions.lost_time.iter().map(|row| row.lost_ns.get()).sum();
    let mut table = Table::new([
        Column::text("lost to"),
        Column::text("stage"),
        Column::number("lost"),
        Column::number("of all lost"),
        Column::text("what would save it"),
    ]);
    for row in metrics.conclusions.lost_time.iter().take(CAUSES) {
        let part = share(row.lost_ns.get() as f64, all as f64);
        table.row([prose(&row.cause), row.stage.to_string(), row.lost_ns.to_string(), percent(part), remedies(row)]);
    }
    page.table(&table);
    if let Some(more) = metrics.conclusions.lost_time.len().checked_sub(CAUSES).filter(|more| *more > 0) {
        page.paragraph(&format!("{more} smaller causes are in `metrics.json`."));
    }
}

/// Modules of a traced run: measured beside modelled.
pub(super) fn modules(page: &mut Page, metrics: &Metrics) {
    page.heading("Modules (measured beside modelled)");
    if metrics.breakdown.modules.is_empty() {
        return page.paragraph(
            "Not known: this needs `--model`, stages, and either operators with recorded shapes, which are laid over the model's \
             forward pass, or ranges named after layers and modules.",
        );
    }
    page.paragraph(
        "A module has the time its kernels ran and the time the device waited for them, submodules included, so rows overlap; own \
         is without them. Least \
         is what the device's rates allow for the module's work. Its work is placed by the operators that launched it, by ranges \
         named after it, by such ranges around the capture of a CUDA graph, by the order in which a graph's kernels repeat, or by \
         the products of the model, in whose order matrix kernels come.",
    );
    if !metrics.breakdown.module_kinds.is_empty() {
        let mut kinds: Vec<&ModuleSummary> = metrics.breakdown.module_kinds.iter().collect();
        kinds.sort_by_key(|kind| std::cmp::Reverse(kind.exclusive_ns));
        page.paragraph("All layers together, those first that take most by themselves:");
        page.table(&table(kinds.into_iter()));
        page.paragraph("One by one, those first that lose most:");
    }
    page.table(&table(metrics.breakdown.modules.iter()));
}

fn table<'a>(modules: impl Iterator<Item = &'a ModuleSummary>) -> Table<10> {
    let mut table = Table::new([
        Column::text("module"),
        Column::text("class"),
        Column::text("stage"),
        Column::number("measured"),
        Column::number("of it own"),
        Column::number("least"),
        Column::number("lost"),
        Column::text("bound"),
        Column::text("cause"),
        Column::text("placed by"),
    ]);
    for module in modules.take(MODULES) {
        table.row([
            code(&module.path),
            prose(&module.class),
            module.stage.to_string(),
            time(module.measured_ns),
            time(module.exclusive_ns),
            time(module.speed_of_light_ns),
            time(module.lost_ns),
            module.bound.clone().unwrap_or(UNKNOWN.to_owned()),
            module.cause.as_deref().map_or(UNKNOWN.to_owned(), sentence),
            placed_by(module),
        ]);
    }
    table
}

/// Runs of older versions do not say.
fn placed_by(module: &ModuleSummary) -> String {
    match module.placed_by.iter().map(|by| by.name()).collect::<Vec<_>>() {
        by if by.is_empty() => UNKNOWN.to_owned(),
        by => by.join(", "),
    }
}

/// Prefill and decode against their limits.
fn limits(page: &mut Page, metrics: &Metrics) {
    let mut table = Table::new([
        Column::text("stage"),
        Column::number("measured"),
        Column::number("least possible"),
        Column::number("efficiency"),
        Column::number("lost"),
    ]);
    for stage in metrics.times.stages.iter().filter(|stage| stage.parent.is_none()) {
        table.row([
            stage.name.to_string(),
            time(stage.wall_ns),
            time(stage.speed_of_light_ns),
            percent(efficiency(stage)),
            time(stage.lost_ns),
        ]);
    }
    page.table(&table);
}

fn efficiency(stage: &StageSummary) -> Option<f64> {
    share(stage.speed_of_light_ns?.get() as f64, stage.wall_ns?.get() as f64)
}

fn remedies(row: &LostTime) -> String {
    if row.rules.is_empty() {
        return UNKNOWN.to_owned();
    }
    format!("{} ({})", row.rules.iter().map(|rule| prose(rule)).collect::<Vec<_>>().join(", "), row.claimed_ns)
}

#[cfg(test)]
mod tests {
    use types::Nanos;

    use super::*;
    use crate::profile::sample;

    #[test]
    fn what_was_lost_is_shown_where_only_its_causes_are_unknown() {
        let mut metrics = sample::metrics();
        metrics.conclusions.lost_time.clear();
        metrics.times.stages.iter_mut().for_each(|stage| stage.lost_ns = None);
        let shown = |metrics: &Metrics| {
            let mut page = Page::new("Run");
            lost_time(&mut page, metrics);
            page.finish()
        };
        assert!(shown(&metrics).contains("Not known: the least time needs"), "{}", shown(&metrics));
        metrics.times.stages[0].lost_ns = Some(Nanos::new(7_000_000));
        let page = shown(&metrics);
        assert!(page.contains("7.00 ms") && page.contains("Causes are not known"), "{page}");
    }
}
