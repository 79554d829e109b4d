//! The analytic model.

use serde_json::Value;

use crate::Row;
use crate::bundles::{Bundles, has, keys, list, need};

pub(crate) const ROWS: &[Row] = &[
    Row {
        id: "S4.1",
        requirement: "DeepSeek-OCR by name, as a tree with the checkpoint's names and classes",
        check: tree,
        live: "",
    },
    Row {
        id: "S4.2",
        requirement: "per module: calls, FLOPs, bytes, memory, time, share and a breakdown by category, beside what was measured",
        check: modules,
        live: "h200_defaults.sh",
    },
    Row { id: "S4.3", requirement: "parameters, FLOPs and KV bytes are exact", check: exact, live: "h200_torch.sh" },
    Row {
        id: "S4.4",
        requirement: "workloads by name, with any parameter changed; the same request gives the same output",
        check: workloads,
        live: "",
    },
    Row {
        id: "S4.5",
        requirement: "a page per class: definition, constructor parameters, formulas, numbers, results",
        check: pages,
        live: "",
    },
    Row { id: "S4.6", requirement: "at least 90% of the cost is in named categories", check: categories, live: "" },
    Row {
        id: "S4.7",
        requirement: "a TorchInfo snapshot is read, and no class of it is uncovered",
        check: coverage,
        live: "",
    },
    Row {
        id: "S4.8",
        requirement: "batch, sequence, element type, device and attention are varied in one command",
        check: sweep,
        live: "",
    },
    Row {
        id: "S4.9",
        requirement: "any `config.json` of Llama, Qwen, Mistral, Mixtral, DeepSeek and vision-language models",
        check: families,
        live: "",
    },
    Row {
        id: "S4.10",
        requirement: "without a GPU, weights or a framework, in less than a second",
        check: quick,
        live: "",
    },
];

const REPORT: &str = "analyze/static_analysis/analytic_model/report.json";

fn tree(bundles: &Bundles) -> Result<(), String> {
    bundles.ended("analyze", 0)?;
    let report = bundles.json(REPORT);
    let modules = list(&report["modules"]);
    let classes = "ImageEncoderViT Block Attention MLPBlock PatchEmbed LayerNorm2d VitModel NoTPTransformer MlpProjector \
                   DeepseekV2DecoderLayer DeepseekV2MLP DeepseekV2MoE MoEGate DeepseekV2RMSNorm LlamaRotaryEmbedding";
    for class in classes.split_whitespace() {
        let is = |module: &Value| module["qualified_class_name"].as_str().is_some_and(|name| name.ends_with(class));
        need(modules.iter().any(is), &format!("the class {class}"))?;
    }
    let named = |id: &str| modules.iter().any(|module| module["module_id"] == id);
    let names = [
        "model.sam_model.blocks.0.attn",
        "model.vision_model",
        "model.projector",
        "model.layers.1.mlp.experts",
        "lm_head",
    ];
    names.iter().try_for_each(|id| need(named(id), &format!("the module `{id}`")))
}

fn modules(bundles: &Bundles) -> Result<(), String> {
    let report = bundles.json(REPORT);
    for one in list(&report["module_metrics"]) {
        keys(one, &["calls", "flops_matrix", "flops_vector", "bytes", "total_time_ms", "share_of_model_time"])?;
        keys(one, &["memory_weights_gb", "memory_activations_gb", "memory_kvcache_gb", "operator_breakdown"])?;
        keys(&one["bytes"], &["weights", "activations_in", "activations_out", "kv_read", "kv_write"])?;
    }
    let count = list(&report["modules"]).len();
    need(count > 600 && list(&report["module_metrics"]).len() == count, "numbers of every module")?;
    bundles.valid(&[REPORT, "analyze/static_analysis/analytic_model/report.yaml"])?;
    for run in ["native", "torch", "import", "deep"] {
        let measured = bundles.json(&format!("{run}/static_analysis/analytic_model/report.json"));
        let filled = measured["profile_run_id"].is_string() && measured["measured_total_time_ms"].as_f64() > Some(0.0);
        need(
            filled && measured["predicted_vs_measured_ratio"].is_f64(),
            &format!("predicted beside measured in `{run}`"),
        )?;
        let parts = list(&measured["measured_parts"]);
        let is =
            |kind: &str| parts.iter().any(|part| part["kind"] == kind && part["forecast_vs_measured_ratio"].is_f64());
        need(is("stage"), &format!("stages beside their forecasts in `{run}`"))?;
    }
    Ok(())
}

fn exact(bundles: &Bundles) -> Result<(), String> {
    let report = bundles.json(REPORT);
    need(report["model"]["parameters"]["total"] == 3_336_106_240_u64, "the parameters of the checkpoint")?;
    // 12 layers, keys and values of 1280 numbers of two bytes each, at the end of 512 + 511 tokens.
    let kv = report["memory"].to_string();
    need(kv.contains(&(12_u64 * 2 * 1280 * 2 * (512 + 511)).to_string()), "the bytes of the KV cache")?;
    for run in ["torch", "moe"] {
        let metrics = bundles.json(&format!("{run}/metrics.json"));
        let close = |one: &Value| one["difference"].as_f64().is_some_and(|difference| difference.abs() < 1e-5);
        let checks = list(&metrics["flop_checks"]);
        need(
            !checks.is_empty() && checks.iter().all(close),
            &format!("FLOPs of `{run}` within 1e-5 of torch's counter"),
        )?;
    }
    Ok(())
}

