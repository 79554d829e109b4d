//! Imported runs with known answers.

use std::collections::BTreeMap;

use types::{DType, Facts, LogitsKind, Metrics, Nanos, Remark, RunKindName, Stage, StepBasis};

use types::timeline::{HostCall, QueueId};

use super::trace_sample::Builder;
use crate::attribution::{Attribution, AttributionSettings, attribute};
use crate::evidence::{Evidence, PlacedTimeline, Trace};
use crate::observed::{Observed, observe};
use crate::subject::Subject;
use crate::time::{Span, Spans};

fn attributed(builder: &Builder) -> Attribution {
    attribute(&builder.0, &AttributionSettings::default())
}

fn metrics(builders: &[Builder]) -> Metrics {
    metrics_of(builders, builders.iter().map(attributed).collect())
}

fn metrics_of(builders: &[Builder], attributions: Vec<Attribution>) -> Metrics {
    let place = |(builder, attribution)| {
        let builder: &Builder = builder;
        PlacedTimeline { timeline: &builder.0, attribution, rank: None, devices: BTreeMap::new() }
    };
    let timelines = builders.iter().zip(&attributions).map(place).collect();
    let evidence = Evidence { trace: Some(Trace { timelines, ..Trace::default() }), ..Evidence::default() };
    super::metrics(&Subject::default(), &evidence)
}

fn seen(builder: &Builder) -> Observed {
    observe(&builder.0, &attributed(builder))
}

#[test]
fn work_counts_for_the_stage_that_launched_it_and_for_those_around_it() {
    // Launched inside sam at 12 and 15, run after prefill is over; 10 ns of the two overlap.
    let run = Builder::new()
        .range("prefill", 0, 100)
        .range("sam", 10, 20)
        .range("decode", 100, 200)
        .kernel("gemm", 12, 0, 150, 170)
        .kernel("copy", 15, 1, 160, 190)
        .kernel("gemm", 120, 0, 190, 195);
    let metrics = metrics(&[run]);
    let stage = |name: Stage| metrics.times.stages.iter().find(|stage| stage.name == name).unwrap();
    for name in [Stage::Prefill, Stage::Vision, Stage::Sam] {
        let found = stage(name);
        assert_eq!((found.kernel_count, found.kernel_ns), (Some(2), Some(Nanos::new(50))), "{name}");
    }
    // The host was through with sam in 10 ns; its wall time ends with its device work, at 190.
    let busy = [Stage::Prefill, Stage::Vision, Stage::Sam].map(|name| stage(name).gpu_busy_ns);
    assert_eq!(busy, [Some(Nanos::new(40)); 3]);
    assert!(metrics.conclusions.quality.iter().all(|one| one.counter != "busy_above_wall"));
    assert_eq!(stage(Stage::Decode).gpu_busy_ns, Some(Nanos::new(5)));
    assert_eq!(
        [Stage::Prefill, Stage::Vision].map(|name| stage(name).wall_ns),
        [190, 180].map(|wall| Some(Nanos::new(wall)))
    );
    assert_eq!(
        (metrics.times.totals.gpu_busy_ns, metrics.times.totals.kernel_ns),
        (Some(Nanos::new(45)), Some(Nanos::new(55)))
    );
    // One row per name, stage and device.
    let rows: Vec<_> = metrics.breakdown.kernels.iter().map(|row| (row.name.as_str(), row.stage, row.calls)).collect();
    assert_eq!(rows.len(), 3, "{rows:?}");
}

#[test]
fn own_time_and_memory_belong_to_the_innermost_operator() {
    let run = Builder::new()
        .operator("aten::linear", 0, 100, &[])
        .operator("aten::addmm", 10, 60, &[])
        .operator("aten::empty", 20, 25, &[])
        .allocation(22, 512)
        .allocation(40, 64)
        .allocation(50, -64)
        .allocation(200, 9)
        .kernel("gemm", 30, 0, 300, 340);
    let metrics = metrics(&[run]);
    let row = |name: &str| metrics.breakdown.operators.iter().find(|row| row.name == name).unwrap();
    let own = ["aten::linear", "aten::addmm", "aten::empty"].map(|name| row(name).self_ns.get());
    assert_eq!(own, [50, 45, 5]);
    assert_eq!(own.iter().sum::<i64>(), 100);
    assert_eq!(
        (row("aten::addmm").device_ns, row("aten::linear").device_ns),
        (Some(Nanos::new(40)), Some(Nanos::ZERO))
    );
    let memory = ["aten::linear", "aten::addmm", "aten::empty"].map(|name| row(name).bytes_allocated.unwrap().get());
    assert_eq!(memory, [0, 64, 512]);
}

