//! `summary.md`: the headline, then tables from the most to the least asked for.

use std::collections::BTreeMap;

use types::{AnalyticReport, Bytes, Flops, LogitsKind, PageKind, RoutingKind};

use super::breakdown::{by_time, class_name};
use super::headline::{attention, meaning, paragraph, sequences, stored};
use super::layer::file_name;
use super::stages::{StageRow, ordered};
use crate::markdown::{code, link, prose};
use crate::number::{UNKNOWN, count, grouped, milliseconds, percent, share, tokens_per_second};
use crate::table::{Column, Table};

/// Modules shown.
const MODULES: usize = 12;

/// The summary as Markdown.
pub fn summary_markdown(report: &AnalyticReport) -> String {
    let mut page = Page { text: String::new() };
    page.text += &format!(
        "# {} on {}, workload {}\n",
        prose(&report.model.model_id),
        prose(&report.device.name),
        prose(&report.workload.profile_id)
    );
    page.paragraph(&paragraph(report));
    page.paragraph(&format!(
        "Every number here is modelled from the configuration: FLOPs and bytes are what the forward pass must do and \
         move, times are {}, operation by operation. Nothing was measured, and a real run takes longer.",
        meaning(report)
    ));
    stages(&mut page, report);
    modules(&mut page, report);
    categories(&mut page, report);
    memory(&mut page, report);
    exchanges(&mut page, report);
    devices(&mut page, report);
    peaks(&mut page, report);
    assumptions(&mut page, report);
    coverage(&mut page, report);
    inputs(&mut page, report);
    layers(&mut page, report);
    notes(&mut page, report);
    page.text
}

struct Page {
    text: String,
}

impl Page {
    fn heading(&mut self, heading: &str) {
        self.text += &format!("\n## {heading}\n");
    }

    fn paragraph(&mut self, paragraph: &str) {
        self.text += &format!("\n{paragraph}\n");
    }

    fn table<const N: usize>(&mut self, table: &Table<N>) {
        self.text.push('\n');
        self.text += &table.markdown();
    }

    fn list(&mut self, items: impl IntoIterator<Item = String>) {
        self.text.push('\n');
        for item in items {
            self.text += &format!("- {item}\n");
        }
    }
}

fn stages(page: &mut Page, report: &AnalyticReport) {
    page.heading("Stages (modelled)");
    let rows = ordered(&report.stages);
    if rows.is_empty() {
        return page.paragraph("No stage does anything on this workload.");
    }
    page.paragraph(
        "`a > b` is a part of `a` and contained in its numbers. Matrix and vector work are FLOPs, one multiply-add being \
         two.",
    );
    let mut table = Table::new([
        Column::text("stage"),
        Column::number("time"),
        Column::number("of time"),
        Column::text("bound"),
        Column::number("matrix"),
        Column::number("vector"),
        Column::number("bytes"),
    ]);
    for row in &rows {
        table.row([
            stage_name(row),
            milliseconds(row.cost.time_ms),
            percent(share(row.cost.time_ms, report.predicted_total_time_ms)),
            prose(&row.cost.bound),
            row.cost.flops_matrix.to_string(),
            row.cost.flops_vector.to_string(),
            row.cost.bytes.total().to_string(),
        ]);
    }
    page.table(&table);
    page.paragraph("Bytes by what they are:");
    let mut table = Table::new([
        Column::text("stage"),
        Column::number("weights"),
        Column::number("activations in"),
        Column::number("activations out"),
        Column::number("KV read"),
        Column::number("KV written"),
        Column::number("all"),
    ]);
    for row in &rows {
        let bytes = &row.cost.bytes;
        let parts = [bytes.weights, bytes.activations_in, bytes.activations_out, bytes.kv_read, bytes.kv_write];
        let [weights, read, written, kv_read, kv_write] = parts.map(|part| part.to_string());
        table.row([stage_name(row), weights, read, written, kv_read, kv_write, bytes.total().to_string()]);
    }
    page.table(&table);
    let rest = if report.device.launch_us.is_some() { "; the rest is bound by launches" } else { "" };
    page.paragraph(&format!("Time in operations bound by arithmetic and by memory traffic{rest}:"));
    let mut table = Table::new([
        Column::text("stage"),
        Column::number("passes"),
        Column::number("operations"),
        Column::number("compute-bound"),
        Column::number("memory-bound"),
    ]);
    for row in &rows {
        table.row([
            stage_name(row),
            grouped(row.cost.passes),
            grouped(row.cost.operations),
            milliseconds(row.cost.compute_bound_ms),
            milliseconds(row.cost.memory_bound_ms),
        ]);
    }
    page.table(&table);
}

fn stage_name(row: &StageRow<'_>) -> String {
    row.around.last().map_or_else(String::new, |around| format!("{around} > ")) + row.name
}

