//! `operators.md`: what the profiled pass spent its time and memory on.

use types::view::RunView;
use types::{Bytes, Count, Metrics, Nanos, OperatorSummary, ShapeGroup};

use super::phrase::{device, has_rates, model, overhead};
use crate::render::Page;
use crate::render::Table;
use crate::render::text::{code, prose};
use crate::words::number::{count, grouped, known, mean, percent, share, time_share};

/// Rows shown of each table unless the user says otherwise; `metrics.json` has them all.
const ROWS: usize = 20;

/// The operators as Markdown, with the first `rows` of each table.
pub fn operators_page(run: &RunView<'_>, rows: Option<usize>) -> Page {
    let rows = rows.unwrap_or(ROWS);
    let metrics = run.metrics;
    let (operators, sums) = (&metrics.breakdown.operators, OperatorSums::of(metrics));
    let mut page = Page::new(&format!("Operators of {} on {}", prose(model(metrics)), prose(&device(metrics))));
    if operators.is_empty() {
        let why =
            if metrics.conditions.trace.is_some() { "the trace has none" } else { "the run had no profiled pass" };
        page.paragraph(&format!("No operators were recorded: {why}."));
        return page;
    }
    if metrics.conditions.trace.is_some() {
        imported(&mut page, operators, &sums, rows);
        if has_rates(metrics) {
            by_shape(&mut page, metrics, &sums, rows);
        }
        return page;
    }
    page.paragraph(&format!(
        "{} took {} in the profiled pass (measured). {} Shares are of this operator time. FLOPs are modelled from the recorded \
         shapes. Each table shows its first {rows} rows; `metrics.json` has them all.",
        count(sums.calls, "operator call"),
        sums.total_ns,
        overhead(metrics),
    ));
    by_time(&mut page, operators, &sums, rows);
    by_memory(&mut page, operators, rows);
    cost_centres(&mut page, run, rows);
    by_class(&mut page, metrics, &sums, rows);
    by_shape(&mut page, metrics, &sums, rows);
    page
}

/// Sums over all operators of a run.
pub(crate) struct OperatorSums {
    calls: u64,
    total_ns: Nanos,
    pub(crate) self_ns: Nanos,
    /// Absent where that of one operator is unknown.
    device_ns: Option<Nanos>,
}

impl OperatorSums {
    /// Those of a run.
    pub(crate) fn of(metrics: &Metrics) -> Self {
        let all = &metrics.breakdown.operators;
        Self {
            calls: all.iter().map(|operator| operator.calls).sum::<Count>().get(),
            total_ns: all.iter().map(|operator| operator.total_ns).sum(),
            self_ns: all.iter().map(|operator| operator.self_ns).sum(),
            device_ns: all.iter().map(|operator| operator.device_ns).sum(),
        }
    }

    /// The share that operators of one shape take: of device time, or of host time where no device was traced.
    pub(crate) fn shape_share(&self, group: &ShapeGroup) -> Option<f64> {
        match group.device_ns {
            Some(time) => time_share(time, self.device_ns?),
            None => time_share(group.total_ns, self.total_ns),
        }
    }
}

/// Operators of a framework call each other, so that their totals overlap; self times add up.
fn imported(page: &mut Page, operators: &[OperatorSummary], sums: &OperatorSums, rows: usize) {
    page.paragraph(&format!(
        "{} took {} of host time{} (measured with a profiler attached). Device is the time of the work that the operator launched \
         itself; self is its host time without the operators it called. Both add up over the rows, and shares are of those sums. \
         Total includes callees, so totals overlap. Each table shows its first {rows} rows; `metrics.json` has them all.",
        count(sums.calls, "operator call"),
        sums.self_ns,
        sums.device_ns.map(|device| format!(" and launched {device} of device work")).unwrap_or_default(),
    ));
    page.heading("By device time");
    let mut table = Table::new(
        "operator | stage | >device | >share of device | >self | >share of self | >total | >calls | >mean total | >allocated",
    );
    for operator in operators.iter().take(rows) {
        table.row([
            code(&operator.name),
            known(operator.stage),
            known(operator.device_ns),
            percent(operator.device_ns.zip(sums.device_ns).and_then(|(part, whole)| time_share(part, whole))),
            operator.self_ns.to_string(),
            percent(time_share(operator.self_ns, sums.self_ns)),
            operator.total_ns.to_string(),
            grouped(operator.calls),
            known(mean(operator.total_ns, operator.calls)),
            known(operator.bytes_allocated),
        ]);
    }
    page.table(&table);
    called_from(page, operators, rows);
    by_memory(page, operators, rows);
}

/// Where in Python the first operators are called from.
fn called_from(page: &mut Page, operators: &[OperatorSummary], rows: usize) {
    let mut table = Table::new("operator | stage | called from | >device | >calls");
    for operator in operators.iter().take(rows) {
        for place in &operator.python {
            table.row([
                code(&operator.name),
                known(operator.stage),
                code(&place.frame),
                place.device_ns.to_string(),
                grouped(place.calls),
            ]);
        }
    }
    if table.is_empty() {
        return;
    }
    page.heading("Called from");
    page.paragraph(
        "The innermost Python function around an operator that belongs to neither PyTorch nor Python itself, with the line it starts \
         on; at most three per operator. Backward passes run on threads without Python frames.",
    );
    page.table(&table);
}