#[test]
fn a_run_without_memory_events_does_not_claim_that_nothing_was_allocated() {
    let metrics = metrics(&[Builder::new().operator("aten::mm", 0, 10, &[])]);
    assert_eq!(
        (metrics.breakdown.operators[0].bytes_allocated, metrics.breakdown.operators[0].device_ns),
        (None, None)
    );
    assert_eq!((metrics.times.totals.gpu_busy_ns, metrics.times.totals.kernel_count), (None, None));
}

#[test]
fn timelines_of_several_ranks_run_side_by_side() {
    let rank = |end| Builder::new().range("prefill", 0, end).kernel("gemm", 1, 0, 2, 5);
    let metrics = metrics(&[rank(100), rank(70)]);
    assert_eq!(
        (metrics.times.totals.wall_ns, metrics.times.stages[0].wall_ns),
        (Some(Nanos::new(100)), Some(Nanos::new(100)))
    );
    assert_eq!((metrics.times.stages[0].instances, metrics.times.totals.kernel_count), (2, Some(2)));
}

/// A prompt of 286 tokens with one page, the head over all positions, two steps.
fn prompt(builder: Builder) -> Builder {
    builder
        .range("prefill", 0, 100)
        .operator("aten::embedding", 1, 2, &[&[129_280, 1_280], &[1, 286]])
        .operator("aten::conv2d", 3, 4, &[&[1, 3, 1_024, 1_024], &[768, 3, 16, 16]])
        .operator("aten::embedding", 5, 6, &[&[257, 1_024], &[1, 257]])
        .operator("aten::linear", 90, 95, &[&[1, 286, 1_280], &[129_280, 1_280]])
        .range("decode", 100, 200)
        .range("decode_step", 101, 150)
        .operator("aten::embedding", 102, 103, &[&[129_280, 1_280], &[1, 1]])
        .range("decode_step", 151, 199)
        .operator("aten::embedding", 152, 153, &[&[129_280, 1_280], &[1, 1]])
}

#[test]
fn the_workload_is_read_off_the_shapes() {
    let found = seen(&prompt(Builder::new()));
    assert_eq!((found.batch, found.prompt_tokens, found.decode_steps), (Some(1), Some(286), Some(2)));
    assert_eq!((found.views.as_slice(), found.dtype), (&[(1, 1_024)][..], Some(DType::Bf16)));
    assert_eq!((found.logits, found.missing), (Some(LogitsKind::All), vec![]));
}

#[test]
fn prompts_of_different_size_are_no_one_workload() {
    let two = prompt(Builder::new()).operator("aten::embedding", 300, 301, &[&[129_280, 1_280], &[1, 40]]);
    let found = seen(&two);
    assert_eq!(found.prompt_tokens, None);
    let facts = Facts::new().with("batch", 1_u64).with("tokens", 286_u64);
    let facts = facts.with("other_batch", 1_u64).with("other_tokens", 40_u64);
    assert_eq!(found.missing[0], Remark::new("workload.prompts-differ", facts));
}

#[test]
fn without_shapes_nothing_is_guessed() {
    let bare = Builder::new().range("prefill", 0, 10).kernel("gemm", 1, 0, 2, 5);
    let found = seen(&bare);
    assert_eq!((found.prompt_tokens, found.decode_steps, found.batch), (None, None, None));
    assert_eq!(found.missing, [Remark::new("workload.no-shapes", Facts::new())]);
}

#[test]
fn regions_hold_their_own_kernels_and_those_of_the_regions_inside() {
    let run = Builder::new()
        .range("A", 0, 100)
        .range("A1", 10, 20)
        .range("A1", 30, 40)
        .range("B::C", 200, 210)
        .kernel("gemm", 5, 0, 300, 301)
        .kernel("gemm", 12, 0, 310, 312)
        .kernel("gemm", 35, 0, 320, 324)
        .kernel("gemm", 150, 0, 330, 338);
    let metrics = metrics(&[run]);
    let rows: Vec<_> = metrics
        .breakdown
        .regions
        .iter()
        .map(|row| {
            let kernels = (row.kernels_inclusive, row.kernels_exclusive);
            (row.path.as_str(), row.parent.as_deref(), row.instances, kernels, row.total_ns_inclusive.map(Nanos::get))
        })
        .collect();
    let expected = [
        ("A", None, 1, (Some(3), Some(1)), Some(7)),
        ("A::A1", Some("A"), 2, (Some(2), Some(2)), Some(6)),
        // The name has colons of its own; its segments tell.
        ("B::C", None, 1, (Some(0), Some(0)), Some(0)),
    ];
    assert_eq!(rows, expected);
    assert_eq!((metrics.breakdown.regions[2].segments.len(), &metrics.breakdown.regions[2].device), (1, &None));
}

