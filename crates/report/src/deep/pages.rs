//! `kernels.md` and `stakeholder_summary.md` of a deep run.

use types::{Bytes, Environment, KernelReport, Metrics, Origin, SampledKernel};

use super::counters;
use crate::markdown::{code, prose};
use crate::number::{count, percent};
use crate::profile::kernels;
use crate::profile::page::Page;
use crate::profile::stakeholder::with_sections;

/// Bottlenecks named.
const BOTTLENECKS: usize = 3;

/// The kernels as Markdown: what the timeline shows, what was counted, what the model says.
pub fn kernels_markdown(metrics: &Metrics, report: &KernelReport) -> String {
    let mut page = kernels::timeline(metrics);
    counter_sections(&mut page, report);
    page.heading("Passes");
    page.paragraph("What each pass took and left; overhead is against the plain program, of its stages where it says how long they took, else of the whole process.");
    cost(&mut page, metrics, report);
    kernels::full_names(&mut page, metrics);
    page.finish()
}

/// What each pass took, and how long the stages took in it.
fn cost(page: &mut Page, metrics: &Metrics, report: &KernelReport) {
    page.table(&counters::passes(report));
    if let Some(sure) = counters::how_sure(metrics) {
        page.paragraph(&format!("{sure}."));
    }
    if let Some(table) = counters::stage_times(report) {
        page.table(&table);
        page.paragraph(
            "The fastest round of each stage, as the program told; all else in this page is of the timeline's pass.",
        );
    }
}

fn counter_sections(page: &mut Page, report: &KernelReport) {
    let facts = &report.counters;
    page.heading("Hardware counters");
    if facts.origin == Origin::Counted {
        page.paragraph(&format!(
            "Counted by {} while it replayed up to {} of each kernel, grid and block within its stage, with clock control `{}` \
             and cache control `{}`; so these times are not those of the timeline. Means over the launches, with the least \
             and the most where they differ.",
            prose(facts.tool.as_deref().unwrap_or("a profiler")),
            facts.launches_asked.map_or("all launches".to_owned(), |most| count(most, "launch").replace("launchs", "launches")),
            facts.clock_control.as_deref().unwrap_or("-"),
            facts.cache_control.as_deref().unwrap_or("-"),
        ));
        page.table(&counters::utilisation(report));
    } else {
        page.paragraph(
            "No hardware counter was read. The kernels that would have been sampled, as the timeline has them; FLOPs and bytes \
             below are modelled, and marked so.",
        );
        page.table(&counters::chosen(report));
    }
    let notes: Vec<String> = facts
        .missing
        .iter()
        .map(|why| prose(why).to_string())
        .chain(facts.left_out.iter().map(|what| prose(what).to_string()))
        .chain((!facts.lacking.is_empty()).then(|| {
            let names: Vec<String> = facts.lacking.iter().map(|metric| code(metric)).collect();
            format!("this chip does not have {}", names.join(", "))
        }))
        .collect();
    if !notes.is_empty() {
        page.list(notes);
    }
    let roofline = counters::roofline(report);
    page.heading("Roofline and model");
    if roofline.is_empty() {
        return page.paragraph(
            "Neither counters nor modelled operations could be laid beside the kernels. Name the model and the workload to have \
             the modelled side: `--model NAME workload.seq_len=N workload.decode_steps=N`.",
        );
    }
    page.table(&roofline);
    let basis: std::collections::BTreeSet<&str> =
        report.sampled.iter().filter_map(|row| Some(row.modelled.as_ref()?.basis.as_str())).collect();
    let mut text =
        "FLOPs and FLOP/byte are counted, of one launch; modelled columns come from the model's configuration."
            .to_owned();
    for basis in basis {
        text += &format!(" Laid beside each other: {basis}.");
    }
    page.paragraph(&text);
}

/// The summary as Markdown, with the bottlenecks and what the passes cost.
pub fn stakeholder_markdown(metrics: &Metrics, report: &KernelReport, found: &Environment) -> String {
    with_sections(metrics, found, |page| {
        page.heading("Top bottlenecks");
        let lines = bottlenecks(report);
        if lines.is_empty() {
            page.paragraph("No kernel was sampled.");
        } else {
            page.list(lines);
        }
        page.heading("What profiling cost");
        cost(page, metrics, report);
    })
}

/// The kernels that take most, each with what it is bound by.
pub(super) fn bottlenecks(report: &KernelReport) -> Vec<String> {
    let mut rows: Vec<&SampledKernel> = report.sampled.iter().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.total_ns));
    rows.into_iter().take(BOTTLENECKS).map(bottleneck).collect()
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
            text += &format!("; bound by {bound}");
        }
        text += &format!(
            ", SM {} and memory {} of their peaks, occupancy {} (counted, {})",
            percent(counted.sm_share),
            percent(counted.memory_share),
            percent(counted.occupancy_achieved),
            count(counted.launches, "launch").replace("launchs", "launches"),
        );
    }
    if let Some(modelled) = &row.modelled {
        let (does, bytes) = (counters::operations(modelled), modelled.bytes);
        text += &format!("; it does {does}, and one launch should move {bytes} (modelled)");
        let moved = row.counted.as_ref().and_then(|counted| counted.dram_bytes.as_ref());
        text += &moved.map_or(String::new(), |moved| format!(", {} moved (counted)", Bytes::new(moved.mean as u64)));
    }
    text
}
