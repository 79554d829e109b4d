//! `summary.md`: the headline, then tables from the most to the least asked for.

use std::collections::BTreeMap;

use types::{AnalyticReport, Assumption, Bytes, Flops, LogitsKind, OperatorShare, PageKind, RoutingKind};

use super::headline::{attention, caveats, generates, meaning, paragraph, sequences, stored};
use super::layer::file_name;
use super::stages::StageRow;
use super::{likely, modules};
use crate::render::Page;
use crate::render::Table;
use crate::render::text::{code, link, prose};
use crate::words::caveat::READ_FIRST;
use crate::words::number::{UNKNOWN, count, grouped, known, milliseconds, percent, share, tokens_per_second};

/// Modules on the page.
const MODULES: usize = 12;

/// The summary as Markdown.
pub fn summary_page(report: &AnalyticReport) -> Page {
    let mut page = Page::new(&format!(
        "{} on {}, workload {}",
        prose(&report.model.model_id),
        prose(&report.device.name),
        prose(&report.workload.profile_id)
    ));
    page.callout(READ_FIRST, caveats(report));
    page.paragraph(&paragraph(report));
    let modelled = if report.measured_parts.is_empty() && report.measured_total_time_ms.is_none() {
        "Every number here is modelled from the configuration; nothing was measured, and a real run takes longer."
    } else {
        "Numbers are modelled from the configuration unless marked as measured; a real run takes longer than its roofline."
    };
    page.paragraph(&format!(
        "{modelled} FLOPs and \
         bytes are the work of the forward pass. Times are {}, operation by operation.",
        meaning(report)
    ));
    likely::section(&mut page, report);
    likely::measured(&mut page, report);
    stages(&mut page, report);
    module_table(&mut page, report);
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
    page
}

