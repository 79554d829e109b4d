//! How much of the device's rates the model's work used.
//!
//! The numerator is the model's work, each input once; the denominator is the median time of each input. Both are summed
//! over the inputs before they are divided, so that a long page counts for more than a short one.

use std::collections::BTreeMap;

use types::{Bytes, DType, Flops, PeakUsed, ShapeGroup, Stage, StepLabel, StepSummary, StepWork, Work};

use crate::statistics::share;
use crate::subject::{InputWork, ModelledStep, Subject};
use crate::timings::Timings;

/// Work and time of one stage, or of the model, and what share of the peaks that is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Utilisation {
    /// Work, each input once.
    pub(crate) work: Work,
    /// Median time, each input once, in nanoseconds.
    pub(crate) time: f64,
    /// Share of the peak rate as it comes out, also above 1; absent without a peak.
    pub(crate) flops_share: Option<f64>,
    /// Share of the peak bandwidth as it comes out, also above 1; absent without a peak.
    pub(crate) bytes_share: Option<f64>,
}

impl Utilisation {
    fn new(work: Work, time: f64, peak: Option<&PeakUsed>) -> Self {
        let seconds = time / 1e9;
        let of = |amount: f64, rate: f64| share(amount, rate * seconds);
        Self {
            work,
            time,
            flops_share: peak.and_then(|peak| of(work.flops_matrix.as_f64(), peak.flops.get())),
            bytes_share: peak.and_then(|peak| of(work.bytes.as_f64(), peak.bytes_per_second.get())),
        }
    }

    /// Model FLOPs utilisation; absent where it cannot be true.
    pub(crate) fn mfu(&self) -> Option<f64> {
        self.flops_share.filter(|share| *share <= 1.0)
    }

    /// Bandwidth utilisation; absent where it cannot be true.
    pub(crate) fn mbu(&self) -> Option<f64> {
        self.bytes_share.filter(|share| *share <= 1.0)
    }
}

/// The rates of every element type that matrix operators of a run have, and of the run itself; highest first.
pub(crate) fn peaks(subject: &Subject, groups: &[ShapeGroup]) -> Vec<PeakUsed> {
    let used = groups.iter().filter(|group| group.flops_matrix > Flops::ZERO).filter_map(|group| group.dtype);
    let mut others: Vec<DType> = used.collect();
    others.sort_unstable();
    others.dedup();
    others.retain(|dtype| subject.peak.as_ref().is_none_or(|peak| peak.dtype != *dtype));
    let others = others.into_iter().filter_map(|dtype| PeakUsed::of(subject.hardware.as_ref()?, dtype));
    let mut peaks: Vec<PeakUsed> = subject.peak.clone().into_iter().chain(others).collect();
    peaks.sort_by(|one, other| other.flops.get().total_cmp(&one.flops.get()));
    peaks
}

/// Work of each stage, each input once, whether or not it was timed.
pub(crate) fn work_per_stage(work: &[InputWork]) -> BTreeMap<Stage, Work> {
    let mut stages = BTreeMap::new();
    for entry in work {
        let sum = stages.entry(entry.stage).or_insert(NO_WORK);
        *sum = added(*sum, entry.work);
    }
    stages
}

/// Utilisation of every stage that was timed and has modelled work.
pub(crate) fn per_stage(
    timings: &Timings<'_>,
    work: &[InputWork],
    peak: Option<&PeakUsed>,
) -> BTreeMap<Stage, Utilisation> {
    let used = |stage| Some((stage, Utilisation::over(timings, work, &[stage], peak)?));
    timings.stages().filter_map(used).collect()
}

/// Gives steps their modelled work and what it used.
pub(crate) fn of_steps(steps: &mut [StepSummary], modelled: &[Option<ModelledStep>], peak: Option<&PeakUsed>) {
    for (step, modelled) in steps.iter_mut().zip(modelled) {
        step.work = modelled.map(|ModelledStep { work, roofline }| {
            let used = Utilisation::new(work, step.wall_ns.get() as f64, peak);
            let roofline_ns = roofline.filter(|roofline| *roofline <= step.device_ns);
            let fits = roofline.is_none() || roofline_ns.is_some();
            StepWork {
                flops_matrix: work.flops_matrix,
                bytes: work.bytes,
                roofline_ns,
                mfu: used.mfu().filter(|_| fits),
                mbu: used.mbu().filter(|_| fits),
            }
        });
    }
}

