//! The analytic model.

use serde_json::Value;

use crate::Row;
use crate::bundles::{Bundles, equal, has, keys, list, need};

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
        requirement: "without a GPU, weights or a framework: it starts no process, opens no socket and loads no weights",
        check: alone,
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
    for (class, count) in [("Block", 12), ("NoTPTransformerBlock", 24), ("DeepseekV2DecoderLayer", 12), ("MoEGate", 11)]
    {
        let is = |module: &&Value| {
            module["qualified_class_name"].as_str().and_then(|name| name.rsplit('.').next()) == Some(class)
        };
        need(modules.iter().filter(is).count() == count, &format!("{count} modules of the class {class}"))?;
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
        let number = |value: &Value| value.as_f64().unwrap_or_default();
        let bytes: f64 = one["bytes"].as_object().into_iter().flatten().map(|(_, bytes)| number(bytes)).sum();
        equal(&one["total_io_tb"], bytes / 1e12, "the bytes of a module")?;
        let flops = number(&one["flops_matrix"]) + number(&one["flops_vector"]);
        equal(&one["total_flops_tflops"], flops / 1e12, "the FLOPs of a module")?;
        let share = number(&one["total_time_ms"]) / number(&report["predicted_total_time_ms"]);
        equal(&one["share_of_model_time"], share, "the share of a module")?;
        let breakdown: f64 = list(&one["operator_breakdown"]).iter().map(|row| number(&row["flops_tflops"])).sum();
        equal(&one["total_flops_tflops"], breakdown, "the FLOPs of a module by category")?;
    }
    let count = list(&report["modules"]).len();
    need(count > 600 && list(&report["module_metrics"]).len() == count, "numbers of every module")?;
    bundles.valid(&[REPORT, "analyze/static_analysis/analytic_model/report.yaml"])?;
    for run in ["native", "torch", "import", "deep"] {
        let measured = bundles.json(&format!("{run}/static_analysis/analytic_model/report.json"));
        let filled = measured["profile_run_id"].is_string() && measured["measured_total_time_ms"].as_f64() > Some(0.0);
        need(filled, &format!("predicted beside measured in `{run}`"))?;
        let time = |key: &str| measured[key].as_f64().unwrap_or_default();
        let ratio = time("predicted_total_time_ms") / time("measured_total_time_ms");
        equal(&measured["predicted_vs_measured_ratio"], ratio, &format!("the ratio of `{run}`"))?;
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
        let name = page.file_name();
        let parts = ["Definition:", "## Constructor parameters", "roofline time of the pass"];
        need(has(&text, &parts), &format!("a part of {}", name.display()))?;
        let lines: Vec<&str> = testkit::formula::formula_lines(&text).collect();
        need(!lines.is_empty(), &format!("a formula in {}", name.display()))?;
        for line in lines {
            testkit::formula::check_line(line).map_err(|error| format!("{}: {error}", name.display()))?;
        }
    }
    need(pages.len() == 30, "30 pages")
}

fn categories(bundles: &Bundles) -> Result<(), String> {
    let report = bundles.json(REPORT);
    for key in ["flops_in_named_categories", "time_in_named_categories"] {
        let share = report[key].as_f64();
        need(share.is_some_and(|share| (0.9..=1.0).contains(&share)), &format!("`{key}` of at least 90%"))?;
    }
    let whole = list(&report["module_metrics"]).iter().find(|one| one["module_id"] == "(root)");
    let whole = whole.ok_or("the numbers of the whole model")?;
    for (key, of) in [("flops_in_named_categories", "flops_tflops"), ("time_in_named_categories", "time_ms")] {
        let rows = list(&whole["operator_breakdown"]).iter();
        let (other, named): (Vec<&Value>, Vec<&Value>) = rows.partition(|row| row["category_id"] == "other");
        let sum = |rows: &[&Value]| rows.iter().filter_map(|row| row[of].as_f64()).sum::<f64>();
        equal(&report[key], sum(&named) / (sum(&named) + sum(&other)), key)?;
    }
    let named =
        |row: &Value| list(&report["operator_categories"]).iter().any(|one| one["category_id"] == row["category_id"]);
    let rows = list(&report["module_metrics"]).iter().flat_map(|one| list(&one["operator_breakdown"]));
    need(rows.clone().count() > 0 && rows.into_iter().all(named), "a category of every operation")
}

