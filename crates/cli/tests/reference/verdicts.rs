//! What is concluded from ten more traces of other people's runs, most of them of serving engines, read in place: every figure of
//! `truth.json`, and what it says must and must not be said.

use serde_json::Value;
use testkit::need::reference;

use crate::imported::{assert_facts, assert_invariants, import};
use crate::truth::Truth;

const VERDICTS: &[Truth] = &[
    Truth {
        file: "sgl-plain-bs16-extend.json.gz",
        kind: "serving",
        first: &["exposed-communication"],
        silent: &["launch-bound", "small-grids", "float32-gemms"],
        says: &[
            "Communication is exposed for 110 ms of 249 ms",
            "16 prompts, 65,536 tokens",
            "longest   ncclDevKernel_AllReduce",
        ],
        never: &["89.6 us", "longest _allgather_base", "launch-bound"],
    },
    Truth {
        file: "sgl-eagle3-bs16-decode.json.gz",
        kind: "serving",
        first: &[],
        silent: &["float32-gemms"],
        says: &["speculative decoding", "for 8.45 ms only kernels that started early behind it"],
        never: &["forward passes without generation", "gemms in fp32", "capture the step"],
    },
    Truth {
        file: "sgl-eagle3-bs16-extend.json.gz",
        kind: "serving",
        first: &["exposed-communication"],
        silent: &["float32-gemms", "small-grids"],
        says: &["16 prompts, 65,536 tokens", "Communication is exposed for 95.4 ms of 304 ms"],
        never: &["131,072", "no rank stands out", "32 prompts"],
    },
    Truth {
        file: "lightllm-static.json.gz",
        kind: "inference",
        first: &["exposed-communication"],
        silent: &["float32-gemms", "small-grids"],
        says: &["MoE kernels 5"],
        never: &["without generation", "gemms in fp32"],
    },
    Truth {
        file: "param-resnet.json.gz",
        kind: "training",
        first: &["data-loading"],
        silent: &["launch-bound"],
        says: &["is seen only once in this recording", "Compilation and first-use costs"],
        never: &["6.66 s of 14.5 s", "45.9% of gpu time"],
    },
    Truth {
        file: "hta-mtia-training.json.gz",
        kind: "training",
        first: &[],
        silent: &[],
        says: &[
            "events of unknown categories were skipped, most of them `mtia_ccp_events`",
            "`mtia_ccp_events`: 25,814 events",
        ],
        never: &["the files contain no device work.**"],
    },
    Truth {
        file: "tl-qwen1.5-h100.json.gz",
        kind: "forward",
        first: &[],
        silent: &["host-synchronisation", "launch-bound"],
        says: &["before the recording", "Unfused elementwise kernels", "Layout copies"],
        never: &["host synchronisation | 14.1 ms"],
    },
    Truth {
        file: "zoology-a100.json.gz",
        kind: "forward",
        first: &[],
        silent: &["launch-bound"],
        says: &["Device activity was not recorded", "`ProfilerActivity.CUDA`", "NVIDIA A100 80GB PCIe"],
        never: &["nothing was dropped", "unnamed device", "contain no device work"],
    },
    Truth {
        file: "fib-layernorm-custom.sqlite",
        kind: "program",
        first: &[],
        silent: &[],
        says: &["all of it is seen only once in this recording"],
        never: &["33.3 ms", "10.4% of gpu time"],
    },
    Truth {
        file: "fib-layernorm-reference.sqlite",
        kind: "program",
        first: &[],
        silent: &[],
        says: &["16 blocks"],
        never: &["saves about"],
    },
];

fn truths() -> Value {
    serde_json::from_slice(&std::fs::read(reference("third-party/traces-2/truth.json")).unwrap()).unwrap()
}

/// The trace's name in `truth.json`.
fn name(truth: &Truth) -> &str {
    truth.file.split_once(".json").or_else(|| truth.file.split_once(".sqlite")).map_or(truth.file, |(name, _)| name)
}

pub(crate) fn every_trace_of_the_truths_has_a_verdict() {
    let truths = truths();
    let mut known: Vec<&str> = truths.as_object().unwrap().keys().map(String::as_str).collect();
    let mut here: Vec<&str> = VERDICTS.iter().map(name).collect();
    known.sort_unstable();
    here.sort_unstable();
    assert_eq!(here, known);
}

pub(crate) fn what_is_true_of_ten_more_traces_is_said_and_what_is_false_is_not() {
    let (folder, truths) = (reference("third-party/traces-2"), truths());
    let mut wrong = Vec::new();
    for truth in VERDICTS {
        let imported = import(&[folder.join(truth.file)], &[]);
        assert_invariants(&imported.metrics, truth.file);
        assert_facts(&imported.metrics, &truths[name(truth)]["facts"], truth.file);
        wrong.extend(truth.broken(&imported, &[]));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