/// Utilisation of a stage by its steps; absent unless the work of most of them is known and fits their times.
pub(crate) fn of_stage_steps(steps: &[StepSummary], stage: Stage, peak: Option<&PeakUsed>) -> Option<Utilisation> {
    let label = match stage {
        Stage::Prefill => StepLabel::Prefill,
        Stage::Decode => StepLabel::Decode,
        _ => return None,
    };
    let of_stage = || steps.iter().filter(|step| step.label == Some(label));
    let (mut sum, mut time) = (NO_WORK, 0.0);
    for step in of_stage() {
        let Some(work) = step.work.filter(|work| work.mfu.is_some() && work.mbu.is_some()) else { continue };
        sum = added(sum, Work { flops_matrix: work.flops_matrix, bytes: work.bytes });
        time += step.wall_ns.get() as f64;
    }
    let all: f64 = of_stage().map(|step| step.wall_ns.get() as f64).sum();
    (time > 0.0 && time >= all * MOST_STEPS).then(|| Utilisation::new(sum, time, peak))
}

/// Share of the time of a stage's steps whose work must be known.
const MOST_STEPS: f64 = 0.8;

/// Utilisation of the model: prefill and decode together.
pub(crate) fn whole(timings: &Timings<'_>, work: &[InputWork], peak: Option<&PeakUsed>) -> Option<Utilisation> {
    let tops: Vec<_> = timings.stages().filter(|stage| stage.parent().is_none()).collect();
    Utilisation::over(timings, work, &tops, peak)
}

impl Utilisation {
    fn over(timings: &Timings<'_>, work: &[InputWork], stages: &[Stage], peak: Option<&PeakUsed>) -> Option<Self> {
        let (mut sum, mut time) = (NO_WORK, 0.0);
        for stage in stages {
            let medians = timings.medians(*stage);
            for entry in work.iter().filter(|entry| entry.stage == *stage) {
                // An input that was not timed, or has no modelled work, is in neither sum.
                let Some(median) = medians.get(entry.input.as_str()) else { continue };
                sum = added(sum, entry.work);
                time += median;
            }
        }
        (time > 0.0).then(|| Self::new(sum, time, peak))
    }
}

const NO_WORK: Work = Work { flops_matrix: Flops::ZERO, bytes: Bytes::ZERO };

