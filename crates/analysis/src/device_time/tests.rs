//! Times of devices that are known beforehand.

use types::timeline::CopyDirection;

use proptest::prelude::*;
use types::timeline::{DeviceQueue, HostOperator, OperatorKind, QueueId};

use super::*;
use crate::attribution::{AttributionSettings, attribute};
use crate::device::sample::{Launch, call, range, timeline};

/// An operator on the thread that launches.
fn operator(timeline: &mut Timeline, name: &str, kind: OperatorKind, (start, end): (i64, i64)) {
    let name = timeline.names.place(name);
    let (thread, start, duration) = (types::timeline::ThreadId(0), Nanos::new(start), Nanos::new(end - start));
    timeline.operators.push(HostOperator { kind, name, thread, signature: None, start, duration, call: None });
}

fn divided(timeline: &Timeline) -> Vec<DeviceTime> {
    let attribution = attribute(timeline, &AttributionSettings::default());
    device_times(&[PlacedTimeline { timeline, attribution: &attribution, rank: None, devices: BTreeMap::new() }])
}

fn cause_of(time: &DeviceTime, cause: IdleCause) -> i64 {
    time.idle.iter().find(|idle| idle.cause == cause).map_or(0, |idle| idle.ns.get())
}

#[test]
fn communication_behind_compute_is_hidden_and_the_rest_exposed() {
    // Compute 0..100, all-reduce 50..200, a copy 150..260.
    let copy = Launch { kind: WorkKind::Copy(CopyDirection::HostToDevice), ..Launch::new(3, 150, 110) };
    let all_reduce = Launch::new(2, 50, 150).named("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)");
    let found = &divided(&timeline(300, &[Launch::new(1, 0, 100), all_reduce, copy]))[0];
    assert_eq!((found.span_ns.get(), found.busy_ns.get(), found.idle_ns.get()), (260, 260, 0));
    let parts = (found.compute_ns, found.communication_exposed_ns, found.copies_exposed_ns);
    assert_eq!(parts, (Nanos::new(100), Nanos::new(100), Nanos::new(60)));
    assert_eq!((found.communication_ns.get(), found.copies[0].kind.as_str()), (150, "HtoD"));
}

#[test]
fn a_device_that_starts_late_is_told_from_one_that_waits_in_between() {
    let late = |first: i64, start: i64| {
        let found = divided(&timeline(80_000_000, &[Launch::new(0, 10, first), Launch::new(200, start, 9_000_000)]));
        found[0].late_start_ns
    };
    // Launched at 200 ns, and started after 50 ms: a queue from before may have run.
    assert_eq!(late(100, 50_000_000), Nanos::new(49_999_795));
    assert_eq!(late(100, 900_000), Nanos::ZERO);
    assert_eq!(late(20_000_000, 50_000_000), Nanos::ZERO, "it had worked before");
}

#[test]
fn a_kernel_that_starts_early_behind_communication_on_its_stream_waits_for_it() {
    let all_reduce = || Launch::new(0, 100, 100).named("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)");
    let parts = |kernel: Launch, other_stream: bool| {
        let mut timeline = timeline(1_000, &[all_reduce(), kernel]);
        if other_stream {
            timeline.queues.push(DeviceQueue { stream: Some(8), ..timeline.queues[0].clone() });
            timeline.work[1].queue = QueueId(1);
        }
        let found = divided(&timeline).remove(0);
        assert_eq!(found.compute_ns + found.communication_exposed_ns, found.busy_ns);
        [found.communication_ns, found.communication_exposed_ns, found.communication_awaited_ns].map(Nanos::get)
    };
    // From 120 on below the all-reduce, which ends at 200.
    assert_eq!(parts(Launch::new(1, 120, 90), false), [100, 20, 80]);
    assert_eq!(parts(Launch::new(1, 120, 90), true), [100, 20, 0], "on another stream it computes");
    assert_eq!(parts(Launch::new(1, 120, 40), false), [100, 60, 0], "it did not wait for what it outran");
    assert_eq!(parts(Launch::new(1, 200, 90), false), [100, 100, 0]);
}

#[test]
fn a_gap_inside_the_data_loader_is_not_launching() {
    let mut timeline = timeline(10_000, &[Launch::new(0, 10, 90), Launch::new(9_000, 9_010, 100)]);
    range(&mut timeline, "enumerate(DataLoader)#Iterator.__next__", 200, 8_200);
    call(&mut timeline, "cudaStreamSynchronize", 100, 50, None);
    let found = &divided(&timeline)[0];
    assert_eq!(cause_of(found, IdleCause::DataLoading), 8_000);
    assert_eq!((cause_of(found, IdleCause::Synchronising), cause_of(found, IdleCause::Launching)), (50, 860));
}

