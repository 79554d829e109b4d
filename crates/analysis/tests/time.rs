//! Busy, idle and waiting time, on timelines made by hand and on a real capture.

mod attribution_builder;
mod attribution_captures;

use attribution_builder::{call, empty, kernel};
use attribution_captures as captures;
use llm_perf_analysis::attribution::{AttributionSettings, attribute, step_series};
use llm_perf_analysis::time::{Span, queue_depth};
use llm_perf_analysis::{PlacedTimeline, device_times};
use proptest::prelude::*;
use types::timeline::Timeline;
use types::{DeviceTime, IdleCause, Nanos};

fn divided(timeline: &Timeline) -> Option<DeviceTime> {
    let attribution = attribute(timeline, &AttributionSettings::default());
    let placed = PlacedTimeline { timeline, attribution: &attribution, rank: None, devices: Default::default() };
    device_times(&[placed]).into_iter().next()
}

fn idle(time: &DeviceTime, cause: IdleCause) -> i64 {
    time.idle.iter().find(|idle| idle.cause == cause).map_or(0, |idle| idle.ns.get())
}

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
    let found = divided(&timeline).unwrap();
    assert_eq!((found.busy_ns, found.idle_ns), (Nanos::new(35), Nanos::new(175)));
    // 10..100: 40 waiting, 10 allocating, 30 preparing, 10 in the launch. 110..115: called for at 105. 120..200: 20 in the
    // copy, the rest preparing and launching.
    let causes = [IdleCause::Synchronising, IdleCause::Allocating, IdleCause::BetweenKernels, IdleCause::Copying];
    assert_eq!(causes.map(|cause| idle(&found, cause)), [40, 10, 5, 20]);
    assert_eq!(idle(&found, IdleCause::Launching), 40 + 60);
    // Waiting for the device: -5..0, 90..100, 105..115, 190..200, of which 30 ns in the window of 210.
    let attribution = attribute(&timeline, &AttributionSettings::default());
    let window = Span::new(Nanos::ZERO, Nanos::new(210));
    let depth = queue_depth(&timeline, &attribution.launch, 0, window).unwrap();
    assert_eq!((depth.max, depth.mean, depth.empty_share), (1, 30.0 / 210.0, 180.0 / 210.0));
}

#[test]
fn a_trace_without_calls_does_not_tell_what_the_device_waited_for() {
    let mut timeline = empty();
    kernel(&mut timeline, 0, "kernel", 0, 10, 1);
    kernel(&mut timeline, 0, "kernel", 50, 10, 2);
    assert_eq!(idle(&divided(&timeline).unwrap(), IdleCause::NotRecorded), 40);
    let attribution = attribute(&timeline, &AttributionSettings::default());
    assert_eq!(queue_depth(&timeline, &attribution.launch, 0, Span::new(Nanos::ZERO, Nanos::new(60))), None);
    assert_eq!(step_series(&attribution.steps), None);
}

#[test]
fn a_device_without_work_has_no_time() {
    assert_eq!(divided(&empty()), None);
}

#[test]
fn the_h200_waits_for_launches() {
    let timeline = captures::torch_h200();
    let found = divided(&timeline).unwrap();
    assert!(found.busy_ns.get() < found.span_ns.get() / 5, "{found:?}");
    assert_eq!(found.idle[0].cause, IdleCause::Launching, "{found:?}");
    let attribution = attribute(&timeline, &AttributionSettings::default());
    let decode = attribution.stages.iter().find(|stage| stage.stage == types::Stage::Decode).unwrap();
    let depth = queue_depth(&timeline, &attribution.launch, 0, decode.host).unwrap();
    assert!(depth.mean < 1.0 && depth.empty_share > 0.5, "{depth:?}");
    let steps = step_series(&attribution.steps).unwrap();
    assert_eq!((steps.times.len(), steps.launches_per_token, steps.kernels_per_token), (4, 1_280.0, 1_234.0));
    assert!(steps.p50 <= steps.p95 && steps.p95 <= steps.p99);
    assert!(steps.drift.is_some());
}

proptest! {
    #[test]
    fn a_queue_is_empty_for_a_share_of_the_window(
        works in proptest::collection::vec((0..2u32, -20..300i64, 0..30i64, 0..12u64), 0..20),
        calls in proptest::collection::vec((-20..300i64, 0..30i64, 0..12u64), 0..20),
        (from, length) in (-30..300i64, 0..300i64),
    ) {
        let mut timeline = empty();
        for (start, duration, number) in calls {
            call(&mut timeline, 0, "cudaLaunchKernel", start, duration, number);
        }
        for (stream, start, duration, number) in works {
            kernel(&mut timeline, stream, "kernel", start, duration, number);
        }
        let window = Span::new(Nanos::new(from), Nanos::new(from + length));
        let attribution = attribute(&timeline, &AttributionSettings::default());
        if let Some(depth) = queue_depth(&timeline, &attribution.launch, 0, window) {
            prop_assert!((0.0..=1.0).contains(&depth.empty_share) && depth.mean >= 0.0);
            prop_assert!(depth.mean <= depth.max as f64);
        }
    }
}
