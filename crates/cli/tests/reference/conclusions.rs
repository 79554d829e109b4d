//! What is concluded from traces of other people's runs, read in place: every figure of `facts.json`, which an independent program
//! has summed up, and what is true and false of each.

use std::path::{Path, PathBuf};

use serde_json::Value;
use testkit::need::reference;

use crate::imported::{Imported, assert_facts, assert_invariants, assert_near, import, list, number};
use crate::scratch::{Output, Scratch};
use crate::truth::Truth;

/// The folder of the traces.
fn traces() -> PathBuf {
    reference("third-party/traces")
}

pub(crate) fn every_figure_of_other_programs_is_found_again() {
    let folder = traces();
    let facts: Value = serde_json::from_slice(&std::fs::read(folder.join("facts.json")).unwrap()).unwrap();
    for (file, fact) in facts.as_object().unwrap() {
        let Imported { metrics, .. } = import(&[folder.join(file)], &[]);
        assert_invariants(&metrics, file);
        assert_facts(&metrics, fact, file);
        if !fact["idle_in_data_loader_ns"].is_null() {
            let mut idle = list(&metrics["device_time"][0], "idle").iter();
            let idle = idle.find(|idle| idle["cause"] == "data_loading").unwrap();
            assert_near(number(&idle["ns"]), &fact["idle_in_data_loader_ns"], 100, file);
        }
    }
}

const NO_STAGES: &[&str] = &[
    "prefill",
    "decode",
    "first token",
    "tokens/s",
    "confidence",
    "another process",
    "its clock moves",
    "nothing ran on a device",
];

const TRUTHS: &[Truth] = &[
    Truth {
        file: "h100-owlv2.json.gz",
        kind: "encoder",
        first: &["data-loading", "attention-not-flash"],
        silent: &["launch-bound", "run-to-run-variation", "host-work", "compilation"],
        says: &["idle for 512 ms; 491 ms of that is data loading", "Load the next batches in the background"],
        never: &["cuda graph", "torch.cuda.graph"],
    },
    Truth {
        file: "h100-timesformer.json.gz",
        kind: "encoder",
        first: &["attention-not-flash"],
        silent: &["launch-bound", "data-loading", "host-work"],
        says: &["busy for 158 ms of 160 ms (99.0%)", "The softmax kernels run for 68.8 ms"],
        never: &["cuda graph", "torch.cuda.graph"],
    },
    Truth {
        file: "h100-bert-small.json.gz",
        kind: "encoder",
        first: &["launch-bound"],
        silent: &["data-loading"],
        says: &[
            "busy for 309 us of 3.91 ms (7.9%)",
            "a larger batch",
            "Capture what runs again with the same shapes in a CUDA graph",
        ],
        never: &[],
    },
    Truth {
        file: "h100-vit.json.gz",
        kind: "encoder",
        first: &["launch-bound"],
        silent: &["data-loading"],
        says: &["busy for 1.23 ms of 7.56 ms (16.2%)", "a larger batch"],
        never: &[],
    },
    Truth {
        file: "mi300-qwen1.5-0.5b.json.gz",
        kind: "forward",
        first: &[],
        silent: &["launch-bound", "logits-of-all-positions", "attention-not-flash"],
        says: &["busy for 43.1 ms of 47.1 ms (91.5%)", "on AMD Instinct MI300X VF"],
        never: &["logits", "device not named in the trace"],
    },
    Truth {
        file: "mi300-resnet-training.json.gz",
        kind: "training",
        first: &["exposed-communication"],
        silent: &["launch-bound", "straggling-rank", "device-to-device-copies"],
        says: &[
            "exposed communication 55.6 ms",
            "3 steps (source: the profiler's step markers)",
            "`allreduce` of 17.6 MB among 8 ranks: 3 calls",
            "of the 448 GB/s that a GPU's links carry one way",
            "Traces of 1 of 8 ranks are available",
        ],
        never: &["mark stages", "mark prefill"],
    },
    Truth {
        file: "a100-training-before.json.gz",
        kind: "training",
        first: &["exposed-communication"],
        silent: &["launch-bound"],
        says: &[
            "Communication takes 164 ms in total",
            "exposed for 87.9 ms of 465 ms",
            "`all_to_all` of 289 MB among an unknown number of ranks",
            "Traces of 1 of 8 ranks are available",
        ],
        never: &[],
    },
    Truth {
        file: "v100-training-other-job.json.gz",
        kind: "training",
        first: &[],
        silent: &["launch-bound", "data-loading", "host-to-device-copies"],
        says: &[
            "Communication takes 251 ms in total",
            "exposed for 73.3 ms",
            "Copies within GPU memory run for 92.9 ms",
            "27.9 GB in 92.9 ms",
            "Traces of 1 of 2 ranks are available",
        ],
        never: &[],
    },
    Truth {
        file: "dlrm-rank0.json.gz",
        kind: "training",
        first: &["exposed-communication"],
        silent: &["launch-bound"],
        says: &[
            "Communication takes 396 ms in total",
            "exposed for 337 ms",
            "idle for 675 ms",
            "Traces of 1 of 128 ranks are available",
        ],
        never: &["2 ranks"],
    },
    Truth {
        file: "dlrm-rank1.json.gz",
        kind: "training",
        first: &["exposed-communication"],
        silent: &["launch-bound"],
        says: &[
            "Communication takes 379 ms in total",
            "exposed for 304 ms",
            "idle for 651 ms",
            "Traces of 1 of 128 ranks are available",
        ],
        never: &["2 ranks"],
    },
    Truth {
        file: "nccl.json.gz",
        kind: "training",
        first: &["launch-bound", "host-work", "exposed-communication"],
        silent: &["data-loading"],
        says: &["idle for 503 ms", "Communication is exposed for 39.6 ms"],
        never: &[],
    },
    Truth {
        file: "mi300-sglang-qwen3-8b-decode-capture.json.gz",
        kind: "graph_capture",
        first: &[],
        silent: &["launch-bound"],
        says: &["a graph capture"],
        never: &["32.6 ms"],
    },
    Truth {
        file: "h100-2gpu-copies.sqlite",
        kind: "forward",
        first: &["host-to-device-copies"],
        silent: &["launch-bound"],
        says: &["Exposed copies took 94", "25.5 GB in 921 ms (27.7 GB/s); kernels run for 22.4 ms", "Keep weights"],
        // What the kernels' own time divides into is not the time.
        never: &["healthy", "gemm 86", "86% of the time"],
    },
];