#[test]
fn a_quiet_host_is_named_by_the_range_it_is_in() {
    let mut timeline = timeline(9_000_000, &[Launch::new(0, 10, 90), Launch::new(8_000_000, 8_000_010, 100)]);
    range(&mut timeline, "## optimizer ##", 100, 7_999_000);
    let found = &divided(&timeline)[0];
    assert_eq!(found.idle[0].cause, IdleCause::HostUnknown, "a range does not tell work from sleep");
    assert_eq!(found.idle[0].inside[0].name, "## optimizer ##");
}

/// What the host did in eight milliseconds without a call, in which `operators` are recorded.
fn quiet(operators: &[(&str, OperatorKind, i64, i64)], steps: &[(i64, i64)]) -> Vec<(IdleCause, i64)> {
    let mut timeline = timeline(9_000_000, &[Launch::new(0, 10, 90), Launch::new(8_000_000, 8_000_010, 100)]);
    for (name, kind, start, end) in operators {
        operator(&mut timeline, name, *kind, (*start, *end));
    }
    let mut attribution = attribute(&timeline, &AttributionSettings::default());
    attribution.between_steps =
        Spans::union(steps.iter().map(|(start, end)| Span::new(Nanos::new(*start), Nanos::new(*end))));
    let placed =
        PlacedTimeline { timeline: &timeline, attribution: &attribution, rank: None, devices: BTreeMap::new() };
    let found = &device_times(&[placed])[0];
    let of = |cause: IdleCause| Some((cause, cause_of(found, cause))).filter(|(_, time)| *time > 0);
    [IdleCause::HostWork, IdleCause::HostUnknown, IdleCause::NoWork].into_iter().filter_map(of).collect()
}

#[test]
fn a_host_without_calls_works_only_where_something_recorded_shows_it() {
    use OperatorKind::{Framework, Python};
    const ALL: i64 = 7_999_900;
    assert_eq!(quiet(&[], &[]), [(IdleCause::HostUnknown, ALL)]);
    assert_eq!(quiet(&[("aten::sort", Framework, 100, 8_000_000)], &[]), [(IdleCause::HostWork, ALL)]);
    // A loop of the user's code that sleeps, and one that waits for another thread.
    let with = |function: &str| {
        quiet(&[("run.py(3): main", Python, 0, 8_000_000), (function, Python, 1_000_000, 7_000_000)], &[])
    };
    let slept = [(IdleCause::HostWork, ALL - 6_000_000), (IdleCause::NoWork, 6_000_000)];
    assert_eq!(with("<built-in function sleep>"), slept);
    let waited = [(IdleCause::HostWork, ALL - 6_000_000), (IdleCause::HostUnknown, 6_000_000)];
    for wait in ["acquire of _thread.lock object", "poll of select.epoll object", "recv of socket object"] {
        assert_eq!(with(&format!("<built-in method {wait} at 0x7f>")), waited, "{wait}");
    }
    assert_eq!(with("<built-in function sched_yield>"), waited);
    assert_eq!(with("<built-in function sorted>"), [(IdleCause::HostWork, ALL)]);
    // A server between two steps: its loop polls, and only operators are work.
    let lull = [(500_000, 7_500_000)];
    let polls = [("server.py(9): loop", Python, 0, 8_000_000)];
    assert_eq!(quiet(&polls, &lull), [(IdleCause::HostWork, ALL - 7_000_000), (IdleCause::NoWork, 7_000_000)]);
    let works = [("aten::sort", Framework, 500_000, 7_500_000)];
    assert_eq!(quiet(&works, &lull), [(IdleCause::HostWork, 7_000_000), (IdleCause::HostUnknown, ALL - 7_000_000)]);
}

#[test]
fn work_that_was_launched_long_before_it_ran_was_queued() {
    let found = &divided(&timeline(9_000_000, &[Launch::new(0, 10, 90), Launch::new(50, 8_000_000, 100)]))[0];
    assert_eq!((cause_of(found, IdleCause::Queued), cause_of(found, IdleCause::Launching)), (7_999_900, 0));
}

#[test]
fn short_gaps_before_work_that_was_launched_are_the_device_s_own() {
    let of = |start: i64| {
        let launches = [Launch::new(0, 10, 90), Launch::new(50, start, 100)];
        let found = &divided(&timeline(9_000_000, &launches))[0];
        [IdleCause::BetweenKernels, IdleCause::Queued].map(|cause| cause_of(found, cause))
    };
    assert_eq!((of(1_600), of(20_100), of(20_101)), ([1_500, 0], [20_000, 0], [0, 20_001]));
}