fn coverage(bundles: &Bundles) -> Result<(), String> {
    let report = bundles.json(REPORT);
    let operators = list(&report["coverage"]["target"]["operators"]);
    let classes: std::collections::BTreeSet<_> =
        operators.iter().filter_map(|one| one["class_name"].as_str()).collect();
    equal(&report["coverage"]["covered"], classes.len() as f64, "the classes that are covered")?;
    need(classes.len() == 30 && list(&report["coverage"]["uncovered"]).is_empty(), "all classes covered")?;
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
    need(table.lines().count() == 1 + 2 * 2 * 2 * 2 * 2, "every combination")?;
    let columns: Vec<&str> = head.split(',').collect();
    for line in table.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let number = |name: &str| {
            let at = columns.iter().position(|column| *column == name);
            at.and_then(|at| cells.get(at)?.parse::<f64>().ok()).ok_or_else(|| format!("`{name}` of a point"))
        };
        // Keys and values of 12 layers, 1280 numbers of two bytes each, at the end of 511 more tokens.
        let kv = 12.0 * 2.0 * 1280.0 * 2.0 * number("workload.batch")? * (number("workload.seq_len")? + 511.0);
        need(number("kv_bytes")? == kv, &format!("{kv} bytes of cache in `{line}`"))?;
        let rate = 1e3 * number("workload.batch")? / number("time_per_output_token_ms")?;
        need((number("decode_tokens_per_second")? / rate - 1.0).abs() < 1e-6, &format!("the rate of `{line}`"))?;
    }
    Ok(())
}

fn families(bundles: &Bundles) -> Result<(), String> {
    // As transformers counts them.
    const PUBLISHED: [(&str, u64); 10] = [
        ("llama-3-8b", 8_030_261_248),
        ("qwen2-7b", 7_615_616_512),
        ("qwen3-8b", 8_190_735_360),
        ("qwen3-30b-a3b", 30_532_122_624),
        ("mistral-7b", 7_241_732_096),
        ("mixtral-8x7b", 46_702_792_704),
        ("deepseek-v2-lite", 15_706_484_224),
        ("deepseek-v3", 671_026_404_352),
        ("llava-1.5-7b", 7_063_427_072),
        ("qwen2.5-vl-7b", 8_292_166_656),
    ];
    let models = bundles.printed("models");
    for (name, parameters) in PUBLISHED {
        let model = list(&models).iter().find(|model| model["name"] == name).ok_or_else(|| format!("`{name}`"))?;
        equal(&model["parameters"], parameters as f64, &format!("the parameters of `{name}`"))?;
    }
    for (run, class) in [("torch", "LlamaForCausalLM"), ("moe", "Qwen2MoeForCausalLM")] {
        let report = bundles.json(&format!("{run}/static_analysis/analytic_model/report.json"));
        need(report["model"]["model_variant"] == class, &format!("a `config.json` of {class}"))?;
    }
    Ok(())
}

/// Runs where starting a process or opening a socket ends the program, and where the weights, 6.7 GB, have no room.
fn alone(bundles: &Bundles) -> Result<(), String> {
    bundles.ended("alone", 0)?;
    let (mut alone, mut beside) =
        (bundles.json("alone/static_analysis/analytic_model/report.json"), bundles.json(REPORT));
    for report in [&mut alone, &mut beside] {
        // Only one of the two was given a snapshot to cover.
        report["coverage"] = Value::Null;
    }
    need(alone["model"].is_object() && alone == beside, "the same report as elsewhere")?;
    // What starts processes cannot run there.
    need(bundles.said("not-alone").code != 0, "a place in which processes can be started")
}
