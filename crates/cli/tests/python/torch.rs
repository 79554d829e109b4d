//! The driver in an interpreter with torch. The suite `torch` replays a recorded session.

use testkit::need::interpreter;

use crate::scratch::{Output, Scratch};

fn run(scratch: &Scratch, arguments: &[&str]) -> Output {
    let mut command = scratch.command(&[&["profile", "--engine", "torch", "--out", "run"], arguments].concat());
    command.arg("--python").arg(interpreter());
    Output::of(command)
}

const QUICK: [&str; 2] = ["dataset/sampling=sampling.smoke", "pipeline.torch_profiler.warmup_rounds=0"];

pub(crate) fn the_dummy_resnet_runs_in_torch_alone() {
    let scratch = Scratch::new();
    let arguments =
        [&["--model", "dummy-shallow-resnet", "--device", "cpu", "--check-flops", "infer.image_size=16"], &QUICK[..]]
            .concat();
    let output = run(&scratch, &arguments);
    assert_eq!(output.code, 0, "{}", output.stderr);
    scratch.assert_whole_bundle("run");
    let metrics = scratch.json("run", "metrics.json");
    assert!(metrics["work_per_stage"]["prefill"]["flops_matrix"].as_u64().unwrap() > 0);
    assert!(metrics["operators"].as_array().unwrap().iter().any(|one| one["name"] == "aten::conv2d"));
    // Modelled at the size of the pictures it was fed, not at the config's.
    for check in metrics["flop_checks"].as_array().unwrap() {
        assert_eq!(check["difference"], 0.0, "{check}");
    }
}

pub(crate) fn a_model_of_transformers_is_made_from_its_config_and_counts_the_same_flops() {
    let scratch = Scratch::new();
    let arguments =
        ["--model", "decoder-tiny", "--device", "cpu", "--check-flops", "infer.seq_len=24", "infer.max_new_tokens=3"];
    let output = run(&scratch, &[&arguments[..], &QUICK].concat());
    assert_eq!(output.code, 0, "{}", output.stderr);
    scratch.assert_whole_bundle("run");
    let metrics = scratch.json("run", "metrics.json");
    let checks = metrics["flop_checks"].as_array().unwrap();
    assert_eq!(checks.len(), 2, "{}", metrics["flop_checks"]);
    for check in checks {
        assert!(check["difference"].as_f64().unwrap().abs() < 1e-3, "{check}");
    }
    assert_eq!(metrics["inputs"][0]["generated_tokens"], 3);
    assert_eq!(metrics["trace"]["stages"]["inferred"], false);
}

/// A model of the user's, and things that are wrong with it.
const FACTORIES: &str = r#"
import torch

class Tiny(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one = torch.nn.Linear(8, 8)

    def forward(self, x):
        print("{\"event\": \"failed\"} garbage on standard output")
        return self.one(x)

def build():
    return Tiny(), (torch.ones(2, 8),)

def without_inputs():
    return Tiny()

def no_model():
    return 7

def missing_package():
    import a_package_nobody_has

def out_of_memory():
    raise torch.cuda.OutOfMemoryError("CUDA out of memory")

def broken():
    model = Tiny()
    return model, (torch.ones(2, 9),)
"#;

pub(crate) fn a_factory_of_the_users_is_run_and_what_is_wrong_with_one_is_told() {
    let cases = [
        ("build", 0, ""),
        ("without_inputs", 1, "no vocabulary to draw random tokens from"),
        ("no_model", 1, "gave a int, not a torch.nn.Module"),
        ("missing_package", 1, "a_package_nobody_has"),
        ("out_of_memory", 1, "out of memory"),
        ("broken", 1, "shapes cannot be multiplied"),
        ("absent", 1, "has no `absent`"),
    ];
    for (name, code, message) in cases {
        let scratch = Scratch::new();
        std::fs::write(scratch.path("my_models.py"), FACTORIES).unwrap();
        let model = format!("my_models:{name}");
        let output = run(&scratch, &[&["--model", &model, "--device", "cpu"], &QUICK[..]].concat());
        assert_eq!(output.code, code, "{name}: {}", output.stderr);
        assert!(output.stderr.contains(message), "{name}: {}", output.stderr);
        assert!(!output.stdout.contains("garbage"), "{name}");
    }
}

pub(crate) fn code_that_a_folder_brings_is_not_run_unasked() {
    let scratch = Scratch::new();
    let folder = scratch.path("model");
    std::fs::create_dir(&folder).unwrap();
    let config = r#"{"model_type": "mine", "auto_map": {"AutoConfig": "mine.C", "AutoModelForCausalLM": "mine.M"},
        "hidden_size": 8, "vocab_size": 16}"#;
    std::fs::write(folder.join("config.json"), config).unwrap();
    let mark = scratch.path("it-ran");
    std::fs::write(folder.join("mine.py"), format!("open({:?}, 'w')\n", mark)).unwrap();
    let output = run(&scratch, &[&["--model", "./model", "--device", "cpu"], &QUICK[..]].concat());
    assert_eq!(output.code, 2, "{}", output.stderr);
    assert!(
        output.stderr.contains("its own Python code") && output.stderr.contains("--trust-remote-code"),
        "{}",
        output.stderr
    );
    assert!(!mark.exists());
}

pub(crate) fn remedies_are_tried_in_turns_and_one_that_needs_a_gpu_says_so() {
    let scratch = Scratch::new();
    let tries = "last-logits,bf16,batch-2,warm-up,cuda-graph";
    let arguments = ["--model", "decoder-tiny", "--device", "cpu", "--try", tries, "infer.seq_len=24"];
    let more = ["infer.max_new_tokens=4", "pipeline.torch_profiler.enabled=false"];
    let output = run(&scratch, &[&arguments[..], &more, &QUICK].concat());
    assert_eq!(output.code, 0, "{}", output.stderr);
    let metrics = scratch.json("run", "metrics.json");
    let find = |remedy: &str| {
        let tries = metrics["tries"].as_array().unwrap();
        tries.iter().find(|one| one["remedy"] == remedy).unwrap().clone()
    };
    for remedy in ["last-logits", "bf16", "batch-2"] {
        let one = find(remedy);
        assert_eq!(one["status"], "tried", "{one}");
        assert!(one["low"].as_f64() <= one["saves_share"].as_f64(), "{one}");
        assert_eq!(one["output"]["tokens"], 4, "{one}");
    }
    assert_eq!(find("last-logits")["output"]["equal"], true);
    assert_eq!(find("cuda-graph")["reason"], "a CUDA graph needs a CUDA device");
    // Nothing but what the manifest lists: Python leaves no compiled code behind.
    assert!(!scratch.path("run/logs/__pycache__").exists());
}
