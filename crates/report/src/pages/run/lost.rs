//! Where time is lost: measured beside roofline time, by stage, cause and module.

use types::view::RunView;
use types::{LostTime, ModuleSummary, Nanos, StageSummary};

use super::findings::titles;
use crate::render::Page;
use crate::render::Table;
use crate::render::text::{code, prose, sentence};
use crate::words::number::{UNKNOWN, known, percent, time_share};

/// Causes shown.
const CAUSES: usize = 12;
/// Modules shown.
const MODULES: usize = 12;
/// Share of a stage from which avoidable work is worth a word.
const WORTH_SAYING: f64 = 0.01;

/// The table that ranks lost time, and what it is measured against.
pub(super) fn lost_time(page: &mut Page, run: &RunView<'_>) {
    page.heading("Lost time (measured minus roofline time)");
    let metrics = run.metrics;
    let causes = &metrics.conclusions.lost_time;
    if causes.is_empty() && metrics.times.stages.iter().any(|stage| stage.lost_ns.is_some()) {
        limits(page, run);
        return page.paragraph("The causes are unknown: no device work was recorded.");
    }
    if causes.is_empty() {
        return page.paragraph(
            "Unknown: the roofline time needs a model, its workload and the peak rates of the device; the causes need device work.",
        );
    }
    limits(page, run);
    if metrics.conditions.trace.as_ref().is_some_and(|facts| facts.traced_pass.is_some()) {
        page.paragraph(
            "The causes are those of the profiled pass, where the profiler slows the host down and the device waits longer:",
        );
    }
    let mut table = Table::new("cause | stage | >lost | >share of lost time | addressed by");
    let lost: Nanos = causes.iter().map(|row| row.lost_ns).sum();
    for row in causes.iter().take(CAUSES) {
        let (cause, share) = (prose(&row.cause), percent(time_share(row.lost_ns, lost)));
        table.row([cause, known(row.stage), row.lost_ns.to_string(), share, remedies(row)]);
    }
    page.table(&table);
    if let Some(more) = causes.len().checked_sub(CAUSES).filter(|more| *more > 0) {
        page.paragraph(&format!("{more} smaller causes are in `metrics.json`."));
    }
}

/// Modules of a traced run: measured beside modelled.
pub(super) fn modules(page: &mut Page, run: &RunView<'_>) {
    page.heading("Modules (measured and modelled)");
    if run.metrics.breakdown.modules.is_empty() {
        return page.paragraph(
            "Unknown: modules need `--model`, stages, and either operators with recorded shapes, which are matched to the model's \
             forward pass, or ranges named after layers and modules.",
        );
    }
    page.paragraph(
        "The time of a module is the time its kernels ran plus the time the device waited for them. Rows include submodules, so \
         they overlap; self excludes them. Roofline is the shortest time that the device's peak rates allow for the module's work. \
         Work is attributed by the operators that launched it, by ranges named after the module, by such ranges around the capture \
         of a CUDA graph, by the order in which a graph's kernels repeat, or by the model's GEMMs, which run in a fixed order.",
    );
    if !run.module_kinds.is_empty() {
        page.paragraph("All layers together, longest self time first:");
        page.table(&module_table(run.module_kinds.iter().copied().take(MODULES), true));
        page.paragraph("One by one, most lost time first:");
    }
    page.table(&module_table(run.metrics.breakdown.modules.iter().take(MODULES), true));
}

/// Modules with their times; those of a trace also have a cause, and say how their work was placed.
pub(super) fn module_table<'a>(modules: impl Iterator<Item = &'a ModuleSummary>, traced: bool) -> Table {
    let mut table = Table::new("module | class | stage | >measured | >self | >roofline | >lost | bound");
    if traced {
        table.column("cause", false);
        table.column("attributed by", false);
    }
    for module in modules {
        let mut cells = vec![
            code(&module.path),
            prose(&module.class),
            module.stage.to_string(),
            known(module.measured_ns),
            known(module.exclusive_ns),
            known(module.speed_of_light_ns),
            known(module.lost_ns),
            known(module.bound.as_ref()),
        ];
        if traced {
            cells.push(module.cause.as_deref().map_or(UNKNOWN.to_owned(), sentence));
            // Runs of older versions do not say.
            let by = module.placed_by.iter().map(|by| by.name()).collect::<Vec<_>>().join(", ");
            cells.push(if by.is_empty() { UNKNOWN.to_owned() } else { by });
        }
        table.row(cells);
    }
    table
}

/// Prefill and decode relative to their roofline.
fn limits(page: &mut Page, run: &RunView<'_>) {
    let mut table = Table::new("stage | >measured, all instances | >roofline time | >roofline / measured | >lost");
    for view in run.stages.iter().filter(|view| view.stage.parent.is_none()) {
        table.row([
            view.stage.name.to_string(),
            known(view.stage.wall_ns),
            known(view.stage.speed_of_light_ns),
            percent(view.efficiency),
            known(view.stage.lost_ns),
        ]);
    }
    if table.is_empty() {
        return;
    }
    page.table(&table);
    let avoidable = |stage: &StageSummary| {
        let (lost, wall) = (stage.lost_ns?, stage.wall_ns?);
        time_share(lost + stage.speed_of_light_ns? - wall, wall)
    };
    let mut top = run.stages.iter().filter(|view| view.stage.parent.is_none());
    let avoidable = if top.any(|view| avoidable(view.stage).is_some_and(|share| share > WORTH_SAYING)) {
        " Lost time includes the roofline time of work that could be avoided."
    } else {
        ""
    };
    page.paragraph(&format!(
        "Times are sums over all instances.{avoidable} MFU and MBU use medians instead, so a slow outlier counts here but not there."
    ));
}

fn remedies(row: &LostTime) -> String {
    if row.rules.is_empty() {
        return UNKNOWN.to_owned();
    }
    format!("{} ({})", titles(&row.rules), row.claimed_ns)
}

#[cfg(test)]
mod tests {
    use types::Metrics;

    use super::*;
    use crate::pages::run::sample;

    #[test]
    fn what_was_lost_is_shown_where_only_its_causes_are_unknown() {
        let mut metrics = sample::metrics();
        metrics.conclusions.lost_time.clear();
        metrics.times.stages.iter_mut().for_each(|stage| stage.lost_ns = None);
        let shown = |metrics: &Metrics| {
            let mut page = Page::new("Run");
            lost_time(&mut page, &analysis::view::run(metrics));
            page.markdown()
        };
        assert!(shown(&metrics).contains("Unknown: the roofline time needs"), "{}", shown(&metrics));
        metrics.times.stages[0].lost_ns = Some(Nanos::new(7_000_000));
        let page = shown(&metrics);
        assert!(page.contains("7.00 ms") && page.contains("The causes are unknown"), "{page}");
    }
}