fn workloads(bundles: &Bundles) -> Result<(), String> {
    let workload = bundles.json(REPORT)["workload"].clone();
    for (key, value) in
        [("seq_len", 512), ("base_size", 1024), ("image_size", 640), ("max_new_tokens", 512), ("num_pages", 1)]
    {
        need(workload[key] == value, &format!("`{key}` of the standard workload"))?;
    }
    need(workload["profile_id"] == "dsocr-standard-v1" && workload["doc_kind"] == "mixed_layout", "its name and kind")?;
    need(workload["crop_mode"] == true, "its tiles")?;
    let (once, twice) = (bundles.said("once"), bundles.said("twice"));
    need(once.code == 0 && !once.stdout.is_empty() && once.stdout == twice.stdout, "the same output twice")
}

fn pages(bundles: &Bundles) -> Result<(), String> {
    let folder = bundles.path("analyze/static_analysis/analytic_model/layers");
    let pages: Vec<_> = std::fs::read_dir(folder).map_err(|error| error.to_string())?.filter_map(Result::ok).collect();
    for page in &pages {
        let text = std::fs::read_to_string(page.path()).unwrap_or_default();
        let parts = ["Definition:", "## Constructor parameters", "```formula\n", "roofline time of the pass"];
        need(has(&text, &parts), &format!("a part of {}", page.file_name().display()))?;
    }
    need(pages.len() == 30, "30 pages")
}

fn categories(bundles: &Bundles) -> Result<(), String> {
    let report = bundles.json(REPORT);
    for key in ["flops_in_named_categories", "time_in_named_categories"] {
        let share = report[key].as_f64();
        need(share.is_some_and(|share| (0.9..=1.0).contains(&share)), &format!("`{key}` of at least 90%"))?;
    }
    let named =
        |row: &Value| list(&report["operator_categories"]).iter().any(|one| one["category_id"] == row["category_id"]);
    let rows = list(&report["module_metrics"]).iter().flat_map(|one| list(&one["operator_breakdown"]));
    need(rows.clone().count() > 0 && rows.into_iter().all(named), "a category of every operation")
}

fn coverage(bundles: &Bundles) -> Result<(), String> {
    let report = bundles.json(REPORT);
    need(
        report["coverage"]["covered"] == 30 && list(&report["coverage"]["uncovered"]).is_empty(),
        "all classes covered",
    )?;
    let target = &report["coverage"]["target"];
    keys(target, &["snapshot_id", "source_artifact_dir", "layers_md_path", "layers_json_path", "stages_json_path"])?;
    let names = [
        "class_name",
        "class_name_qualified",
        "is_pytorch_builtin",
        "is_custom",
        "children_classes",
        "default_category_id",
    ];
    keys(&target["operators"][0], &names)
}

fn sweep(bundles: &Bundles) -> Result<(), String> {
    bundles.ended("sweep", 0)?;
    bundles.files("sweep", &["sweep.json", "sweep.csv", "sweep.md", "sweep.svg"])?;
    bundles.valid(&["sweep/sweep.json"])?;
    let table = bundles.text("sweep/sweep.csv");
    let head = table.lines().next().unwrap_or_default();
    let axes = ["hardware", "workload.batch", "workload.attention", "workload.seq_len", "workload.dtype"];
    need(has(head, &axes), "a column for every axis")?;
    need(table.lines().count() == 1 + 2 * 2 * 2 * 2 * 2, "every combination")
}

fn families(bundles: &Bundles) -> Result<(), String> {
    let models = bundles.printed("models").to_string();
    let names = "llama-3-8b qwen2-7b qwen3-8b qwen3-30b-a3b mistral-7b mixtral-8x7b deepseek-v2-lite deepseek-v3 llava-1.5-7b qwen2.5-vl-7b";
    names.split(' ').try_for_each(|name| need(models.contains(&format!("\"{name}\"")), &format!("`{name}`")))?;
    for (run, class) in [("torch", "LlamaForCausalLM"), ("moe", "Qwen2MoeForCausalLM")] {
        let report = bundles.json(&format!("{run}/static_analysis/analytic_model/report.json"));
        need(report["model"]["model_variant"] == class, &format!("a `config.json` of {class}"))?;
    }
    Ok(())
}

fn quick(bundles: &Bundles) -> Result<(), String> {
    // The time of an optimised build, as the benchmark wrote it.
    let page = include_str!("../../../../docs/benchmarks.md");
    let row = page.lines().find(|line| line.starts_with("| `llm-perf analyze --out DIR`")).unwrap_or_default();
    let cell = row.split(" | ").nth(1).and_then(|cell| cell.split(' ').next()?.parse::<f64>().ok());
    need(cell.is_some_and(|milliseconds| milliseconds < 1000.0), "a benchmark of less than a second")?;
    let manifest = bundles.json("analyze/manifest.json");
    need(manifest["status"] == "complete" && bundles.said("analyze").code == 0, "an analysis without a GPU")
}
