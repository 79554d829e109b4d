//! `llm-perf profile` on models that read no pages: decoders that are given prompts, and a network fed with pictures.

#[path = "support/scratch.rs"]
mod scratch;
mod support;

use scratch::{Output, Scratch};
use serde_json::Value;

/// Small enough that one inference takes milliseconds.
const QUICK: [&str; 2] = ["dataset/sampling@dataset.sampling=sampling.smoke", "infer.max_new_tokens=4"];

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect()
}

#[test]
fn a_decoder_leaves_the_whole_bundle_without_a_trace_of_vision() {
    let scratch = Scratch::new();
    let output = scratch.profile(&QUICK, &["--model", "decoder-tiny", "--out", "run", "--predictions"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(output.stdout.contains("first token"), "{}", output.stdout);
    scratch.assert_whole_bundle("run");

    let metrics = scratch.json("run", "metrics.json");
    assert_eq!(names(&metrics["stages"]), ["prefill", "decode"]);
    // Rates measured on a busy machine may be too low for utilisation to be true; the work is exact.
    assert!(metrics["peak"].is_object());
    for stage in ["prefill", "decode"] {
        let work = &metrics["work_per_stage"][stage];
        assert!(work["flops_matrix"].as_u64() > Some(0) && work["bytes"].as_u64() > Some(0), "{stage}: {work}");
    }
    let input = &metrics["inputs"][0];
    assert_eq!((input["name"].as_str(), &input["crop_grid"]), (Some("question.txt"), &Value::Null));
    // The start token, and one token for each of the 73 bytes of the question.
    assert_eq!((input["prompt_tokens"].as_u64(), input["image_tokens"].as_u64()), (Some(74), Some(0)));
    assert_eq!(input["generated_tokens"], 4);
    assert!(!metrics["findings"].as_array().unwrap().is_empty());
    assert_eq!(metrics["routing"], Value::Array(Vec::new()));

    let inputs = scratch.text("run", "inputs.yaml");
    assert!(inputs.contains("images: []") && inputs.contains("builtin:prompts/question.txt"), "{inputs}");
    for name in ["report.md", "stakeholder_summary.md", "assumptions.md"] {
        let text = scratch.text("run", name);
        assert!(!text.contains("vision") && !text.contains("tile |"), "{name}: {text}");
    }
    assert_eq!(scratch.text("run", "predictions.jsonl").lines().count(), 1);
}

#[test]
fn prompts_come_from_files_from_the_configuration_or_from_a_seed() {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.path("texts")).unwrap();
    std::fs::write(scratch.path("texts/short.txt"), "0123456789").unwrap();
    std::fs::write(scratch.path("texts/latin.txt"), b"caf\xe9").unwrap();
    std::fs::write(scratch.path("texts/blank.txt"), "\n").unwrap();
    let tokens = |run: &str| scratch.json(run, "metrics.json")["inputs"][0]["prompt_tokens"].as_u64().unwrap();
    let decoder = ["--model", "decoder-tiny"];

    let files = [&decoder[..], &["--inputs", "texts", "--out", "files", "infer.prompt='Say: <text>!'"]].concat();
    let output = scratch.profile(&QUICK, &files);
    assert_eq!(output.code, 3, "{}", output.stderr);
    assert!(output.stderr.contains("latin.txt is not UTF-8 text: invalid byte at 3"), "{}", output.stderr);
    assert!(output.stderr.contains("blank.txt is empty"), "{}", output.stderr);
    assert_eq!(tokens("files"), 1 + 5 + 10 + 1);
    assert_eq!(scratch.manifest("files")["status"], "partial");

    let output = scratch.profile(&QUICK, &[&decoder[..], &["--out", "config", "infer.prompt=Hello"]].concat());
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(tokens("config"), 6);
    assert!(scratch.text("config", "inputs.yaml").contains("config:infer.prompt"));

    let output = scratch.profile(&QUICK, &[&decoder[..], &["--out", "seed", "infer.seq_len=100"]].concat());
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(tokens("seed"), 100);
    let repeated = Output::of(scratch.command(&["profile", "--from", "./seed", "--out", "again"]));
    assert_eq!(repeated.code, 0, "{}", repeated.stderr);
    assert_eq!(tokens("again"), 100);
}

#[test]
fn a_picture_network_is_chosen_by_overrides_and_has_one_stage() {
    let scratch = Scratch::new();
    let output = scratch.profile(
        &["dataset/sampling@dataset.sampling=sampling.smoke", "infer.batch=2", "infer.image_size=16"],
        &[
            "model/dummy_shallow_resnet/arch@model=dummy_shallow_resnet.default",
            "model/dummy_shallow_resnet/infer@infer=dummy_shallow_resnet.default",
            "infer.iterations=3",
            "--out",
            "run",
        ],
    );
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(output.stdout.contains("forward pass") && !output.stdout.contains("first token"), "{}", output.stdout);
    scratch.assert_whole_bundle("run");
    let metrics = scratch.json("run", "metrics.json");
    assert_eq!(names(&metrics["stages"]), ["prefill"]);
    assert_eq!(metrics["stages"][0]["instances"], 3);
    assert_eq!(metrics["stages"][0]["tokens"], Value::Null);
    assert_eq!(metrics["throughput"]["ttft_ns"], Value::Null);
    assert_eq!((&metrics["settings"]["batch"], &metrics["settings"]["repeats"]), (&2.into(), &3.into()));
    // The stem: 3 x 3 taps of 3 channels into 32, at every pixel of two pictures, one multiply-add being two.
    let stem = 2u64 * 2 * 16 * 16 * 32 * 3 * 9;
    let centres = metrics["cost_centres"].as_array().unwrap();
    let found = centres.iter().find(|centre| centre["module"].as_str().unwrap() == "stem.conv").unwrap();
    assert_eq!(found["flops_matrix"].as_u64().unwrap(), stem, "{found}");
}

#[test]
fn weights_kept_in_bfloat16_move_fewer_bytes_against_the_same_peak() {
    let scratch = Scratch::new();
    let run = |name: &str, dtype: &str| {
        let output =
            scratch.profile(&QUICK, &["--model", "decoder-tiny", "--out", name, &format!("model.dtype={dtype}")]);
        assert_eq!(output.code, 0, "{}", output.stderr);
        scratch.json(name, "metrics.json")
    };
    let (single, half) = (run("single", "float32"), run("half", "bfloat16"));
    assert_eq!(half["settings"]["weights_dtype"], "bf16");
    assert_eq!(half["peak"]["dtype"], "fp32");
    let decode = |metrics: &Value, key: &str| metrics["work_per_stage"]["decode"][key].as_u64().unwrap();
    assert_eq!(decode(&single, "flops_matrix"), decode(&half, "flops_matrix"));
    assert!(decode(&half, "bytes") * 10 < decode(&single, "bytes") * 6, "{}", decode(&half, "bytes"));
    assert!(scratch.text("half", "assumptions.md").contains("bf16"));
}

#[test]
fn a_model_larger_than_the_memory_is_refused_before_anything_is_written() {
    let scratch = Scratch::new();
    // As wide as no machine is: 2^40 bytes of weights and more.
    let config = include_str!("../../network/presets/llama-3-8b.json")
        .replace("\"num_hidden_layers\": 32", "\"num_hidden_layers\": 1000")
        .replace("\"intermediate_size\": 14336", "\"intermediate_size\": 143360");
    std::fs::write(scratch.path("config.json"), config).unwrap();
    let output = scratch.profile(&QUICK, &["--model", "config.json", "--out", "run"]);
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert!(output.stderr.contains("of memory is free") && output.stderr.contains("hint:"), "{}", output.stderr);
    assert!(!scratch.path("run").exists());
}

#[test]
fn experts_of_a_mixture_get_every_token_as_often_as_the_gate_says() {
    let scratch = Scratch::new();
    let small = ["infer.base_size=64", "infer.image_size=64", "infer.max_tiles=2"];
    let output = scratch.profile(&[&QUICK[..], &small].concat(), &["--out", "run"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let metrics = scratch.json("run", "metrics.json");
    let prompt = metrics["inputs"][0]["prompt_tokens"].as_u64().unwrap();
    let routing = metrics["routing"].as_array().unwrap();
    // Three of the four layers mix sixteen experts, each token goes to four of them; three decode steps follow.
    assert_eq!(routing.len(), 3 * 2);
    assert_eq!(routing[0]["path"], "model.layers.1.mlp.experts");
    for one in routing {
        let counts: Vec<u64> =
            one["tokens_per_expert"].as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).collect();
        let tokens = if one["stage"] == "prefill" { prompt } else { 3 };
        assert_eq!((counts.len(), counts.iter().sum::<u64>()), (16, tokens * 4), "{one}");
    }
}

#[cfg(unix)]
#[test]
fn a_disk_that_takes_no_more_fails_the_run_and_names_the_file() {
    let scratch = Scratch::new();
    // Files over 16 blocks of 512 or 1024 bytes cannot be written, and the signal that would end the program is ignored,
    // as if the disk were full: the small files of a run fit, its metrics do not.
    let program = assert_cmd::cargo::cargo_bin!("llm-perf").display().to_string();
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; ulimit -f 16; exec \"$@\"", "sh", &program, "profile"]);
    shell.args(["--model", "decoder-tiny", "--out", "run"]).args(QUICK);
    let output = Output::of(scratch.at_home(shell));
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert!(output.stderr.contains("metrics.json"), "{}", output.stderr);
    let manifest = scratch.manifest("run");
    assert_eq!(manifest["status"], "failed");
    assert!(manifest["reasons"][0].as_str().unwrap().contains("metrics.json"), "{manifest}");
    assert!(!scratch.path("run/metrics.json").exists());
    assert!(scratch.path("run/config.yaml").exists());
}
