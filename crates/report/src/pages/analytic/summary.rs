//! `summary.md`: the headline, then tables from the most to the least asked for.

use types::view::{AnalyticView, StageCostView};
use types::{AnalyticReport, Assumption, LogitsKind, PageKind, RoutingKind};

use super::headline::{attention, meaning, paragraph, sequences, stored};
use super::layer::file_name;
use super::likely;
use crate::render::Page;
use crate::render::Table;
use crate::render::text::{code, link, prose};
use crate::words::number::{UNKNOWN, count, grouped, known, milliseconds, percent, tokens_per_second};

/// The summary as Markdown.
pub fn summary_page(view: &AnalyticView<'_>) -> Page {
    let report = view.report;
    let mut page = Page::new(&format!(
        "{} on {}, workload {}",
        prose(&report.model.model_id),
        prose(&report.device.name),
        prose(&report.workload.profile_id)
    ));
    page.paragraph(&paragraph(view));
    page.paragraph(&format!(
        "Every number here is modelled from the configuration: FLOPs and bytes are what the forward pass must do and move, times \
         are {}, operation by operation. Nothing was measured, and a real run takes longer.",
        meaning(report)
    ));
    likely::section(&mut page, report);
    likely::measured(&mut page, report);
    stages(&mut page, view);
    modules(&mut page, view);
    categories(&mut page, view);
    memory(&mut page, view);
    exchanges(&mut page, report);
    devices(&mut page, report);
    peaks(&mut page, report);
    assumptions(&mut page, report);
    coverage(&mut page, report);
    inputs(&mut page, report);
    layers(&mut page, view);
    notes(&mut page, report);
    page
}

fn stages(page: &mut Page, view: &AnalyticView<'_>) {
    page.heading("Stages (modelled)");
    if view.stages.is_empty() {
        return page.paragraph("No stage does anything on this workload.");
    }
    page.paragraph(
        "`a > b` is a part of `a` and contained in its numbers. Matrix and vector work are in FLOPs; one multiply-add counts as \
         two.",
    );
    let mut table = Table::new("stage | >time | >share | bound | >matrix | >vector | >bytes");
    for stage in &view.stages {
        table.row([
            stage_name(stage),
            milliseconds(stage.cost.time_ms),
            percent(stage.time_share),
            prose(&stage.cost.bound),
            stage.cost.flops_matrix.to_string(),
            stage.cost.flops_vector.to_string(),
            stage.cost.bytes.total().to_string(),
        ]);
    }
    page.table(&table);
    page.paragraph("Memory traffic by kind:");
    let mut table =
        Table::new("stage | >weights | >activations in | >activations out | >KV read | >KV written | >total");
    for stage in &view.stages {
        let bytes = &stage.cost.bytes;
        let parts = [bytes.weights, bytes.activations_in, bytes.activations_out, bytes.kv_read, bytes.kv_write];
        let [weights, read, written, kv_read, kv_write] = parts.map(|part| part.to_string());
        table.row([stage_name(stage), weights, read, written, kv_read, kv_write, bytes.total().to_string()]);
    }
    page.table(&table);
    let rest = if view.report.device.launch_us.is_some() { "; the rest is launch-bound" } else { "" };
    page.paragraph(&format!("Time in compute-bound and in memory-bound operations{rest}:"));
    let mut table = Table::new("stage | >passes | >operations | >compute-bound | >memory-bound");
    for stage in &view.stages {
        table.row([
            stage_name(stage),
            grouped(stage.cost.passes),
            grouped(stage.cost.operations),
            milliseconds(stage.cost.compute_bound_ms),
            milliseconds(stage.cost.memory_bound_ms),
        ]);
    }
    page.table(&table);
}

fn stage_name(stage: &StageCostView<'_>) -> String {
    stage.around.last().map_or_else(String::new, |around| format!("{around} > ")) + stage.name
}

