//! `llm-perf profile --try`: remedies on the native engine end to end, and what is refused.
//!
//! The torch engine's are in `torch_tries.rs`.

#[path = "support/scratch.rs"]
mod scratch;
mod support;

use scratch::{Output, Scratch};
use serde_json::Value;

/// Small enough that one inference takes milliseconds.
const QUICK: [&str; 3] =
    ["dataset/sampling@dataset.sampling=sampling.smoke", "infer.seq_len=16", "infer.max_new_tokens=4"];

fn tried(scratch: &Scratch, list: &str, more: &[&str]) -> Output {
    let arguments = [&["--model", "decoder-tiny", "--engine", "native", "--out", "run", "--try", list], more].concat();
    scratch.profile(&QUICK, &arguments)
}

fn find<'a>(metrics: &'a Value, remedy: &str) -> &'a Value {
    let tries = metrics["tries"].as_array().unwrap();
    tries.iter().find(|one| one["remedy"] == remedy).unwrap_or_else(|| panic!("no {remedy} in {tries:#?}"))
}

#[test]
fn remedies_of_the_native_engine_take_turns_with_the_baseline() {
    let scratch = Scratch::new();
    let output = tried(&scratch, "last-logits,bf16-weights,batch-4,threads-100000,last-logits+batch-2", &[]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    scratch.assert_whole_bundle("run");
    let metrics = scratch.json("run", "metrics.json");
    for remedy in ["last-logits", "bf16-weights", "batch-4", "last-logits+batch-2"] {
        let one = find(&metrics, remedy);
        assert_eq!((one["status"].as_str(), &one["reason"]), (Some("tried"), &Value::Null), "{one}");
        let [base, with] = ["baseline_ns", "tried_ns"].map(|key| one[key].as_f64().unwrap());
        let [saves, low, high] = ["saves_share", "low", "high"].map(|key| one[key].as_f64().unwrap());
        assert!(low <= saves && saves <= high, "{one}");
        assert!((saves - (1.0 - with / base)).abs() < 1e-6, "{saves} of {base} and {with}");
        assert!(one["per_token"]["baseline_ns"].as_i64() > Some(0), "{one}");
        let turns = one["turns"].as_array().unwrap();
        let of = |baseline: bool| turns.iter().filter(|turn| turn["baseline"] == baseline).count();
        assert!(of(true) == of(false) && of(true) >= 5, "{}", turns.len());
        // Who goes first takes turns too.
        assert!(turns[0]["baseline"] == true && turns[2]["baseline"] == false);
        assert!(turns.iter().all(|turn| turn["tokens"] == 4), "{turns:?}");
        assert_eq!(one["predicted_saves_share"], Value::Null);
        assert!(!one["adopt"].as_str().unwrap().is_empty());
    }
    // The logits of the last position are the same, whichever others are computed; those of rounded weights are not.
    assert_eq!(find(&metrics, "last-logits")["output"]["equal"], true);
    assert!(find(&metrics, "bf16-weights")["output"]["max_logit_distance"].as_f64() > Some(0.0));
    let batch = find(&metrics, "batch-4");
    assert_eq!(
        batch["turns"].as_array().unwrap().iter().find(|turn| turn["baseline"] == false).unwrap()["sequences"],
        4
    );
    let rates = &batch["throughput"];
    let rate = |key: &str| rates[key].as_f64().unwrap();
    assert!((rate("ratio") - rate("tried_per_second") / rate("baseline_per_second")).abs() < 1e-4, "{rates}");
    // One that cannot run says why, and the others went on.
    let threads = find(&metrics, "threads-100000");
    assert_eq!((threads["status"].as_str(), &threads["saves_share"]), (Some("not_applicable"), &Value::Null));
    assert!(threads["reason"].as_str().unwrap().contains("CPUs"), "{threads}");
    let report = scratch.text("run", "report.md");
    assert!(report.contains("## Remedies tried (measured)") && report.contains("infer.logits=last"), "{report}");
    assert!(report.contains("Not applicable: `threads-100000` (this process may use"), "{report}");
    assert!(output.stdout.contains("how to adopt") && output.stdout.contains("bf16-weights"), "{}", output.stdout);
    let validated = Output::of(scratch.command(&["validate", "run/metrics.json"]));
    assert_eq!(validated.code, 0, "{}{}", validated.stdout, validated.stderr);
    // Its two sides can be opened as if they were runs.
    let compared = Output::of(scratch.command(&["compare", "run", "--try", "batch-4", "--json"]));
    assert_eq!(compared.code, 0, "{}", compared.stderr);
    let compared: Value = serde_json::from_str(&compared.stdout).unwrap();
    let names: Vec<_> = compared["stages"].as_array().unwrap().iter().map(|stage| stage["name"].clone()).collect();
    assert_eq!(names, ["prefill", "decode"]);
    let prefill = &compared["stages"][0];
    let [base, with] = ["base", "with"].map(|side| prefill[side]["time_ns"].as_f64().unwrap());
    assert!(with > base, "four sequences take longer than one: {prefill}");
    assert!(compared["base"][0]["id"].as_str().unwrap().ends_with("(baseline)"), "{compared}");
    let never = Output::of(scratch.command(&["compare", "run", "--try", "cuda-graph"]));
    assert_eq!(never.code, 2);
    assert!(
        never.stderr.contains("did not try `cuda-graph`") && never.stderr.contains("it tried last-logits"),
        "{}",
        never.stderr
    );
}

#[test]
fn auto_tries_what_applies_and_a_model_that_generates_nothing_says_so() {
    let scratch = Scratch::new();
    let arguments = ["--model", "dummy-shallow-resnet", "--engine", "native", "--out", "run", "--try", "auto"];
    let settings = ["dataset/sampling@dataset.sampling=sampling.smoke", "infer.image_size=16", "infer.batch=2"];
    let output = scratch.profile(&settings, &arguments);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let metrics = scratch.json("run", "metrics.json");
    let reason = |remedy: &str| find(&metrics, remedy)["reason"].as_str().unwrap().to_owned();
    assert_eq!(reason("last-logits"), "the model generates no tokens");
    assert_eq!(reason("batch-2"), "the baseline already has a batch of 2");
    let batch = find(&metrics, "batch-8");
    assert_eq!((batch["status"].as_str(), &batch["per_token"]), (Some("tried"), &Value::Null));
    assert!(batch["throughput"]["ratio"].as_f64() > Some(0.0));
}

#[test]
fn a_run_without_the_flag_tries_nothing() {
    let scratch = Scratch::new();
    let output = scratch.profile(&QUICK, &["--model", "decoder-tiny", "--engine", "native", "--out", "run"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(scratch.json("run", "metrics.json")["tries"], Value::Array(Vec::new()));
    assert!(!scratch.text("run", "report.md").contains("Remedies"));
}

#[test]
fn time_that_is_over_leaves_the_rest_untried_and_says_so() {
    let scratch = Scratch::new();
    let output = tried(&scratch, "last-logits,batch-2", &["--try-limit", "0.000001"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let metrics = scratch.json("run", "metrics.json");
    for remedy in ["last-logits", "batch-2"] {
        let one = find(&metrics, remedy);
        assert_eq!(one["status"], "not_reached");
        assert!(one["reason"].as_str().unwrap().contains("time budget ran out"), "{one}");
    }
}

#[test]
fn what_cannot_be_tried_is_refused_before_anything_starts() {
    let cases = [
        ("last-logit", "unknown remedy `last-logit`; expected one of last-logits, attention-sdpa"),
        ("last-logits,,batch-2", "unknown remedy ``"),
        ("batch-64", "a batch has 2 to 32 sequences"),
        ("cuda-graph", "remedy `cuda-graph` requires the torch engine, but this run uses native"),
        ("batch-2+batch-4", "`batch-2` and `batch-4` exclude each other"),
    ];
    for (list, message) in cases {
        let scratch = Scratch::new();
        let output = tried(&scratch, list, &[]);
        assert_eq!(output.code, 2, "{list}: {}", output.stderr);
        assert!(output.stderr.contains(message), "{list}: {}", output.stderr);
        assert!(!scratch.path("run").exists(), "{list}");
    }
    let scratch = Scratch::new();
    assert_eq!(tried(&scratch, "auto", &["--try-limit", "0"]).code, 2);
    let command = Output::of(scratch.command(&["profile", "--try", "auto", "--", "true"]));
    assert_eq!(command.code, 2, "{}", command.stderr);
}
