//! `deep` with a fake nsys and a fake ncu that replay captures of a real device: order, failures, permissions.

#[path = "support/gpu_machine.rs"]
mod gpu_machine;
mod support;

use std::path::PathBuf;

use serde_json::Value;

use gpu_machine::{Machine, Output, tests};
use support::llm_perf;

#[test]
fn every_pass_runs_in_order_and_leaves_the_whole_bundle() {
    let machine = Machine::new();
    let output = machine.deep(&[]);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    machine.assert_valid();
    for doing in ["running the program without a profiler", "counting 1 kernel of prefill"] {
        assert!(output.stderr.contains(doing), "{}", output.stderr);
    }
    let steps = machine.json("manifest.json")["steps"].clone();
    let steps: Vec<&str> = steps.as_array().unwrap().iter().map(|step| step["name"].as_str().unwrap()).collect();
    let expected =
        ["prepare", "baseline", "timeline", "baseline-again", "kernels", "counters-prefill", "counters-decode"];
    assert_eq!(steps, [&expected[..], &["report"]].concat());
    for file in ["kernels.md", "report.md", "operators.md", "stakeholder_summary.md", "assumptions.md", "config.yaml"] {
        assert!(!machine.text(file).is_empty(), "{file}");
    }
    for file in ["nsys/timeline.sqlite", "ncu/prefill.csv", "ncu/decode.csv", "logs/timeline-nsys.argv", "inputs.yaml"]
    {
        assert!(machine.path("run").join(file).is_file(), "{file}");
    }
    let inputs: Value = serde_saphyr::from_str(&machine.text("inputs.yaml")).unwrap();
    assert_eq!((&inputs["command"]["program"], &inputs["files"][0]["role"]), (&"sh".into(), &"program".into()));
    assert_eq!(inputs["files"][0]["blake3"].as_str().unwrap().len(), 64);
    let typed = machine.log();
    let profile = typed.iter().position(|line| line.starts_with("nsys profile")).unwrap();
    let counters: Vec<usize> =
        (0..typed.len()).filter(|place| typed[*place].contains("--replay-mode kernel")).collect();
    assert_eq!(counters.len(), 2, "{typed:#?}");
    assert!(counters.iter().all(|place| *place > profile));
    assert!(typed[counters[0]].contains("--nvtx-include prefill/"), "{}", typed[counters[0]]);
    assert!(typed[counters[1]].contains("--nvtx-include decode/"), "{}", typed[counters[1]]);
    assert!(typed[counters[1]].contains("--kernel-name-base mangled"), "{}", typed[counters[1]]);
    assert!(typed[counters[1]].contains("--launch-count 3 --filter-mode per-launch-config"));
    assert!(typed[counters[1]].contains("sm__ops_path_tensor_src_fp16.sum"));
    assert!(!typed[counters[1]].contains("sm__ops_path_tensor_src_fp16_dst_fp32.sum"), "the chip does not have it");
}