#[test]
fn gaps_inside_a_graph_are_no_launching_while_its_call_has_not_returned() {
    let launches = [Launch::new(0, 100, 100), Launch::new(0, 300, 100), Launch::new(0, 500, 100)];
    let mut timeline = timeline(1_000, &launches);
    timeline.calls.truncate(1);
    timeline.calls[0].duration = Nanos::new(900);
    for work in &mut timeline.work {
        work.correlation = timeline.calls[0].correlation;
    }
    let found = &divided(&timeline)[0];
    assert_eq!((cause_of(found, IdleCause::BetweenKernels), cause_of(found, IdleCause::Launching)), (200, 0));
}

/// A device that waits 6 ms inside the first call of an operator, whose later calls take this long each.
fn first_call(later: i64, calls: i64) -> i64 {
    let operator = |call: i64, start: i64| Launch { operator: Some("aten::mm"), ..Launch::new(call, start, 10_000) };
    let mut launches = vec![Launch::new(0, 1_000, 10_000), operator(6_000_000, 6_010_000)];
    launches.extend((0..calls).map(|place| operator(8_000_000 + 4_000_000 * place, 8_000_100 + 4_000_000 * place)));
    let mut timeline = timeline(40_000_000, &launches);
    (timeline.operators[0].start, timeline.operators[0].duration) = (Nanos::new(20_000), Nanos::new(6_000_000));
    for operator in &mut timeline.operators[1..] {
        operator.duration = Nanos::new(later);
    }
    cause_of(&divided(&timeline)[0], IdleCause::Compiling)
}

#[test]
fn a_first_call_of_an_operator_is_first_use_where_the_later_ones_are_quick() {
    assert_eq!(first_call(50_000, 3), 6_000_005 - 20_000);
    assert_eq!(first_call(50_000, 2), 0, "two later calls show no usual time");
    assert_eq!(first_call(700_000, 3), 0, "it takes less than ten times as long");
}

#[test]
fn a_first_call_with_new_shapes_is_first_use_and_a_slow_second_one_is_not() {
    // Six calls for 100 keys, the first of them cold, then calls for 101 keys, the first of which takes 6 ms again.
    let found = |slow: usize| {
        let launch = |place: i64| Launch {
            operator: Some("aten::attention"),
            ..Launch::new(10_000_000 * place + 6_000_000, 10_000_000 * place + 6_010_000, 10_000)
        };
        let mut timeline = timeline(130_000_000, &(0..12).map(launch).collect::<Vec<_>>());
        let signatures = [100, 101].map(|keys| {
            let signature = types::timeline::OperatorSignature { shapes: vec![vec![keys]], ..Default::default() };
            timeline.signatures.place_owned(signature)
        });
        for (place, operator) in timeline.operators.iter_mut().enumerate() {
            operator.signature = Some(signatures[place / 6]);
            let before = if place == slow { 6_000_000 } else { 10_000 };
            operator.start = Nanos::new(10_000_000 * place as i64 + 6_000_000 - before);
            operator.duration = Nanos::new(before + 40_000);
        }
        cause_of(&divided(&timeline)[0], IdleCause::Compiling)
    };
    assert!(found(6) > 5_900_000, "{}", found(6));
    assert_eq!(found(7), 0);
}

#[test]
fn operators_that_compute_on_the_host_are_host_work() {
    let launches = [Launch::new(0, 10, 90), Launch::new(900_000, 900_010, 100)];
    let found = |operators: &[(&str, i64, i64)]| {
        let mut timeline = timeline(1_000_000, &launches);
        for (name, start, end) in operators {
            operator(&mut timeline, name, OperatorKind::Framework, (*start, *end));
        }
        let time = divided(&timeline).remove(0);
        let named = time.idle.iter().find(|idle| idle.cause == IdleCause::HostWork);
        named.map(|idle| (idle.ns.get(), idle.inside.first().map(|place| place.name.clone())))
    };
    // As random numbers made on the host: nothing is launched inside.
    let random = found(&[("aten::randint", 1_000, 500_000), ("aten::random_", 2_000, 499_000)]);
    assert_eq!(random, Some((497_000, Some("aten::random_".to_owned()))));
    assert_eq!(found(&[("aten::relu", 1_000, 100_000)]), None, "short operators are part of launching");
    assert_eq!(found(&[("aten::linear", 1_000, 950_000)]), None, "it launches what follows");
}

#[test]
fn a_convolution_that_waits_for_events_tries_algorithms() {
    let waits = |called: &str| {
        let launch = |at: i64| Launch::new(at, at + 10, 90);
        let mut timeline = timeline(20_000, &[launch(100), launch(900), launch(9_000)]);
        call(&mut timeline, "cudaEventSynchronize", 300, 500, None);
        operator(&mut timeline, called, OperatorKind::Framework, (50, 1_000));
        let found = &divided(&timeline)[0];
        [IdleCause::Compiling, IdleCause::Synchronising].map(|cause| cause_of(found, cause))
    };
    // From the end of the first kernel to the start of the second, all of it inside the operator.
    assert_eq!(waits("aten::cudnn_convolution"), [705, 0]);
    assert_eq!(waits("aten::item"), [0, 500]);
}

