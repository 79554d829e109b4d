//! What the pages of a run with a trace say beyond those of a plain run: sources, the device, how much could be placed.

use types::view::RunView;
use types::{Metrics, Nanos, Stage, TraceFacts};

use super::device_time;
use super::kernels::by_time;
use super::phrase::{imported_facts, nested};
use super::steps;
use crate::render::Page;
use crate::render::Table;
use crate::render::text::{capital, code, prose, sentence};
use crate::words::cause::family;
use crate::words::caveat::has_graphs_only;
use crate::words::number::{UNKNOWN, count, decimal, grouped, known, milliseconds, percent};

/// Kernels shown in the report.
const KERNELS: usize = 15;
/// Operators shown in the report.
const OPERATORS: usize = 15;
/// Families of kernels named.
const FAMILIES: usize = 4;
/// Share of kernel time from which a family is worth naming.
const WORTH_NAMING: f64 = 0.05;

/// The first sentence: how much of the time the device was busy.
pub(super) fn headline(run: &RunView<'_>) -> String {
    let totals = &run.metrics.times.totals;
    let Some((busy, wall)) = totals.gpu_busy_ns.zip(totals.wall_ns) else {
        return match totals.kernel_ns {
            Some(kernels) => format!("**Kernels took {kernels}.** The files contain no timeline."),
            None => no_device_work(run.metrics) + &longest_operator(run).unwrap_or_default(),
        };
    };
    let mut text = match device_time::headline(run) {
        Some(text) => text,
        None => format!("**The device was busy for {busy} of {wall} ({}).**", percent(run.busy_share)),
    };
    // A serving engine is recorded for longer than its steps take, so that what the device did around them comes second.
    let steps = steps::engine_steps(run).join(" ");
    if !steps.is_empty() {
        text = format!("**{steps}** Over the whole recording: {}", text.replace("**", ""));
    }
    if let Some(launches) = totals.launches_per_token {
        text += &format!(" Each decode step makes {} launches on average.", decimal(launches));
    }
    text
}

/// Whether the files hold what a host did, and nothing of a device.
pub(super) fn is_host_only(run: &RunView<'_>) -> bool {
    let nothing =
        |facts: &TraceFacts| run.kernels.rows.is_empty() && facts.counters.is_empty() && facts.copies.is_empty();
    let is_dark = run.device_time.is_empty() && run.serving.is_none() && !has_graphs_only(&run.metrics.caveats);
    is_dark && imported_facts(run.metrics).is_some_and(nothing)
}

/// How to record what such files lack.
pub(super) const RECORD_DEVICES: &str = "If the program uses a GPU, record its work too (torch.profiler: `ProfilerActivity.CUDA`; Nsight \
     Systems: `--trace cuda,nvtx`).";

/// What a host mostly did, where nothing is known of a device.
fn longest_operator(run: &RunView<'_>) -> Option<String> {
    let first = run.cost_centres.rows.first()?;
    let (name, time, share) = (code(first.name), first.time_ns, percent(first.share));
    Some(format!(" {name} takes the most host time of all operators: {time} ({share})."))
}

/// Why there is none, as far as the files tell.
pub(super) fn no_device_work(metrics: &Metrics) -> String {
    if has_graphs_only(&metrics.caveats) {
        let steps = metrics.times.steps.iter().flat_map(|steps| &steps.list);
        let (time, steps) =
            (steps.clone().map(|step| step.device_ns).sum::<Nanos>(), count(steps.count() as u64, "step"));
        return format!("**Only launches of CUDA graphs were timed**: {time} in {steps}.");
    }
    let of = |id: &str| metrics.conclusions.quality.iter().find(|counter| counter.counter == id);
    if let Some(launches) = of("launches_without_device_activity") {
        let launches = count(launches.value, "kernel launch");
        return format!("**Device activity was not recorded**: the files contain {launches} and no kernel.");
    }
    match of("trace_events_unknown_category") {
        Some(skipped) => {
            let events = count(skipped.value, "event");
            let largest = skipped.quantities.rows("categories").first().and_then(|row| row.name("category"));
            let largest = largest.map(|category| format!(", most of them {}", code(category))).unwrap_or_default();
            format!(
                "**The files contain no device work of a known kind.** {events} of unknown categories were skipped{largest}."
            )
        }
        None => "**The files contain no device work.**".to_owned(),
    }
}

