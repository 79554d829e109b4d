//! Sentences that were once false of a stranger's trace.

use serde_json::Value;
use testkit::need::reference;

use crate::imported::{Imported, import, list, number};
use crate::scratch::{Output, Scratch};

fn of(folder: &str, name: &str) -> Imported {
    import(&[reference(folder).join(format!("{name}.json.gz"))], &[])
}

fn finding<'a>(metrics: &'a Value, rule: &str) -> Option<&'a Value> {
    list(metrics, "findings").iter().find(|finding| finding["rule"] == rule)
}

/// Time of a cause of the critical path, of lost time or of idle time of the first device.
fn on_path(metrics: &Value, cause: &str) -> i64 {
    list(metrics, "critical_path").iter().filter(|part| part["cause"] == cause).map(|part| number(&part["ns"])).sum()
}

pub(crate) fn work_of_before_the_recording_is_in_no_step_and_waits_for_collectives() {
    let Imported { metrics, pages, .. } = of("third-party/traces", "mi300-resnet-training");
    // 968 kernels without a launch run for 30 ms before the first step has any: a step takes 19 ms.
    let walls: Vec<i64> = list(&metrics["steps"], "list").iter().map(|step| number(&step["wall_ns"])).collect();
    assert!(walls.len() == 3 && walls.iter().all(|wall| (18_000_000..20_000_000).contains(wall)), "{walls:?}");
    // Kernels of the collectives take 71.5 ms, and nothing else is long enough to hide them.
    assert!(on_path(&metrics, "communication") > 70_000_000, "{pages}");
    assert!(on_path(&metrics, "delay between launch and start") < 1_000_000, "{pages}");
    // A copy of the first step is launched and runs at once; the streams of its kernels are occupied for 37 ms.
    let Imported { metrics, pages, .. } = of("third-party/traces", "v100-training-other-job");
    let first = number(&list(&metrics["steps"], "list")[0]["wall_ns"]);
    assert!((110_000_000..130_000_000).contains(&first), "{first}");
    assert!(pages.contains("614 of them ran in the first 39.2 ms"), "{pages}");
}

pub(crate) fn the_device_of_memory_is_that_of_the_kernels() {
    // The allocator's events are of device 0 of the process, whose kernels the profiler puts on device 2 of the machine.
    let Imported { metrics, pages, .. } = of("third-party/traces", "mi300-qwen1.5-0.5b");
    let memory = &list(&metrics, "device_memory")[0];
    assert_eq!((&memory["device"], &memory["in_process"]), (&"gpu:2".into(), &"cuda:0".into()));
    assert!(pages.contains("- gpu:2 (cuda:0 in the process): tensors held"), "{pages}");
    let Imported { metrics, .. } = of("third-party/traces", "h100-vit");
    let memory = &list(&metrics, "device_memory")[0];
    assert_eq!((&memory["device"], &memory["in_process"]), (&"cuda:0".into(), &Value::Null));
}

pub(crate) fn training_is_not_advised_to_do_what_it_does() {
    let Imported { metrics, pages, .. } = of("third-party/traces", "nccl");
    assert!(pages.contains("already reduces gradients in buckets") && !pages.contains("(gradient buckets in backward"));
    // 483 copies of the reducer among 3,774 kernels, copies and memsets.
    let copies = finding(&metrics, "gradient-copies").unwrap_or_else(|| panic!("{pages}"));
    assert_eq!((&copies["quantities"]["copies"], &copies["saves_ns"]), (&483.into(), &Value::Null), "{copies}");
    let Imported { metrics, pages, .. } = of("third-party/traces", "a100-training-before");
    assert!(finding(&metrics, "gradient-copies").is_none());
    assert!(pages.contains("Start these collectives earlier and wait for them later"), "{pages}");
}

pub(crate) fn copies_of_one_pass_are_not_said_to_come_back() {
    let copies = import(&[reference("third-party/traces/h100-2gpu-copies.sqlite")], &[]);
    // Per device, 224 of 225 copies share six sizes, and the largest of 4.2 GB comes once: there is one pass.
    assert!(copies.pages.contains("224 copies have only 6 sizes among them"), "{}", copies.pages);
    assert!(!copies.pages.contains("Every pass"), "{}", copies.pages);
}