#[test]
fn every_stretch_of_a_gap_has_its_own_cause() {
    let mut timeline = timeline(1_000, &[Launch::new(0, 100, 100), Launch::new(600, 700, 100)]);
    call(&mut timeline, "cudaStreamSynchronize", 210, 40, None);
    let attribution = attribute(&timeline, &AttributionSettings::default());
    let found: Vec<_> = idle_stretches(&timeline, &attribution)
        .into_iter()
        .map(|one| (one.start.get(), one.length.get(), one.cause))
        .collect();
    let expected =
        [(200, 10, IdleCause::Launching), (210, 40, IdleCause::Synchronising), (250, 450, IdleCause::Launching)];
    assert_eq!(found, expected);
}

#[test]
fn a_device_of_which_only_graphs_are_known_has_no_idle_time() {
    let graph = |launched, start| Launch { kind: WorkKind::Graph, ..Launch::new(launched, start, 100) };
    let mut timeline = timeline(1_000, &[graph(0, 100), graph(600, 700)]);
    let stretches =
        |timeline: &Timeline| idle_stretches(timeline, &attribute(timeline, &AttributionSettings::default())).len();
    assert!(divided(&timeline).len() == 1 && stretches(&timeline) > 0);
    timeline.graphs_only = true;
    assert_eq!((divided(&timeline).len(), stretches(&timeline)), (0, 0));
}

proptest! {
    #[test]
    fn the_parts_always_make_up_the_whole(
        work in proptest::collection::vec((0i64..5_000_000, 0i64..900_000, 0usize..5, 0u32..2, 0i64..3_000_000), 1..30),
        calls in proptest::collection::vec((0i64..5_000_000, 0i64..2_000_000, 0usize..6), 0..12),
        ranges in proptest::collection::vec((0i64..5_000_000, 0i64..2_000_000, 0usize..3), 0..6),
    ) {
        let kinds = [
            WorkKind::Kernel, WorkKind::Kernel, WorkKind::Graph, WorkKind::Fill, WorkKind::Copy(CopyDirection::DeviceToHost),
        ];
        let launches: Vec<_> = work.iter().map(|(start, duration, kind, _, before)| {
            let name = if *kind == 1 { "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)" } else { "kernel" };
            Launch { kind: kinds[*kind], ..Launch::new(*start - *before, *start, *duration).named(name) }
        }).collect();
        let mut timeline = timeline(0, &launches);
        timeline.ranges.clear();
        timeline.queues.push(DeviceQueue { device: 1, ..timeline.queues[0].clone() });
        for (row, (.., device, _)) in timeline.work.iter_mut().zip(&work) {
            row.queue = QueueId(*device);
        }
        let names = ["cudaStreamSynchronize", "cudaMalloc", "cudaMemcpy", "cuModuleLoad", "cudaStreamBeginCapture", "cudaStreamEndCapture"];
        for (start, duration, name) in calls {
            call(&mut timeline, names[name], start, duration, None);
        }
        let names = ["enumerate(DataLoader)#x", "gloo:all_reduce", "ProfilerStep#1"];
        for (start, duration, name) in ranges {
            range(&mut timeline, names[name], start, start + duration);
        }
        let attribution = attribute(&timeline, &AttributionSettings::default());
        let stretches = idle_stretches(&timeline, &attribution);
        let apart = stretches.windows(2).all(|pair| {
            pair[0].device != pair[1].device || pair[0].start + pair[0].length <= pair[1].start
        });
        prop_assert!(apart, "{:?}", stretches);
        for (device, found) in rows_by_device(&timeline).into_keys().zip(divided(&timeline)) {
            for idle in IdleCause::ALL {
                let own = stretches.iter().filter(|one| one.device == device && one.cause == idle);
                prop_assert_eq!(own.map(|one| one.length).sum::<Nanos>().get(), cause_of(&found, idle));
            }
        }
        for found in divided(&timeline) {
            prop_assert_eq!(found.busy_ns + found.idle_ns, found.span_ns);
            prop_assert_eq!(found.compute_ns + found.communication_exposed_ns + found.copies_exposed_ns, found.busy_ns);
            prop_assert_eq!(found.idle.iter().map(|idle| idle.ns).sum::<Nanos>(), found.idle_ns);
            prop_assert!(found.idle.iter().all(|idle| idle.ns > Nanos::ZERO && idle.longest_ns <= idle.ns));
            prop_assert!(found.communication_exposed_ns <= found.communication_ns);
            prop_assert_eq!(found.copies.iter().map(|copy| copy.exposed_ns).sum::<Nanos>(), found.copies_exposed_ns);
            prop_assert!(found.copies.iter().all(|copy| copy.exposed_ns <= copy.ns));
        }
    }
}