/// Names of the steps, and what marks them.
fn steps(run: Builder) -> Option<(StepBasis, Vec<String>)> {
    let steps = metrics(&[run]).times.steps?;
    Some((steps.basis, steps.list.into_iter().map(|step| step.name).collect()))
}

/// Three ranges of so many kernels, and one kernel behind them.
fn three(name: impl Fn(usize) -> String, kernels: i64) -> Builder {
    let mut run = Builder::new();
    for place in 0..3 {
        let start = place as i64 * 100;
        run = run.range(&name(place), start, start + 90);
        for kernel in 0..kernels {
            let at = start + 10 * (kernel + 1);
            run = run.kernel(["gemm", "norm", "copy"][place], at, 0, at, at + 5);
        }
    }
    run.kernel("last", 395, 0, 400, 420)
}

#[test]
fn ranges_that_differ_in_a_number_are_steps_where_they_hold_most_of_the_work() {
    let tokens = |place: usize| format!("token_{place}_processing");
    let found = steps(three(tokens, 4)).unwrap();
    assert_eq!(found, (StepBasis::CountedRanges, (0..3).map(tokens).collect()));
    assert_eq!(steps(three(tokens, 1)), None, "most of the work is elsewhere");
    assert_eq!(steps(three(|place| format!("layer_{place}"), 4)), None, "layers are numbered too");
    assert_eq!(steps(three(|_| "Optimizer.step#SGD.step".to_owned(), 4)), None, "a part of a step");
}

#[test]
fn steps_of_an_older_profiler_are_among_the_operators() {
    let step = |place: usize| format!("ProfilerStep#{place}");
    let run = (0..3).fold(Builder::new(), |run, place| {
        let start = place as i64 * 100;
        run.operator(&step(place), start, start + 90, &[]).kernel("gemm", start + 10, 0, start + 20, start + 30)
    });
    assert_eq!(steps(run), Some((StepBasis::ProfilerSteps, (0..3).map(step).collect())));
}

#[test]
fn the_first_step_begins_behind_what_was_launched_before_the_recording() {
    // The host of the first step launches from 10 on, while the device still runs the step before until 300.
    let mut run = Builder::new()
        .kernel("gemm", 0, 0, 5, 300)
        .range("ProfilerStep#1", 6, 100)
        .kernel("gemm", 10, 0, 310, 390)
        .range("ProfilerStep#2", 100, 200)
        .kernel("gemm", 110, 0, 400, 490);
    run.0.work[0].correlation = None;
    let walls = |run: &Builder| -> Vec<i64> {
        let steps = metrics(std::slice::from_ref(run)).times.steps.unwrap();
        steps.list.iter().map(|step| step.wall_ns.get()).collect()
    };
    assert_eq!(walls(&run), [90, 100]);
    // Nothing shows that work of another stream was launched before.
    run.0.work[0].queue = QueueId(1);
    assert_eq!(walls(&run), [384, 100]);
    // Without its launch, nothing shows when the work of the first step ran, and its host time is all of it.
    run.0.work[0].queue = QueueId(0);
    run.0.work[1].correlation = None;
    assert_eq!(walls(&run), [94, 100]);
}

#[test]
fn passes_that_answer_requests_are_a_server_s_and_end_when_there_are_none() {
    // Three passes of ten kernels, the last of each chooses a token; the second request comes at 5,000.
    let pass = |run: Builder, start: i64| {
        let kernels = (0..9).fold(run, |run, at| {
            let at = start + at * 10;
            run.kernel("gemm", at, 0, at + 5, at + 12)
        });
        kernels.kernel("argmax_kernel", start + 90, 0, start + 95, start + 100)
    };
    let run = [0, 200, 5_000].into_iter().fold(Builder::new(), pass);
    let found = |without: Option<Spans>| {
        let attribution = Attribution { without_requests: without, ..attributed(&run) };
        let metrics = metrics_of(std::slice::from_ref(&run), vec![attribution]);
        let walls: Vec<i64> =
            metrics.times.steps.as_ref().unwrap().list.iter().map(|step| step.wall_ns.get()).collect();
        (walls, metrics.conditions.trace.unwrap().kind.unwrap().kind)
    };
    let (walls, kind) = found(None);
    assert_eq!((walls[1], kind), (4_800, RunKindName::Program));
    let without = Spans::union([Span::new(Nanos::new(320), Nanos::new(4_990))]);
    let (walls, kind) = found(Some(without));
    assert_eq!((walls[1], kind), (120, RunKindName::Serving));
    let (_, kind) = found(Some(Spans::default()));
    assert_eq!(kind, RunKindName::Serving);
}

