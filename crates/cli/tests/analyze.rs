//! `llm-perf analyze`, `models` and `workloads` as a user runs them.

mod support;

use std::path::{Path, PathBuf};

use serde_json::Value;
use support::llm_perf;
use tempfile::TempDir;
use testkit::formula;

const DEEPSEEK_OCR: &str = include_str!("../../network/presets/deepseek-ocr.json");

/// Exit code and what was printed.
struct Output {
    code: i32,
    stdout: String,
    stderr: String,
}

fn run_in(folder: &Path, arguments: &[&str]) -> Output {
    let output = llm_perf().args(arguments).current_dir(folder).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Output { code: output.status.code().unwrap(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

fn run(arguments: &[&str]) -> Output {
    run_in(Path::new(env!("CARGO_TARGET_TMPDIR")), arguments)
}

fn json(arguments: &[&str]) -> Value {
    let output = run(&[&["analyze", "--json"], arguments].concat());
    assert_eq!(output.code, 0, "{}", output.stderr);
    serde_json::from_str(&output.stdout).unwrap()
}

/// Runs `analyze` on a changed DeepSeek-OCR configuration; it must be refused as wrong usage.
fn refused(change: impl FnOnce(&str) -> String) -> String {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("config.json"), change(DEEPSEEK_OCR)).unwrap();
    let Output { code, stdout, stderr } = run_in(folder.path(), &["analyze", "--model", "./config.json"]);
    assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "a refused analysis leaves nothing behind");
    stderr
}

fn replaced(from: &'static str, to: &'static str) -> impl FnOnce(&str) -> String {
    move |text| {
        assert!(text.contains(from), "{from} is in the configuration");
        text.replacen(from, to, 1)
    }
}

#[test]
fn the_report_has_the_keys_and_numbers_other_tools_rely_on() {
    let report = json(&[]);
    assert_eq!(report["schema"], "llm-perf/analytic/1");
    assert_eq!(report["model"]["parameters"]["total"], 3_336_106_240u64);
    assert_eq!(report["workload"]["seq_len"], 512);
    assert_eq!(report["memory"]["kv_bytes_per_token"], 61_440);
    for stage in ["vision", "prefill", "prefill_text", "decode"] {
        let stage = &report["stages"][stage];
        for key in ["flops_matrix", "flops_vector"] {
            assert!(stage[key].is_u64(), "{key}");
        }
        for part in ["weights", "activations_in", "activations_out", "kv_read", "kv_write"] {
            assert!(stage["bytes"][part].is_u64(), "{part}");
        }
        assert!(stage["time_ms"].as_f64().unwrap() > 0.0);
        assert!(["compute", "memory"].contains(&stage["bound"].as_str().unwrap()));
    }
}

#[test]
fn two_runs_print_the_same_bytes() {
    let once = || run(&["analyze", "--json", "--hardware", "h200,a100-sxm-80gb"]).stdout;
    assert_eq!(once(), once());
}

#[test]
fn a_run_folder_holds_the_report_and_its_formulas_evaluate_to_their_results() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("run");
    let output = run(&["analyze", "--out", out.to_str().unwrap()]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let model = out.join("static_analysis/analytic_model");
    for name in ["report.json", "report.yaml", "summary.md"] {
        assert!(model.join(name).is_file(), "{name}");
    }
    let report = std::fs::read(model.join("report.json")).unwrap();
    let validated = run(&["validate", model.join("report.json").to_str().unwrap()]);
    assert_eq!(validated.code, 0, "{}{}", validated.stdout, validated.stderr);
    let report: Value = serde_json::from_slice(&report).unwrap();
    let yaml = std::fs::read_to_string(model.join("report.yaml")).unwrap();
    let yaml: Value = serde_saphyr::from_str(&yaml).unwrap();
    assert_eq!(yaml["stages"]["decode"]["flops_matrix"], report["stages"]["decode"]["flops_matrix"]);

    let mut formulas = 0;
    let pages: Vec<PathBuf> =
        std::fs::read_dir(model.join("layers")).unwrap().map(|entry| entry.unwrap().path()).collect();
    for page in &pages {
        let text = std::fs::read_to_string(page).unwrap();
        for line in formula::formula_lines(&text) {
            formula::check_line(line).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
            formulas += 1;
        }
    }
    assert!(formulas > 200, "{formulas} formulas on {} pages", pages.len());
    let classes: std::collections::BTreeSet<_> =
        report["modules"].as_array().unwrap().iter().map(|node| node["qualified_class_name"].to_string()).collect();
    assert_eq!(pages.len(), classes.len(), "one page a class");
}

/// A network, a mixture of experts, latent attention, vision with and without windows, and one without tokens.
const PAGED: [&str; 8] = [
    "deepseek-ocr",
    "llama-3-8b",
    "mixtral-8x7b",
    "deepseek-v2-lite",
    "gpt-oss-20b",
    "llava-1.5-7b",
    "qwen2.5-vl-7b",
    "dummy-shallow-resnet",
];

#[test]
fn every_page_of_every_model_has_constructor_parameters_and_formulas_that_hold() {
    let scratch = tempfile::tempdir().unwrap();
    for model in PAGED {
        let out = scratch.path().join(model);
        let output = run(&["analyze", "--model", model, "--out", out.to_str().unwrap()]);
        assert_eq!(output.code, 0, "{}", output.stderr);
        let layers = out.join("static_analysis/analytic_model/layers");
        let pages: Vec<PathBuf> = std::fs::read_dir(layers).unwrap().map(|entry| entry.unwrap().path()).collect();
        if model == "deepseek-ocr" {
            assert_eq!(pages.len(), 30);
        }
        for page in &pages {
            let (name, text) = (page.display(), std::fs::read_to_string(page).unwrap());
            assert!(text.contains("## Constructor parameters\n\n| parameter"), "{name}");
            let lines: Vec<&str> = formula::formula_lines(&text).collect();
            assert!(!lines.is_empty(), "{name} has no formula");
            for line in lines {
                formula::check_line(line).unwrap_or_else(|error| panic!("{name}: {error}"));
            }
        }
    }
    let page = |class: &str| {
        let file = format!("deepseek-ocr/static_analysis/analytic_model/layers/{class}.md");
        std::fs::read_to_string(scratch.path().join(file)).unwrap()
    };
    for class in ["MLPBlock", "MlpProjector", "PatchEmbed", "Sequential", "VitModel", "NoTPTransformer"] {
        assert!(page(class).contains("### Sum over the parts"), "{class}");
    }
    let root = page("DeepseekOCRForCausalLM");
    assert!(root.contains("flops_matrix = model + lm_head = "), "{root}");
    assert!(
        root.contains("`lm_head`, of class [Linear](Linear.md): `linear`: `flops_matrix = 2 * R * I * O`"),
        "{root}"
    );
}

#[test]
fn the_root_is_the_workload_as_a_whole_and_counts_once() {
    let report = json(&["--model", "decoder-tiny"]);
    assert_eq!(report["module_metrics"][0]["module_id"], "(root)");
    assert_eq!(report["module_metrics"][0]["calls"], 1);
}

#[test]
fn every_class_of_the_torchinfo_snapshot_is_covered() {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ingest/tests/fixtures/torchinfo-unique-layers.json");
    let report = json(&["--torchinfo", ours.to_str().unwrap()]);
    assert_eq!(report["coverage"]["covered"], 30);
    assert_eq!(report["coverage"]["uncovered"], serde_json::json!([]));
}

#[test]
fn a_class_that_is_not_modelled_is_named() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("layers.json");
    let text = r#"{"generated_at": "now", "num_unique_layers": 1, "layers": [{"class_name": "Mamba",
        "class_name_qualified": "mamba.Mamba", "is_torch_builtin": false, "children": []}]}"#;
    std::fs::write(&file, text).unwrap();
    let report = json(&["--torchinfo", file.to_str().unwrap()]);
    assert_eq!(report["coverage"]["uncovered"], serde_json::json!(["mamba.Mamba"]));
}

