//! Families of kernels in other people's captures.

use std::collections::BTreeSet;

use llm_perf_analysis::kernel::{Family, classify, family_of_work};
use types::timeline::{DeviceWork, Timeline, WorkKind};

use crate::captures;

fn unknown(timeline: &Timeline) -> Vec<&str> {
    let other =
        timeline.work.iter().filter(|work| family_of_work(work.kind, timeline.name(work.name)) == Family::Other);
    other.map(|work| timeline.name(work.name)).collect::<BTreeSet<_>>().into_iter().collect()
}

pub(crate) fn families_cover_the_kernel_time_of_strangers_traces() {
    for (file, timeline) in captures::strangers() {
        let kernels = |work: &&DeviceWork| work.kind == WorkKind::Kernel;
        let sum = |family: Option<Family>| -> i64 {
            let of =
                |work: &&DeviceWork| family.is_none_or(|family| classify(timeline.name(work.name)).family == family);
            timeline.work.iter().filter(kernels).filter(of).map(|work| work.duration.get()).sum()
        };
        let other = sum(Some(Family::Other)) as f64 / sum(None) as f64;
        assert!(other < 0.03, "{file}: {other}: {:#?}", unknown(timeline));
    }
}

pub(crate) fn families_cover_the_device_time_of_another_build_of_the_model() {
    let file = "nsys-rtx5090/rtx5090-dsocr-decode-cuda_gpu_kern_sum.csv";
    let csv = captures::third_party(file);
    let csv = String::from_utf8(csv).unwrap();
    let rows = csv.lines().skip(1).map(|line| {
        // The name is last, and the only field with commas.
        let fields: Vec<&str> = line.splitn(9, ',').collect();
        (fields[8].trim_matches('"'), fields[1].parse::<f64>().unwrap())
    });
    let rows: Vec<_> = rows.collect();
    let sum = |known: bool| -> f64 {
        rows.iter().filter(|(name, _)| !known || classify(name).family != Family::Other).map(|(_, time)| time).sum()
    };
    assert!(sum(true) >= 0.97 * sum(false), "{} of {}", sum(true), sum(false));
}

pub(crate) fn families_cover_the_device_time_of_a_decoder_on_an_h100() {
    let timeline = captures::torch_h100();
    let total: i64 = timeline.work.iter().map(|work| work.duration.get()).sum();
    let is_other = |work: &&DeviceWork| family_of_work(work.kind, timeline.name(work.name)) == Family::Other;
    let other: i64 = timeline.work.iter().filter(is_other).map(|work| work.duration.get()).sum();
    assert!(other as f64 <= 0.03 * total as f64, "{other} of {total}: {:#?}", unknown(&timeline));
}