#[test]
fn counters_are_joined_to_the_kernels_of_the_timeline() {
    let machine = Machine::new();
    assert_eq!(machine.deep(&[]).code, 0);
    let kernels = machine.json("kernels.json");
    assert_eq!(kernels["counters"]["origin"], "counted");
    let sampled = kernels["sampled"].as_array().unwrap();
    let rows: Vec<(&str, u64, u64)> = sampled
        .iter()
        .map(|row| {
            let counted = &row["counted"];
            (row["stage"].as_str().unwrap(), row["calls"].as_u64().unwrap(), counted["launches"].as_u64().unwrap())
        })
        .collect();
    assert_eq!(rows, [("prefill", 4, 3), ("decode", 4, 3)]);
    // Negating 2^30 elements of two bytes reads and writes 2^31 bytes each; what is left in the cache is not written.
    let copied = sampled[0]["counted"]["dram_bytes"]["mean"].as_f64().unwrap() / (1u64 << 32) as f64;
    assert!((0.95..=1.05).contains(&copied), "{copied}");
    // The product covers 8192 by 26 tiles of 320, and 2 * 8192 * 8192 * 8320 operations are what the tensor pipes did.
    assert_eq!(sampled[1]["counted"]["flops_tensor"].as_u64(), Some(2 * 8192 * 8192 * 8320));
    let moved = sampled[1]["counted"]["dram_bytes"]["mean"].as_f64().unwrap() / (3 * 2 * 8192 * 8192) as f64;
    assert!(moved > 1.0, "a product moves at least its operands: {moved}");
    assert_eq!(sampled[0]["counted"]["bound"], "memory");
    // Its tensor pipes are near their peak and device memory is not, however busy shared memory is.
    assert_eq!(sampled[1]["counted"]["bound"], "compute");
    assert!(sampled[1]["counted"]["roofline_share"].as_f64().unwrap() > 0.7, "{}", sampled[1]["counted"]);
    // Rows of kernels.json are those of metrics.json, and the sum is the total.
    let metrics = machine.json("metrics.json");
    assert_eq!(kernels["kernels"], metrics["kernels"]);
    let sum: i64 = metrics["kernels"].as_array().unwrap().iter().map(|row| row["total_ns"].as_i64().unwrap()).sum();
    assert_eq!(metrics["totals"]["kernel_ns"], sum);
    assert!(metrics["overhead"]["baseline_ns"].as_i64().unwrap() > 0);
    let passes: Vec<&str> =
        kernels["passes"].as_array().unwrap().iter().map(|pass| pass["name"].as_str().unwrap()).collect();
    assert_eq!(passes, ["baseline", "timeline", "baseline-again", "counters-prefill", "counters-decode"]);
    let summary = machine.text("stakeholder_summary.md");
    let tables = ["Environment", "Aggregates", "Per-Stage Timings", "MFU", "Top Operators", "Top Kernels"];
    for heading in tables.into_iter().chain(["Top bottlenecks", "Profiling overhead"]) {
        assert!(summary.contains(&format!("## {heading}\n")), "{heading}\n{summary}");
    }
}

#[test]
fn without_a_gpu_it_says_what_is_missing_and_leaves_no_folder() {
    let machine = Machine { has_gpu: false, ..Machine::new() };
    let output = machine.deep(&[]);
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert!(output.stderr.contains("error: no NVIDIA GPU to profile"), "{}", output.stderr);
    assert!(output.stderr.contains("llm-perf doctor"), "{}", output.stderr);
    assert!(!machine.path("run").exists() && !machine.path("tmp").exists());
    assert_eq!(machine.deep(&["--dry-run"]).code, 1);
}

#[test]
fn without_nsys_or_with_an_old_one_nothing_begins() {
    let machine = Machine::new();
    let mut command = machine.command(&["--out", "run", "--", "true"]);
    command.env("FAKE_NSYS_VERSION", "2023.4.4.54-234433681190v0");
    let output = Output::of(command);
    assert_eq!(output.code, 1);
    assert!(output.stderr.contains("loses kernels silently"), "{}", output.stderr);
    assert!(output.stderr.contains("hint: install Nsight Systems 2025.3 or newer"), "{}", output.stderr);
    assert!(!machine.path("run").exists());
}

