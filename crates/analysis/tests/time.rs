//! Busy, idle and waiting time, on timelines made by hand and on a real capture.

mod attribution_builder;
mod attribution_captures;

use attribution_builder::{call, empty, kernel};
use attribution_captures as captures;
use llm_perf_analysis::attribution::{AttributionSettings, attribute, step_series};
use llm_perf_analysis::time::{GapCause, Span, activity, devices, gaps, queue_depth, waiting};
use proptest::prelude::*;
use types::Nanos;

#[test]
fn a_gap_is_put_down_to_what_the_host_did_before_the_next_launch() {
    // Kernels at 0..10, 100..110, 115..120, 200..210. The host: launch of the second at 90 after waiting 20..60 and
    // allocating 60..70; the third was launched at 105, while the second ran; a copy at 130..150, the last launch at 190.
    let mut timeline = empty();
    call(&mut timeline, 0, "cudaLaunchKernel", -5, 2, 1);
    call(&mut timeline, 0, "cudaStreamSynchronize", 20, 40, 0);
    call(&mut timeline, 0, "cudaMalloc", 60, 10, 0);
    call(&mut timeline, 0, "cudaLaunchKernel", 90, 5, 2);
    call(&mut timeline, 0, "cudaLaunchKernel", 105, 2, 3);
    call(&mut timeline, 0, "cudaMemcpyAsync", 130, 20, 0);
    call(&mut timeline, 0, "cudaLaunchKernel", 190, 5, 4);
    for (number, (start, duration)) in [(0, 10), (100, 10), (115, 5), (200, 10)].into_iter().enumerate() {
        kernel(&mut timeline, 0, "kernel", start, duration, number as u64 + 1);
    }
    let attribution = attribute(&timeline, &AttributionSettings::default());
    let activity = activity(&timeline, 0, None).unwrap();
    assert_eq!((activity.busy_ns(), activity.idle_ns()), (Nanos::new(35), Nanos::new(175)));
    let gaps = gaps(&timeline, &attribution.launch, 0, &activity);
    let of = |place: usize, cause| gaps[place].waiting.of(cause).get();
    // 10..100: 40 waiting, 10 allocating, 90 - 50 - 10 = 30 preparing before the call, 10 in the launch.
    assert_eq!([of(0, GapCause::Synchronisation), of(0, GapCause::Allocation), of(0, GapCause::Launch)], [40, 10, 40]);
    assert_eq!(gaps[0].waiting.main(), GapCause::Launch);
    // 110..115: the third was called for at 105.
    assert_eq!(of(1, GapCause::Queued), 5);
    // 120..200: 20 in the copy, the rest preparing and launching.
    assert_eq!([of(2, GapCause::Copy), of(2, GapCause::Launch)], [20, 60]);
    assert_eq!(waiting(&gaps).total(), activity.idle_ns());
    // Waiting for the device: -5..0, 90..100, 105..115, 190..200, of which 30 ns in the window of 210.
    let depth = queue_depth(&timeline, &attribution.launch, 0, activity.window).unwrap();
    assert_eq!((depth.max, depth.mean, depth.empty_share), (1, 30.0 / 210.0, 180.0 / 210.0));
}

#[test]
fn a_trace_without_calls_does_not_tell_what_the_device_waited_for() {
    let mut timeline = empty();
    kernel(&mut timeline, 0, "kernel", 0, 10, 1);
    kernel(&mut timeline, 0, "kernel", 50, 10, 2);
    let attribution = attribute(&timeline, &AttributionSettings::default());
    let activity = activity(&timeline, 0, None).unwrap();
    let gaps = gaps(&timeline, &attribution.launch, 0, &activity);
    assert_eq!(waiting(&gaps).of(GapCause::Unknown), Nanos::new(40));
    assert_eq!(queue_depth(&timeline, &attribution.launch, 0, activity.window), None);
    assert_eq!(step_series(&attribution.steps), None);
}