fn stages(page: &mut Page, report: &AnalyticReport) {
    page.heading("Stages (modelled)");
    let stages = super::stages::ordered(report);
    if stages.is_empty() {
        return page.paragraph("No stage does any work on this workload.");
    }
    page.paragraph(
        "`a > b` is a part of `a` and included in its numbers. Matrix and vector work are in FLOPs; one multiply-add counts as \
         two. All passes of a stage are added up.",
    );
    page.table(&super::stages::table(report, stage_name));
    page.paragraph("Memory traffic by kind:");
    let mut table =
        Table::new("stage | >weights | >activations in | >activations out | >KV read | >KV written | >total");
    for stage in &stages {
        let bytes = &stage.cost.bytes;
        let parts = [bytes.weights, bytes.activations_in, bytes.activations_out, bytes.kv_read, bytes.kv_write];
        table.row([stage_name(stage)].into_iter().chain(parts.iter().chain([&bytes.total()]).map(Bytes::to_string)));
    }
    page.table(&table);
    let rest = if report.device.launch_us.is_some() { "; the rest is launch-bound" } else { "" };
    page.paragraph(&format!("Time in compute-bound and in memory-bound operations{rest}:"));
    let mut table = Table::new("stage | >passes | >operations | >compute-bound | >memory-bound");
    for stage in &stages {
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

fn stage_name(stage: &StageRow<'_>) -> String {
    stage.around.last().map_or_else(String::new, |around| format!("{around} > ")) + stage.name
}

fn module_table(page: &mut Page, report: &AnalyticReport) {
    page.heading("Modules by time (modelled)");
    let roles = modules::by_time(report, MODULES);
    if roles.is_empty() {
        return page.paragraph("No module does any work on this workload.");
    }
    page.paragraph(
        "All passes added up, parts included. `*` stands for layers that repeat. A module with more than a quarter of the time is \
         shown by its parts, unless those are single operators. The rows add up to the model.",
    );
    let flops: Flops = roles.iter().map(|role| role.flops).sum();
    let bytes: Bytes = roles.iter().map(|role| role.bytes).sum();
    let mut table =
        Table::new("module | class | >time | >of total time | >FLOPs | >of all FLOPs | >bytes | >of all bytes");
    for role in &roles {
        table.row([
            if role.class.is_none() { role.name.clone() } else { code(&role.name) },
            prose(role.class.as_deref().unwrap_or_default()),
            milliseconds(role.time_ms),
            percent(share(role.time_ms, report.predicted_total_time_ms)),
            role.flops.to_string(),
            percent(share(role.flops.as_f64(), flops.as_f64())),
            role.bytes.to_string(),
            percent(share(role.bytes.as_f64(), bytes.as_f64())),
        ]);
    }
    page.table(&table);
}

fn categories(page: &mut Page, report: &AnalyticReport) {
    page.heading("Operator categories (modelled)");
    let mut used: Vec<&OperatorShare> = report.categories.iter().filter(|category| category.calls > 0).collect();
    if used.is_empty() {
        return page.paragraph("No operator runs on this workload.");
    }
    used.sort_by(|a, b| b.time_ms.total_cmp(&a.time_ms).then_with(|| a.category_id.cmp(&b.category_id)));
    page.paragraph(&format!(
        "Named categories hold {} of the FLOPs and {} of the time.",
        percent(Some(report.flops_in_named_categories)),
        percent(Some(report.time_in_named_categories))
    ));
    let mut table = Table::new("category | >operations | >time | >of total time | >FLOPs | >of all FLOPs | >bytes");
    for category in used {
        let named = report.operator_categories.iter().find(|named| named.category_id == category.category_id);
        table.row([
            prose(named.map_or(&category.category_id, |named| &named.display_name)),
            grouped(category.calls),
            milliseconds(category.time_ms),
            percent(share(category.time_ms, report.predicted_total_time_ms)),
            Flops::new((category.flops_tflops * 1e12).round() as u128).to_string(),
            percent(Some(category.share_of_module_flops)),
            Bytes::new((category.io_tb * 1e12).round() as u64).to_string(),
        ]);
    }
    page.table(&table);
}

fn memory(page: &mut Page, report: &AnalyticReport) {
    let need = &report.memory;
    page.heading("Memory (modelled)");
    let verdict = if need.fits { "fits" } else { "does **not** fit" };
    let device = prose(&report.device.name);
    page.paragraph(&format!("{} {verdict} into the {} of {device}.", need.total_bytes, report.device.memory_bytes));
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
    if let Some(sequences) = sequences(report) {
        page.paragraph(&format!("{}.", prose(&sequences)));
    }
}

fn exchanges(page: &mut Page, report: &AnalyticReport) {
    if report.exchanges.is_empty() {
        return;
    }
    page.heading("Exchanges between devices (modelled)");
    page.paragraph(&format!(
        "{} devices share the model; work, bytes and memory on this page are those of one of them. Counts, sizes and times are \
         per pass.",
        grouped(report.workload.parallel.devices())
    ));
    page.table(&exchange_table(report));
}

/// Exchanges between devices that share the model.
pub(super) fn exchange_table(report: &AnalyticReport) -> Table {
    let mut table = Table::new("exchange | stage | >per pass | >tensor | >sent by each per pass | >time per pass");
    for exchange in &report.exchanges {
        table.row([
            format!("{} of {}", prose(&exchange.collective), grouped(exchange.devices)),
            prose(&exchange.stage),
            grouped(exchange.per_pass),
            exchange.tensor_bytes.to_string(),
            exchange.sent_bytes_per_pass.to_string(),
            milliseconds(exchange.time_per_pass_ms),
        ]);
    }
    table
}

fn devices(page: &mut Page, report: &AnalyticReport) {
    let table = device_table(report);
    if !table.is_empty() {
        page.heading("Devices compared (modelled)");
        page.table(&table);
    }
}

/// Roofline times on several devices; no row for a single one.
pub(super) fn device_table(report: &AnalyticReport) -> Table {
    let mut table = Table::new(
        "device | >bandwidth | >first token | >per token | >decode rate | >total | prefill bound | decode bound | memory | \
         >sequences",
    );
    for prediction in report.devices.iter().filter(|_| report.devices.len() > 1) {
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
            if prediction.fits { "fits" } else { "does NOT fit" }.to_owned(),
            known(prediction.sequences_that_fit.map(grouped)),
        ]);
    }
    table
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
    page.paragraph(&format!(
        "The model covers {} of the {all} classes of snapshot {snapshot} ({file}).",
        coverage.covered
    ));
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
        if generates(report) {
            let steps = count(workload.decode_steps, "decode step");
            row("generation", format!("{}, {steps}", count(workload.max_new_tokens, "token")));
        }
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
    }
    if workload.seq_len > 0 && generates(report) {
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

fn layers(page: &mut Page, report: &AnalyticReport) {
    // Every class, with its first module.
    let mut classes: BTreeMap<&str, &str> = BTreeMap::new();
    for module in &report.modules {
        classes.entry(modules::class_name(&module.qualified_class_name)).or_insert(&module.module_id);
    }
    if classes.is_empty() {
        return;
    }
    page.heading("Layer pages");
    page.paragraph("One per module class: definition, settings, shapes, and every formula with its numbers.");
    let folder = report.layer_docs_dir.trim_end_matches('/');
    page.list(classes.iter().map(|(class, module)| {
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
    use super::*;
    use crate::pages::analytic::sample;

    #[test]
    fn the_summary_leads_with_what_matters() {
        insta::assert_snapshot!(summary_page(&sample::report()).markdown());
    }

    #[test]
    fn several_devices_are_compared_and_missing_classes_named() {
        let text = summary_page(&sample::on_two_devices()).markdown();
        let from = text.find("## Devices").unwrap();
        insta::assert_snapshot!(&text[from..]);
    }

    #[test]
    fn an_empty_report_says_so_everywhere() {
        insta::assert_snapshot!(summary_page(&sample::empty()).markdown());
    }

    #[test]
    fn a_page_with_measured_times_does_not_say_that_nothing_was_measured() {
        let mut report = sample::report();
        assert!(summary_page(&report).markdown().contains("nothing was measured"));
        report.measured_total_time_ms = Some(920.0);
        let text = summary_page(&report).markdown();
        assert!(!text.contains("nothing was measured") && text.contains("unless marked as measured"), "{text}");
    }

    #[test]
    fn names_with_markup_in_them_break_nothing() {
        let mut report = sample::report();
        report.model.model_id = "a|b\n# `c` <script>".to_owned();
        report.modules[1].name = "x|y".to_owned();
        let text = summary_page(&report).markdown();
        assert!(text.starts_with(r"# a|b # \`c\` \<script> on "), "{}", text.lines().next().unwrap_or_default());
        for line in text.lines().filter(|line| line.starts_with('|')) {
            assert!(line.ends_with(" |"), "{line}");
        }
    }
}