#[test]
fn overrides_keep_what_goes_together() {
    let workload = |arguments: &[&str]| json(arguments)["workload"].clone();
    let whole = workload(&["workload.seq_len=600"]);
    assert_eq!((&whole["text_tokens"], &whole["seq_len"]), (&107.into(), &600.into()));
    let grid = workload(&["workload.crop_grid=[2,3]"]);
    assert_eq!((&grid["text_tokens"], &grid["seq_len"]), (&19.into(), &922.into()));
    let steps = workload(&["workload.decode_steps=3"]);
    assert_eq!(steps["max_new_tokens"], 4);
    let both = run(&["analyze", "workload.seq_len=600", "workload.text_tokens=3"]);
    assert_eq!(both.code, 2);
    assert!(both.stderr.contains("contradict each other"), "{}", both.stderr);
}

#[test]
fn a_model_gets_the_workload_that_suits_it() {
    assert_eq!(json(&["--model", "llama-3-8b"])["workload"]["profile_id"], "llm-standard-v1");
    let resnet = json(&["--model", "dummy-shallow-resnet"]);
    assert_eq!(resnet["workload"]["profile_id"], "image-standard-v1");
    assert_eq!(resnet["stages"]["decode"]["passes"], 0);
    let group = json(&["model/dummy_shallow_resnet/arch@model=dummy_shallow_resnet.default"]);
    assert_eq!(group["model"]["model_id"], "dummy-shallow-resnet");
}

