//! `kernels.md` and `stakeholder_summary.md` of a deep run.

use types::view::RunView;
use types::{Bytes, Environment, KernelReport, Origin, SampledKernel};

use super::counters;
use crate::pages::run::kernels;
use crate::pages::run::summary::with_sections;
use crate::render::Page;
use crate::render::text::{code, codes, prose};
use crate::words::number::{count, known, percent};

/// Bottlenecks named.
const BOTTLENECKS: usize = 3;

/// The kernels as Markdown: what the timeline shows, what was counted, what the model says.
pub fn kernels_page(run: &RunView<'_>, report: &KernelReport) -> Page {
    let mut page = kernels::timeline(run);
    counter_sections(&mut page, report);
    page.heading("Passes");
    page.paragraph(
        "The time of each pass and the data it wrote. Overhead is relative to the plain run: of the stages where the program times \
         them, otherwise of the whole process.",
    );
    cost(&mut page, run, report);
    kernels::full_names(&mut page, run);
    page
}

/// What each pass took, and how long the stages took in it.
fn cost(page: &mut Page, run: &RunView<'_>, report: &KernelReport) {
    page.table(&counters::passes(report));
    if let Some(noise) = counters::noise(run.metrics) {
        page.paragraph(&noise);
    }
    let stages = counters::stage_times(report);
    if !stages.is_empty() {
        page.table(&stages);
        page.paragraph(
            "The program timed these stages itself; everything else on this page comes from the timeline pass.",
        );
    }
}

fn counter_sections(page: &mut Page, report: &KernelReport) {
    let facts = &report.counters;
    page.heading("Hardware counters");
    if facts.origin == Origin::Counted {
        page.paragraph(&format!(
            "Counted by {} while it replayed up to {} of each kernel, grid and block within its stage, with clock control `{}` and \
             cache control `{}`, so these times differ from the timeline. Values are means over the launches, with minimum and maximum \
             where they differ.",
            prose(facts.tool.as_deref().unwrap_or("a profiler")),
            facts.launches_asked.map_or("all launches".to_owned(), |most| count(most, "launch")),
            known(facts.clock_control.as_ref()),
            known(facts.cache_control.as_ref()),
        ));
        page.table(&counters::utilisation(report));
    } else {
        page.paragraph(
            "No hardware counters were read. These are the kernels that would have been sampled, with their times from the timeline; \
             FLOPs and bytes below are modelled and marked as such.",
        );
        page.table(&counters::chosen(report));
    }
    let lacking = (!facts.lacking.is_empty()).then(|| format!("not available on this chip: {}", codes(&facts.lacking)));
    page.list(facts.missing.iter().chain(&facts.left_out).map(|note| prose(note)).chain(lacking));
    let roofline = counters::roofline(report);
    page.heading("Roofline and model");
    if roofline.is_empty() {
        return page.paragraph(
            "These kernels have neither counters nor modelled operations. For modelled values, name the model and the workload: \
             `--model NAME workload.seq_len=N workload.decode_steps=N`.",
        );
    }
    page.table(&roofline);
    let basis: std::collections::BTreeSet<&str> =
        report.sampled.iter().filter_map(|row| Some(&*row.modelled.as_ref()?.basis)).collect();
    let mut text =
        "FLOPs and FLOP/byte are counted per launch; modelled columns come from the model's configuration.".to_owned();
    for basis in basis {
        text += &format!(" Matched by {}.", prose(basis.trim_end_matches('.')));
    }
    page.paragraph(&text);
}

/// The summary as Markdown, with the bottlenecks and what the passes cost.
pub fn summary_page(run: &RunView<'_>, report: &KernelReport, machine: &Environment) -> Page {
    with_sections(run, machine, |page| {
        page.heading("Top bottlenecks");
        let lines = bottlenecks(report);
        if lines.is_empty() {
            page.paragraph("No kernels were sampled.");
        } else {
            page.list(lines);
        }
        page.heading("Profiling overhead");
        cost(page, run, report);
    })
}

/// The kernels that take longest, each with what it is bound by.
pub(super) fn bottlenecks(report: &KernelReport) -> Vec<String> {
    let mut longest: Vec<_> = report.sampled.iter().collect();
    longest.sort_by_key(|kernel| std::cmp::Reverse(kernel.total_ns));
    longest.into_iter().take(BOTTLENECKS).map(bottleneck).collect()
}

fn bottleneck(row: &SampledKernel) -> String {
    let place = row.stage.map_or("the run".to_owned(), |stage| stage.to_string());
    let mut text = format!(
        "{} ({}): {} in {place}, {} of its kernel time (measured)",
        code(&row.short_name),
        row.family,
        row.total_ns,
        percent(row.stage_share)
    );
    if let Some(counted) = &row.counted {
        if let Some(bound) = &counted.bound {
            text += &format!("; {bound}-bound");
        }
        text += &format!(
            ", SM at {}, tensor cores at {} and DRAM at {} of peak, occupancy {} (counted, {})",
            percent(counted.sm_share),
            percent(counted.tensor_share),
            percent(counted.dram_share),
            percent(counted.occupancy_achieved),
            count(counted.launches, "launch"),
        );
    }
    if let Some(modelled) = &row.modelled {
        let (does, bytes) = (counters::operations(modelled), modelled.bytes);
        text += &format!("; it computes {does}; one launch should move {bytes} (modelled)");
        let moved = row.counted.as_ref().and_then(|counted| counted.dram_bytes.as_ref());
        text += &moved.map_or(String::new(), |moved| format!(" and moved {} (counted)", Bytes::new(moved.mean as u64)));
    }
    text
}
