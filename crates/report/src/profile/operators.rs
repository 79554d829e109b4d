//! `operators.md`: what the instrumented pass spent its time and memory on.

use types::{Bytes, Metrics, Nanos, OperatorSummary};

use super::page::Page;
use super::phrase::{device, known, model, overhead, time};
use crate::markdown::{code, prose};
use crate::number::{UNKNOWN, count, grouped, percent, share};
use crate::table::{Column, Table};

/// Rows shown of each table; `metrics.json` has them all.
const ROWS: usize = 20;
/// Rows shown of an imported run, which has one table.
const IMPORTED_ROWS: usize = 50;

/// The operators as Markdown.
pub fn operators_markdown(metrics: &Metrics) -> String {
    let mut page = Page::new(&format!("Operators of {} on {}", prose(model(metrics)), prose(&device(metrics))));
    if metrics.breakdown.operators.is_empty() {
        let why =
            if metrics.conditions.trace.is_some() { "the files name none" } else { "the run had no instrumented pass" };
        page.paragraph(&format!("No operator was recorded: {why}."));
        return page.finish();
    }
    if metrics.conditions.trace.is_some() {
        imported(&mut page, metrics);
        return page.finish();
    }
    let all: Nanos = metrics.breakdown.operators.iter().map(|operator| operator.total_ns).sum();
    let calls: u64 = metrics.breakdown.operators.iter().map(|operator| operator.calls).sum();
    page.paragraph(&format!(
        "{} took {all} in the instrumented pass (measured). {} Shares are of the operators' time. FLOPs are modelled from the recorded \
         shapes. `metrics.json` holds every row; here are the first {ROWS} of each table.",
        count(calls, "operator call"),
        overhead(metrics),
    ));
    by_time(&mut page, metrics, all);
    by_memory(&mut page, metrics);
    cost_centres(&mut page, metrics);
    by_class(&mut page, metrics, all);
    by_shape(&mut page, metrics, all);
    page.finish()
}

/// Operators of a framework call each other, so that their totals overlap; what is theirs alone adds up.
fn imported(page: &mut Page, metrics: &Metrics) {
    let calls: u64 = metrics.breakdown.operators.iter().map(|operator| operator.calls).sum();
    let own: Nanos = metrics.breakdown.operators.iter().map(|operator| operator.self_ns).sum();
    let device: Option<Nanos> = metrics.breakdown.operators.iter().map(|operator| operator.device_ns).sum();
    page.paragraph(&format!(
        "{} took {own} of host time{} (measured, while a profiler ran). Device is the work an operator launched itself, self          its host time without the operators it called: both add up over the rows. Total includes what it called, so totals          overlap. `metrics.json` holds every row; here are the first {IMPORTED_ROWS}.",
        count(calls, "operator call"),
        device.map(|device| format!(" and launched {device} of device work")).unwrap_or_default(),
    ));
    page.heading("By device time");
    let mut table = Table::new([
        Column::text("operator"),
        Column::number("device"),
        Column::number("of device"),
        Column::number("self"),
        Column::number("of self"),
        Column::number("total"),
        Column::number("calls"),
        Column::number("allocated"),
    ]);
    for operator in metrics.breakdown.operators.iter().take(IMPORTED_ROWS) {
        let of_device = operator.device_ns.zip(device).map_or(UNKNOWN.to_owned(), |(one, device)| of(one, device));
        table.row([
            code(&operator.name),
            time(operator.device_ns),
            of_device,
            operator.self_ns.to_string(),
            of(operator.self_ns, own),
            operator.total_ns.to_string(),
            grouped(operator.calls),
            known(operator.bytes_allocated),
        ]);
    }
    page.table(&table);
}

fn by_time(page: &mut Page, metrics: &Metrics, all: Nanos) {
    page.heading("By time");
    let mut table = Table::new([
        Column::text("operator"),
        Column::number("total"),
        Column::number("device"),
        Column::number("calls"),
        Column::number("mean"),
        Column::number("of time"),
        Column::number("allocated"),
    ]);
    for operator in metrics.breakdown.operators.iter().take(ROWS) {
        table.row([
            code(&operator.name),
            operator.total_ns.to_string(),
            time(operator.device_ns),
            grouped(operator.calls),
            mean(operator.total_ns, operator.calls),
            of(operator.total_ns, all),
            known(operator.bytes_allocated),
        ]);
    }
    page.table(&table);
}

