//! Replays of small timelines whose answers are known.

use proptest::prelude::*;
use types::timeline::{CopyDirection, DeviceQueue, HostThread, QueueId, ThreadId, Timeline, WorkKind};
use types::{IdleCause, Nanos};

use super::bound::Bound;
use super::change::{Change, CopyFate, Pace};
use super::path::PathCause;
use super::refusal::Refusal;
use super::trace_replay::{Basis, Outcome, TraceReplay};
use crate::attribution::{Attribution, AttributionSettings, attribute};
use crate::device::sample::{Launch, call, range, timeline};
use crate::evidence::PlacedTimeline;
use crate::kernel::Family;
use crate::time::Span;

const ALL_REDUCE: &str = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)";
const GEMM: &str = "nvjet_sm90_tst_8x64_64x16_4x1_v_bz_TNN";
const ADD: &str = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)";

/// Asks something of the replay of a timeline.
fn with<T>(timeline: &Timeline, ask: impl FnOnce(&TraceReplay<'_>) -> T) -> T {
    let attribution: Attribution = attribute(timeline, &AttributionSettings::default());
    let placed = PlacedTimeline { timeline, attribution: &attribution, rank: None, devices: Default::default() };
    ask(&TraceReplay::new(&placed, None, &[]).unwrap())
}

/// Time with changes.
fn time(timeline: &Timeline, changes: &[Change]) -> i64 {
    with(timeline, |replay| {
        let changes: Vec<_> = changes.iter().map(|change| (change, None)).collect();
        replay.time(&replay.replay(&changes, Bound::Low, Basis::Traced), None).get()
    })
}

/// The same launch, on another queue.
fn on_second_queue(timeline: &mut Timeline, rows: &[usize]) {
    if timeline.queues.len() == 1 {
        timeline.queues.push(DeviceQueue { stream: Some(20), ..timeline.queues[0].clone() });
    }
    for row in rows {
        timeline.work[*row].queue = QueueId(1);
    }
}

/// A host that needs `each` between launches and a device that needs `run` for each of them, ending with a wait for it.
fn loop_of(count: i64, each: i64, run: i64) -> Timeline {
    let mut launches = Vec::new();
    let mut free = 0;
    for step in 0..count {
        let called = step * each;
        let start = free.max(called + 5_000);
        launches.push(Launch::new(called, start, run));
        free = start + run;
    }
    let last = (count - 1) * each + 5;
    let mut timeline = timeline(free.max(last) + 2_000, &launches);
    call(&mut timeline, "cudaDeviceSynchronize", last + 100, free + 2_000 - last - 100, None);
    timeline
}

#[test]
fn a_host_bound_loop_gets_as_fast_as_its_device_with_a_graph() {
    // 100 kernels of 10 us, launched every 50 us.
    let timeline = loop_of(100, 50_000, 10_000);
    let before = time(&timeline, &[]);
    assert_eq!(before, 99 * 50_000 + 5_000 + 10_000 + 2_000);
    let after = time(&timeline, &[Change::CudaGraphs]);
    // The kernels themselves, and at most one launch of a graph with what follows kernel by kernel.
    assert!((1_000_000..1_250_000).contains(&after), "{after}");
    assert_eq!(time(&timeline, &[Change::Kernels(Family::Other, Pace::Times(2.0))]), before - 5_000);
    let half = time(&timeline, &[Change::Host(2.0)]);
    assert!((half - before / 2).abs() < 20_000, "{half}");
}

#[test]
fn a_graph_does_not_spare_the_host_what_loads_its_kernels() {
    // The first launch loads the kernel for 20 ms.
    let mut timeline = loop_of(100, 50_000, 10_000);
    for call in &mut timeline.calls[1..] {
        call.start += Nanos::new(20_000_000);
    }
    for work in &mut timeline.work {
        work.start += Nanos::new(20_000_000);
    }
    timeline.calls[0].duration = Nanos::new(20_000_000);
    timeline.ranges[0].end = timeline.ranges[0].end.map(|end| end + Nanos::new(20_000_000));
    let (before, after) = (time(&timeline, &[]), time(&timeline, &[Change::CudaGraphs]));
    assert!(before > 24_900_000 && (21_000_000..21_300_000).contains(&after), "{before} {after}");
}

#[test]
fn moments_in_a_compiler_come_with_a_launch_and_long_ones_stay_with_the_host() {
    let with_compiler = |each: i64, compiles: i64| {
        let mut timeline = loop_of(100, each, 10_000);
        for step in 1..100 {
            range(
                &mut timeline,
                "triton/compiler/compiler.py(444): _init_handles",
                step * each - compiles,
                step * each,
            );
        }
        (time(&timeline, &[]), time(&timeline, &[Change::CudaGraphs]))
    };
    let (before, after) = with_compiler(50_000, 3_000);
    assert!(before > 4_900_000 && after < 1_250_000, "{before} {after}");
    let (before, after) = with_compiler(500_000, 300_000);
    assert_eq!(before, after);
}

#[test]
fn a_device_bound_loop_gains_nothing_from_a_graph_and_all_from_its_kernels() {
    let timeline = loop_of(100, 10_000, 50_000);
    let before = time(&timeline, &[]);
    let after = time(&timeline, &[Change::CudaGraphs]);
    assert!((before - after).abs() <= before / 100, "{before} {after}");
    assert!(before - time(&timeline, &[Change::Host(4.0)]) < 100, "the first launch alone is the host's");
    let half = time(&timeline, &[Change::Kernels(Family::Other, Pace::Times(2.0))]);
    assert_eq!(half, before - 100 * 25_000);
}

/// A device that needs 100 us for each of 600 kernels, and a queue that holds `room` of them: further launches return when the device
/// takes the next one.
fn full_queue(room: usize) -> Timeline {
    let start = |row: usize| 5_000 + 100_000 * row as i64;
    let mut launches = Vec::new();
    let mut ends = Vec::new();
    let mut called = 0;
    for row in 0..600_usize {
        let end = row.checked_sub(room).map_or(called + 5_000, |front| (called + 5_000).max(start(front)));
        launches.push(Launch::new(called, start(row), 100_000));
        ends.push(end);
        called = end + 5_000;
    }
    let mut timeline = timeline(start(600) + 2_000, &launches);
    for (call, end) in timeline.calls.iter_mut().zip(&ends) {
        call.duration = Nanos::new(*end) - call.start;
    }
    call(&mut timeline, "cudaDeviceSynchronize", called, start(600) + 2_000 - called, None);
    timeline
}

#[test]
fn launches_into_a_full_queue_wait_for_the_device_and_are_no_work_of_the_host() {
    let timeline = full_queue(300);
    let before = time(&timeline, &[]);
    let half = time(&timeline, &[Change::Kernels(Family::Other, Pace::Times(2.0))]);
    assert_eq!(before - half, 600 * 50_000, "{before} {half}");
    // Few launches ahead, and they are slow for a reason of their own.
    let shallow = full_queue(50);
    let (before, half) = (time(&shallow, &[]), time(&shallow, &[Change::Kernels(Family::Other, Pace::Times(2.0))]));
    assert!(half > before - 10_000_000, "{before} {half}");
}

#[test]
fn what_is_in_a_graph_is_not_captured_again() {
    // 100 kernels in a graph that the host takes 1 ms to launch.
    let mut timeline = loop_of(100, 50_000, 10_000);
    let name = timeline.names.place("cudaGraphLaunch");
    let correlation = timeline.calls[0].correlation;
    timeline.calls[0].name = name;
    timeline.calls[0].duration = Nanos::new(1_000_000);
    timeline.calls.drain(1..100);
    for (row, work) in timeline.work.iter_mut().enumerate() {
        (work.correlation, work.start) = (correlation, Nanos::new(1_000_000 + 12_000 * row as i64));
    }
    assert_eq!(time(&timeline, &[Change::CudaGraphs]), time(&timeline, &[]));
    let share = |timeline: &Timeline| with(timeline, |replay| replay.graph_share());
    assert_eq!((share(&timeline), share(&loop_of(9, 50_000, 10_000))), (Some(1.0), None));
}

#[test]
fn what_two_changes_save_together_is_not_their_sum() {
    // Host and device take turns to be the slower one.
    let timeline = loop_of(100, 30_000, 28_000);
    let before = time(&timeline, &[]);
    let (kernels, graphs) = (Change::Kernels(Family::Other, Pace::Times(10.0)), Change::CudaGraphs);
    let saved = |changes: &[Change]| before - time(&timeline, changes);
    let (one, other, both) =
        (saved(std::slice::from_ref(&kernels)), saved(std::slice::from_ref(&graphs)), saved(&[kernels, graphs]));
    assert!(both > one + other, "the host hides behind the device: {one} {other} {both}");
    assert!(both < before);
}

#[test]
fn a_blocking_call_waits_for_less_where_its_kernel_is_faster() {
    // A kernel of 100 us; the host waits for it, works for 20 us and launches the next.
    let mut timeline = timeline(300_000, &[Launch::new(0, 5_000, 100_000), Launch::new(130_000, 135_000, 100_000)]);
    call(&mut timeline, "cudaStreamSynchronize", 10_000, 100_000, None);
    let before = time(&timeline, &[]);
    let after = time(&timeline, &[Change::Kernels(Family::Other, Pace::Times(2.0))]);
    assert_eq!(before - after, 100_000);
    // Without the wait the second launch follows the first.
    let free = time(&timeline, &[Change::WithoutSynchronisation]);
    assert!(free < before - 25_000 && free >= 200_000, "{free}");
}

#[test]
fn a_wait_for_work_of_before_the_recording_is_that_work_on_the_critical_path() {
    // Two kernels of a pass that was launched before the recording; the host waits for them and launches the next one.
    let mut timeline = timeline(
        300_000,
        &[
            Launch::new(0, 5_000, 50_000).named(GEMM),
            Launch::new(1, 56_000, 50_000).named(GEMM),
            Launch::new(110_000, 115_000, 25_000).named(GEMM),
            Launch::new(111_000, 140_000, 25_000).named(GEMM),
            Launch::new(112_000, 165_000, 25_000).named(GEMM),
            Launch::new(113_000, 190_000, 25_000).named(GEMM),
        ],
    );
    // In no stage: one begins behind that work.
    timeline.ranges.clear();
    timeline.calls.drain(0..2);
    for work in &mut timeline.work[..2] {
        work.correlation = None;
    }
    call(&mut timeline, "cudaStreamSynchronize", 1_000, 106_000, None);
    let path = with(&timeline, |replay| replay.critical_path(replay.unchanged(Basis::Traced)));
    let of = |cause: PathCause| path.get(&cause).copied().unwrap_or_default().get();
    assert_eq!(of(PathCause::Work(Family::Gemm)), 200_000, "{path:?}");
    assert!(of(PathCause::Host(IdleCause::Synchronising)) <= 1_000, "{path:?}");
}

#[test]
fn work_that_ends_just_after_the_call_that_waits_for_it_is_what_the_critical_path_waits_for() {
    // The clock of the device is 3 us ahead: the GEMM runs until 103 us, and the wait for it returns at 100 us.
    let mut timeline =
        timeline(150_000, &[Launch::new(0, 10_000, 93_000).named(GEMM), Launch::new(105_000, 115_000, 10_000)]);
    call(&mut timeline, "cudaStreamSynchronize", 10_000, 90_000, None);
    let path = with(&timeline, |replay| replay.critical_path(replay.unchanged(Basis::Traced)));
    let of = |cause: PathCause| path.get(&cause).copied().unwrap_or_default().get();
    assert!(of(PathCause::Work(Family::Gemm)) >= 90_000, "{path:?}");
    assert!(of(PathCause::Host(IdleCause::Synchronising)) <= 1_000, "{path:?}");
}

#[test]
fn collectives_of_before_the_recording_are_waited_for_too() {
    // Compute 0..50, all-reduce 51..151 on its own stream, compute 153..203: launched before the recording. Then some of its own.
    let mut launches = vec![
        Launch::new(0, 0, 50_000).named(GEMM),
        Launch::new(0, 51_000, 100_000).named(ALL_REDUCE),
        Launch::new(0, 153_000, 50_000).named(GEMM),
    ];
    launches.extend((0..10).map(|place| Launch::new(1_000 * place, 204_000 + 26_000 * place, 25_000).named(GEMM)));
    let mut timeline = timeline(500_000, &launches);
    on_second_queue(&mut timeline, &[1]);
    // In no stage: one begins behind that work.
    timeline.ranges.clear();
    timeline.calls.drain(0..3);
    for work in &mut timeline.work[..3] {
        work.correlation = None;
    }
    let path = with(&timeline, |replay| replay.critical_path(replay.unchanged(Basis::Traced)));
    let of = |cause: PathCause| path.get(&cause).copied().unwrap_or_default().get();
    assert_eq!(of(PathCause::Work(Family::Communication)), 100_000, "{path:?}");
    assert_eq!(of(PathCause::Work(Family::Gemm)), 350_000, "{path:?}");
    assert_eq!(of(PathCause::Host(IdleCause::Queued)), 0, "{path:?}");
}

#[test]
fn a_collective_is_waited_for_unless_it_is_hidden() {
    // Compute 0..100, all-reduce 102..302 on its own stream, compute from 304 on; everything was launched ahead.
    let mut timeline = timeline(
        450_000,
        &[
            Launch::new(0, 5_000, 100_000),
            Launch::new(1_000, 107_000, 200_000).named(ALL_REDUCE),
            Launch::new(3_000, 309_000, 100_000),
        ],
    );
    on_second_queue(&mut timeline, &[1]);
    call(&mut timeline, "cudaStreamWaitEvent", 500, 10, None);
    call(&mut timeline, "cudaStreamWaitEvent", 2_000, 10, None);
    let before = time(&timeline, &[]);
    let quicker = time(&timeline, &[Change::Kernels(Family::Communication, Pace::Times(2.0))]);
    assert_eq!(before - quicker, 100_000);
    let hidden = time(&timeline, &[Change::HiddenCommunication]);
    // It still takes its 200 us, from 107 us on; what follows is done before.
    assert_eq!(hidden, 307_000);
}

#[test]
fn two_streams_run_beside_each_other_and_only_the_longer_one_counts() {
    // 200 us on one stream, 120 us on the other, nothing between them.
    let mut timeline =
        timeline(300_000, &[Launch::new(0, 5_000, 200_000).named(GEMM), Launch::new(100, 5_100, 120_000)]);
    on_second_queue(&mut timeline, &[1]);
    call(&mut timeline, "cudaDeviceSynchronize", 1_000, 205_000, None);
    let before = time(&timeline, &[]);
    assert_eq!(time(&timeline, &[Change::Kernels(Family::Other, Pace::Times(2.0))]), before);
    assert_eq!(time(&timeline, &[Change::Kernels(Family::Gemm, Pace::Times(2.0))]), before - 79_900);
}

#[test]
fn a_chain_that_is_fused_takes_as_long_as_its_longest_kernel() {
    let timeline = timeline(
        150_000,
        &[
            Launch::new(0, 10_000, 20_000).named(ADD),
            Launch::new(10, 30_000, 50_000).named(ADD),
            Launch::new(20, 80_000, 30_000).named(ADD),
            Launch::new(30, 110_000, 40_000).named(GEMM),
        ],
    );
    // The kernel that stays starts 10 us after its own launch, which the one before it no longer delays.
    assert_eq!(time(&timeline, &[Change::FusedElementwise]), 5 + 10_000 + 50_000 + 40_000);
}

#[test]
fn a_copy_that_blocks_is_neither_waited_for_nor_made_when_it_is_removed() {
    let copy = Launch { kind: WorkKind::Copy(CopyDirection::HostToDevice), ..Launch::new(10_000, 12_000, 80_000) };
    let mut timeline = timeline(200_000, &[Launch::new(0, 5_000, 5_000), copy, Launch::new(100_000, 105_000, 50_000)]);
    // The call lasts until the copy is done.
    let name = timeline.names.place("cudaMemcpyAsync");
    timeline.calls[1].name = name;
    timeline.calls[1].duration = Nanos::new(85_000);
    let before = time(&timeline, &[]);
    let removed = time(&timeline, &[Change::Copies(None, CopyFate::Removed)]);
    assert_eq!(before - removed, 85_000);
    let other = time(&timeline, &[Change::Copies(Some(CopyDirection::DeviceToHost), CopyFate::Removed)]);
    assert_eq!(other, before);
}

#[test]
fn a_copy_whose_last_piece_outlasts_its_call_blocks_and_one_that_only_starts_there_does_not() {
    // The call lasts from 10 to 90 us. What comes after it waits for the host, never for the copy.
    let saved = |until: i64| {
        let copy =
            Launch { kind: WorkKind::Copy(CopyDirection::HostToDevice), ..Launch::new(10_000, 12_000, until - 12_000) };
        let mut timeline =
            timeline(300_000, &[Launch::new(0, 5_000, 5_000), copy, Launch::new(200_000, 205_000, 50_000)]);
        timeline.calls[1].name = timeline.names.place("cudaMemcpyAsync");
        timeline.calls[1].duration = Nanos::new(80_000);
        time(&timeline, &[]) - time(&timeline, &[Change::Copies(None, CopyFate::Hidden)])
    };
    assert_eq!(saved(90_800), 78_000);
    assert_eq!(saved(91_000), 0);
}

#[test]
fn a_blocking_copy_behind_a_kernel_waits_for_it_and_is_no_work_of_the_host() {
    let copy = Launch { kind: WorkKind::Copy(CopyDirection::DeviceToHost), ..Launch::new(10_000, 206_000, 4_000) };
    let mut timeline = timeline(
        268_000,
        &[Launch::new(0, 5_000, 200_000).named(GEMM), copy, Launch::new(213_000, 218_000, 50_000).named(ADD)],
    );
    timeline.calls[1].name = timeline.names.place("hipMemcpyWithStream");
    timeline.calls[1].duration = Nanos::new(201_000);
    let before = time(&timeline, &[]);
    assert_eq!(before, 268_000);
    assert_eq!(before - time(&timeline, &[Change::Kernels(Family::Gemm, Pace::Times(2.0))]), 100_000);
}

#[test]
fn the_data_loader_is_saved_by_loading_ahead_and_not_by_a_graph() {
    let mut timeline = timeline(
        10_200_000,
        &(0..5)
            .map(|step| Launch::new(step * 10, 5_000 + step * 1_000, 1_000))
            .chain((0..5).map(|step| Launch::new(10_000_000 + step * 10, 10_005_000 + step * 1_000, 1_000)))
            .collect::<Vec<_>>(),
    );
    range(&mut timeline, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 100_000, 9_900_000);
    let before = time(&timeline, &[]);
    assert!(before - time(&timeline, &[Change::CudaGraphs]) < 10_000);
    let loaded = time(&timeline, &[Change::WithoutHost(IdleCause::DataLoading)]);
    assert_eq!(before - loaded, 9_800_000);
}

#[test]
fn a_trace_without_calls_or_launches_is_refused_with_a_reason() {
    let refusal = |timeline: &Timeline| {
        let attribution = attribute(timeline, &AttributionSettings::default());
        let placed = PlacedTimeline { timeline, attribution: &attribution, rank: None, devices: Default::default() };
        TraceReplay::new(&placed, None, &[]).err()
    };
    let mut timeline = timeline(1_000, &[Launch::new(0, 10, 90), Launch::new(20, 110, 90)]);
    assert_eq!(refusal(&timeline), None);
    for work in &mut timeline.work {
        work.correlation = None;
    }
    assert_eq!(refusal(&timeline), Some(Refusal::NoLaunches));
    timeline.calls.clear();
    assert_eq!(refusal(&timeline), Some(Refusal::NoCalls));
    timeline.work.clear();
    assert_eq!(refusal(&timeline), Some(Refusal::NoWork));
}

#[test]
fn a_plain_run_that_was_faster_scales_the_host_and_bounds_the_saving() {
    let timeline = loop_of(100, 50_000, 10_000);
    let attribution = attribute(&timeline, &AttributionSettings::default());
    let placed =
        PlacedTimeline { timeline: &timeline, attribution: &attribution, rank: None, devices: Default::default() };
    let mut replay = TraceReplay::new(&placed, None, &[]).unwrap();
    let scope = crate::scope::Scope::Stage(types::Stage::Prefill);
    replay.set_plain(&[(scope, Nanos::new(2_000_000))].into());
    let time = |basis| {
        let outcome: Outcome = replay.replay(&[], Bound::Low, basis);
        replay.time(&outcome, Some(scope)).get()
    };
    assert!((time(Basis::Plain) - 2_000_000).abs() < 2_000, "{}", time(Basis::Plain));
    assert_eq!(time(Basis::Traced), 99 * 50_000 + 17_000);
}

/// A timeline with two threads, two queues of one device, waits, copies and blocking calls.
fn any_timeline() -> impl Strategy<Value = Timeline> {
    let work = (0i64..40_000, 0i64..60_000, 0i64..30_000, 0usize..5, 0u32..2, 0u32..2);
    let blocking = (0i64..3_000_000, 0i64..200_000, 0usize..4);
    (proptest::collection::vec(work, 1..60), proptest::collection::vec(blocking, 0..10)).prop_map(|(work, blocking)| {
        let kinds = [WorkKind::Kernel, WorkKind::Kernel, WorkKind::Kernel, WorkKind::Fill];
        let (mut now, mut launches) = (0, Vec::new());
        for (gap, run, late, kind, _, _) in &work {
            now += gap;
            let kind = kinds.get(*kind).copied().unwrap_or(WorkKind::Copy(CopyDirection::HostToDevice));
            launches.push(Launch { kind, ..Launch::new(now, now + late, *run) });
        }
        let end = now + 100_000;
        let mut timeline = timeline(end, &launches);
        timeline.threads.push(HostThread { thread: Some(2), ..timeline.threads[0].clone() });
        timeline.queues.push(DeviceQueue { stream: Some(9), ..timeline.queues[0].clone() });
        for (row, (.., queue, thread)) in work.iter().enumerate() {
            timeline.work[row].queue = QueueId(*queue);
            timeline.calls[row].thread = ThreadId(*thread);
        }
        let names = ["cudaStreamSynchronize", "cudaEventSynchronize", "cudaStreamWaitEvent", "cudaMalloc"];
        for (start, duration, name) in blocking {
            call(&mut timeline, names[name], start, duration, None);
        }
        timeline
    })
}

proptest! {
    #[test]
    fn an_unchanged_replay_gives_back_the_recording(timeline in any_timeline()) {
        with(&timeline, |replay| {
            let outcome = replay.replay(&[], Bound::Low, Basis::Traced);
            let (replayed, recorded) = (replay.time(&outcome, None), replay.recorded(None));
            prop_assert!((replayed - recorded).get().abs() <= recorded.get() / 50 + 10_000, "{} {}", replayed, recorded);
            Ok(())
        })?;
    }

    #[test]
    fn nothing_gets_slower_by_taking_time_away(timeline in any_timeline()) {
        with(&timeline, |replay| {
            let before = replay.time(&replay.replay(&[], Bound::Low, Basis::Traced), None);
            let changes = [
                Change::Kernels(Family::Other, Pace::Times(3.0)),
                Change::Host(2.0),
                Change::WithoutSynchronisation,
                Change::Copies(None, CopyFate::Removed),
                Change::Copies(None, CopyFate::Hidden),
                Change::WithoutHost(IdleCause::HostWork),
            ];
            for change in &changes {
                let after = replay.time(&replay.replay(&[(change, None)], Bound::Low, Basis::Traced), None);
                prop_assert!(after <= before + Nanos::new(1_000), "{:?}: {} after {}", change, after, before);
            }
            Ok(())
        })?;
    }

    #[test]
    fn the_critical_path_is_as_long_as_the_replay(timeline in any_timeline()) {
        with(&timeline, |replay| {
            let outcome = replay.replay(&[], Bound::Low, Basis::Traced);
            let path: Nanos = replay.critical_path(&outcome).values().copied().sum();
            let time = replay.time(&outcome, None);
            prop_assert!(path <= time + Nanos::new(1_000), "{} {}", path, time);
            Ok(())
        })?;
    }

    #[test]
    fn a_host_bound_loop_is_its_host_and_a_device_bound_one_its_device(count in 5i64..60, host in 5_000i64..80_000, run in 2_000i64..80_000) {
        let timeline = loop_of(count, host, run);
        let expected = if host >= run { (count - 1) * host + 5_000 + run } else { 5_000 + count * run };
        prop_assert!((time(&timeline, &[]) - expected - 2_000).abs() <= host.max(run) / 10, "{} {}", time(&timeline, &[]), expected);
        let faster = time(&timeline, &[Change::Kernels(Family::Other, Pace::Times(1e9))]);
        let host_alone = (count - 1) * host;
        prop_assert!(faster >= host_alone, "{} {}", faster, host_alone);
        prop_assert!(faster <= host_alone + 5_000 + 2_000 + count * 1_500 + 2_000, "{} {}", faster, host_alone);
    }
}

#[test]
fn spans_of_a_replay_start_where_the_recording_does() {
    let timeline = loop_of(3, 10_000, 1_000);
    with(&timeline, |replay| {
        let replayed = replay.timeline(&replay.replay(&[], Bound::Low, Basis::Traced));
        let spans = |timeline: &Timeline| -> Vec<Span> {
            timeline.work.iter().map(|work| Span::new(work.start, work.end())).collect()
        };
        assert_eq!(spans(&replayed), spans(&timeline));
    });
}