fn modules(page: &mut Page, view: &AnalyticView<'_>) {
    page.heading("Modules by time (modelled)");
    if view.modules.is_empty() {
        return page.paragraph("No module does anything on this workload.");
    }
    page.paragraph(
        "All passes together, parts included. `*` stands for layers that repeat. A module with more than a quarter of the time is \
         shown by its parts, unless those are single operators. The rows add up to the model.",
    );
    let mut table = Table::new("module | class | >time | >time share | >FLOPs | >FLOP share | >bytes | >byte share");
    for role in &view.modules {
        table.row([
            if role.class.is_none() { role.name.clone() } else { code(&role.name) },
            prose(role.class.as_deref().unwrap_or_default()),
            milliseconds(role.time_ms),
            percent(role.time_share),
            role.flops.to_string(),
            percent(role.flops_share),
            role.bytes.to_string(),
            percent(role.bytes_share),
        ]);
    }
    page.table(&table);
}

fn categories(page: &mut Page, view: &AnalyticView<'_>) {
    page.heading("Operator categories (modelled)");
    if view.categories.is_empty() {
        return page.paragraph("No operator runs on this workload.");
    }
    page.paragraph(&format!(
        "{} of the FLOPs and {} of the time are in named categories.",
        percent(Some(view.report.flops_in_named_categories)),
        percent(Some(view.report.time_in_named_categories))
    ));
    let mut table = Table::new("category | >operations | >time | >time share | >FLOPs | >FLOP share | >bytes");
    for row in &view.categories {
        table.row([
            prose(row.name),
            grouped(row.category.calls),
            milliseconds(row.category.time_ms),
            percent(row.time_share),
            row.flops.to_string(),
            percent(Some(row.category.share_of_module_flops)),
            row.bytes.to_string(),
        ]);
    }
    page.table(&table);
}

fn memory(page: &mut Page, view: &AnalyticView<'_>) {
    let (report, need) = (view.report, &view.report.memory);
    page.heading("Memory (modelled)");
    let verdict = if need.fits { "fits" } else { "does **not** fit" };
    let device = prose(&report.device.name);
    page.paragraph(&format!("{} {verdict} the {} of {device}.", need.total_bytes, report.device.memory_bytes));
    let mut table = Table::new("use | >size | >bytes");
    let rows = [
        ("weights", Some(need.weights_bytes)),
        ("activations, peak", Some(need.activations_peak_bytes)),
        ("KV cache at the end", Some(need.kv_bytes)),
        ("total", Some(need.total_bytes)),
        ("KV cache per token of a sequence", need.kv_bytes_per_token),
    ];
    for (what, bytes) in rows {
        let exact = bytes.map_or("no cache".to_owned(), |bytes| format!("{} B", grouped(bytes.get())));
        table.row([what.to_owned(), known(bytes), exact]);
    }
    page.table(&table);
    if let Some(sequences) = sequences(view) {
        page.paragraph(&format!("{}.", prose(&sequences)));
    }
}

/// What devices that share the model send to each other.
fn exchanges(page: &mut Page, report: &AnalyticReport) {
    if report.exchanges.is_empty() {
        return;
    }
    page.heading("Exchanges between devices (modelled)");
    page.paragraph(&format!(
        "{} devices share the model; work, bytes and memory on this page are those of one of them. Sizes and times are of \
         one pass.",
        grouped(report.workload.parallel.devices())
    ));
    let mut table = Table::new("exchange | stage | >devices | >times | >tensor | >sent by each | >time");
    for exchange in &report.exchanges {
        table.row([
            prose(&exchange.collective),
            prose(&exchange.stage),
            grouped(exchange.devices),
            grouped(exchange.per_pass),
            exchange.tensor_bytes.to_string(),
            exchange.sent_bytes_per_pass.to_string(),
            milliseconds(exchange.time_per_pass_ms),
        ]);
    }
    page.table(&table);
}