/// What the numbers are, in a paragraph.
pub(super) fn method(run: &RunView<'_>, facts: &TraceFacts) -> String {
    let mut text = format!("Read from {}.", count(facts.sources.len() as u64, "file"));
    text += &steps::kind(facts).map(|kind| format!(" {kind}")).unwrap_or_default();
    let (operators, kernels) = (!run.metrics.breakdown.operators.is_empty(), !run.kernels.rows.is_empty());
    if run.metrics.times.totals.wall_ns.is_some() {
        if operators {
            text += " Operator times are host times recorded by a profiler, which slows the host down.";
        }
        if kernels {
            text += " Kernel times are device times.";
        }
        if operators && kernels {
            let stage = if run.stages.is_empty() { "" } else { "stage and the " };
            text += &format!(" Device work is attributed to the {stage}operator that launched it.");
        }
    }
    text += &coverage(facts).map(|coverage| format!(" Coverage: {coverage}.")).unwrap_or_default();
    if !run.metrics.utilisation.work_per_stage.is_empty() {
        text += " FLOPs and bytes are modelled from the configuration; one multiply-add counts as two FLOPs.";
    }
    text
}

/// The files.
pub(super) fn sources(page: &mut Page, facts: &TraceFacts) {
    page.heading("Sources");
    let mut table = Table::new("file | format | written by | >rank | >size | digest");
    for source in &facts.sources {
        table.row([
            code(&source.path),
            source.format.clone(),
            source.tool.as_deref().map_or(UNKNOWN.to_owned(), prose),
            known(source.rank),
            source.bytes.to_string(),
            source.digest().map_or(UNKNOWN.to_owned(), |digest| code(&digest.to_string())),
        ]);
    }
    page.table(&table);
    page.paragraph("The files are not copied into the run folder.");
}

/// Stages on the host and on the device.
pub(super) fn stages(page: &mut Page, run: &RunView<'_>, facts: &TraceFacts) {
    if run.stages.is_empty() {
        return;
    }
    page.heading("Per-Stage Timings (measured)");
    if let Some(basis) = &facts.stages {
        let how = if basis.inferred { "" } else { "Stages are from " };
        let basis = capital(&format!("{how}{}", sentence(&basis.basis)));
        page.paragraph(&format!("{basis}. `a > b` is a part of `a` and included in its numbers."));
    }
    page.table(&stage_table(run, nested));
    page.paragraph(
        "Every number is a total over all instances of the stage. Its wall time ends when its device work ends, which may be after the host \
         call has returned.",
    );
    // One step has no spread.
    let several = facts.step_ms.as_ref().filter(|steps| steps.n > 1);
    if let Some(steps) = several {
        let spread = steps.std.map(|std| format!(", std {}", milliseconds(std))).unwrap_or_default();
        page.paragraph(&format!(
            "{}: median {}, min {}, max {}{spread} (host time).",
            count(steps.n, "decode step"),
            milliseconds(steps.median),
            milliseconds(steps.min),
            milliseconds(steps.max),
        ));
    }
    pace(page, facts);
}

/// Totals of each stage, by the name that `name` gives it.
pub(super) fn stage_table(run: &RunView<'_>, name: fn(Stage) -> String) -> Table {
    let mut table = Table::new(
        "stage | >instances | >wall | >share of run | >device busy | >of wall | >kernel time | >kernels | >tokens | >MFU | >MBU",
    );
    for view in &run.stages {
        let stage = view.stage;
        table.row([
            name(stage.name),
            grouped(stage.instances),
            known(stage.wall_ns),
            percent(view.run_share),
            known(stage.gpu_busy_ns),
            percent(view.busy_share),
            known(stage.kernel_ns),
            known(stage.kernel_count.map(grouped)),
            known(stage.tokens.map(grouped)),
            percent(stage.mfu),
            percent(stage.mbu),
        ]);
    }
    table
}

/// Percentiles and drift of the steps, and how far the host was ahead.
fn pace(page: &mut Page, facts: &TraceFacts) {
    let mut lines = Vec::new();
    if let Some(steps) = facts.steps.as_ref().filter(|_| facts.step_ms.as_ref().is_some_and(|steps| steps.n > 1)) {
        let drift = steps.drift.map(|drift| format!("; second half {:+.1}% relative to the first", drift * 100.0));
        let (p50, p95, p99) = (steps.p50_ns, steps.p95_ns, steps.p99_ns);
        lines.push(format!("host time per step: p50 {p50}, p95 {p95}, p99 {p99}{}", drift.unwrap_or_default()));
        let kernels = decimal(steps.kernels_per_token.round());
        lines.push(format!("per step: {kernels} kernels, {} of device work", steps.work_per_token_ns));
    }
    if let Some(queue) = &facts.queue_depth {
        let (mean, max, empty) = (queue.mean, queue.max, percent(Some(queue.empty_share)));
        lines.push(format!("launch queue: mean depth {mean:.1}, max {max}, empty {empty} of the time"));
    }
    page.list(lines);
}