fn added(one: Work, other: Work) -> Work {
    Work { flops_matrix: one.flops_matrix + other.flops_matrix, bytes: one.bytes + other.bytes }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sample::{peak, timed, work};

    fn group(dtype: Option<DType>, flops: u128) -> ShapeGroup {
        ShapeGroup {
            name: "aten::mm".to_owned(),
            shapes: Vec::new(),
            calls: 1,
            total_ns: types::Nanos::new(1),
            bytes_allocated: None,
            flops_matrix: Flops::new(flops),
            flops_per_second: None,
            device_ns: None,
            dtype,
            bytes: None,
            bytes_per_second: None,
            roofline_ns: None,
            bound: None,
            roofline_share: None,
        }
    }

    #[test]
    fn every_element_type_of_a_matrix_operator_has_its_peak_once() {
        let rate = |dtype: DType, flops: f64| types::Peak {
            dtype,
            unit: types::ComputeUnit::Matrix,
            accumulate: Some(DType::Fp32),
            flops: types::FlopsPerSecond::new(flops),
            source: "datasheet".to_owned(),
            note: None,
        };
        // Dense rates of the datasheet of the H200.
        let hardware = types::Hardware {
            id: "h200".to_owned(),
            name: "NVIDIA H200".to_owned(),
            vendor: "NVIDIA".to_owned(),
            nvml_names: Vec::new(),
            architecture: "Hopper".to_owned(),
            compute_capability: None,
            memory_bytes: Bytes::new(141_000_000_000),
            bytes_per_second: types::BytesPerSecond::new(4.8e12),
            l2_bytes: None,
            sm_count: 132,
            boost_clock_hz: None,
            power_watts: None,
            interconnect_bytes_per_second: None,
            peaks: vec![rate(DType::Bf16, 989.5e12), rate(DType::Fp8, 1_979e12), rate(DType::Fp64, 67e12)],
            number_sources: BTreeMap::new(),
            sources: BTreeMap::new(),
        };
        let peak = PeakUsed::of(&hardware, DType::Bf16);
        let subject = Subject { peak, hardware: Some(hardware), ..Subject::default() };
        let groups = [
            group(Some(DType::Bf16), 8),
            group(Some(DType::Fp8), 8),
            group(Some(DType::Fp8), 9),
            // Neither adds nor copies are matrix work.
            group(Some(DType::Fp64), 0),
            group(None, 8),
        ];
        let found: Vec<_> = peaks(&subject, &groups).into_iter().map(|peak| (peak.dtype, peak.flops.get())).collect();
        assert_eq!(found, [(DType::Fp8, 1_979e12), (DType::Bf16, 989.5e12)]);
        assert_eq!(peaks(&Subject::default(), &groups), []);
    }

    #[test]
    fn a_case_worked_by_hand() {
        // 3e9 + 1e9 FLOP in medians of 2 ms + 2 ms against 2e12 FLOP/s: 4e9 / (4e-3 * 2e12) = 0.5;
        // 80 MB + 40 MB in 4 ms against 60 GB/s: 120e6 / (4e-3 * 60e9) = 0.5.
        let samples = [
            timed(Stage::Prefill, "a", 0, 2_000_000),
            timed(Stage::Prefill, "a", 1, 1_000_000),
            timed(Stage::Prefill, "a", 2, 9_000_000),
            timed(Stage::Prefill, "b", 0, 2_000_000),
        ];
        let work = [
            work("a", Stage::Prefill, 3_000_000_000, 80_000_000),
            work("b", Stage::Prefill, 1_000_000_000, 40_000_000),
        ];
        let peak = peak(2e12, 60e9);
        let used = per_stage(&Timings::new(&samples, &[]), &work, Some(&peak))[&Stage::Prefill];
        assert!((used.mfu().unwrap() - 0.5).abs() < 1e-12 && (used.mbu().unwrap() - 0.5).abs() < 1e-12, "{used:?}");
        assert_eq!(whole(&Timings::new(&samples, &[]), &work, Some(&peak)), Some(used));
    }

    #[test]
    fn a_share_above_one_is_withheld_but_remembered() {
        let samples = [timed(Stage::Decode, "a", 0, 1_000)];
        let work = [work("a", Stage::Decode, 3_000, 1)];
        let used = per_stage(&Timings::new(&samples, &[]), &work, Some(&peak(1e9, 1e9)))[&Stage::Decode];
        assert_eq!((used.mfu(), used.flops_share), (None, Some(3.0)));
        assert!(used.mbu().is_some());
    }

    #[test]
    fn without_a_peak_nothing_is_claimed() {
        let samples = [timed(Stage::Decode, "a", 0, 1_000)];
        let work = [work("a", Stage::Decode, 3_000, 1)];
        let used = per_stage(&Timings::new(&samples, &[]), &work, None)[&Stage::Decode];
        assert_eq!((used.mfu(), used.mbu()), (None, None));
    }

    #[test]
    fn an_input_without_modelled_work_is_left_out_of_the_time_too() {
        let samples = [timed(Stage::Decode, "a", 0, 1_000), timed(Stage::Decode, "b", 0, 1_000_000)];
        let work = [work("a", Stage::Decode, 500, 1)];
        let used = per_stage(&Timings::new(&samples, &[]), &work, Some(&peak(1e9, 1e9)))[&Stage::Decode];
        assert!((used.mfu().unwrap() - 0.5).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn the_model_lies_between_its_stages(prefill in 1i64..1_000_000, decode in 1i64..1_000_000, flops in 1u64..1_000_000, more in 1u64..1_000_000) {
            let samples = [timed(Stage::Prefill, "a", 0, prefill), timed(Stage::Decode, "a", 0, decode)];
            let work = [work("a", Stage::Prefill, flops, 1), work("a", Stage::Decode, more, 1)];
            let (timings, peak) = (Timings::new(&samples, &[]), peak(1e16, 1e16));
            let stages = per_stage(&timings, &work, Some(&peak));
            let both = [Stage::Prefill, Stage::Decode].map(|stage| stages[&stage].mfu().unwrap());
            let model = whole(&timings, &work, Some(&peak)).unwrap().mfu().unwrap();
            prop_assert!(model >= both[0].min(both[1]) * (1.0 - 1e-9) && model <= both[0].max(both[1]) * (1.0 + 1e-9));
        }
    }
}