#[test]
fn several_devices_stand_side_by_side() {
    let report = json(&["--hardware", "h200,rtx-4090"]);
    let ids: Vec<_> = report["devices"].as_array().unwrap().iter().map(|one| one["device"]["id"].clone()).collect();
    assert_eq!(ids, ["h200", "rtx-4090"]);
    assert_eq!(report["device"]["id"], "h200");
    let time = |index: usize| report["devices"][index]["predicted_total_time_ms"].as_f64().unwrap();
    assert!(time(1) > time(0));
}

#[test]
fn bad_configurations_name_the_file_and_the_field() {
    let stderr = refused(|text| text[..text.len() / 2].to_owned());
    assert!(stderr.contains("config.json:") && stderr.contains("not valid JSON"), "{stderr}");
    let stderr = refused(replaced("DeepseekOCRForCausalLM", "MysteryForCausalLM"));
    assert!(stderr.contains("architecture `MysteryForCausalLM` is not supported"), "{stderr}");
    let stderr = refused(replaced("\"moe_intermediate_size\": 896,", ""));
    assert!(stderr.contains("field `language_config.moe_intermediate_size` is missing"), "{stderr}");
    let stderr = refused(replaced("\"hidden_size\": 1280", "\"hidden_size\": -1280"));
    assert!(stderr.contains("field `language_config.hidden_size` is -1280"), "{stderr}");
    let stderr = refused(replaced("\"num_attention_heads\": 10", "\"num_attention_heads\": 0"));
    assert!(stderr.contains("field `language_config.num_attention_heads` is 0"), "{stderr}");
    let stderr = refused(replaced("\"num_experts_per_tok\": 6", "\"num_experts_per_tok\": 65"));
    assert!(stderr.contains("at most `n_routed_experts` (64)"), "{stderr}");
    let stderr = refused(|_| String::new());
    assert!(stderr.contains("config.json: the file is empty"), "{stderr}");
}

#[test]
fn bad_requests_say_what_to_do() {
    let cases: &[(&[&str], &str)] = &[
        (&["--model", "deepseek-orc"], "did you mean `deepseek-ocr`?"),
        (&["--model", "t5"], "did you mean `flan-t5-xxl`?"),
        (&["--model", "no/such/config.json"], "cannot read no/such/config.json"),
        (&["--hardware", "h300"], "h300"),
        (&["--hardware", "t4"], "workload.dtype=fp16"),
        (&["workload.crop_grid=[9,9]"], "more than 64 tiles"),
        (&["workload.dtype=fp12"], "workload.dtype is `fp12`"),
        (&["workload.base_size=1000"], "multiple of the patch size 16"),
        (&["workload=nothing"], "nothing"),
        (&["--launch-us=-1"], "launch cost"),
        (&["--torchinfo", "no-such-file.json"], "cannot read no-such-file.json"),
    ];
    for (arguments, wanted) in cases {
        let output = run(&[&["analyze"], *arguments].concat());
        assert_eq!(output.code, 2, "{arguments:?}: {}", output.stderr);
        assert_eq!(output.stdout, "", "{arguments:?}");
        assert!(output.stderr.contains(wanted), "{arguments:?}: {}", output.stderr);
    }
}

#[test]
fn an_existing_folder_is_never_written_into() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("precious"), "data").unwrap();
    let output = run(&["analyze", "--out", folder.path().to_str().unwrap()]);
    assert_eq!(output.code, 2, "{}", output.stderr);
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1);
}

#[test]
fn models_and_workloads_are_listed() {
    let models = run(&["models"]);
    assert!(models.stdout.contains("deepseek-ocr") && models.stdout.contains("3,336,106,240"), "{}", models.stdout);
    let one = run(&["models", "deepseek-ocr"]);
    assert!(one.stdout.contains("model.vision_model") && one.stdout.contains("303,177,728"), "{}", one.stdout);
    assert_eq!(run(&["models", "nothing"]).code, 2);
    let workloads = run(&["workloads"]);
    for name in ["dsocr-standard-v1", "llm-standard-v1", "image-standard-v1"] {
        assert!(workloads.stdout.contains(name), "{}", workloads.stdout);
    }
    assert!(run(&["workloads", "dsocr-standard-v1"]).stdout.contains("text_tokens: 19"));
    assert_eq!(run(&["workloads", "nothing"]).code, 2);
}
