//! What is concluded from ten more traces of other people's runs, most of them of serving engines, read in place: every figure of
//! `truth.json`, and what it says must and must not be said.

use serde_json::Value;
use testkit::need::reference;

use crate::conclusions::{Imported, assert_facts, assert_invariants, import, list, without_names};

/// What is said of a trace and what is not.
struct Verdict {
    name: &'static str,
    file: &'static str,
    kind: &'static str,
    /// The rules that fire first, in order.
    first: &'static [&'static str],
    /// Rules that must not fire.
    silent: &'static [&'static str],
    /// What pages and terminal say.
    says: &'static [&'static str],
    /// What they may not say, in any case.
    never: &'static [&'static str],
}

const VERDICTS: &[Verdict] = &[
    Verdict {
        name: "sgl-plain-bs16-extend",
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
    Verdict {
        name: "sgl-eagle3-bs16-decode",
        file: "sgl-eagle3-bs16-decode.json.gz",
        kind: "serving",
        first: &[],
        silent: &["float32-gemms"],
        says: &["speculative decoding", "for 8.45 ms only kernels that started early behind it"],
        never: &["forward passes without generation", "gemms in fp32", "capture the step"],
    },
    Verdict {
        name: "sgl-eagle3-bs16-extend",
        file: "sgl-eagle3-bs16-extend.json.gz",
        kind: "serving",
        first: &["exposed-communication"],
        silent: &["float32-gemms", "small-grids"],
        says: &["16 prompts, 65,536 tokens", "Communication is exposed for 95.4 ms of 304 ms"],
        never: &["131,072", "no rank stands out", "32 prompts"],
    },
    Verdict {
        name: "lightllm-static",
        file: "lightllm-static.json.gz",
        kind: "",
        first: &["exposed-communication"],
        silent: &["float32-gemms", "small-grids"],
        says: &["MoE kernels 5"],
        never: &["without generation", "gemms in fp32"],
    },
    Verdict {
        name: "param-resnet",
        file: "param-resnet.json.gz",
        kind: "training",
        first: &["data-loading"],
        silent: &["launch-bound"],
        says: &["is a one-off cost in this recording", "Compilation and first-use costs"],
        never: &["6.66 s of 14.5 s", "45.9% of gpu time"],
    },
    Verdict {
        name: "hta-mtia-training",
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
    Verdict {
        name: "tl-qwen1.5-h100",
        file: "tl-qwen1.5-h100.json.gz",
        kind: "forward",
        first: &[],
        silent: &["host-synchronisation", "launch-bound"],
        says: &["before the recording", "Unfused elementwise kernels", "Layout copies"],
        never: &["host synchronisation | 14.1 ms"],
    },
    Verdict {
        name: "zoology-a100",
        file: "zoology-a100.json.gz",
        kind: "forward",
        first: &[],
        silent: &["launch-bound"],
        says: &["Device activity was not recorded", "`ProfilerActivity.CUDA`", "NVIDIA A100 80GB PCIe"],
        never: &["nothing was dropped", "unnamed device", "contain no device work"],
    },
    Verdict {
        name: "fib-layernorm-custom",
        file: "fib-layernorm-custom.sqlite",
        kind: "program",
        first: &[],
        silent: &[],
        says: &["comes once in this recording"],
        never: &["33.3 ms", "10.4% of gpu time"],
    },
    Verdict {
        name: "fib-layernorm-reference",
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

pub(crate) fn every_trace_of_the_truths_has_a_verdict() {
    let truths = truths();
    let mut known: Vec<&str> = truths.as_object().unwrap().keys().map(String::as_str).collect();
    let mut here: Vec<&str> = VERDICTS.iter().map(|verdict| verdict.name).collect();
    known.sort_unstable();
    here.sort_unstable();
    assert_eq!(here, known);
}

pub(crate) fn what_is_true_of_ten_more_traces_is_said_and_what_is_false_is_not() {
    let (folder, truths) = (reference("third-party/traces-2"), truths());
    let mut wrong = Vec::new();
    for verdict in VERDICTS {
        let Imported { metrics, pages, terminal } = import(&[folder.join(verdict.file)], &[]);
        assert_invariants(&metrics, verdict.name);
        assert_facts(&metrics, &truths[verdict.name]["facts"], verdict.name);
        let mut check = |holds: bool, what: String| {
            if !holds {
                wrong.push(format!("{}: {what}", verdict.name));
            }
        };
        let rules: Vec<_> =
            list(&metrics, "findings").iter().map(|finding| finding["rule"].as_str().unwrap()).collect();
        let kind = &metrics["trace"]["kind"]["kind"];
        check(verdict.kind.is_empty() || kind == verdict.kind, kind.to_string());
        check(rules.starts_with(verdict.first), format!("{rules:?}"));
        check(verdict.silent.iter().all(|rule| !rules.contains(rule)), format!("{rules:?}"));
        let all = format!("{pages}\n{terminal}");
        for line in verdict.says {
            check(all.contains(line), format!("does not say `{line}`"));
        }
        for line in verdict.never {
            let says = all.lines().find(|text| without_names(&text.to_lowercase()).contains(line));
            check(says.is_none(), format!("says `{line}`: {}", says.unwrap_or_default()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