pub(crate) fn what_an_expert_says_first_is_said_first_and_what_is_false_is_not_said() {
    let folder = traces();
    let mut wrong = Vec::new();
    for truth in TRUTHS {
        let imported = import(&[folder.join(truth.file)], &[]);
        wrong.extend(truth.broken(&imported, NO_STAGES));
        assert!(list(&imported.metrics, "stages").is_empty(), "{}: {}", truth.file, imported.metrics["stages"]);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The findings of a trace, by the rule's name and with the saving as a share of the run.
fn savings(metrics: &Value) -> Vec<(&str, f64)> {
    let row = |finding: &'_ Value| finding["saves_share"].as_f64().unwrap_or(0.0);
    list(metrics, "findings").iter().map(|finding| (finding["rule"].as_str().unwrap(), row(finding))).collect()
}

pub(crate) fn communication_in_stages_is_the_first_finding_and_saves_what_a_replay_does() {
    let folder = reference("third-party/traces-2");
    // The host blocks in launches into a full queue, and is not the limit.
    let file = folder.join("sgl-plain-bs16-extend.json.gz");
    let Imported { metrics, pages, terminal } = import(std::slice::from_ref(&file), &[]);
    assert_invariants(&metrics, "sgl-plain");
    let (rule, saves) = savings(&metrics)[0];
    assert_eq!(rule, "exposed-communication");
    assert!((0.42..0.44).contains(&saves), "{saves}");
    for line in ["Communication is exposed for 110 ms of 249 ms", "launched by graphs"] {
        assert!(pages.contains(line), "{line}: {pages}");
    }
    assert!(terminal.contains("longest   ncclDevKernel_AllReduce_Sum_bf16_RING_LL: 292 calls in 111 ms"), "{terminal}");
    for never in ["89.6 us", "Launch-bound", "Capture the step", "no single stage"] {
        assert!(!pages.contains(never) && !terminal.contains(never), "{never}: {pages}");
    }
    let scratch = Scratch::new();
    let file = file.display().to_string();
    let output = Output::of(scratch.command(&["whatif", &file, "--communication", "hidden"]));
    assert!(output.stdout.contains("249 ms would become 140 ms"), "{}", output.stdout);
    let output = Output::of(scratch.command(&["whatif", &file, "--cuda-graphs"]));
    assert!(output.stdout.contains("CUDA graphs already hold 93.8% of the device work"), "{}", output.stdout);
    assert!(output.stdout.contains("249 ms would become 24"), "{}", output.stdout);

    // Here the host takes as long as the recording: a replay saves nothing, and what is at stake is said.
    let Imported { metrics, pages, .. } = import(&[folder.join("sgl-eagle3-bs16-extend.json.gz")], &[]);
    assert_invariants(&metrics, "sgl-eagle3");
    assert_eq!(savings(&metrics)[0].0, "exposed-communication");
    for line in [
        "at most 95.4 ms where nothing else takes its place",
        "The GPU is idle 40.8 ms (14.8% of prefill) between kernel launches",
    ] {
        assert!(pages.contains(line), "{line}: {pages}");
    }
}

pub(crate) fn work_of_before_the_recording_is_said_and_no_synchronisation_is_blamed_for_it() {
    let Imported { metrics, pages, .. } = import(&[reference("third-party/traces-2/tl-qwen1.5-h100.json.gz")], &[]);
    assert!(
        pages.contains("ran in the first 14.5 ms, each before any kernel of its stream that has one: they were most likely launched before the recording"),
        "{pages}"
    );
    let path = list(&metrics, "critical_path");
    let waits = path.iter().filter(|part| part["cause"] == "host synchronisation");
    assert!(waits.map(|part| part["share"].as_f64().unwrap()).all(|share| share < 0.01), "{path:?}");
}

pub(crate) fn what_runs_in_graphs_is_not_advised_to() {
    let traces =
        ["third-party/traces-2/lightllm-static.json.gz", "third-party/traces-2/sgl-eagle3-bs16-decode.json.gz"];
    // Gaps inside a graph whose launch has not returned are no launching: 62 us of the second.
    for (file, idle) in traces.into_iter().zip(["4.13 ms (13.6% of the run)", "3.77 ms (13.6% of decode)"]) {
        let Imported { metrics, pages, .. } = import(&[reference(file)], &[]);
        assert_invariants(&metrics, file);
        let rules: Vec<_> = savings(&metrics).into_iter().map(|(rule, _)| rule).collect();
        assert!(rules.contains(&"launch-gaps"), "{file}: {rules:?}");
        let line = format!("The GPU is idle {idle} while the host prepares and launches CUDA graphs");
        assert!(pages.contains(&line), "{line}: {pages}");
        assert!(!pages.contains("Capture the step") && !pages.contains("torch.cuda.graph"), "{pages}");
    }
    let Imported { metrics, pages, terminal } = import(&[reference("serving/llama-1b/trace.json.gz")], &[]);
    assert_invariants(&metrics, "llama-1b");
    let (first, saves) = savings(&metrics)[0];
    assert!(first == "launch-gaps" && (0.2..0.3).contains(&saves), "{first} {saves}");
    assert!(pages.contains("95.8% of kernels, copies and memsets already run in CUDA graphs"), "{pages}");
    assert!(terminal.contains("9.4 launches per decode step"), "{terminal}");
}

pub(crate) fn steps_that_an_engine_annotates_are_what_it_says() {
    let folder = traces();
    let Imported { metrics, pages, .. } = import(&[folder.join("mi300-sglang-qwen3-8b-extend.json.gz")], &[]);
    let step = &metrics["steps"]["list"][0];
    assert_eq!((&step["label"], &step["batch"]["tokens"]), (&"prefill".into(), &15_360.into()));
    assert!((480e6..500e6).contains(&step["wall_ns"].as_f64().unwrap()), "{step}");
    assert!(pages.contains("1 prefill step with 15 prompts, 15,360 tokens: 493 ms of device time (31,"), "{pages}");
    for never in ["28.3 ms", "1744%", "time to first token", "above 100%"] {
        assert!(!pages.contains(never), "{never}: {pages}");
    }
    let rate = metrics["throughput"]["prefill_tokens_per_second"].as_f64().unwrap();
    assert!((30_000.0..32_000.0).contains(&rate), "{rate}");

    let Imported { metrics, pages, .. } = import(&[folder.join("mi300-sglang-qwen3-8b-decode.json.gz")], &[]);
    let step = &metrics["steps"]["list"][0];
    assert_eq!((&step["label"], &step["batch"]["generation"]["sequences"]), (&"decode".into(), &32.into()));
    assert!((9.7e6..9.8e6).contains(&step["device_ns"].as_f64().unwrap()), "{step}");
    assert!(step["wall_ns"].as_f64().unwrap() < 12e6, "the gap before it is no part of it: {step}");
    assert!(pages.contains("1 decode step with 32 decoding sequences, 32 tokens: 9.77 ms of device time"), "{pages}");
    assert!(!pages.contains("no repetition"), "{pages}");

    let Imported { metrics, pages, .. } = import(&[folder.join("vllm-piecewise.json.gz")], &[]);
    assert_eq!((&metrics["stages"], &metrics["steps"]["list"][0]["label"]), (&serde_json::json!([]), &"mixed".into()));
    assert!(pages.contains("1 mixed step with 9 prompts and 37 decoding sequences, 8,192 tokens: 156 ms"), "{pages}");
    assert!(pages.contains("(99.8%)") && !pages.contains("prefill"), "{pages}");
}

/// What share of a trace's kernel time its families take.
fn families(metrics: &Value) -> std::collections::BTreeMap<String, f64> {
    let mut shares = std::collections::BTreeMap::new();
    for kernel in list(metrics, "kernels") {
        let family = kernel["family"].as_str().unwrap().to_owned();
        *shares.entry(family).or_insert(0.0) += kernel["total_ns"].as_f64().unwrap();
    }
    let all: f64 = shares.values().sum();
    shares.values_mut().for_each(|time| *time /= all);
    shares
}

/// Families that a trace's kernels are of: the family, its least and its most share of kernel time.
const FAMILIES: &[(&str, &str, f64, f64)] = &[
    // 262 of 551 ms, and 68.7 of 154.9 ms.
    ("h100-owlv2.json.gz", "softmax", 0.47, 0.48),
    ("h100-timesformer.json.gz", "softmax", 0.44, 0.45),
    ("mi300-sglang-qwen3-8b-extend.json.gz", "gemm", 0.84, 0.87),
    // GEMMs of experts alone are 78.5%; routing is of the family too.
    ("vllm-piecewise.json.gz", "moe", 0.785, 0.81),
];

pub(crate) fn kernels_are_of_the_families_an_expert_names_and_hardly_any_of_none() {
    let folder = traces();
    let facts: Value = serde_json::from_slice(&std::fs::read(folder.join("facts.json")).unwrap()).unwrap();
    for file in facts.as_object().unwrap().keys() {
        let Imported { metrics, .. } = import(&[folder.join(file)], &[]);
        let shares = families(&metrics);
        assert!(shares.get("other").is_none_or(|share| *share < 0.03), "{file}: {shares:?}");
        for (_, family, least, most) in FAMILIES.iter().filter(|(name, ..)| name == file) {
            let share = shares.get(*family).copied().unwrap_or(0.0);
            assert!((*least..=*most).contains(&share), "{file}: {family} {share}");
        }
        for kernel in list(&metrics, "kernels") {
            let (name, family) = (kernel["name"].as_str().unwrap(), kernel["family"].as_str().unwrap());
            let expected = match name {
                _ if name.starts_with("Cijk_") => "gemm",
                _ if name.starts_with("attn_fwd") => "attention",
                _ if name.contains("split_embedding") => "embedding",
                _ if name.starts_with("_matmul_ogs") => "moe",
                _ => continue,
            };
            assert_eq!(family, expected, "{file}: {name}");
        }
    }
}

pub(crate) fn ranks_of_one_job_are_compared_at_the_collectives_they_share() {
    let folder = traces();
    let files = ["dlrm-rank0.json.gz", "dlrm-rank1.json.gz"].map(|file| folder.join(file));
    let Imported { metrics, pages, terminal } = import(&files, &[]);
    assert_invariants(&metrics, "dlrm");
    assert!(pages.contains("Traces of 2 of 128 ranks are available"), "{pages}");
    assert!(pages.contains("2 ranks were recorded. 126 ranks of the job are missing."), "{pages}");
    assert!(!pages.contains("2 ranks ran side by side"), "{pages}");
    let times: Vec<_> = list(&metrics, "device_time")
        .iter()
        .map(|time| {
            ["communication_ns", "communication_exposed_ns", "idle_ns"].map(|key| number(&time[key]) / 1_000_000)
        })
        .collect();
    assert_eq!(times, [[396, 336, 675], [379, 303, 651]]);
    // The files leave out collectives, each others; five are in both, and end on both within a third of a millisecond.
    let arrivals = &metrics["rank_arrivals"];
    assert_eq!(arrivals["collectives"], 5);
    assert!(number(&arrivals["ends_within_ns"]) < 400_000, "{arrivals}");
    let [first, second] = [0, 1].map(|rank| &arrivals["ranks"][rank]);
    assert_eq!((&first["last"], &second["last"]), (&0.into(), &4.into()));
    // The expert says that ranks differ little: 32 of 1,223 ms.
    assert!((25e6..35e6).contains(&first["waited_ns"].as_f64().unwrap()), "{first}");
    let rules: Vec<_> = list(&metrics, "findings").iter().map(|finding| finding["rule"].as_str().unwrap()).collect();
    assert!(rules.starts_with(&["exposed-communication"]) && !rules.contains(&"straggling-rank"), "{rules:?}");
    assert!(terminal.contains("longest   _all_gather_base of 16.8 MB: 4 calls in 211 ms"), "{terminal}");
}

/// Steps of a trace from which the profiler's own are taken out.
fn steps_without_marks(folder: &Path, file: &str) -> Value {
    let packed = std::fs::File::open(folder.join(file)).unwrap();
    let unpacked = std::process::Command::new("gzip").arg("-dc").stdin(packed).output().unwrap();
    let text = String::from_utf8_lossy(&unpacked.stdout).replace("ProfilerStep#", "Turn ");
    let scratch = Scratch::new();
    std::fs::write(scratch.path("trace.json"), text).unwrap();
    let Imported { metrics, .. } = import(&[scratch.path("trace.json")], &[]);
    metrics["steps"].clone()
}

pub(crate) fn kernels_that_repeat_show_the_steps_that_the_profiler_had_marked() {
    let folder = traces();
    // 8,568 and 2,700 kernels, as `facts.json` counts them.
    for (file, steps, kernels) in [("a100-training-before.json.gz", 6, 1_428), ("nccl.json.gz", 3, 900)] {
        let found = steps_without_marks(&folder, file);
        assert_eq!(found["basis"], "repetition", "{file}");
        let each: Vec<_> = list(&found, "list").iter().map(|step| number(&step["kernels"])).collect();
        assert_eq!(each, vec![kernels; steps], "{file}");
    }
    // One pass each, whose layers repeat.
    for file in
        ["h100-timesformer.json.gz", "h100-vit.json.gz", "h100-bert-small.json.gz", "mi300-qwen1.5-0.5b.json.gz"]
    {
        assert_eq!(steps_without_marks(&folder, file), Value::Null, "{file}");
    }
}

pub(crate) fn copies_within_a_device_are_told_where_there_are_many() {
    let folder = traces();
    let of = |file: &str| {
        let Imported { metrics, .. } = import(&[folder.join(file)], &[]);
        let found = list(&metrics, "findings").iter().find(|finding| finding["rule"] == "device-to-device-copies");
        (found.cloned(), number(&metrics["device_time"][0]["copies_exposed_ns"]))
    };
    let (found, exposed) = of("v100-training-other-job.json.gz");
    let found = found.unwrap();
    let row = &found["quantities"]["devices"][0];
    let moved = (number(&row["moved_bytes"]) as f64 / 1e9, number(&row["time_ns"]) as f64 / 1e6);
    assert!((moved.0 - 27.9).abs() < 0.05 && (moved.1 - 92.9).abs() < 0.05, "{found}");
    assert!(found["evidence"][2].as_str().unwrap().contains("27.9 GB in 92.9 ms"), "{found}");
    assert!(found["saves_ns"].as_i64().is_none_or(|saves| saves <= exposed), "{found}");
    // 1.8 GB in 2.7 of 389 ms.
    assert_eq!(of("a100-training-before.json.gz").0, None);
}

pub(crate) fn a_replayed_graph_has_the_operators_of_its_capture() {
    let folder = traces();
    let file = |part: &str| folder.join(format!("mi300-sglang-qwen3-8b-{part}.json.gz"));
    for files in [[file("decode"), file("decode-capture")], [file("decode-capture"), file("decode")]] {
        let Imported { metrics, pages, .. } = import(&files, &[]);
        assert_invariants(&metrics, "decode and its capture");
        assert!(pages.contains("1 decode step with 32 decoding sequences, 32 tokens: 9.77 ms"), "{pages}");
        assert!(!pages.contains("prefill") && !pages.contains("32.6 ms"), "{pages}");
        assert_eq!(metrics["steps"]["list"].as_array().unwrap().len(), 1);
        // 36 layers: QKV, output, gate and up, down, and one head; each row has 32 sequences.
        let gemms: Vec<_> = list(&metrics["operator_groups"], "by_shape")
            .iter()
            .filter(|row| ["aten::mm", "aiter::gemm_a16w16"].contains(&row["name"].as_str().unwrap()))
            .filter(|row| row["shapes"][0][0] == 32)
            .collect();
        let calls: u64 = gemms.iter().map(|row| row["calls"].as_u64().unwrap()).sum();
        assert_eq!(calls, 145, "{gemms:#?}");
        let attention = list(&metrics, "operators")
            .iter()
            .find(|row| row["name"] == "sglang_profiler::attention_paged_attention_ragged_100");
        assert!(attention.is_some_and(|row| row["device_ns"].as_i64().is_some_and(|time| time > 0)), "{attention:?}");
        let coverage = metrics["trace"]["coverage"]["operator_share"].as_f64().unwrap();
        assert!(coverage > 0.95, "{coverage}");
    }
}

pub(crate) fn a_capture_of_another_graph_or_process_is_refused_with_the_reason() {
    let folder = traces();
    let scratch = Scratch::new();
    let file = |name: &str| folder.join(name).display().to_string();
    let refused = |other: &str| {
        let capture = file("mi300-sglang-qwen3-8b-decode-capture.json.gz");
        let output = Output::of(scratch.command(&["import", &file(other), &capture, "--out", other]));
        assert_ne!(output.code, 0, "{}", output.stdout);
        output.stderr
    };
    // Launches no graph; graphs of another process and machine.
    let none = refused("mi300-sglang-qwen3-8b-extend.json.gz");
    assert!(none.contains("is a graph capture, and the trace launches no graph"), "{none}");
    let other = refused("vllm-piecewise.json.gz");
    assert!(other.contains("is a graph capture, and"), "{other}");
}

pub(crate) fn a_model_fits_its_own_trace_and_no_other() {
    let folder = traces();
    let counters = |part: &str, arguments: &[&str]| {
        let Imported { metrics, .. } =
            import(&[folder.join(format!("mi300-sglang-qwen3-8b-{part}.json.gz"))], arguments);
        assert_invariants(&metrics, part);
        let names = list(&metrics, "quality").iter().map(|counter| counter["counter"].as_str().unwrap().to_owned());
        (names.collect::<Vec<_>>(), metrics)
    };
    let has = |names: &[String], name: &str| names.iter().any(|other| other == name);
    let prompts = ["workload.batch=15", "workload.seq_len=1024", "workload.decode_steps=0", "workload.logits=last"];
    let (own, metrics) = counters("extend", &[&["--model", "qwen3-8b"][..], &prompts].concat());
    assert!(!has(&own, "model_differs_from_trace") && !has(&own, "model_does_not_fit"), "{own:?}");
    // 2 x 6.95e9 parameters of layers x 15,360 tokens are 213 TFLOP; in 494 ms that is 33% of 1,307 TFLOP/s, and attention adds a little.
    let mfu = metrics["mfu_per_stage"]["prefill"].as_f64().unwrap();
    assert!((0.32..0.38).contains(&mfu), "{mfu}");
    let (other, metrics) = counters("extend", &[&["--model", "llama-3-8b"][..], &prompts].concat());
    assert!(has(&other, "model_differs_from_trace"), "{other:?}");
    assert_eq!(metrics["mfu_model_level"], Value::Null);
    // Kernels of a graph have no shapes; but 141 GB of weights are not read in 10 ms.
    let decode = ["--model", "llama-3.1-70b", "workload.batch=32", "workload.seq_len=1024", "workload.decode_steps=1"];
    let (larger, metrics) = counters("decode", &decode);
    assert!(has(&larger, "model_does_not_fit"), "{larger:?}");
    assert_eq!(metrics["mfu_model_level"], Value::Null);
}

pub(crate) fn what_must_hold_of_any_run_holds_of_the_captures_of_this_project() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ingest/tests/fixtures");
    for (file, arguments) in [
        ("torch/dsocr-h200.json.gz", ["--model", "deepseek-ocr"].as_slice()),
        ("torch/dsocr-h200.json.gz", &[]),
        ("nsys/dsocr-h200.sqlite.gz", &[]),
    ] {
        let Imported { metrics, .. } = import(&[fixtures.join(file)], arguments);
        assert!(!list(&metrics, "device_time").is_empty(), "{file}");
        assert_invariants(&metrics, file);
    }
}