fn devices(page: &mut Page, report: &AnalyticReport) {
    if report.devices.len() < 2 {
        return;
    }
    page.heading("Devices compared (modelled)");
    let mut table = Table::new(
        "device | >bandwidth | >first token | >per token | >decode throughput | >total | prefill bound | decode bound | memory | >sequences",
    );
    for prediction in &report.devices {
        let bound = |stage: &str| known(prediction.stages.get(stage).map(|stage| prose(&stage.bound)));
        table.row([
            prose(&prediction.device.name),
            prediction.device.bytes_per_second.to_string(),
            milliseconds(prediction.ttft_ms),
            known(prediction.time_per_output_token_ms.map(milliseconds)),
            known(prediction.decode_tokens_per_second.map(tokens_per_second)),
            milliseconds(prediction.predicted_total_time_ms),
            bound("prefill"),
            bound("decode"),
            if prediction.fits { "fits" } else { "does **not** fit" }.to_owned(),
            known(prediction.sequences_that_fit.map(grouped)),
        ]);
    }
    page.table(&table);
}

fn peaks(page: &mut Page, report: &AnalyticReport) {
    let device = &report.device;
    page.heading("Peak rates");
    let mut table = Table::new("resource | >peak | source");
    for rate in &device.rates {
        table.row([format!("{} {}, dense", rate.dtype, rate.unit), rate.flops.to_string(), prose(&rate.source)]);
    }
    let source = |source: &Option<String>| known(source.as_deref().map(prose));
    let (bandwidth, memory) = (source(&device.bandwidth_source), source(&device.memory_source));
    table.row(["memory bandwidth".to_owned(), device.bytes_per_second.to_string(), bandwidth]);
    table.row(["memory".to_owned(), device.memory_bytes.to_string(), memory]);
    if let Some(link) = device.interconnect_bytes_per_second.filter(|_| !report.workload.parallel.is_single()) {
        let link_source = source(&device.interconnect_source);
        table.row(["link to other devices, both directions".to_owned(), link.to_string(), link_source]);
    }
    let launch = device.launch_us.map_or("not counted".to_owned(), |time| milliseconds(time / 1e3));
    let source = if device.launch_us.is_some() { "assumed for every operation" } else { UNKNOWN };
    table.row(["launch of one operation".to_owned(), launch, source.to_owned()]);
    page.table(&table);
}

fn assumptions(page: &mut Page, report: &AnalyticReport) {
    page.heading("Assumptions");
    if report.assumptions.is_empty() {
        return page.paragraph("None.");
    }
    page.list(report.assumptions.iter().map(assumption));
}

/// An assumption with its origin.
pub(crate) fn assumption(assumption: &Assumption) -> String {
    format!("{}: {}", assumption.origin, prose(&assumption.text))
}

fn coverage(page: &mut Page, report: &AnalyticReport) {
    let Some(coverage) = &report.coverage else { return };
    page.heading("Coverage of the target operators");
    let all = coverage.target.operators.len();
    let snapshot = code(&coverage.target.snapshot_id);
    let file = code(&coverage.target.layers_json_path);
    page.paragraph(&format!("{} of {all} classes of snapshot {snapshot} ({file}) are modelled.", coverage.covered));
    if !coverage.uncovered.is_empty() {
        page.paragraph("Not modelled:");
        page.list(coverage.uncovered.iter().map(|class| code(class)));
    }
}

