//! Which kernels of a timeline get counters.

mod attribution_builder;

use attribution_builder as made;
use llm_perf_analysis::attribution::{AttributionSettings, attribute};
use llm_perf_analysis::sampled::choose;
use types::timeline::Timeline;
use types::{LaunchShape, Stage};

/// A prefill with three kernels, the longest of which waits for another device.
fn timeline() -> Timeline {
    let mut timeline = made::empty();
    made::range(&mut timeline, 0, None, "prefill", 0, Some(10_000));
    let shape = LaunchShape { grid: [8, 1, 1], block: [128, 1, 1], ..LaunchShape::default() };
    let shape = timeline.launch_shapes.place_owned(shape);
    let kernels = [
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 5000),
        ("gemm", 300),
        ("copy", 200),
    ];
    let mut start = 100;
    for (name, duration) in kernels {
        made::launched(&mut timeline, 0, name, start, duration);
        start += duration + 100;
    }
    for work in &mut timeline.work {
        work.launch = Some(shape);
    }
    for (name, symbol) in [("gemm", "_Z4gemmv"), ("copy", "_Z4copyv")] {
        let (name, symbol) = (timeline.names.place(name), timeline.names.place(symbol));
        timeline.symbols.entry(name).or_default().insert(symbol);
    }
    timeline
}

#[test]
fn a_kernel_that_waits_for_another_device_is_not_replayed() {
    let timeline = timeline();
    let attribution = attribute(&timeline, &AttributionSettings::default());
    let choices = choose(&timeline, &attribution, &[Stage::Prefill], 2, &|_| false);
    let names: Vec<&str> = choices[0].kernels.iter().map(|kernel| kernel.name.as_str()).collect();
    assert_eq!(names, ["gemm", "copy"]);
    // It is still part of the stage's time.
    assert!((choices[0].share.unwrap() - 500.0 / 5500.0).abs() < 1e-12);
}

#[test]
fn what_is_chosen_is_told_from_the_rest() {
    let timeline = timeline();
    let attribution = attribute(&timeline, &AttributionSettings::default());
    let choices = choose(&timeline, &attribution, &[Stage::Prefill], 1, &|_| false);
    assert_eq!(choices[0].kernels[0].symbols.iter().collect::<Vec<_>>(), ["_Z4gemmv"]);
    assert_eq!(choices[0].others.iter().collect::<Vec<_>>(), ["_Z4copyv"]);
    let without = choose(&timeline, &attribution, &[Stage::Prefill], 1, &|name| name == "gemm");
    assert_eq!(without[0].kernels[0].name, "copy");
}