fn by_time(page: &mut Page, operators: &[OperatorSummary], sums: &OperatorSums, rows: usize) {
    page.heading("By time");
    let mut table = Table::new("operator | stage | >total | >device | >calls | >mean | >share | >allocated");
    for operator in operators.iter().take(rows) {
        table.row([
            code(&operator.name),
            known(operator.stage),
            operator.total_ns.to_string(),
            known(operator.device_ns),
            grouped(operator.calls),
            known(mean(operator.total_ns, operator.calls)),
            percent(time_share(operator.total_ns, sums.total_ns)),
            known(operator.bytes_allocated),
        ]);
    }
    page.table(&table);
}

fn by_memory(page: &mut Page, operators: &[OperatorSummary], rows: usize) {
    page.heading("By memory allocated");
    let known_bytes = operators.iter().filter_map(|operator| Some((operator, operator.bytes_allocated?)));
    let mut by_memory: Vec<_> = known_bytes.collect();
    by_memory.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let all: Bytes = by_memory.iter().map(|(_, bytes)| *bytes).sum();
    if by_memory.is_empty() {
        return page.paragraph("Memory was not recorded.");
    }
    let mut table = Table::new("operator | stage | >allocated | >share | >calls | >per call | >total");
    for (operator, bytes) in by_memory.into_iter().take(rows) {
        table.row([
            code(&operator.name),
            known(operator.stage),
            bytes.to_string(),
            percent(share(bytes.as_f64(), all.as_f64())),
            grouped(operator.calls),
            known(bytes.get().checked_div(operator.calls).map(Bytes::new)),
            operator.total_ns.to_string(),
        ]);
    }
    page.table(&table);
    page.paragraph("These are sums of all allocations in the pass, not the peak.");
}

fn cost_centres(page: &mut Page, run: &RunView<'_>, rows: usize) {
    page.heading("By part of the network");
    page.paragraph("`*` stands for a layer number. The rows do not overlap.");
    let mut table = Table::new("part | stage | >total | >share | >roofline | >calls | >matrix FLOPs | >allocated");
    for centre in run.metrics.breakdown.cost_centres.iter().take(rows) {
        table.row([
            code(&centre.module),
            centre.stage.to_string(),
            centre.total_ns.to_string(),
            percent(Some(centre.share)),
            known(centre.speed_of_light_ns),
            grouped(centre.calls),
            centre.flops_matrix.to_string(),
            known(centre.bytes_allocated),
        ]);
    }
    page.table(&table);
}

fn by_class(page: &mut Page, metrics: &Metrics, sums: &OperatorSums, rows: usize) {
    page.heading("By module class");
    let mut table = Table::new("class | >total | >share | >calls | >matrix FLOPs | >rate | >allocated");
    for group in metrics.breakdown.operator_groups.by_class.iter().take(rows) {
        table.row([
            code(&group.class),
            group.total_ns.to_string(),
            percent(time_share(group.total_ns, sums.total_ns)),
            grouped(group.calls),
            group.flops_matrix.to_string(),
            known(group.flops_per_second),
            known(group.bytes_allocated),
        ]);
    }
    page.table(&table);
}

fn by_shape(page: &mut Page, metrics: &Metrics, sums: &OperatorSums, rows: usize) {
    page.heading("By operator and shapes");
    let groups = &metrics.breakdown.operator_groups.by_shape;
    let traced = groups.iter().any(|group| group.device_ns.is_some());
    if metrics.conditions.trace.is_some() {
        page.paragraph(
            "FLOPs and bytes are modelled from the recorded shapes and element types, counting each input and output once; times are \
             measured.",
        );
    }
    let peak = metrics.utilisation.peak.as_ref().map(|peak| peak.flops);
    let mut table = Table::new(if traced {
        "operator | input shapes | >device time | >share | >calls | >mean | >rate | >bandwidth | >of roofline | bound"
    } else {
        "operator | input shapes | >total | >share | >calls | >mean | >rate | >of peak FLOP/s"
    });
    for group in groups.iter().take(rows) {
        let time = group.device_ns.unwrap_or(group.total_ns);
        // A rate above the peak cannot be true, and a finding says so.
        let of_peak = group.flops_per_second.zip(peak).map(|(rate, peak)| rate / peak).filter(|share| *share <= 1.0);
        let of_peak = group.roofline_share.or(of_peak.filter(|_| group.device_ns.is_none()));
        let mut row = vec![
            code(&group.name),
            code(&shapes(&group.shapes)),
            time.to_string(),
            percent(sums.shape_share(group)),
            grouped(group.calls),
            known(mean(time, group.calls)),
            known(group.flops_per_second),
        ];
        row.extend(traced.then(|| known(group.bytes_per_second)));
        row.push(percent(of_peak));
        row.extend(traced.then(|| known(group.bound.as_deref())));
        table.row(row);
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

#[cfg(test)]
mod tests {
    use analysis::view::run;

    use super::*;
    use crate::pages::run::sample;

    #[test]
    fn operators_stand_by_time_by_memory_and_in_groups() {
        insta::assert_snapshot!(operators_page(&run(&sample::metrics()), None).markdown());
    }

    #[test]
    fn a_run_without_a_profiled_pass_says_so() {
        let page = operators_page(&run(&sample::empty()), None).markdown();
        assert!(page.contains("No operators were recorded"), "{page}");
    }

    #[test]
    fn untraced_memory_is_not_nothing() {
        let mut metrics = sample::metrics();
        metrics.breakdown.operators.iter_mut().for_each(|operator| operator.bytes_allocated = None);
        assert!(operators_page(&run(&metrics), None).markdown().contains("Memory was not recorded."));
    }
}
