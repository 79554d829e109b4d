//! Attribution on timelines made by hand, whose answers are known.

mod attribution_builder;
mod inferred_stages;

use attribution_builder::{call, empty, kernel, launched, operator, range};
use llm_perf_analysis::attribution::{Attribution, AttributionSettings, Inference, RangeIndex, attribute};
use llm_perf_analysis::time::Span;
use proptest::prelude::*;
use types::timeline::{CopyDirection, OperatorCallId, RangeStyle, Timeline, TraceFormat, WorkKind};
use types::{Nanos, Remark, Severity, Stage};

fn attributed(timeline: &Timeline) -> Attribution {
    attribute(timeline, &AttributionSettings::default())
}

fn counter(attribution: &Attribution, name: &str) -> Option<u64> {
    attribution.quality.iter().find(|counter| counter.counter == name).map(|counter| counter.value)
}

fn share(attribution: &Attribution, name: &str) -> Option<f64> {
    attribution.quality.iter().find(|counter| counter.counter == name).and_then(|counter| counter.share)
}

fn reason(attribution: &Attribution) -> &Remark {
    match &attribution.inference {
        Inference::Refused { reason } => reason,
        other => panic!("stages were found: {other:?}"),
    }
}

fn stages(attribution: &Attribution) -> Vec<(Stage, Option<u32>, u64)> {
    attribution.stages.iter().map(|stage| (stage.stage, stage.parent, stage.work)).collect()
}

#[test]
fn nothing_gives_nothing() {
    let attribution = attributed(&empty());
    assert_eq!((attribution.stages.len(), attribution.steps.len(), attribution.quality.len()), (0, 0, 0));
    assert_eq!(attribution.coverage.share(attribution.coverage.launch), None);
}

#[test]
fn every_node_of_a_graph_belongs_to_the_range_that_launched_it() {
    let mut timeline = empty();
    range(&mut timeline, 0, None, "replay", 0, Some(100));
    call(&mut timeline, 0, "cudaGraphLaunch", 10, 5, 7);
    for node in 0..3 {
        kernel(&mut timeline, node % 2, "node", 200 + i64::from(node) * 10, 5, 7);
    }
    let attribution = attributed(&timeline);
    assert_eq!(attribution.range, [Some(RangeIndex(0)); 3]);
    let projection = attribution.projections.of(RangeIndex(0)).unwrap();
    assert_eq!((projection.work, projection.span.start.get(), projection.span.end.get()), (3, 200, 225));
}

#[test]
fn many_calls_of_one_number_are_looked_up_as_quickly_as_one() {
    // Call by call this would take 4e10 steps.
    const COUNT: i64 = 200_000;
    let mut timeline = empty();
    for place in 0..COUNT {
        call(&mut timeline, 0, "cudaLaunchKernel", 1 + (place + 7) % COUNT, 1, 7);
        kernel(&mut timeline, 0, "kernel", COUNT + place, 1, 7);
    }
    let attribution = attributed(&timeline);
    assert!(attribution.launch.iter().all(|launch| *launch == Some(COUNT as u32 - 7)), "the first to start");
    // The same number in another process: work of an unknown process may be of either.
    call(&mut timeline, 2, "cudaLaunchKernel", 0, 1, 7);
    timeline.queues[0].process = None;
    let attribution = attributed(&timeline);
    assert!(attribution.launch.iter().all(Option::is_none));
    assert_eq!(counter(&attribution, "work_with_ambiguous_launch"), Some(COUNT as u64));
}

#[test]
fn work_in_two_ranges_that_cross_counts_for_both() {
    let mut timeline = empty();
    range(&mut timeline, 0, Some("A"), "early", 0, Some(100));
    range(&mut timeline, 0, Some("B"), "late", 50, Some(150));
    for start in [20, 70, 120] {
        launched(&mut timeline, 0, "kernel", start + 10, 1);
    }
    let attribution = attributed(&timeline);
    assert_eq!(attribution.range, [Some(RangeIndex(0)), Some(RangeIndex(1)), Some(RangeIndex(1))]);
    let work = |range| attribution.projections.of(RangeIndex(range)).unwrap().work;
    assert_eq!((work(0), work(1), attribution.projections.parent(RangeIndex(1))), (2, 2, None));
    assert_eq!(counter(&attribution, "ranges_crossing"), Some(1));
    // One of three kernels of the same length was launched in both.
    assert_eq!(share(&attribution, "ranges_crossing"), Some(1.0 / 3.0));
}

