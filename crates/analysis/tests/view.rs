//! Views of documents: what pages say beyond the figures of a document.

use llm_perf_analysis::view;
use serde_json::{Value, json};
use types::view::{LossBasis, NextStep, Resource, SavingBasis};
use types::{Metrics, Nanos, Stage};

/// A run with these fields; everything else is empty.
fn metrics(fields: Value) -> Metrics {
    let mut document = json!({
        "schema": "llm-perf/metrics/1",
        "run": {"id": "a", "engine": "native", "model": "m", "device": "cpu", "weights": null},
        "devices": [], "clocks": [], "totals": {}, "stages": [], "operators": [], "kernels": [], "regions": [],
        "modules": [], "findings": [], "samples": [], "aggregates": {}, "overhead": {}, "quality": [],
        "mfu_per_stage": {}, "work_per_stage": {},
    });
    let Value::Object(fields) = fields else { panic!("fields are an object") };
    document.as_object_mut().unwrap().extend(fields);
    serde_json::from_value(document).unwrap()
}

fn stage(name: &str, parent: Option<&str>, wall: i64, utilisation: Option<[f64; 2]>) -> Value {
    json!({
        "name": name, "parent": parent, "instances": 2, "wall_ns": wall, "gpu_busy_ns": wall / 2, "kernel_ns": null,
        "kernel_count": null, "tokens": null, "mfu": utilisation.map(|[mfu, _]| mfu),
        "mbu": utilisation.map(|[_, mbu]| mbu), "origin": "measured",
    })
}

fn kernel(name: &str, family: &str, stage: Option<&str>, time: i64) -> Value {
    json!({
        "name": name, "short_name": name, "family": family, "stage": stage, "device": "cuda:0", "calls": 4,
        "total_ns": time, "min_ns": 1, "max_ns": time,
    })
}

fn finding(rule: &str, severity: &str, saves: Option<i64>) -> Value {
    json!({
        "rule": rule, "severity": severity, "stage": null, "evidence": [], "saves_ns": saves, "saves_share": null,
        "advice": "",
    })
}

#[test]
fn a_stage_is_bound_by_what_it_clearly_uses_more_of() {
    let bound = |mfu: f64, mbu: f64| {
        let run = metrics(json!({"stages": [stage("decode", None, 100, Some([mfu, mbu]))]}));
        view::run(&run).takeaways[0].bound
    };
    assert_eq!(bound(0.05, 0.4), Some(Resource::Memory));
    assert_eq!(bound(0.4, 0.05), Some(Resource::Compute));
    // Twice as much is not yet clearly more.
    assert_eq!((bound(0.2, 0.4), bound(0.4, 0.2)), (None, None));
    // A stage that waits uses little of either, and neither bounds it.
    assert_eq!((bound(0.001, 0.07), bound(0.07, 0.001)), (None, None));
}

#[test]
fn vision_is_compared_with_prefill_and_its_encoders_are_named_with_it() {
    let stages = [
        stage("prefill", None, 1_000, None),
        stage("vision", Some("prefill"), 800, None),
        stage("sam", Some("vision"), 600, None),
        stage("clip", Some("vision"), 200, None),
    ];
    let run = metrics(json!({"stages": stages, "totals": {"wall_ns": 1_600}}));
    let takeaways = view::run(&run).takeaways;
    assert_eq!(takeaways.iter().map(|one| one.stage).collect::<Vec<_>>(), [Stage::Prefill, Stage::Vision]);
    assert_eq!(takeaways[1].run_share, Some(0.5));
    assert_eq!(takeaways[1].parent, Some((Stage::Prefill, Some(0.8))));
    assert_eq!(takeaways[1].longest_part, Some((Stage::Sam, Some(0.75))));
}

#[test]
fn the_time_of_several_devices_is_that_many_times_the_wall() {
    let device = |id: &str| json!({"id": id, "name": id, "uuid": null, "hardware": null, "memory_bytes": null});
    let totals = json!({"wall_ns": 100, "gpu_busy_ns": 120});
    let one = metrics(json!({"devices": [device("cuda:0"), device("cuda:1")], "totals": totals}));
    assert_eq!(view::run(&one).busy_share, Some(0.6));
    assert_eq!(view::run(&metrics(json!({"totals": {"wall_ns": 0, "gpu_busy_ns": 0}}))).busy_share, None);
}

