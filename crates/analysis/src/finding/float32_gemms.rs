//! Matrix products in single precision beside others in half of it: usually nobody asked for them.

use types::{Base, ComputeUnit, DType, EstimatedSaving, Facts, Finding, Hardware, Nanos, Peak, Severity};

use super::idle::some;
use super::{Found, Run, own_kernels};
use crate::device::{DeviceRecords, StageWork, WorkGroup};
use crate::kernel::{Family, short_name};
use crate::loss::Cause;
use crate::replay::{Change, Chosen};
use crate::scope::Scope;
use crate::statistics::share;

/// Share of a stage's matrix time that single precision must take.
const LEAST_SHARE: f64 = 0.05;
/// Share of the time from which a run all in single precision is worth a word.
const MUCH: f64 = 0.1;

/// The rule's name.
pub(super) const RULE: &str = "float32-gemms";

pub(super) fn check(run: &Run<'_>, device: &DeviceRecords, stage: Scope, work: &StageWork) -> Option<Found> {
    found(device, stage, work, HalfPrecision::of(run.subject.hardware.as_ref()))
}

/// What a device computes in half precision at the rate of its matrix units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HalfPrecision {
    Both,
    /// Before Ampere.
    Fp16,
    Unknown,
}

impl HalfPrecision {
    fn of(hardware: Option<&Hardware>) -> Self {
        hardware.map_or(Self::Unknown, |hardware| Self::of_peaks(&hardware.peaks))
    }

    fn of_peaks(peaks: &[Peak]) -> Self {
        let has = |dtype: DType| peaks.iter().any(|peak| peak.dtype == dtype && peak.unit == ComputeUnit::Matrix);
        match (has(DType::Bf16), has(DType::Fp16)) {
            (true, true) => Self::Both,
            (false, true) => Self::Fp16,
            _ => Self::Unknown,
        }
    }
}