#[test]
fn stages_of_a_warm_up_are_none_where_a_range_says_so() {
    let mut timeline = empty();
    range(&mut timeline, 0, None, "load", 0, Some(40));
    launched(&mut timeline, 0, "weights", 20, 7);
    range(&mut timeline, 0, Some("LLM"), "warmup", 50, Some(200));
    for begin in [60, 210, 360] {
        range(&mut timeline, 0, None, "prefill", begin, Some(begin + 50));
        launched(&mut timeline, 0, "kernel", begin + 20, 3);
        range(&mut timeline, 0, None, "decode", begin + 60, Some(begin + 130));
        range(&mut timeline, 0, None, "decode_step", begin + 65, Some(begin + 120));
        launched(&mut timeline, 0, "kernel", begin + 90, 2);
    }
    // An engine that loads something while it works does so in the stage.
    range(&mut timeline, 0, None, "load", 370, Some(400));
    // Between the inferences, in no stage and not aside.
    launched(&mut timeline, 0, "stray", 355, 1);
    let attribution = attributed(&timeline);
    let (prefill, decode) = ((Stage::Prefill, None, 1), (Stage::Decode, None, 1));
    assert_eq!(stages(&attribution), [prefill, decode, prefill, decode]);
    assert_eq!(attribution.steps.len(), 2);
    assert_eq!(attribution.aside, [true, true, true, false, false, false, false, false]);
    let coverage = &attribution.coverage;
    assert_eq!((coverage.aside.count, coverage.aside.time), (3, Nanos::new(12)));
    assert_eq!((coverage.all.count, coverage.stage().count), (5, 4));
    assert_eq!(counter(&attribution, "work_without_stage"), Some(1));
    let whole = Span::new(Nanos::ZERO, Nanos::new(500));
    assert_eq!(attribution.asides.time_within(&timeline, whole), Nanos::new(40 + 150));
}

#[test]
fn a_trace_of_nothing_but_a_warm_up_is_about_the_warm_up() {
    let mut timeline = empty();
    range(&mut timeline, 0, None, "warmup", 0, Some(200));
    range(&mut timeline, 0, None, "prefill", 10, Some(100));
    launched(&mut timeline, 0, "kernel", 50, 1);
    let attribution = attributed(&timeline);
    assert_eq!(stages(&attribution), [(Stage::Prefill, None, 1)]);
    assert!(attribution.asides.is_empty());
    assert_eq!(attribution.coverage.aside.count, 0);
}

#[test]
fn a_warm_up_of_other_domains_or_of_another_thread_says_nothing() {
    let mut timeline = empty();
    range(&mut timeline, 0, Some("NCCL"), "warmup", 0, Some(100));
    range(&mut timeline, 1, None, "warmup", 0, Some(100));
    range(&mut timeline, 0, None, "prefill", 10, Some(100));
    launched(&mut timeline, 0, "kernel", 50, 1);
    let attribution = attributed(&timeline);
    assert_eq!(stages(&attribution), [(Stage::Prefill, None, 1)]);
    assert_eq!(attribution.coverage.aside.count, 0);
}

#[test]
fn a_warm_up_started_by_handle_holds_for_every_thread_of_its_process() {
    let mut timeline = empty();
    range(&mut timeline, 1, None, "warmup", 0, Some(100));
    timeline.ranges[0].style = RangeStyle::StartEnd;
    for begin in [10, 110] {
        range(&mut timeline, 0, None, "prefill", begin, Some(begin + 80));
        launched(&mut timeline, 0, "kernel", begin + 40, 1);
    }
    let attribution = attributed(&timeline);
    assert_eq!(stages(&attribution), [(Stage::Prefill, None, 1)]);
    assert_eq!(attribution.aside, [true, false]);
}

