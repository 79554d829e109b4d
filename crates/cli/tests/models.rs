//! Models by name and by `config.json`: `llm-perf models`, and what `analyze` makes of them.

mod support;

use std::path::Path;

use serde_json::Value;
use support::llm_perf;
use tempfile::TempDir;

fn run_in(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = llm_perf().args(arguments).current_dir(folder).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

fn run(arguments: &[&str]) -> (i32, String, String) {
    run_in(Path::new(env!("CARGO_TARGET_TMPDIR")), arguments)
}

fn row(name: &str) -> Value {
    let (code, stdout, stderr) = run(&["models", name, "--json"]);
    assert_eq!(code, 0, "{stderr}");
    serde_json::from_str::<Value>(&stdout).unwrap()[0].clone()
}

#[test]
fn facts_of_a_mixture_with_latent_attention() {
    let v3 = row("deepseek-v3");
    assert_eq!(v3["family"], "deepseek_v3");
    assert_eq!(v3["parameters"], 671_026_404_352_u64);
    // 58 layers leave 248 of 256 experts of three matrices of 7168 by 2048 out.
    assert_eq!(v3["parameters_active"], 671_026_404_352_u64 - 58 * 248 * 3 * 7168 * 2048);
    // 61 layers keep 512 latent values and 64 of a rotated key, two bytes each.
    assert_eq!(v3["kv_bytes_per_token"], 61 * (512 + 64) * 2);
    assert_eq!(v3["windows"].as_array().unwrap().len(), 0);
}

#[test]
fn facts_of_layers_with_windows() {
    let gemma = row("gemma-3-1b");
    assert_eq!(gemma["windows"][0]["positions"], 512);
    assert_eq!(gemma["windows"][0]["layers"], 22);
    let (_, stdout, _) = run(&["models", "gemma-3-1b"]);
    assert!(stdout.contains("cache of 22 layers") && stdout.contains("at most 512 positions"), "{stdout}");
}

#[test]
fn the_list_names_families_and_a_file_is_as_good_as_a_name() {
    let (_, stdout, _) = run(&["models"]);
    for family in ["llama", "qwen3_moe", "deepseek_v2", "gpt_oss", "qwen2_5_vl", "llava"] {
        assert!(stdout.contains(family), "{family}: {stdout}");
    }
    for (name, source) in [("qwen3.5-27b", "Qwen/Qwen3.5-27B, 2026"), ("llama-3.1-8b", "meta-llama/Llama-3.1-8B, 2024")]
    {
        assert!(stdout.lines().any(|line| line.starts_with(name) && line.contains(source)), "{name}: {stdout}");
        assert_eq!(row(name)["source"], source);
    }
    let folder = TempDir::new().unwrap();
    let config = include_str!("../../network/presets/qwen3-8b.json");
    std::fs::write(folder.path().join("config.json"), config).unwrap();
    let (code, stdout, stderr) = run_in(folder.path(), &["models", "config.json"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("Qwen3ForCausalLM") && stdout.contains("8,190,735,360"), "{stdout}");
}

#[test]
fn an_unknown_family_is_wrong_usage_and_names_the_nearest_and_what_is_missing() {
    let folder = TempDir::new().unwrap();
    let config = r#"{"model_type": "samba", "mamba_d_state": 16, "cross_attention_layers": [3], "hidden_size": 2048}"#;
    std::fs::write(folder.path().join("config.json"), config).unwrap();
    for verb in [&["analyze", "--model", "./config.json"][..], &["models", "./config.json"]] {
        let (code, stdout, stderr) = run_in(folder.path(), verb);
        assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
        assert!(stderr.contains("`samba` is not supported; the nearest is `Bamba"), "{stderr}");
        assert!(stderr.contains("cross-attention layers (`cross_attention_layers`)"), "{stderr}");
    }
}

#[test]
fn a_picture_of_any_shape_is_resized_by_the_models_own_rule() {
    let arguments = ["analyze", "--json", "--model", "qwen2.5-vl-7b", "workload.image_pixels=[1280,960]"];
    let (code, stdout, stderr) = run(&arguments);
    assert_eq!(code, 0, "{stderr}");
    let report: Value = serde_json::from_str(&stdout).unwrap();
    // 1280 / 28 = 45.7 and 960 / 28 = 34.3: 46 by 34 tokens, and 32 of text.
    assert_eq!(report["workload"]["seq_len"], 46 * 34 + 32, "{}", report["workload"]);
    let stages = &report["stages"];
    assert!(stages["vision"]["flops_matrix"].as_f64().unwrap() > 1e12, "{stages}");
    let (code, _, stderr) = run(&[&arguments[..4], &["workload.image_pixels=[9000,10]"]].concat());
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("workload.image_pixels is [9000, 10]"), "{stderr}");
}

#[test]
fn a_model_that_the_engine_does_not_run_is_refused_by_name() {
    let folder = TempDir::new().unwrap();
    let (code, _, stderr) = run_in(folder.path(), &["profile", "--model", "llava-1.5-7b"]);
    assert_ne!(code, 0);
    assert!(stderr.contains("does not support LlavaForConditionalGeneration"), "{stderr}");
    assert!(stderr.contains("--engine torch"), "{stderr}");
}

#[test]
fn a_file_that_is_not_there_is_no_misspelt_name() {
    let folder = TempDir::new().unwrap();
    std::fs::create_dir(folder.path().join("here")).unwrap();
    for (file, said) in [
        ("missing.json", "cannot read missing.json"),
        ("gone/config.json", "cannot read gone/config.json"),
        ("here/config", "cannot read here/config"),
        // Nothing here says that it is not the id of a model.
        ("gone/config", "model `gone/config` not found on this machine"),
    ] {
        let (code, _, stderr) = run_in(folder.path(), &["models", file]);
        assert_eq!(code, 2, "{stderr}");
        assert!(stderr.contains(said), "{stderr}");
    }
}

fn gguf(name: &str) -> String {
    format!("{}/../ingest/tests/fixtures/gguf/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn a_gguf_file_is_a_model_and_its_weights_take_the_bytes_of_its_tensors() {
    let file = gguf("tiny-llama-q4_k.gguf");
    let model = row(&file);
    assert_eq!((&model["family"], &model["parameters"]), (&"llama".into(), &1_443_072_u64.into()));
    let (code, stdout, stderr) = run(&["analyze", "--json", "--model", &file, "--hardware", "rtx-4090"]);
    assert_eq!(code, 0, "{stderr}");
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(report["memory"]["weights_bytes"], 934_400, "{}", report["memory"]);
    assert_eq!(report["model"]["dtype"], "fp16");
    let how = report["model"]["quantisation"].as_str().unwrap();
    assert_eq!(how, "gguf: 11 tensors in Q4_K, 5 tensors in Q6_K, 5 tensors in F32");
    // One token reads one row of the table of embeddings: 256 weights in Q6_K, 210 bytes.
    let token = ["analyze", "--json", "--model", &file, "workload.seq_len=1", "workload.decode_steps=0"];
    let (code, stdout, stderr) = run(&token);
    assert_eq!(code, 0, "{stderr}");
    let report: Value = serde_json::from_str(&stdout).unwrap();
    let modules = report["module_metrics"].as_array().unwrap();
    let table = modules.iter().find(|module| module["module_id"] == "model.embed_tokens").unwrap();
    assert_eq!(table["bytes"]["weights"], 210, "{table}");
    // Sixteen bits override the file.
    let plain = ["analyze", "--json", "--model", &file, "workload.quantisation.weights=bf16"];
    let (code, stdout, stderr) = run(&plain);
    assert_eq!(code, 0, "{stderr}");
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(report["memory"]["weights_bytes"], 2 * 1_443_072, "{}", report["memory"]);
}

#[test]
fn a_gguf_file_that_is_damaged_or_unknown_names_file_place_and_fix() {
    let folder = TempDir::new().unwrap();
    let whole = std::fs::read(gguf("tiny-llama-q4_k.gguf")).unwrap();
    std::fs::write(folder.path().join("cut.gguf"), &whole[..whole.len() / 2]).unwrap();
    let (code, stdout, stderr) = run_in(folder.path(), &["analyze", "--model", "cut.gguf"]);
    assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
    assert!(
        stderr.contains("cut.gguf is damaged at byte ") && stderr.contains("hint: check that the file"),
        "{stderr}"
    );

    let at = whole.windows(5).position(|bytes| bytes == b"llama").unwrap();
    let mut other = whole.clone();
    other[at..at + 5].copy_from_slice(b"rwkv7");
    std::fs::write(folder.path().join("other.gguf"), other).unwrap();
    let (code, _, stderr) = run_in(folder.path(), &["models", "other.gguf"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("other.gguf: architecture `rwkv7` is not supported; expected one of llama"), "{stderr}");
    let (code, _, stderr) = run_in(folder.path(), &["models", "absent.gguf"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("cannot read absent.gguf"), "{stderr}");
}