#[test]
fn the_largest_savings_come_first_and_unknown_ones_not_at_all() {
    let found = [("a", Some(5)), ("b", None), ("c", Some(50)), ("d", Some(7)), ("e", Some(6))];
    let found = found.map(|(rule, saves)| finding(rule, if rule == "d" { "warning" } else { "info" }, saves));
    let stages = [stage("prefill", None, 100, None)];
    let run = metrics(json!({"findings": found, "stages": stages, "totals": {"wall_ns": 100}}));
    let view = view::run(&run);
    let rules: Vec<_> = view.largest_savings.iter().map(|one| one.finding.rule.as_str()).collect();
    assert_eq!((rules.as_slice(), view.findings.len()), (&["c", "d", "e"][..], 5));
    assert_eq!(view.warning_rules, ["d"]);
    let saving = view.largest_savings[0].saving.unwrap();
    assert_eq!((saving.basis, saving.whole_ns), (SavingBasis::Run, Some(Nanos::new(100))));
    assert_eq!(saving.per_input_ns, Some(Nanos::new(25)));
}

#[test]
fn kernels_of_stages_leave_out_the_others_and_families_add_up() {
    let kernels =
        [kernel("a", "gemm", Some("decode"), 60), kernel("b", "copy", None, 30), kernel("c", "gemm", None, 10)];
    let run = metrics(json!({"kernels": kernels}));
    let view = view::run(&run).kernels;
    assert_eq!((view.of_stages.len(), view.rows.len(), view.calls), (1, 3, 12));
    assert_eq!((view.rows[0].share, view.rows[0].mean_ns), (Some(0.6), Some(Nanos::new(15))));
    let families: Vec<_> = view.families.iter().map(|one| (one.family, one.total_ns.get(), one.rows)).collect();
    assert_eq!(families, [("gemm", 70, 2), ("copy", 30, 1)]);
    assert_eq!(view.families_per_stage.len(), 3);
    let unstaged = metrics(json!({"kernels": [kernel("b", "copy", None, 30)]}));
    assert_eq!(view::run(&unstaged).kernels.of_stages.len(), 1);
}

#[test]
fn marking_stages_is_advised_where_much_is_in_none() {
    let trace = |share: f64| {
        json!({
            "sources": [], "stages": null, "workload": null, "step_ms": null, "copies": [], "counters": [],
            "coverage": {
                "device_ns": 1, "stage_share": null, "inferred_share": null, "unattributed_share": share,
                "operator_share": null,
            },
        })
    };
    let stages = [stage("decode", None, 100, None)];
    let steps = |run: &Metrics| format!("{:?}", view::run(run).next_steps);
    assert_eq!(steps(&metrics(json!({"trace": trace(0.02), "stages": stages}))), "[]");
    let rest = metrics(json!({"trace": trace(0.03), "stages": stages}));
    assert_eq!(view::run(&rest).next_steps, [NextStep::MarkRest(0.03)]);
    assert_eq!(steps(&metrics(json!({"trace": trace(1.0)}))), "[MarkStages]");
}

fn operator(name: &str, device: i64) -> Value {
    json!({"name": name, "stage": null, "calls": 4, "total_ns": 900, "self_ns": 900, "device_ns": device})
}

#[test]
fn operators_that_launched_little_of_the_device_work_are_no_cost_centres() {
    let kernels = [kernel("grouped_matmul", "moe", None, 600), kernel("copy", "copy", None, 400)];
    let graph = metrics(json!({"operators": [operator("aten::copy_", 20)], "kernels": kernels}));
    let graph = view::run(&graph).cost_centres;
    assert_eq!((graph.kind, graph.rows[0].name, graph.rows[0].share), ("kernel or copy", "grouped_matmul", Some(0.6)));
    assert_eq!(graph.operator_share, Some(0.02));
    let eager =
        metrics(json!({"operators": [operator("aten::mm", 580), operator("aten::copy_", 400)], "kernels": kernels}));
    let eager = view::run(&eager).cost_centres;
    // The share is of all device work, not of what operators launched.
    assert_eq!((eager.kind, eager.rows[0].name, eager.rows[0].share), ("operator", "aten::mm", Some(0.58)));
    assert_eq!(eager.operator_share, Some(0.98));
}