#[test]
fn parts_of_a_stage_outside_of_it_are_no_part_unless_all_are() {
    // Hooks mark the vision parts of a warm-up too, which no `prefill` holds.
    let mut timeline = empty();
    range(&mut timeline, 0, None, "sam", 0, Some(50));
    launched(&mut timeline, 0, "warm-up", 20, 1);
    range(&mut timeline, 0, None, "prefill", 100, Some(200));
    range(&mut timeline, 0, None, "sam", 110, Some(150));
    launched(&mut timeline, 0, "kernel", 130, 1);
    let attribution = attributed(&timeline);
    assert_eq!(stages(&attribution), [(Stage::Prefill, None, 1), (Stage::Sam, Some(0), 1)]);
    assert_eq!(attribution.stage, [None, Some(Stage::Sam)]);
    assert_eq!(counter(&attribution, "work_without_stage"), Some(1));

    let mut timeline = empty();
    range(&mut timeline, 0, None, "vision", 0, Some(50));
    launched(&mut timeline, 0, "kernel", 20, 1);
    range(&mut timeline, 0, None, "prefill", 100, Some(200));
    launched(&mut timeline, 0, "kernel", 130, 1);
    assert_eq!(stages(&attributed(&timeline)), [(Stage::Vision, None, 1), (Stage::Prefill, None, 1)]);
}

#[test]
fn a_range_left_open_counts_until_the_trace_ends() {
    let mut timeline = empty();
    range(&mut timeline, 0, None, "decode", 0, None);
    launched(&mut timeline, 0, "before", -100, 3);
    launched(&mut timeline, 0, "kernel", 500, 1);
    let attribution = attributed(&timeline);
    assert_eq!(stages(&attribution), [(Stage::Decode, None, 1)]);
    assert!(attribution.stages[0].clipped);
    assert_eq!(counter(&attribution, "ranges_open_at_end"), Some(1));
    assert_eq!(share(&attribution, "ranges_open_at_end"), Some(0.25));
}

#[test]
fn the_number_of_a_launch_belongs_to_its_process() {
    let mut timeline = empty();
    call(&mut timeline, 0, "cudaLaunchKernel", 0, 5, 3);
    call(&mut timeline, 2, "cudaLaunchKernel", 0, 5, 3);
    kernel(&mut timeline, 0, "mine", 10, 1, 3);
    kernel(&mut timeline, 2, "yours", 10, 1, 3);
    assert_eq!(attributed(&timeline).launch, [Some(0), Some(1)]);
    // Where the source does not say whose queue it is, either may be meant, and neither is taken.
    timeline.queues.iter_mut().for_each(|queue| queue.process = None);
    let attribution = attributed(&timeline);
    assert_eq!(attribution.launch, [None, None]);
    assert_eq!(counter(&attribution, "work_with_ambiguous_launch"), Some(2));
    assert_eq!(counter(&attribution, "work_without_launch"), Some(2));
}

#[test]
fn launches_whose_work_is_cut_off_are_counted_and_those_of_a_capture_are_not() {
    let mut timeline = empty();
    timeline.format = TraceFormat::TorchProfiler;
    for number in 1..=9 {
        call(&mut timeline, 0, "cudaLaunchKernel", 10 * number, 5, number as u64);
        kernel(&mut timeline, 0, "gemm", 10 * number + 6, 1, number as u64);
    }
    let missing = |timeline: &Timeline| counter(&attributed(timeline), "launches_cut_off");
    call(&mut timeline, 0, "cudaMemsetAsync", 100, 5, 10);
    assert_eq!(missing(&timeline), None, "a fill of no bytes runs nothing");
    call(&mut timeline, 0, "cudaLaunchKernel", 110, 5, 11);
    assert_eq!(missing(&timeline), Some(1));
    let severity = |timeline: &Timeline| attributed(timeline).quality.last().map(|counter| counter.severity);
    assert_eq!(severity(&timeline), Some(Severity::Error), "a tenth of the launches, at the end");
    timeline.calls.last_mut().unwrap().start = Nanos::new(1);
    assert_eq!(severity(&timeline), Some(Severity::Warning), "at the start");
    let mut dropped = timeline.clone();
    dropped.work.drain(0..7);
    assert_eq!(severity(&dropped), Some(Severity::Error), "most of all launches, wherever they are");
    timeline.calls.last_mut().unwrap().start = Nanos::new(110);
    call(&mut timeline, 0, "cudaStreamBeginCapture", 105, 1, 0);
    assert_eq!(missing(&timeline), None);
    timeline.calls.retain(|call| call.start < Nanos::new(100));
    timeline.work.clear();
    assert_eq!(missing(&timeline), None, "another counter says that no work was recorded");
}