fn by_memory(page: &mut Page, metrics: &Metrics) {
    page.heading("By memory allocated");
    let mut rows: Vec<(&OperatorSummary, Bytes)> =
        metrics.breakdown.operators.iter().filter_map(|operator| Some((operator, operator.bytes_allocated?))).collect();
    if rows.is_empty() {
        return page.paragraph("Memory was not traced.");
    }
    rows.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let all: Bytes = rows.iter().map(|(_, bytes)| *bytes).sum();
    let mut table = Table::new([
        Column::text("operator"),
        Column::number("allocated"),
        Column::number("of memory"),
        Column::number("calls"),
        Column::number("per call"),
        Column::number("total"),
    ]);
    for (operator, bytes) in rows.into_iter().take(ROWS) {
        table.row([
            code(&operator.name),
            bytes.to_string(),
            percent(share(bytes.as_f64(), all.as_f64())),
            grouped(operator.calls),
            known(bytes.get().checked_div(operator.calls).map(Bytes::new)),
            operator.total_ns.to_string(),
        ]);
    }
    page.table(&table);
    page.paragraph("All allocations of the pass together, not what was held at once.");
}

fn cost_centres(page: &mut Page, metrics: &Metrics) {
    page.heading("By part of the network");
    page.paragraph("`*` stands for the number of a layer. The rows do not overlap.");
    let mut table = Table::new([
        Column::text("part"),
        Column::text("stage"),
        Column::number("total"),
        Column::number("of time"),
        Column::number("least"),
        Column::number("calls"),
        Column::number("matrix work"),
        Column::number("allocated"),
    ]);
    for centre in metrics.breakdown.cost_centres.iter().take(ROWS) {
        table.row([
            code(&centre.module),
            centre.stage.to_string(),
            centre.total_ns.to_string(),
            percent(Some(centre.share)),
            time(centre.speed_of_light_ns),
            grouped(centre.calls),
            centre.flops_matrix.to_string(),
            known(centre.bytes_allocated),
        ]);
    }
    page.table(&table);
}

fn by_class(page: &mut Page, metrics: &Metrics, all: Nanos) {
    page.heading("By module class");
    let mut table = Table::new([
        Column::text("class"),
        Column::number("total"),
        Column::number("of time"),
        Column::number("calls"),
        Column::number("matrix work"),
        Column::number("rate"),
        Column::number("allocated"),
    ]);
    for group in metrics.breakdown.operator_groups.by_class.iter().take(ROWS) {
        table.row([
            code(&group.class),
            group.total_ns.to_string(),
            of(group.total_ns, all),
            grouped(group.calls),
            group.flops_matrix.to_string(),
            known(group.flops_per_second),
            known(group.bytes_allocated),
        ]);
    }
    page.table(&table);
}

fn by_shape(page: &mut Page, metrics: &Metrics, all: Nanos) {
    page.heading("By operator and shapes");
    let mut table = Table::new([
        Column::text("operator"),
        Column::text("shapes of inputs"),
        Column::number("total"),
        Column::number("of time"),
        Column::number("calls"),
        Column::number("mean"),
        Column::number("rate"),
        Column::number("of peak"),
    ]);
    let peak = metrics.utilisation.peak.as_ref().map(|peak| peak.flops);
    for group in metrics.breakdown.operator_groups.by_shape.iter().take(ROWS) {
        // Above the peak it cannot be true, and a finding says so.
        let of_peak = group.flops_per_second.zip(peak).map(|(rate, peak)| rate / peak).filter(|share| *share <= 1.0);
        table.row([
            code(&group.name),
            code(&shapes(&group.shapes)),
            group.total_ns.to_string(),
            of(group.total_ns, all),
            grouped(group.calls),
            mean(group.total_ns, group.calls),
            known(group.flops_per_second),
            percent(of_peak),
        ]);
    }
    page.table(&table);
}

fn shapes(shapes: &[Vec<u64>]) -> String {
    let one = |shape: &Vec<u64>| {
        let sides: Vec<_> = shape.iter().map(u64::to_string).collect();
        format!("[{}]", sides.join(","))
    };
    shapes.iter().map(one).collect::<Vec<_>>().join(" ")
}

fn of(time: Nanos, all: Nanos) -> String {
    percent(share(time.get() as f64, all.get() as f64))
}

fn mean(time: Nanos, calls: u64) -> String {
    known(i64::try_from(calls).ok().and_then(|calls| time.get().checked_div(calls)).map(Nanos::new))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::sample;

    #[test]
    fn operators_stand_by_time_by_memory_and_in_groups() {
        insta::assert_snapshot!(operators_markdown(&sample::metrics()));
    }

    #[test]
    fn a_run_without_an_instrumented_pass_says_so() {
        let page = operators_markdown(&sample::empty());
        assert!(page.contains("No operator was recorded"), "{page}");
    }

    #[test]
    fn untraced_memory_is_not_nothing() {
        let mut metrics = sample::metrics();
        metrics.breakdown.operators.iter_mut().for_each(|operator| operator.bytes_allocated = None);
        assert!(operators_markdown(&metrics).contains("Memory was not traced."));
    }
}