fn modules(page: &mut Page, report: &AnalyticReport) {
    page.heading("Modules by time (modelled)");
    let roles = by_time(report, MODULES);
    if roles.is_empty() {
        return page.paragraph("No module does anything on this workload.");
    }
    page.paragraph(
        "All passes together, parts included. `*` stands for layers that repeat; what holds more than a quarter of the \
         time is shown by its parts, unless those are single operators. The lines add up to the model.",
    );
    let all_flops: Flops = roles.iter().map(|role| role.flops).sum();
    let all_bytes: Bytes = roles.iter().map(|role| role.bytes).sum();
    let mut table = Table::new([
        Column::text("module"),
        Column::text("class"),
        Column::number("time"),
        Column::number("of time"),
        Column::number("FLOPs"),
        Column::number("of FLOPs"),
        Column::number("bytes"),
        Column::number("of bytes"),
    ]);
    for role in roles {
        table.row([
            if role.class.is_none() { role.name } else { code(&role.name) },
            prose(role.class.as_deref().unwrap_or_default()),
            milliseconds(role.time_ms),
            percent(share(role.time_ms, report.predicted_total_time_ms)),
            role.flops.to_string(),
            percent(share(role.flops.as_f64(), all_flops.as_f64())),
            role.bytes.to_string(),
            percent(share(role.bytes.as_f64(), all_bytes.as_f64())),
        ]);
    }
    page.table(&table);
}

fn categories(page: &mut Page, report: &AnalyticReport) {
    page.heading("Kinds of operators (modelled)");
    let mut used: Vec<_> = report.categories.iter().filter(|share| share.calls > 0).collect();
    if used.is_empty() {
        return page.paragraph("No operator runs on this workload.");
    }
    used.sort_by(|a, b| b.time_ms.total_cmp(&a.time_ms).then_with(|| a.category_id.cmp(&b.category_id)));
    let named = |share: f64| percent(Some(share));
    page.paragraph(&format!(
        "{} of the FLOPs and {} of the time are in named kinds.",
        named(report.flops_in_named_categories),
        named(report.time_in_named_categories)
    ));
    let mut table = Table::new([
        Column::text("kind"),
        Column::number("operations"),
        Column::number("time"),
        Column::number("of time"),
        Column::number("FLOPs"),
        Column::number("of FLOPs"),
        Column::number("bytes"),
    ]);
    for kind in used {
        let category = report.operator_categories.iter().find(|category| category.category_id == kind.category_id);
        table.row([
            prose(category.map_or(&kind.category_id, |category| &category.display_name)),
            grouped(kind.calls),
            milliseconds(kind.time_ms),
            percent(share(kind.time_ms, report.predicted_total_time_ms)),
            Flops::new((kind.flops_tflops * 1e12).round() as u128).to_string(),
            percent(Some(kind.share_of_module_flops)),
            Bytes::new((kind.io_tb * 1e12).round() as u64).to_string(),
        ]);
    }
    page.table(&table);
}