#[test]
fn pages_of_unified_memory_that_the_driver_moves_miss_no_launch() {
    let mut timeline = empty();
    call(&mut timeline, 0, "cudaLaunchKernel", 0, 5, 3);
    kernel(&mut timeline, 0, "mine", 10, 1, 3);
    kernel(&mut timeline, 0, "[CUDA memcpy Unified Host-to-Device]", 20, 1, 99);
    timeline.work[1].kind = WorkKind::Copy(CopyDirection::HostToDevice);
    timeline.work[1].correlation = None;
    assert_eq!(counter(&attributed(&timeline), "work_without_launch"), None);
    kernel(&mut timeline, 0, "other", 30, 1, 98);
    assert_eq!(counter(&attributed(&timeline), "work_without_launch"), Some(1));
}

#[test]
fn work_without_a_launch_goes_to_the_operator_it_names_and_to_no_range() {
    let mut timeline = empty();
    range(&mut timeline, 0, None, "prefill", 0, Some(1_000));
    operator(&mut timeline, "aten::mm", &[], 0, 10);
    kernel(&mut timeline, 0, "kernel", 50, 1, 99);
    timeline.work[0].operator = OperatorCallId::new(1);
    let attribution = attributed(&timeline);
    assert_eq!((attribution.launch[0], attribution.operator[0]), (None, Some(0)));
    assert_eq!((attribution.range[0], attribution.stage[0]), (None, None));
    assert_eq!(counter(&attribution, "work_without_stage"), Some(1));
}

#[test]
fn the_innermost_operator_is_the_one_that_launched() {
    let mut timeline = empty();
    // Written in the order they ended, as some tools do.
    operator(&mut timeline, "aten::addmm", &[], 20, 30);
    operator(&mut timeline, "aten::linear", &[], 0, 100);
    launched(&mut timeline, 0, "gemm", 40, 5);
    launched(&mut timeline, 0, "copy", 80, 5);
    assert_eq!(attributed(&timeline).operator, [Some(0), Some(1)]);
}

#[test]
fn a_stage_inside_itself_is_counted_once_and_other_domains_name_none() {
    let mut timeline = empty();
    range(&mut timeline, 0, Some("LLM"), "prefill", 0, Some(100));
    range(&mut timeline, 0, None, "prefill", 10, Some(90));
    range(&mut timeline, 0, Some("NCCL"), "decode", 20, Some(80));
    launched(&mut timeline, 0, "kernel", 50, 1);
    assert_eq!(stages(&attributed(&timeline)), [(Stage::Prefill, None, 1)]);
}

#[test]
fn steps_without_a_range_around_them_are_runs_of_decode() {
    let mut timeline = empty();
    for (name, start) in
        [("prefill", 0), ("decode_step", 100), ("decode_step_1", 200), ("prefill", 300), ("decode_step", 400)]
    {
        range(&mut timeline, 0, None, name, start, Some(start + 90));
        launched(&mut timeline, 0, "kernel", start + 50, 10);
    }
    let attribution = attributed(&timeline);
    let found =
        [(Stage::Prefill, None, 1), (Stage::Decode, None, 2), (Stage::Prefill, None, 1), (Stage::Decode, None, 1)];
    assert_eq!(stages(&attribution), found);
    let steps: Vec<_> = attribution.steps.iter().map(|step| (step.instance, step.number, step.kernels)).collect();
    assert_eq!(steps, [(Some(1), 0, 1), (Some(1), 1, 1), (Some(3), 0, 1)]);
    assert_eq!(attribution.step, [None, Some(0), Some(1), None, Some(2)]);
}

#[test]
fn a_range_started_by_handle_covers_the_threads_of_its_process() {
    let mut timeline = empty();
    range(&mut timeline, 0, None, "prefill", 0, Some(100));
    timeline.ranges[0].style = RangeStyle::StartEnd;
    for thread in 0..3 {
        launched(&mut timeline, thread, "kernel", 50, 1);
    }
    let attribution = attributed(&timeline);
    assert_eq!(attribution.stage, [Some(Stage::Prefill), Some(Stage::Prefill), None]);
    // It is not one of the pushed ranges.
    assert_eq!(attribution.range, [None; 3]);
}

/// Rows in any order: what each kernel gets, found by looking at everything.
fn naive_range(timeline: &Timeline, call: u32) -> Option<RangeIndex> {
    let call = &timeline.calls[call as usize];
    let around = |place: &usize| {
        let range = &timeline.ranges[*place];
        let open = range.end.is_some_and(|end| range.start <= call.start && call.start < end);
        range.style == RangeStyle::PushPop && range.thread == call.thread && open
    };
    let inner = |place: &usize| {
        let range = &timeline.ranges[*place];
        (range.start, std::cmp::Reverse(range.end), *place)
    };
    (0..timeline.ranges.len()).filter(around).max_by_key(inner).map(|place| RangeIndex(place as u32))
}