pub(crate) fn rates_of_shapes_are_said_to_be_modelled() {
    let scratch = Scratch::new();
    let file = reference("third-party/traces/mi300-sglang-qwen3-8b-extend.json.gz").display().to_string();
    let output = Output::of(scratch.command(&["import", &file, "--out", "run"]));
    assert_eq!(output.code, 0, "{}", output.stderr);
    let (operators, report) = (scratch.text("run", "operators.md"), scratch.text("run", "report.md"));
    assert!(operators.contains("FLOPs and bytes are modelled from the recorded shapes"), "{operators}");
    assert!(operators.contains("`[15360,4096] [4096,24576]`") && operators.contains("457 TFLOP/s"), "{operators}");
    assert!(report.contains("Rates of single operators are modelled from their recorded shapes"), "{report}");
}

pub(crate) fn short_gaps_are_the_device_s_own_and_long_ones_have_no_recorded_cause() {
    let Imported { metrics, pages, .. } = of("third-party/traces", "dlrm-rank0");
    // Independent: 382 ms in 282 gaps of more than 100 us before work that had been launched, of 1,223 ms.
    let late = finding(&metrics, "unexplained-delay").unwrap_or_else(|| panic!("{pages}"));
    let share = late["quantities"]["idle_share"]["share"].as_f64().unwrap();
    assert!((0.31..0.33).contains(&share) && late["saves_ns"].is_null(), "{late}");
    let Imported { metrics, pages, .. } = of("third-party/traces", "h100-owlv2");
    assert!(finding(&metrics, "unexplained-delay").is_none() && finding(&metrics, "kernel-gaps").is_none(), "{pages}");
    let idle = list(&list(&metrics, "device_time")[0], "idle");
    assert!(idle.iter().all(|idle| idle["cause"] != "queued"), "the longest is 9 us: {pages}");
}

pub(crate) fn first_calls_are_named() {
    let Imported { metrics, pages, .. } = of("third-party/traces-2", "param-resnet");
    let first = finding(&metrics, "compilation").unwrap_or_else(|| panic!("{pages}"));
    let places = first["quantities"]["places"].as_array().unwrap_or_else(|| panic!("{first}"));
    assert!(places.iter().any(|place| place["name"].as_str().unwrap().contains("conv")), "{first}");
}

pub(crate) fn what_no_device_recorded_is_not_zero() {
    let Imported { pages, .. } = of("third-party/traces-2", "hta-mtia-training");
    assert!(!pages.contains("device time per step"), "{pages}");
    assert!(pages.contains("Wall time is host time: no device work of these steps is known."), "{pages}");
}

pub(crate) fn launches_before_the_first_graph_are_told_from_those_around_graphs() {
    let Imported { metrics, pages, .. } = of("third-party/traces-2", "lightllm-static");
    let gaps = &finding(&metrics, "launch-gaps").unwrap_or_else(|| panic!("{pages}"))["quantities"];
    // One graph is launched: 3.5 ms inside its call, and 0.6 ms before.
    let of = |key: &str| number(&gaps[key]);
    assert!(of("inside_graphs_ns") > 3_000_000 && of("before_graphs_ns") < 700_000, "{gaps}");
    assert!(of("inside_graphs_ns") + of("before_graphs_ns") <= of("idle_ns"), "{gaps}");
    assert!(!pages.contains("the kernels between them"), "{pages}");
}

pub(crate) fn gaps_inside_graphs_are_no_delay_of_launches() {
    let metrics = import(&[reference("serving/llama-8b/trace.json.gz")], &[]).metrics;
    // Independent: gaps of about 1 us between kernels of one graph, the longest 9 us.
    let gaps = finding(&metrics, "kernel-gaps").unwrap();
    let (gaps, stage) = (&gaps["quantities"], &gaps["stage"]);
    assert_eq!(stage, "decode");
    assert!(number(&gaps["mean_ns"]) < 2_000 && number(&gaps["in_graphs_ns"]) > 40_000_000, "{gaps}");
    let idle = list(&list(&metrics, "device_time")[0], "idle");
    assert!(idle.iter().all(|idle| idle["cause"] != "queued"), "{idle:?}");
}