fn found(device: &DeviceRecords, stage: Scope, work: &StageWork, precision: HalfPrecision) -> Option<Found> {
    let products = || {
        let is_product = |group: &&WorkGroup| matches!(group.family, Family::Gemm | Family::Gemv | Family::Convolution);
        device.groups.iter().filter(move |group| group.scope == stage).filter(is_product)
    };
    let time = |which: fn(DType) -> bool| -> Nanos {
        products().filter(|group| group.dtype.is_some_and(which)).map(|group| group.time).sum()
    };
    let is_half = |dtype: DType| matches!(dtype, DType::Bf16 | DType::Fp16);
    let is_single = |dtype: DType| dtype == DType::Fp32;
    let (half, single) = (time(is_half), time(is_single));
    let all: Nanos = products().map(|group| group.time).sum();
    let run: Nanos = products().filter(|group| group.dtype.is_some_and(is_single)).map(|group| group.run).sum();
    let part = share(single.get() as f64, all.get() as f64).filter(|part| *part >= LEAST_SHARE)?;
    // A run that is meant to be in single precision is told once its GEMMs are much of the time.
    let of_wall = share(run.get() as f64, work.wall.get() as f64)?;
    if half <= single && of_wall < MUCH {
        return None;
    }
    let longest = products().find(|group| group.dtype.is_some_and(is_single))?;
    let with_convolutions = products().any(|group| group.family == Family::Convolution);
    let facts = Facts::new()
        .with("where", stage.base())
        .with_if("convolutions", with_convolutions)
        .with_if("fp16", precision == HalfPrecision::Fp16)
        .with_if("unknown", precision == HalfPrecision::Unknown)
        .with_if("tf32", precision == HalfPrecision::Both && !device.is_hip)
        .with("single", single)
        .with_share("single_share", part, if with_convolutions { Base::ProductTime } else { Base::GemmTime })
        .with_share("wall_share", of_wall, stage.base())
        .with_known("half", some(half))
        .with("kernel", short_name(&longest.name))
        .with_known("operator", longest.operator.as_deref())
        .with("calls", longest.calls);
    let saving = EstimatedSaving::at_most(Nanos::new(run.get() / 2));
    let finding = Finding::new(RULE, Severity::Info, stage.stage(), facts).saving(saving);
    let causes = vec![Cause::Kernels(Family::Gemm), Cause::Kernels(Family::Gemv), Cause::Kernels(Family::Convolution)];
    let change = Change::Share(Chosen::Gemms(DType::Fp32), 0.5);
    Some(Found::new(finding, own_kernels(work, causes)).replayed(change))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use types::Stage;

    use super::*;
    use crate::device::sample::group;
    use crate::finding::fired_on_device;

    fn device(single: i64, half: i64) -> DeviceRecords {
        let least = Some([Nanos::ZERO, Nanos::ZERO]);
        let prefill = StageWork { wall: Nanos::new(10_000), least, ..StageWork::default() };
        let product = |name: &str, dtype: DType, run: i64| WorkGroup {
            dtype: Some(dtype),
            ..group(Stage::Prefill, name, Family::Gemm, run)
        };
        DeviceRecords {
            stages: BTreeMap::from([(Scope::Stage(Stage::Prefill), prefill)]),
            groups: vec![product("h", DType::Bf16, half), product("s", DType::Fp32, single)],
            ..DeviceRecords::default()
        }
    }

    #[test]
    fn some_single_precision_among_half_fires() {
        let found = fired_on_device(&device(200, 800), RULE);
        assert_eq!((found.len(), found[0].saving.saves_ns), (1, Some(Nanos::new(100))));
        let facts = &found[0].quantities;
        assert_eq!((facts.time("single"), facts.time("half")), (Some(Nanos::new(200)), Some(Nanos::new(800))));
        assert_eq!((facts.share("single_share"), facts.name("kernel")), (Some(0.2), Some("s")));
    }

    #[test]
    fn gemms_of_unknown_precision_are_gemms() {
        let mut device = device(200, 800);
        device.groups.push(group(Stage::Prefill, "grouped", Family::Gemm, 1_000));
        assert_eq!(fired_on_device(&device, RULE)[0].quantities.share("single_share"), Some(0.1));
        device.groups.push(group(Stage::Prefill, "grouped", Family::Gemm, 8_000));
        assert_eq!(fired_on_device(&device, RULE), []);
    }

    #[test]
    fn convolutions_are_named_where_they_count() {
        let mut device = device(200, 800);
        assert!(!fired_on_device(&device, RULE)[0].quantities.has("convolutions"));
        device.groups.push(group(Stage::Prefill, "conv", Family::Convolution, 1_000));
        let facts = &fired_on_device(&device, RULE)[0].quantities;
        assert_eq!((facts.has("convolutions"), facts.share("single_share")), (true, Some(0.1)));
    }

    #[test]
    fn half_precision_is_what_the_device_has_matrix_units_for() {
        assert_eq!(HalfPrecision::of(None), HalfPrecision::Unknown);
        let with = |dtypes: &[DType]| {
            let peak = |dtype: &DType| Peak {
                dtype: *dtype,
                unit: ComputeUnit::Matrix,
                accumulate: None,
                flops: types::FlopsPerSecond::new(1e12),
                source: String::new(),
                note: None,
            };
            dtypes.iter().map(peak).collect::<Vec<_>>()
        };
        assert_eq!(HalfPrecision::of_peaks(&with(&[DType::Fp16])), HalfPrecision::Fp16);
        assert_eq!(HalfPrecision::of_peaks(&with(&[DType::Fp16, DType::Bf16])), HalfPrecision::Both);
    }

    #[test]
    fn a_run_meant_to_be_single_precision_fires_where_that_is_much_of_its_time() {
        assert_eq!(fired_on_device(&device(800, 200), RULE), []);
        let all = fired_on_device(&device(4_000, 0), RULE);
        assert_eq!((all[0].quantities.share("wall_share"), all[0].quantities.has("half")), (Some(0.4), false));
        assert_eq!(fired_on_device(&device(40, 960), RULE), []);
    }
}