#[test]
fn a_plan_is_shown_and_nothing_is_started() {
    let machine = Machine::new();
    let output = machine.deep(&["--dry-run"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(output.stdout.starts_with("6 passes in deep mode, timeline by nsys"), "{}", output.stdout);
    assert!(output.stdout.contains("nsys profile --trace=cuda,nvtx,osrt"), "{}", output.stdout);
    assert!(!machine.path("run").exists());
    assert!(machine.log().iter().all(|line| line.ends_with("--version")), "{:?}", machine.log());
}

#[test]
fn without_permission_the_report_is_there_and_marked_modelled() {
    let machine = Machine::new();
    let mut command = machine.command(&["--out", "run", "--", "true"]);
    command.env("FAKE_NCU", "forbidden");
    let output = Output::of(command);
    assert_eq!(output.code, 3, "{}", output.stderr);
    assert!(output.stderr.contains("NVreg_RestrictProfilingToAdminUsers=0"), "{}", output.stderr);
    machine.assert_valid();
    let manifest = machine.json("manifest.json");
    assert_eq!(manifest["status"], "partial");
    assert!(manifest["reasons"][0].as_str().unwrap().contains("ERR_NVGPUCTRPERM"), "{manifest}");
    assert_eq!(machine.json("kernels.json")["counters"]["origin"], "modelled");
    assert!(machine.text("kernels.md").contains("No hardware counters were read."));
    assert!(machine.text("logs/counters-prefill.stdout").contains("ERR_NVGPUCTRPERM"));
    let asked = machine.log().iter().filter(|line| line.contains("--replay-mode")).count();
    assert_eq!(asked, 1, "what is forbidden in one stage is forbidden in all");
}

#[test]
fn without_ncu_the_report_is_there_too() {
    let machine = Machine::new();
    machine.remove("ncu");
    let output = machine.deep(&[]);
    assert_eq!(output.code, 3, "{}", output.stderr);
    assert!(output.stderr.contains("install Nsight Compute"), "{}", output.stderr);
    assert_eq!(machine.json("kernels.json")["counters"]["origin"], "modelled");
}

#[test]
fn an_importer_without_its_library_is_named_and_the_run_goes_on_when_it_is_there() {
    let machine = Machine::new();
    let mut command = machine.command(&["--out", "run", "--", "true"]);
    command.env("FAKE_NSYS", "importer");
    let output = Output::of(command);
    assert_eq!(output.code, 1);
    assert!(output.stderr.contains("libdw.so.1 is missing"), "{}", output.stderr);
    assert!(output.stderr.contains("| Importer error status"), "the tool's own words: {}", output.stderr);
    assert!(output.stderr.contains("apt-get install libdw1"), "{}", output.stderr);
    assert_eq!(machine.json("manifest.json")["status"], "failed");

    let resumed = Output::of(machine.command(&["--resume", "./run"]));
    assert_eq!(resumed.code, 0, "{}{}", resumed.stdout, resumed.stderr);
    assert_eq!(machine.json("manifest.json")["status"], "complete");
    let passes = machine.json("kernels.json")["passes"].as_array().unwrap().len();
    assert_eq!(passes, 5, "the baseline of the first try is kept");
    let again = Output::of(machine.command(&["--resume", "nowhere"]));
    assert_eq!(again.code, 2, "{}", again.stderr);
}

#[test]
fn a_trace_that_grows_without_end_is_stopped() {
    let machine = Machine::new();
    let mut command = machine.command(&["--out", "run", "--largest-trace", "5", "--", "true"]);
    command.env("FAKE_NSYS", "endless");
    let output = Output::of(command);
    assert_eq!(output.code, 1);
    assert!(output.stderr.contains("and was stopped; the limit is 5.00 MB"), "{}", output.stderr);
    assert!(output.stderr.contains("--mode light"), "{}", output.stderr);
}

#[test]
fn a_program_that_fails_by_itself_is_not_profiled() {
    let machine = Machine::new();
    let output = Output::of(machine.command(&["--out", "run", "--", "sh", "-c", "echo no such model >&2; exit 7"]));
    assert_eq!(output.code, 1);
    assert!(output.stderr.contains("it exited with code 7"), "{}", output.stderr);
    assert!(output.stderr.contains("| no such model"), "{}", output.stderr);
    assert!(!machine.log().iter().any(|line| line.starts_with("nsys profile")));
    let output = Output::of(machine.command(&["--out", "other", "--", "no-such-program"]));
    assert_eq!((output.code, machine.path("other").exists()), (2, false), "{}", output.stderr);
}

#[test]
fn light_mode_asks_for_less_and_says_so() {
    let machine = Machine::new();
    let output = machine.deep(&["--mode", "light", "--stage", "decode", "--top-kernels", "2"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let typed = machine.log();
    assert!(typed.iter().any(|line| line.starts_with("nsys profile --trace=cuda,nvtx --sample")), "{typed:#?}");
    let counters: Vec<&String> = typed.iter().filter(|line| line.contains("--replay-mode")).collect();
    assert!(counters.len() == 1 && counters[0].contains("--launch-count 1"), "{counters:?}");
    assert!(machine.text("kernels.md").contains("light: one launch of each kernel is profiled"));
}

#[test]
fn the_configuration_says_how_much_is_collected_and_flags_win() {
    let machine = Machine::new();
    let output = machine.deep(&["run.mode=light", "run.top_n_kernels=3", "--top-kernels", "2"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let counters: Vec<String> = machine.log().into_iter().filter(|line| line.contains("--replay-mode")).collect();
    assert!(counters.iter().all(|line| line.contains("--launch-count 1")), "{counters:?}");
    let config = machine.text("config.yaml");
    for line in ["\nrun:\n  mode: light\n", "\n  top_n_kernels: 2\n"] {
        assert!(config.contains(line), "{config}");
    }
    let output = machine.deep(&["run.top_n_kernels=65"]);
    assert_eq!(output.code, 2, "{}", output.stderr);
    assert!(output.stderr.contains("run.top_n_kernels is 65; expected 1 to 64"), "{}", output.stderr);
}

#[test]
fn an_unknown_option_of_a_tool_is_refused_before_anything_runs() {
    let machine = Machine::new();
    let output = machine.deep(&["pipeline.ncu.ncu_cli.clock_control=boost"]);
    assert_eq!(output.code, 2, "{}", output.stderr);
    assert!(output.stderr.contains("boost"), "{}", output.stderr);
    let output = machine.deep(&["pipeline.ncu.ncu_cli.kernel_exclude=['regex:(']"]);
    assert_eq!(output.code, 2, "{}", output.stderr);
}

#[test]
fn a_program_in_which_our_own_collector_sees_nothing_is_traced_by_nsys() {
    let machine = Machine::new();
    let output = Output::of(machine.command(&["--collector", "auto", "--out", "run", "--", "true"]));
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    assert!(machine.path("run/logs/timeline.argv").is_file() && machine.path("run/nsys/timeline.sqlite").is_file());
    let output = Output::of(machine.command(&["--collector", "inject", "--out", "other", "--", "true"]));
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert!(output.stderr.contains("the program did not use the GPU"), "{}", output.stderr);
}

#[test]
fn an_interpreter_is_started_by_the_tool_that_counts_without_us_in_between() {
    let machine = Machine::new();
    let model = ["--engine", "torch", "--model", "decoder-tiny", "--weights", "synthetic", "infer.seq_len=32"];
    let run = |first: &[&str]| {
        let mut command = machine.command(&[first, &model[..]].concat());
        command.env("LLM_PERF_PYTHON", tests().join("fake/python3")).env("FAKE_TORCH", "2.11.0");
        command.env("FAKE_SESSION", tests().join("fixtures/torch/session.jsonl"));
        command.env("FAKE_TRACE", tests().join("fixtures/torch/trace.json.gz"));
        Output::of(command)
    };
    let plan = run(&["--dry-run"]);
    assert!(plan.stdout.contains("python3 driver.py request.json"), "{}{}", plan.stdout, plan.stderr);
    let output = run(&["--out", "run"]);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    let inputs: Value = serde_saphyr::from_str(&machine.text("inputs.yaml")).unwrap();
    let prompt = (&inputs["count"], &inputs["prompts"][0]["name"], &inputs["prompts"][0]["used"]);
    assert_eq!(prompt, (&1.into(), &"32 random tokens".into(), &true.into()), "{inputs}");
    let typed = machine.log();
    let traced = typed.iter().find(|line| line.starts_with("nsys profile")).unwrap();
    assert!(traced.contains("llm-perf workload --engine torch --model decoder-tiny"), "{traced}");
    assert!(traced.contains("dataset.sampling.samples_per_epoch=1"), "a timeline is of one input: {traced}");
    assert!(machine.text("assumptions.md").contains("as the program ran it"));
    let asked = machine.text("logs/operators.argv");
    assert!(asked.contains("dataset.sampling.repeats=1") && asked.contains("--operators"), "{asked}");
    assert!(machine.path("run/trace/operators.json.gz").is_file());
    let operators = machine.json("metrics.json")["operators"].as_array().unwrap().clone();
    assert!(operators.iter().any(|row| row["name"].as_str().is_some_and(|name| name.starts_with("aten::"))));
    let counted: Vec<&String> = typed.iter().filter(|line| line.contains("--replay-mode kernel")).collect();
    assert_eq!(counted.len(), 2, "{typed:#?}");
    for line in counted {
        assert!(!line.contains("workload") && line.contains("/fake/python3 /"), "{line}");
        assert!(line.ends_with("/request.json") && line.contains("/driver.py "), "{line}");
    }
    let prepared = machine.text("logs/counters-target.argv");
    assert!(prepared.contains("dataset.sampling.repeats=1 dataset.sampling.warmup_rounds=0"), "{prepared}");
}

#[test]
fn an_interpreter_that_cannot_be_made_ready_costs_the_counters_alone() {
    let machine = Machine::new();
    // It has torch until there is a timeline.
    let python = machine.path("tools/python-for-a-while");
    let script = format!(
        "#!/bin/sh\n[ ! -e run/nsys/timeline.sqlite ] || exit 1\nexec {}/fake/python3 \"$@\"\n",
        tests().display()
    );
    std::fs::write(&python, script).unwrap();
    std::fs::set_permissions(&python, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let model = ["--engine", "torch", "--model", "decoder-tiny", "--weights", "synthetic", "infer.seq_len=16"];
    let mut command = machine.command(&[&["--out", "run"], &model[..]].concat());
    command.env("LLM_PERF_PYTHON", &python).env("FAKE_TORCH", "2.11.0");
    command.env("FAKE_SESSION", tests().join("fixtures/torch/session.jsonl"));
    let output = Output::of(command);
    assert_eq!(output.code, 3, "{}{}", output.stdout, output.stderr);
    assert!(output.stderr.contains("cannot prepare the interpreter for reading counters"), "{}", output.stderr);
    assert!(output.stderr.contains("baseline-again: the program fails without a profiler"), "{}", output.stderr);
    assert!(!machine.text("kernels.md").is_empty() && machine.json("manifest.json")["status"] == "partial");
}

/// What the published DeepSeek-OCR printed on the device, and the collector's file where one is asked for.
const DEEPSEEK_OCR: &str = r#"
echo '{"prefill_ms": 88.74052299999846, "decode_ms": 157.31555000000697, "per_token_ms": 21.429937000007726}'
[ -z "$LLM_PERF_INJECT_FOLDER" ] || gzip -dc "$FAKE_CAPTURES/process.wire.gz" >"$LLM_PERF_INJECT_FOLDER/process-1370.wire"
"#;

#[test]
fn what_a_tool_costs_is_told_from_the_fastest_rounds() {
    let machine = Machine::new();
    let program = r#"
round() { echo "{\"prefill_ms\": $1, \"decode_ms\": $2}"; }
if [ -z "$LLM_PERF_INJECT_FOLDER" ]; then round 90 40; round 50 70; round 60 50; exit; fi
round 60 80; round 70 60; round 200 300
gzip -dc "$FAKE_CAPTURES/process.wire.gz" >"$LLM_PERF_INJECT_FOLDER/process-1370.wire"
"#;
    let mut command = machine.command(&["--out", "run", "--collector", "inject", "--", "sh", "-c", program]);
    command.env("FAKE_CAPTURES", tests().join("fixtures/deep/dsocr"));
    let output = Output::of(command);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    let overhead = machine.json("metrics.json")["overhead"].clone();
    assert_eq!(
        (overhead["baseline_ns"].as_i64(), overhead["profiled_ns"].as_i64()),
        (Some(90_000_000), Some(120_000_000))
    );
    assert!((overhead["share"].as_f64().unwrap() - 1.0 / 3.0).abs() < 1e-9, "{overhead}");
    assert_eq!(overhead["baseline_spread"], 0.0, "both plain runs say the same");
    assert!(output.stdout.contains("Two plain runs differ by 0%"), "{}", output.stdout);
}

#[test]
fn deepseek_ocr_on_an_h200_is_told_from_the_timeline_to_the_bottlenecks() {
    let machine = Machine::new();
    let settings =
        ["--model", "deepseek-ocr", "workload.seq_len=283", "workload.base_size=1024", "workload.decode_steps=7"];
    let arguments =
        [&["--out", "run", "--collector", "inject"], &settings[..], &["--", "sh", "-c", DEEPSEEK_OCR]].concat();
    let mut command = machine.command(&arguments);
    command.env("FAKE_CAPTURES", tests().join("fixtures/deep/dsocr"));
    let output = Output::of(command);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    machine.assert_valid();
    // Most of the device's time made the weights; what is shown is what a user waits for.
    assert!(
        output.stdout.contains("top kernels in stages") && !output.stdout.contains("random: "),
        "{}",
        output.stdout
    );
    // Counters are asked for by the names in the object files, so that no kernel of the same template comes along.
    let asked: Vec<String> = machine.log().into_iter().filter(|line| line.contains("--replay-mode kernel")).collect();
    assert_eq!(asked.len(), 2);
    assert!(asked.iter().all(|line| line.contains("--kernel-name-base mangled")), "{asked:#?}");
    let metrics = machine.json("metrics.json");
    assert_eq!(metrics["totals"]["kernel_count"], 38_220);
    let stage = |name: &str| {
        let stages = metrics["stages"].as_array().unwrap();
        stages.iter().find(|stage| stage["name"] == name).unwrap_or_else(|| panic!("{name}")).clone()
    };
    assert_eq!((&stage("prefill")["kernel_count"], &stage("decode")["kernel_count"]), (&4_187.into(), &8_561.into()));
    // The parts of vision ran in a warm-up too, which nothing marks; they count where they are parts of a prefill.
    let wall = |name: &str| stage(name)["wall_ns"].as_i64().unwrap();
    assert_eq!(stage("sam")["instances"], 1);
    assert!(wall("sam") + wall("clip") + wall("projector") < wall("prefill"));
    for name in ["prefill", "decode"] {
        let used = stage(name)["mfu"].as_f64().unwrap();
        assert!(used > 0.0 && used < 0.1, "{name}: {used}");
    }
    let kernels = machine.json("kernels.json");
    assert_eq!(kernels["counters"]["origin"], "counted");
    let sampled = kernels["sampled"].as_array().unwrap();
    assert_eq!(sampled.len(), 16);
    // The device was asked by the names of functions, so that other kernels of a template took some of its replays.
    let launches: Vec<u64> = sampled.iter().filter_map(|row| row["counted"]["launches"].as_u64()).collect();
    assert!(launches.len() >= 13 && launches.iter().filter(|count| **count == 3).count() >= 10, "{launches:?}");
    // Every product of a decode step has its operation but those that every layer has and the model has one fewer of: which of
    // them makes the table of positions, nothing tells. Experts are read once, to the byte or nearly.
    let paired: Vec<&Value> = sampled.iter().filter(|row| row["modelled"].is_object()).collect();
    assert_eq!(paired.iter().filter(|row| row["stage"] == "decode").count(), 4, "{paired:#?}");
    assert_eq!(
        paired[0]["modelled"]["operators"],
        serde_json::json!(["model.layers.*.mlp.experts.*.gate_proj", "model.layers.*.mlp.experts.*.up_proj"])
    );
    for row in paired {
        let ratio = row["modelled"]["bytes_ratio"].as_f64().unwrap();
        assert!((0.99..1.02).contains(&ratio), "{row:#}");
    }
    assert!(machine.text("kernels.md").contains("6 experts one after the other, without 36 of 330"));
    // The process that recorded is none that was started here, as where a script starts the program.
    let quality = metrics["quality"].as_array().unwrap();
    assert!(quality.iter().any(|row| row["counter"] == "launches_of_child_processes" && row["share"] == 1.0));
    assert!(output.stderr.contains("kernels are launched by a child process"), "{}", output.stderr);
    let summary = machine.text("stakeholder_summary.md");
    let (_, bottlenecks) = summary.split_once("## Top bottlenecks\n").unwrap();
    let named = bottlenecks.split("\n## ").next().unwrap().lines().filter(|line| line.contains("counted, 3 launches"));
    assert_eq!(named.count(), 3, "{summary}");
}

/// A model of the catalogue on PyTorch, as `llm-perf workload` ran it on the device: what it answered, and the collector's file.
const WORKLOAD: &str = r#"
cat "$FAKE_CAPTURES/times.json" >"$LLM_PERF_ANSWER"
[ -z "$LLM_PERF_INJECT_FOLDER" ] || gzip -dc "$FAKE_CAPTURES/process.wire.gz" >"$LLM_PERF_INJECT_FOLDER/process-1.wire"
"#;

/// What is known of one family's run, and the kernels that counters were read for.
struct Family {
    kernels: u64,
    set_aside: u64,
    launches_per_token: f64,
    /// Matrix kernels among the sampled whose operations the model names.
    paired: usize,
}

/// Replays a family's run and checks it against what is known of it.
fn told_of_a_family(model: &str, known: &Family) {
    let machine = Machine::new();
    let arguments = ["--out", "run", "--collector", "inject", "--model", model, "--", "sh", "-c", WORKLOAD];
    let mut command = machine.command(&arguments);
    command.env("FAKE_CAPTURES", tests().join("fixtures/deep").join(model));
    let output = Output::of(command);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    machine.assert_valid();
    let metrics = machine.json("metrics.json");
    assert_eq!(metrics["totals"]["kernel_count"], known.kernels);
    let per_token = metrics["totals"]["launches_per_token"].as_f64().unwrap();
    assert!((per_token - known.launches_per_token).abs() < 0.1, "{per_token}");
    // Loading and the warm-up are marked by the driver: three rounds are left, and nothing else.
    assert_eq!(metrics["trace"]["set_aside"]["launches"], known.set_aside);
    assert!(metrics["trace"]["coverage"]["stage_share"].as_f64().unwrap() > 0.999, "{}", output.stdout);
    for stage in metrics["stages"].as_array().unwrap() {
        assert_eq!(stage["instances"], 3, "{stage}");
        let used = stage["mbu"].as_f64().unwrap();
        assert!(used > 0.001 && used < 0.5, "{stage}");
    }
    // The program says what it ran; nobody has to.
    let workload = &metrics["trace"]["workload"]["workload"];
    assert_eq!((&workload["seq_len"], &workload["decode_steps"]), (&512.into(), &7.into()));
    let kernels = machine.json("kernels.json");
    let paired: Vec<&Value> =
        kernels["sampled"].as_array().unwrap().iter().filter(|row| row["modelled"].is_object()).collect();
    assert_eq!(paired.len(), known.paired, "{paired:#?}");
    for row in paired {
        let ratio = |name: &str| row["modelled"][name].as_f64().unwrap();
        let (flops, bytes) = (ratio("flops_ratio"), ratio("bytes_ratio"));
        match row["stage"].as_str().unwrap() {
            // 512 tokens fill the tiles; results that stay in L2 are not written.
            "prefill" => assert!((0.99..1.01).contains(&flops) && (0.7..1.25).contains(&bytes), "{row:#}"),
            // One token in a tile of eight or sixty-four rows; all weights are read once.
            _ => assert!(flops > 7.9 && (0.99..1.05).contains(&bytes), "{row:#}"),
        }
    }
    // Nothing around modules was marked, and yet each has its time beside the least it needs.
    let kinds = metrics["module_kinds"].as_array().unwrap();
    for path in ["model.layers.*.self_attn", "model.layers.*.mlp.down_proj"] {
        let decode = kinds.iter().find(|row| row["path"] == path && row["stage"] == "decode");
        let row = decode.unwrap_or_else(|| panic!("{path}: {kinds:#?}"));
        assert_eq!(row["placed_by"], serde_json::json!(["gemms"]));
        assert!(row["speed_of_light_ns"].as_i64().unwrap() < row["measured_ns"].as_i64().unwrap(), "{row:#}");
    }
    let summary = machine.text("stakeholder_summary.md");
    let (_, bottlenecks) = summary.split_once("## Top bottlenecks\n").unwrap();
    let named = bottlenecks.split("\n## ").next().unwrap().lines().filter(|line| line.contains("counted, 3 launches"));
    assert_eq!(named.count(), 3, "{summary}");
    let (_, operators) = summary.split_once("## Top Operators\n").unwrap();
    assert!(operators.trim_start().starts_with("No operators were recorded."), "never kernels: {summary}");
    assert!(summary.contains("| baseline-again | decode  |"), "stages of every pass: {summary}");
    let least = metrics["stages"][1]["speed_of_light_ns"].as_i64().unwrap();
    assert!(least > 0 && least < metrics["stages"][1]["wall_ns"].as_i64().unwrap());
}

#[test]
fn llama_on_an_h200_moves_the_bytes_and_does_the_operations_that_the_model_says() {
    let known = Family { kernels: 35_280, set_aside: 14_381, launches_per_token: 1_496.3, paired: 9 };
    told_of_a_family("llama-3-8b", &known);
}

#[test]
fn gemma_on_an_h200_moves_the_bytes_and_does_the_operations_that_the_model_says() {
    let known = Family { kernels: 55_734, set_aside: 21_750, launches_per_token: 2_329.4, paired: 7 };
    told_of_a_family("gemma-3-1b", &known);
}

#[test]
fn a_redacted_deep_run_keeps_its_figures_and_no_raw_file() {
    let machine = Machine::new();
    let output = machine.deep(&[]);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    let call = |arguments: &[&str]| {
        let mut command = llm_perf();
        command.args(arguments).current_dir(machine.home.path()).env("LLM_PERF_DATA_DIR", machine.path("data"));
        let output = Output::of(command);
        assert_eq!(output.code, 0, "{arguments:?}: {}{}", output.stdout, output.stderr);
        output
    };
    let index: Value = serde_json::from_str(&call(&["pack", "./run", "--redact", "--json"]).stdout).unwrap();
    let left_out: Vec<&str> =
        index["left_out"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
    for file in ["nsys/timeline.sqlite", "nsys/timeline.nsys-rep", "ncu/decode.ncu-rep", "logs/timeline-nsys.argv"] {
        assert!(left_out.contains(&file), "{file}: {left_out:?}");
    }
    call(&["unpack", "run.llmperf", "--out", "back"]);
    let back = |name: &str| std::fs::read_to_string(machine.path("back").join(name)).unwrap();
    for name in ["metrics.json", "kernels.json", "plan.json", "env.json", "kernels.md", "stakeholder_summary.md"] {
        let text = back(name);
        assert!(
            !text.contains(machine.home.path().to_str().unwrap()) && !text.contains("echo hello"),
            "{name}: {text}"
        );
    }
    let kernels: Value = serde_json::from_str(&back("kernels.json")).unwrap();
    assert_eq!(kernels["kernels"], machine.json("kernels.json")["kernels"]);
    let paths: Vec<PathBuf> = ["manifest.json", "metrics.json", "kernels.json", "env.json", "plan.json", "inputs.yaml"]
        .map(|file| machine.path("back").join(file))
        .to_vec();
    call(&[&["validate"][..], &paths.iter().map(|path| path.to_str().unwrap()).collect::<Vec<_>>()].concat());
}

#[test]
fn one_signal_ends_a_command_that_ignores_it() {
    let machine = Machine::new();
    let script = "trap '' TERM INT HUP; setsid sleep 622 & echo $! >pids; echo $$ >>pids; echo >ready; while :; do sleep 0.2; done";
    let mut command = machine.command(&["--out", "run", "--", "sh", "-c", script]);
    let mut child = command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
    let wait = |what: &str, is_there: &dyn Fn() -> bool| {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(120);
        while !is_there() {
            assert!(std::time::Instant::now() < deadline, "waited for {what} in vain");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    };
    wait("the command", &|| machine.path("ready").exists());
    assert!(std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    let stat = |pid: &str| std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let pids = std::fs::read_to_string(machine.path("pids")).unwrap();
    wait("the end of what it started", &|| pids.lines().all(|pid| stat(pid).is_empty() || stat(pid).contains(") Z ")));
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert_eq!(machine.json("manifest.json")["status"], "failed");
}