#[test]
fn a_device_without_work_has_no_activity_unless_a_window_is_given() {
    let timeline = empty();
    assert_eq!(devices(&timeline), [] as [u32; 0]);
    assert_eq!(activity(&timeline, 0, None), None);
    let window = Span::new(Nanos::ZERO, Nanos::new(10));
    assert_eq!(activity(&timeline, 0, Some(window)).unwrap().idle_ns(), Nanos::new(10));
}

#[test]
fn decode_on_the_h200_waits_for_launches() {
    let timeline = captures::torch_h200();
    let attribution = attribute(&timeline, &AttributionSettings::default());
    let decode = attribution.stages.iter().find(|stage| stage.stage == types::Stage::Decode).unwrap();
    let activity = activity(&timeline, 0, Some(decode.host)).unwrap();
    assert_eq!(activity.busy_ns() + activity.idle_ns(), decode.host.length());
    assert!(activity.busy_share().unwrap() < 0.1);
    let gaps = gaps(&timeline, &attribution.launch, 0, &activity);
    let waiting = waiting(&gaps);
    assert_eq!(waiting.total(), activity.idle_ns());
    assert_eq!(waiting.main(), GapCause::Launch);
    assert!(waiting.of(GapCause::Launch).get() as f64 > 0.7 * waiting.total().get() as f64, "{waiting:?}");
    let depth = queue_depth(&timeline, &attribution.launch, 0, decode.host).unwrap();
    assert!(depth.mean < 1.0 && depth.empty_share > 0.5, "{depth:?}");
    let steps = step_series(&attribution.steps).unwrap();
    assert_eq!((steps.times.len(), steps.launches_per_token, steps.kernels_per_token), (4, 1_280.0, 1_234.0));
    assert!(steps.p50 <= steps.p95 && steps.p95 <= steps.p99);
    assert!(steps.drift.is_some());
}

proptest! {
    #[test]
    fn busy_and_idle_make_up_the_window_and_waiting_makes_up_idle(
        works in proptest::collection::vec((0..2u32, -20..300i64, 0..30i64, 0..12u64), 0..20),
        calls in proptest::collection::vec((0..5usize, -20..300i64, 0..30i64, 0..12u64), 0..20),
        window in proptest::option::of((-30..300i64, 0..300i64)),
    ) {
        let names = ["cudaLaunchKernel", "cudaStreamSynchronize", "cudaMemcpyAsync", "cudaMalloc", "cuLaunchKernel"];
        let mut timeline = empty();
        for (name, start, duration, number) in calls {
            call(&mut timeline, 0, names[name], start, duration, number);
        }
        let mut total = 0;
        for (stream, start, duration, number) in works {
            kernel(&mut timeline, stream, "kernel", start, duration, number);
            total += duration;
        }
        let window = window.map(|(start, length)| Span::new(Nanos::new(start), Nanos::new(start + length)));
        let attribution = attribute(&timeline, &AttributionSettings::default());
        if let Some(activity) = activity(&timeline, 0, window) {
            prop_assert_eq!(activity.busy_ns() + activity.idle_ns(), activity.window.length());
            prop_assert!(activity.overlap_ns() >= Nanos::ZERO);
            prop_assert!(activity.work_ns.get() <= total);
            let gaps = gaps(&timeline, &attribution.launch, 0, &activity);
            prop_assert_eq!(waiting(&gaps).total(), activity.idle_ns());
            prop_assert!(gaps.iter().all(|gap| GapCause::ALL.iter().all(|cause| gap.waiting.of(*cause) >= Nanos::ZERO)));
            if let Some(depth) = queue_depth(&timeline, &attribution.launch, 0, activity.window) {
                prop_assert!((0.0..=1.0).contains(&depth.empty_share) && depth.mean >= 0.0);
                prop_assert!(depth.mean <= depth.max as f64);
            }
        }
    }
}
