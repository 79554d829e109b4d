//! Attribution of other people's captures.

use llm_perf_analysis::attribution::{AttributionSettings, Inference, attribute};
use types::Nanos;

use crate::captures;
use crate::projections::{nvidia, ours};

pub(crate) fn the_projection_of_hundreds_of_nested_ranges_is_the_one_nsys_prints() {
    let timeline = captures::nsys_t4();
    let csv = captures::third_party("nsys-t4/power_iteration__baseline_nvtx_gpu_proj_sum.csv");
    let attribution = attribute(&timeline, &AttributionSettings::default());
    let expected = nvidia(&String::from_utf8(csv).unwrap());
    assert_eq!(ours(&timeline, &attribution, ""), expected);
    assert!(expected.len() > 100);
    // A program that is no language model has no stages, and none are made up.
    assert_eq!(attribution.stages, []);
    assert!(matches!(attribution.inference, Inference::Refused { .. }));
}

pub(crate) fn work_launched_before_the_trace_began_is_counted_and_not_placed_by_time() {
    let timeline = captures::torch_h100();
    let attribution = attribute(&timeline, &AttributionSettings::default());
    let orphans = attribution.launch.iter().filter(|launch| launch.is_none()).count() as u64;
    assert!(orphans > 0);
    let counter = attribution.quality.iter().find(|counter| counter.counter == "work_without_launch").unwrap();
    assert_eq!(counter.value, orphans);
    let placed =
        attribution.launch.iter().zip(&attribution.stage).filter(|(launch, stage)| launch.is_none() && stage.is_some());
    assert_eq!(placed.count(), 0);
    let time: Nanos = timeline.work.iter().map(|work| work.duration).sum();
    assert_eq!(attribution.coverage.all.time, time);
}