/// How much of the device work could be placed: in stages where there are any, in operators, and in graphs.
pub(super) fn coverage(facts: &TraceFacts) -> Option<String> {
    let coverage = facts.coverage.as_ref()?;
    let part = |share: Option<f64>, what: &str| share.map(|share| format!("{} {what}", percent(Some(share))));
    let inferred = coverage.inferred_share.filter(|share| *share > 0.0);
    let stages = [
        part(coverage.stage_share, if inferred.is_some() { "in marked stages" } else { "in stages" }),
        part(inferred, "in inferred stages"),
        part(coverage.unattributed_share, "outside stages"),
    ];
    let stages = stages.into_iter().flatten().filter(|_| coverage.unattributed_share != Some(1.0));
    let others = [part(coverage.operator_share, "inside operators"), part(coverage.graph_share, "launched by graphs")];
    let parts: Vec<String> = stages.chain(others.into_iter().flatten()).collect();
    (!parts.is_empty()).then(|| format!("{} (of device time)", parts.join(", ")))
}

/// The workload and what it rests on.
pub(super) fn workload(page: &mut Page, run: &RunView<'_>, facts: &TraceFacts) {
    // It is asked for to price a model; without one, shapes of look-ups say nothing of prompts.
    let Some(traced) = facts.workload.as_ref().filter(|_| run.metrics.run.model.is_some()) else { return };
    page.heading("Workload");
    match &traced.workload {
        Some(workload) => page.paragraph(&format!(
            "Batch {}, {} prompt tokens, {} decode steps, {}: {}.",
            workload.batch,
            grouped(workload.seq_len),
            grouped(workload.decode_steps),
            workload.dtype,
            prose(&workload.description)
        )),
        None => page.paragraph("Unknown, so MFU and MBU are unknown too."),
    }
    let missing = traced.missing.iter().map(|line| format!("missing: {}", sentence(line)));
    page.list(traced.evidence.iter().map(|line| sentence(line)).chain(missing));
}

/// The operators that matter most.
pub(super) fn top_operators(page: &mut Page, run: &RunView<'_>) {
    page.heading("Top Operators");
    let operators = &run.metrics.breakdown.operators;
    if operators.is_empty() {
        return page.paragraph(
            "No operators were recorded. Those of a PyTorch model are recorded by `llm-perf profile --engine torch`, by `llm-perf deep`, and by \
             torch.profiler with `ProfilerActivity.CPU`.",
        );
    }
    let mut table = Table::new("operator | stage | >device | >self | >total | >calls");
    for operator in operators.iter().take(OPERATORS) {
        table.row([
            code(&operator.name),
            known(operator.stage),
            known(operator.device_ns),
            operator.self_ns.to_string(),
            operator.total_ns.to_string(),
            grouped(operator.calls),
        ]);
    }
    page.table(&table);
    page.paragraph(
        "Device is the time of the work that the operator itself launched, self its host time without callees, total its host time \
         with them. `operators.md` has more.",
    );
}

/// The kernels that matter most.
pub(super) fn top_kernels(page: &mut Page, run: &RunView<'_>) {
    page.heading("Top Kernels");
    let kernels = &run.kernels;
    if kernels.rows.is_empty() {
        let none = match run.metrics.conditions.trace {
            Some(_) => "The files contain no kernels.",
            None => "No kernels were recorded.",
        };
        return page.paragraph(none);
    }
    page.table(&by_time(kernels.of_stages.iter().take(KERNELS)));
    let fewer = kernels.of_stages.len() < kernels.rows.len();
    let rest = if fewer { "more, including those outside stages" } else { "more" };
    let (calls, total) = (count(kernels.calls, "kernel"), kernels.total_ns);
    let families = kernels.families.iter().filter(|family| family.share.is_some_and(|share| share >= WORTH_NAMING));
    let families: Vec<String> =
        families.take(FAMILIES).map(|row| format!("{} {}", family(row.family), percent(row.share))).collect();
    let families =
        if families.is_empty() { String::new() } else { format!(" Of kernel time: {}.", families.join(", ")) };
    page.paragraph(&format!("{calls} took {total} in total.{families} `kernels.md` has {rest}."));
}