fn inputs(page: &mut Page, report: &AnalyticReport) {
    let (model, workload) = (&report.model, &report.workload);
    page.heading("Inputs");
    let mut table = Table::new("setting | value");
    let mut row = |setting: &str, value: String| table.row([setting.to_owned(), value]);
    row("model", format!("{}, class {}", code(&model.model_id), code(&model.model_variant)));
    row("configuration", code(&model.config_path));
    row("revision of the weights", known(model.hf_revision.as_deref().map(code)));
    row("parameters", grouped(model.parameters.total));
    for (part, count) in &model.parameters.by_module {
        row(&format!("parameters of {}", code(part)), grouped(*count));
    }
    row("layers, width", format!("{}, {}", model.num_layers, model.hidden_size));
    row("attention heads", known(model.num_attention_heads));
    row("feed-forward width", known(model.intermediate_size));
    row("vision", known(model.vision_backbone.as_deref().map(prose)));
    row("workload", format!("{}: {}", code(&workload.profile_id), prose(&workload.description)));
    if workload.seq_len > 0 {
        let (image, text) = (grouped(workload.image_tokens), grouped(workload.text_tokens));
        row("prompt", format!("{}: {image} image, {text} text", count(workload.seq_len, "token")));
        let steps = count(workload.decode_steps, "decode step");
        row("generation", format!("{}, {steps}", count(workload.max_new_tokens, "token")));
    }
    if let (Some(base), Some(tile), Some([wide, high])) = (workload.base_size, workload.image_size, workload.crop_grid)
    {
        let tiles =
            if workload.crop_mode { format!("{wide} x {high} tiles of {tile} px") } else { "no tiles".to_owned() };
        let pages = count(workload.num_pages, "page");
        row("images", format!("{pages}, {}: global view of {base} px, {tiles}", page_kind(workload.doc_kind)));
    }
    row("batch", grouped(workload.batch));
    if let Some(stored) = stored(model, workload) {
        row("stored", prose(&stored));
    }
    if !workload.parallel.is_single() {
        let parallel = &workload.parallel;
        let sizes = format!("tensor {}, expert {}, pipeline {}", parallel.tensor, parallel.expert, parallel.pipeline);
        row("devices", format!("{}: {sizes}", grouped(parallel.devices())));
    }
    row("element type", format!("{} (published weights: {})", workload.dtype, model.dtype));
    if workload.seq_len > 0 {
        row("attention", attention(workload.attention).to_owned());
        let logits = match workload.logits {
            LogitsKind::All => "of all prompt positions",
            LogitsKind::Last => "of the last prompt position",
        };
        row("logits", logits.to_owned());
    }
    if model.uses_moe {
        let RoutingKind::Balanced = workload.routing;
        row("expert routing", "balanced".to_owned());
    }
    page.table(&table);
}

fn page_kind(kind: PageKind) -> &'static str {
    match kind {
        PageKind::TextHeavy => "mostly text",
        PageKind::MixedLayout => "mixed layout",
        PageKind::ImageRich => "mostly images",
        PageKind::Synthetic => "synthetic",
        PageKind::Unknown => "unknown kind",
    }
}

fn layers(page: &mut Page, view: &AnalyticView<'_>) {
    if view.classes.is_empty() {
        return;
    }
    page.heading("Layer pages");
    page.paragraph("One per module class: definition, settings, shapes, every formula with its numbers.");
    let folder = view.report.layer_docs_dir.trim_end_matches('/');
    page.list(view.classes.iter().map(|(class, module)| {
        format!("{}, first at {}", link(class, &format!("{folder}/{}", file_name(class))), code(module))
    }));
}

fn notes(page: &mut Page, report: &AnalyticReport) {
    let notes = report.notes.iter().chain([&report.model.notes]).filter(|note| !note.trim().is_empty());
    let notes: Vec<_> = notes.map(|note| prose(note)).collect();
    if !notes.is_empty() {
        page.heading("Notes");
        page.list(notes);
    }
    let (report_id, version) = (code(&report.report_id), prose(&report.tool_version));
    page.paragraph(&format!("Report {report_id}, llm-perf {version}."));
}

#[cfg(test)]
mod tests {
    use analysis::view::analytic;

    use super::*;
    use crate::pages::analytic::sample;

    #[test]
    fn the_summary_leads_with_what_matters() {
        insta::assert_snapshot!(summary_page(&analytic(&sample::report())).markdown());
    }

    #[test]
    fn several_devices_are_compared_and_missing_classes_named() {
        let text = summary_page(&analytic(&sample::on_two_devices())).markdown();
        let from = text.find("## Devices").unwrap();
        insta::assert_snapshot!(&text[from..]);
    }

    #[test]
    fn an_empty_report_says_so_everywhere() {
        insta::assert_snapshot!(summary_page(&analytic(&sample::empty())).markdown());
    }

    #[test]
    fn names_with_markup_in_them_break_nothing() {
        let mut report = sample::report();
        report.model.model_id = "a|b\n# `c` <script>".to_owned();
        report.modules[1].name = "x|y".to_owned();
        let text = summary_page(&analytic(&report)).markdown();
        assert!(text.starts_with(r"# a|b # \`c\` \<script> on "), "{}", text.lines().next().unwrap_or_default());
        for line in text.lines().filter(|line| line.starts_with('|')) {
            assert!(line.ends_with(" |"), "{line}");
        }
    }
}