proptest! {
    #[test]
    fn ranges_and_projections_are_those_found_by_looking_at_everything(
        ranges in proptest::collection::vec((0..3u32, any::<bool>(), 0..60i64, 0..40i64), 0..15),
        works in proptest::collection::vec((0..3u32, 0..100i64, 0..50i64), 0..15),
    ) {
        let mut timeline = empty();
        for (thread, pushed, start, length) in ranges {
            range(&mut timeline, thread, None, "range", start, Some(start + length));
            if !pushed {
                timeline.ranges.last_mut().unwrap().style = RangeStyle::StartEnd;
            }
        }
        for (number, (thread, start, delay)) in works.iter().enumerate() {
            call(&mut timeline, *thread, "cudaLaunchKernel", *start, 1, number as u64 + 1);
            kernel(&mut timeline, *thread, "kernel", start + delay, 3, number as u64 + 1);
        }
        let attribution = attributed(&timeline);
        for (place, launch) in attribution.launch.iter().enumerate() {
            prop_assert_eq!(*launch, Some(place as u32));
            prop_assert_eq!(attribution.range[place], naive_range(&timeline, place as u32));
        }
        for (place, range) in timeline.ranges.iter().enumerate() {
            let inside = |row: &&types::timeline::DeviceWork| {
                let call = &timeline.calls[row.correlation.unwrap().0.get() as usize - 1];
                call.thread == range.thread && range.start <= call.start && call.start < range.end.unwrap()
            };
            let rows: Vec<_> = timeline.work.iter().filter(inside).collect();
            let found = attribution.projections.of(RangeIndex(place as u32));
            prop_assert_eq!(found.map_or(0, |projection| projection.work), rows.len() as u64);
            if let Some(projection) = found {
                prop_assert_eq!(Some(projection.span.start), rows.iter().map(|row| row.start).min());
                prop_assert_eq!(Some(projection.span.end), rows.iter().map(|row| row.end()).max());
            }
        }
        let sums = attribution.projections.sums(&timeline);
        let launching = (0..timeline.ranges.len()).filter(|place| attribution.projections.of(RangeIndex(*place as u32)).is_some());
        prop_assert_eq!(sums.iter().map(|sum| sum.instances).sum::<u64>(), launching.count() as u64);
    }

    #[test]
    fn the_order_of_rows_does_not_matter(
        works in proptest::collection::vec((0..2u32, 0..100i64, 0..50i64), 1..12),
        ranges in proptest::collection::vec((0..2u32, 0..5usize, 0..60i64, 1..40i64), 0..8),
        seed in any::<u64>(),
    ) {
        let names = ["prefill", "decode", "decode_step", "sam", "other"];
        let build = |order: &[usize]| {
            let mut timeline = empty();
            for (thread, name, start, length) in &ranges {
                range(&mut timeline, *thread, None, names[*name], *start, Some(start + length));
            }
            for place in order {
                let (thread, start, delay) = works[*place];
                call(&mut timeline, thread, "cudaLaunchKernel", start, 1, *place as u64 + 1);
                kernel(&mut timeline, thread, "kernel", start + delay, 3, *place as u64 + 1);
            }
            timeline
        };
        let straight: Vec<usize> = (0..works.len()).collect();
        let mut shuffled = straight.clone();
        shuffled.sort_by_key(|place| (*place as u64 + 1).wrapping_mul(seed | 1));
        let (one, other) = (attributed(&build(&straight)), attributed(&build(&shuffled)));
        for (at, place) in shuffled.iter().enumerate() {
            prop_assert_eq!(one.range[*place], other.range[at]);
            prop_assert_eq!(one.stage[*place], other.stage[at]);
            prop_assert_eq!(one.step[*place], other.step[at]);
        }
        prop_assert_eq!(stages(&one), stages(&other));
        let total: Nanos = one.stages.iter().filter(|stage| stage.parent.is_none()).map(|stage| Nanos::new(stage.work as i64)).sum();
        prop_assert_eq!(total.get() as u64, one.coverage.stage().count);
    }
}