fn kind(run: Builder) -> (RunKindName, Remark) {
    let found = metrics(&[run]).conditions.trace.unwrap().kind.unwrap();
    (found.kind, found.evidence)
}

#[test]
fn keys_that_grow_by_one_are_generation_and_one_query_alone_is_not() {
    let attention = |keys: &[u64]| {
        keys.iter().fold(Builder::new().kernel("gemm", 1, 0, 2, 3), |run, keys| {
            let shapes: &[&[u64]] = &[&[1, 8, 1, 64], &[1, 8, *keys, 64], &[1, 8, *keys, 64]];
            run.operator("aten::scaled_dot_product_attention", 0, 10, shapes)
        })
    };
    let (found, evidence) = kind(attention(&[17, 18, 19, 20]));
    assert_eq!(found, RunKindName::Generation);
    assert_eq!(evidence.facts, Facts::new().with("first", 17_u64).with("last", 20_u64));
    // Pooling asks one question of all patches.
    assert_eq!(kind(attention(&[196, 196, 196])).0, RunKindName::Forward);
}

#[test]
fn tokens_recomputed_at_every_step_are_found_and_no_graph_is_advised() {
    let found = |lengths: &[u64]| {
        let mut run = Builder::new();
        for (place, length) in lengths.iter().enumerate() {
            let start = 1_000 * place as i64;
            run = run.operator("aten::embedding", start, start + 10, &[&[50_000, 64], &[1, *length]]);
            run = run.kernel("gemm", start + 20, 0, start + 30, start + 40);
            run = run.operator("aten::argmax", start + 900, start + 910, &[&[1, 50_000]]);
        }
        metrics(&[run]).conclusions.findings
    };
    let rules = |lengths: &[u64]| found(lengths).into_iter().map(|finding| finding.rule).collect::<Vec<_>>();
    let growing = found(&[100, 101, 102, 103]);
    let recomputed = growing.iter().find(|finding| finding.rule == "recomputed-tokens").unwrap();
    assert_eq!((recomputed.quantities.count("passes"), recomputed.saving.saves_ns), (Some(4), None));
    let launches = growing.iter().find(|finding| finding.rule == "launch-bound").unwrap();
    assert!(!launches.quantities.has("repeats"));
    assert_eq!(launches.saving.saves_ns, None, "no two passes have a graph in common");
    assert!(!rules(&[100, 1, 1, 1]).contains(&"recomputed-tokens".to_owned()));
}

#[test]
fn kernels_of_a_cache_show_a_language_model_and_ranges_are_told_where_nothing_does() {
    let of_kernel = |name: &str| kind(Builder::new().kernel(name, 1, 0, 2, 3)).0;
    assert_eq!(of_kernel("_fwd_kernel_destindex_copy_kv"), RunKindName::Inference);
    assert_eq!(of_kernel("void flashinfer::sampling::TopPSamplingFromProbKernel<x>"), RunKindName::Inference);
    assert_eq!(of_kernel("reduce_kernel<ArgMaxOps>"), RunKindName::Program, "may classify");
    let run =
        Builder::new().range("load 1", 0, 5).range("load 2", 5, 9).range("work", 9, 12).kernel("gemm", 10, 0, 11, 12);
    let row = |name: &str, ranges: u64| Facts::new().with("name", name).with("ranges", ranges);
    let facts = Facts::new().with("ranges", 3_u64).with("kinds", vec![row("load N", 2), row("work", 1)]);
    let facts = facts.with_if("complete", true);
    assert_eq!(kind(run), (RunKindName::Program, Remark::new("run-kind.program", facts)));
}

#[test]
fn launches_into_a_capture_are_not_to_be_captured() {
    // As vLLM captures a graph for each part of its step: kernels between the captures wait for their launches.
    let kernels = |mut run: Builder| {
        for at in 0..20 {
            run = run.kernel("fill", 100 * at, 0, 100 * at + 10, 100 * at + 12);
        }
        run
    };
    let gaps = |run: Builder| {
        let found = metrics(&[run]).conclusions.findings.into_iter().map(|finding| finding.rule);
        found.filter(|rule| rule.starts_with("launch-")).count()
    };
    assert_eq!(gaps(kernels(Builder::new())), 1);
    let mut capture = kernels(Builder::new());
    let name = capture.0.names.place("hipStreamEndCapture");
    let call = HostCall { name, start: Nanos::new(2_000), ..capture.0.calls[0].clone() };
    capture.0.calls.push(HostCall { correlation: None, ..call });
    assert_eq!(gaps(capture), 0);
}