#[test]
fn a_loss_of_the_profiled_pass_is_a_share_of_that_pass() {
    let lost = json!([{"stage": "decode", "cause": "launch overhead", "lost_ns": 60, "claimed_ns": 0, "share": null, "rules": []}]);
    let device_time = json!([{
        "device": "cuda:0", "span_ns": 100, "busy_ns": 40, "compute_ns": 40, "communication_ns": 0,
        "communication_exposed_ns": 0, "copies_exposed_ns": 0, "copies": [], "idle_ns": 60, "idle": [],
    }]);
    let trace = json!({"sources": [], "copies": [], "counters": [], "traced_pass": {"input": null, "wall_ns": 100, "stages": {"decode": 100}}});
    // However often the stage was measured besides.
    for wall in [40, 120, 400] {
        let stages = [stage("decode", None, wall, None)];
        let run = metrics(json!({"stages": stages, "lost_time": lost, "device_time": device_time, "trace": trace}));
        let takeaways = view::run(&run).takeaways;
        assert_eq!(takeaways[0].largest_loss, Some(("launch overhead", Some(0.6))));
        assert_eq!(takeaways[0].loss_basis, LossBasis::ProfiledPass);
    }
    let run = metrics(json!({"stages": [stage("decode", None, 120, None)], "lost_time": lost}));
    assert_eq!(view::run(&run).takeaways[0].largest_loss, Some(("launch overhead", Some(0.5))));
}

#[test]
fn the_latency_of_requests_is_divided_and_the_slowest_come_first() {
    let parts = |queue: i64, decode: i64| {
        json!({
            "queue_ns": queue, "own_prefill_ns": 0, "other_prefill_ns": 0, "decode_ns": decode, "host_ns": 0,
            "recompute_ns": 0, "return_ns": 0, "unexplained_ns": 0,
        })
    };
    let request = |queue: i64, decode: i64, tokens: u64| json!({"ttft_ns": queue, "latency_ns": queue + decode, "output_tokens": tokens, "parts": parts(queue, decode)});
    let serving = json!({
        "source": "vllm_bench", "clock": "monotonic", "parts": parts(30, 150),
        "load": {
            "requests": 4, "completed": 3, "failed": 1, "input_tokens": 0, "output_tokens": 9, "duration_ns": null,
            "request_throughput": null, "input_throughput": null, "output_throughput": null, "max_concurrency": null,
            "ttft": null, "tpot": null, "itl": null, "e2el": null,
        },
        "join": {
            "offset_ns": 100, "offset_low_ns": 93, "offset_high_ns": 120, "basis": "fitted", "requests": 3,
            "requests_in_trace": 3, "tokens": 9, "steps": 4, "steps_agreeing": 4,
        },
    });
    let requests = json!([request(10, 40, 5), {"error": "timeout"}, request(0, 90, 4), request(20, 20, 1)]);
    let document = metrics(json!({"serving": serving, "requests": requests}));
    let run = view::run(&document);
    let view = run.serving.unwrap();
    assert_eq!(view.mean_ns, Some(Nanos::new(60)), "of 180 ns and three requests that were joined");
    assert_eq!(view.assumed_return_ns, Some(Nanos::new(7)));
    let parts: Vec<_> = view.parts.iter().map(|part| (part.name, part.p50_ns.unwrap().get(), part.share)).collect();
    assert_eq!(parts, [("queue", 10, Some(30.0 / 180.0)), ("decode", 40, Some(150.0 / 180.0))]);
    assert_eq!(view.slowest.iter().map(|(place, _)| *place).collect::<Vec<_>>(), [2, 0, 3]);
    assert_eq!(view.per_token_ns, [Nanos::new(30), Nanos::new(10)], "a single token has no time per token");
    assert!(view::run(&metrics(json!({}))).serving.is_none());
}

#[test]
fn steps_whose_kernels_were_cut_off_have_no_token_rate() {
    let group =
        json!({"sequences": 1, "query_tokens": null, "key_tokens": null, "query_squared": null, "query_key": null});
    let step = json!({
        "name": "mixed", "label": "mixed", "host_ns": 10, "wall_ns": 1_000, "device_ns": 500, "kernels": 1,
        "batch": {"tokens": 8, "context": group, "generation": group},
    });
    let steps = json!({"basis": "engine_annotations", "wall_ms": null, "device_ms": null, "list": [step]});
    let rate = |severity: Option<&str>| {
        let counter =
            |severity: &str| json!({"counter": "launches_cut_off", "severity": severity, "value": 9, "remedy": ""});
        let quality: Vec<Value> = severity.map(counter).into_iter().collect();
        view::run(&metrics(json!({"steps": steps, "quality": quality}))).engine_steps[0].tokens_per_second
    };
    assert_eq!([rate(None), rate(Some("warning"))], [Some(8e6), Some(8e6)]);
    assert_eq!(rate(Some("error")), None);
}