fn memory(page: &mut Page, report: &AnalyticReport) {
    let need = &report.memory;
    page.heading("Memory (modelled)");
    let verdict = if need.fits { "fits" } else { "does **not** fit" };
    let device = prose(&report.device.name);
    page.paragraph(&format!("{} {verdict} the {} of {device}.", need.total_bytes, report.device.memory_bytes));
    let mut table = Table::new([Column::text("what"), Column::number("size"), Column::number("bytes")]);
    let rows = [
        ("weights", Some(need.weights_bytes)),
        ("activations, most at once", Some(need.activations_peak_bytes)),
        ("KV cache at the end", Some(need.kv_bytes)),
        ("all", Some(need.total_bytes)),
        ("KV cache per token of a sequence", need.kv_bytes_per_token),
    ];
    for (what, bytes) in rows {
        let size = bytes.map_or(UNKNOWN.to_owned(), |bytes| bytes.to_string());
        let exact = bytes.map_or("no cache".to_owned(), |bytes| format!("{} B", grouped(bytes.get())));
        table.row([what.to_owned(), size, exact]);
    }
    page.table(&table);
    if let Some(sequences) = sequences(need, &report.workload) {
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
    let mut table = Table::new([
        Column::text("exchange"),
        Column::text("stage"),
        Column::number("devices"),
        Column::number("times"),
        Column::number("tensor"),
        Column::number("sent by each"),
        Column::number("time"),
    ]);
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
    let mut table = Table::new([
        Column::text("device"),
        Column::number("bandwidth"),
        Column::number("first token"),
        Column::number("per token"),
        Column::number("rate"),
        Column::number("in all"),
        Column::text("prefill bound"),
        Column::text("decode bound"),
        Column::text("memory"),
        Column::number("sequences"),
    ]);
    for prediction in &report.devices {
        let bound = |stage: &str| prediction.stages.get(stage).map_or(UNKNOWN.to_owned(), |stage| prose(&stage.bound));
        table.row([
            prose(&prediction.device.name),
            prediction.device.bytes_per_second.to_string(),
            milliseconds(prediction.ttft_ms),
            prediction.time_per_output_token_ms.map_or(UNKNOWN.to_owned(), milliseconds),
            prediction.decode_tokens_per_second.map_or(UNKNOWN.to_owned(), tokens_per_second),
            milliseconds(prediction.predicted_total_time_ms),
            bound("prefill"),
            bound("decode"),
            if prediction.fits { "fits" } else { "does **not** fit" }.to_owned(),
            prediction.sequences_that_fit.map_or(UNKNOWN.to_owned(), grouped),
        ]);
    }
    page.table(&table);
}

fn peaks(page: &mut Page, report: &AnalyticReport) {
    let device = &report.device;
    page.heading("Peaks the times are held against");
    let mut table = Table::new([Column::text("what"), Column::number("peak"), Column::text("source")]);
    for rate in &device.rates {
        table.row([format!("{} {}, dense", rate.dtype, rate.unit), rate.flops.to_string(), prose(&rate.source)]);
    }
    let source = |source: &Option<String>| source.as_deref().map_or_else(|| UNKNOWN.to_owned(), prose);
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
    page.list(
        report.assumptions.iter().map(|assumption| format!("{}: {}", assumption.origin, prose(&assumption.text))),
    );
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
    let known = |value: Option<String>| value.unwrap_or_else(|| UNKNOWN.to_owned());
    let mut table = Table::new([Column::text("setting"), Column::text("value")]);
    let mut row = |setting: &str, value: String| table.row([setting.to_owned(), value]);
    row("model", format!("{}, class {}", code(&model.model_id), code(&model.model_variant)));
    row("configuration", code(&model.config_path));
    row("revision of the weights", known(model.hf_revision.as_deref().map(code)));
    row("parameters", grouped(model.parameters.total));
    for (part, count) in &model.parameters.by_module {
        row(&format!("parameters of {}", code(part)), grouped(*count));
    }
    row("layers, width", format!("{}, {}", model.num_layers, model.hidden_size));
    row("attention heads", known(model.num_attention_heads.map(|heads| heads.to_string())));
    row("feed-forward width", known(model.intermediate_size.map(|width| width.to_string())));
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
        row("pictures", format!("{pages}, {}: global view of {base} px, {tiles}", page_kind(workload.doc_kind)));
    }
    row("batch", grouped(workload.batch));
    if let Some(stored) = stored(workload) {
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
        PageKind::ImageRich => "mostly pictures",
        PageKind::Synthetic => "synthetic",
        PageKind::Unknown => "not said",
    }
}

fn layers(page: &mut Page, report: &AnalyticReport) {
    let mut first: BTreeMap<&str, &str> = BTreeMap::new();
    for module in &report.modules {
        first.entry(class_name(&module.qualified_class_name)).or_insert(&module.module_id);
    }
    if first.is_empty() {
        return;
    }
    page.heading("Layer pages");
    page.paragraph("One per module class: definition, settings, shapes, every formula with its numbers.");
    let folder = report.layer_docs_dir.trim_end_matches('/');
    page.list(first.iter().map(|(class, module)| {
        format!("{}, first at {}", link(class, &format!("{folder}/{}", file_name(class))), code(module))
    }));
}

fn notes(page: &mut Page, report: &AnalyticReport) {
    let notes = || report.notes.iter().chain([&report.model.notes]).filter(|note| !note.trim().is_empty());
    if notes().next().is_some() {
        page.heading("Notes");
        page.list(notes().map(|note| prose(note)));
    }
    let (report_id, version) = (code(&report.report_id), prose(&report.tool_version));
    page.paragraph(&format!("Report {report_id}, llm-perf {version}."));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analytic::sample;

    #[test]
    fn the_summary_leads_with_what_matters() {
        insta::assert_snapshot!(summary_markdown(&sample::report()));
    }

    #[test]
    fn several_devices_are_compared_and_missing_classes_named() {
        let text = summary_markdown(&sample::on_two_devices());
        let from = text.find("## Devices").unwrap();
        insta::assert_snapshot!(&text[from..]);
    }

    #[test]
    fn an_empty_report_says_so_everywhere() {
        insta::assert_snapshot!(summary_markdown(&sample::empty()));
    }

    #[test]
    fn names_with_markup_in_them_break_nothing() {
        let mut report = sample::report();
        report.model.model_id = "a|b\n# `c` <script>".to_owned();
        report.modules[1].name = "x|y".to_owned();
        let text = summary_markdown(&report);
        assert!(text.starts_with(r"# a|b # \`c\` \<script> on "), "{}", text.lines().next().unwrap_or_default());
        for line in text.lines().filter(|line| line.starts_with('|')) {
            assert!(line.ends_with(" |"), "{line}");
        }
    }
}
