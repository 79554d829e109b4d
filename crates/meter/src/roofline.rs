//! The roofline: the shortest time in which a device's peak rates allow a cost to be paid.

use types::{
    BytesPerSecond, ComputeUnit, Cost, DType, Exit, Failure, Flops, FlopsPerSecond, Hardware, Seconds, Workload,
};

types::named! {
    /// What limits an operation.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Bound {
        /// Peak FLOP/s.
        Compute = "compute",
        /// Memory bandwidth.
        #[default]
        Memory = "memory",
        /// What other devices send.
        Communication = "communication",
        /// The cost of launching it.
        Launch = "launch",
    }
}

/// Times of one operation; units of a device work side by side, so the largest of the first two counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OpTime {
    /// Compute: the slower of matrix and vector unit.
    pub compute: Seconds,
    /// Traffic.
    pub memory: Seconds,
    /// Launch; zero when not known.
    pub launch: Seconds,
}

/// A device that lacks a figure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RooflineError {
    /// A rate.
    #[error("{hardware} has no dense {dtype} {unit} peak; it has {listed}")]
    NoRate {
        /// The device.
        hardware: String,
        /// Element type asked for.
        dtype: DType,
        /// Unit asked for.
        unit: &'static str,
        /// Matrix types the device does list.
        listed: String,
    },
    /// A link.
    #[error("{hardware} has no interconnect, which a model on {devices} devices needs")]
    NoLink {
        /// The device.
        hardware: String,
        /// Devices asked for.
        devices: u64,
    },
}

impl Failure for RooflineError {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NoRate { listed, .. } => {
                let listed: Vec<&str> = listed.split(", ").collect();
                let instead = ["bf16", "fp16", "fp32"].into_iter().find(|name| listed.contains(name)).unwrap_or("fp32");
                format!("choose another element type, such as workload.dtype={instead}")
            }
            Self::NoLink { hardware, .. } => format!(
                "choose a device with an interconnect (`llm-perf hardware` lists them), or set \
                 interconnect_bytes_per_second in DIR/hardware/{hardware}.yaml and pass --config-dir DIR"
            ),
        })
    }
}

/// Rates of one device.
#[derive(Clone, Debug)]
pub struct Roofline<'a> {
    hardware: &'a Hardware,
    matrix: Vec<(DType, FlopsPerSecond)>,
    vector: FlopsPerSecond,
    launch: Option<Seconds>,
    /// The types of weights that the device has no matrix unit for, and the type that their GEMMs run in.
    widened: Option<(Vec<DType>, DType)>,
}

impl<'a> Roofline<'a> {
    /// The roofline of `hardware` for work in `dtypes`; `launch` is the host's cost of one operation where known.
    pub fn new(
        hardware: &'a Hardware,
        dtypes: impl IntoIterator<Item = DType>,
        launch: Option<Seconds>,
    ) -> Result<Self, RooflineError> {
        let missing = |dtype: DType, unit: &'static str| RooflineError::NoRate {
            hardware: hardware.id.clone(),
            dtype,
            unit,
            listed: listed(hardware),
        };
        let vector = hardware
            .peak(DType::Fp32, ComputeUnit::Vector)
            .or_else(|| hardware.peak(DType::Fp32, ComputeUnit::Matrix))
            .ok_or_else(|| missing(DType::Fp32, "vector"))?
            .flops;
        let mut matrix = Vec::new();
        for dtype in dtypes {
            let peak = hardware.matrix_peak(dtype).ok_or_else(|| missing(dtype, "matrix"))?;
            matrix.push((dtype, peak.flops));
        }
        Ok(Self { hardware, matrix, vector, launch, widened: None })
    }

    /// The roofline of `hardware` for `workload`, whose GEMMs are in `dtypes`. A type that weights are stored in and the device
    /// lacks is widened to the workload's own, as engines do there.
    pub fn of(
        hardware: &'a Hardware,
        dtypes: impl IntoIterator<Item = DType>,
        workload: &Workload,
        launch: Option<Seconds>,
    ) -> Result<Self, RooflineError> {
        let is_kept = |dtype: &DType| *dtype == workload.dtype || hardware.matrix_peak(*dtype).is_some();
        let (kept, lacking): (Vec<DType>, Vec<DType>) = dtypes.into_iter().partition(is_kept);
        let instead = (!lacking.is_empty()).then_some(workload.dtype);
        let mut roofline = Self::new(hardware, kept.into_iter().chain(instead), launch)?;
        if let Some(rate) = roofline.matrix(workload.dtype) {
            roofline.matrix.extend(lacking.iter().map(|dtype| (*dtype, rate)));
            roofline.widened = (!lacking.is_empty()).then_some((lacking, workload.dtype));
        }
        Ok(roofline)
    }

    /// The device.
    pub fn hardware(&self) -> &'a Hardware {
        self.hardware
    }

    /// Rate of matrix work in `dtype`; `None` when this roofline was not made for it.
    pub fn matrix(&self, dtype: DType) -> Option<FlopsPerSecond> {
        self.matrix.iter().find_map(|(known, rate)| (*known == dtype).then_some(*rate))
    }

    /// The types of weights that the device has no matrix unit for, and the type that their GEMMs run in.
    pub fn widened(&self) -> Option<(&[DType], DType)> {
        self.widened.as_ref().map(|(stored, computed)| (stored.as_slice(), *computed))
    }

    /// The type that GEMMs of weights stored in `dtype` run in.
    pub fn computed_in(&self, dtype: DType) -> DType {
        self.widened().filter(|(stored, _)| stored.contains(&dtype)).map_or(dtype, |(_, computed)| computed)
    }

    /// Rate of everything else: elementwise work is done in single precision whatever the tensors are stored in.
    pub fn vector(&self) -> FlopsPerSecond {
        self.vector
    }

    /// Memory bandwidth.
    pub fn bandwidth(&self) -> BytesPerSecond {
        self.hardware.bytes_per_second
    }

    /// Cost of launching one operation; absent when not counted.
    pub fn launch(&self) -> Option<Seconds> {
        self.launch
    }

    /// Times of one operation. Matrix work in an element type this roofline was not made for gives `None`.
    pub fn time(&self, cost: &Cost, matrix_dtype: DType) -> Option<OpTime> {
        let [matrix, vector, memory] = self.time_parts(cost, matrix_dtype)?;
        Some(OpTime { compute: matrix.max(vector), memory, launch: self.launch.unwrap_or_default() })
    }

    /// Refuses a device without an interconnect where several share the work.
    pub fn linked(self, devices: u64) -> Result<Self, RooflineError> {
        if devices > 1 && self.hardware.interconnect_bytes_per_second.is_none() {
            return Err(RooflineError::NoLink { hardware: self.hardware.id.clone(), devices });
        }
        Ok(self)
    }

    /// Time of the matrix unit, of the vector unit and of the memory.
    pub(crate) fn time_parts(&self, cost: &Cost, matrix_dtype: DType) -> Option<[Seconds; 3]> {
        let matrix = if cost.flops_matrix == Flops::ZERO {
            Seconds::ZERO
        } else {
            cost.flops_matrix / self.matrix(matrix_dtype)?
        };
        Some([matrix, cost.flops_vector / self.vector, cost.bytes.total() / self.bandwidth()])
    }
}

impl OpTime {
    /// The larger of compute and memory time, plus the launch.
    pub fn total(&self) -> Seconds {
        self.compute.max(self.memory) + self.launch
    }

    /// What the time is bound by.
    pub fn bound(&self) -> Bound {
        let work = self.compute.max(self.memory);
        if self.launch > work {
            Bound::Launch
        } else if self.compute > self.memory {
            Bound::Compute
        } else {
            Bound::Memory
        }
    }
}

fn listed(hardware: &Hardware) -> String {
    let mut names: Vec<_> = hardware.peaks.iter().filter(|peak| peak.unit == ComputeUnit::Matrix).collect();
    names.sort_by_key(|peak| peak.dtype);
    names.dedup_by_key(|peak| peak.dtype);
    if names.is_empty() {
        return "no matrix peak".to_owned();
    }
    names.iter().map(|peak| peak.dtype.name()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use types::{Bytes, Traffic};

    use super::*;
    use crate::hardware::Catalogue;

    fn work(flops: u128, bytes: u64) -> Cost {
        Cost {
            flops_matrix: Flops::new(flops),
            bytes: Traffic { weights: Bytes::new(bytes), ..Traffic::ZERO },
            ..Cost::ZERO
        }
    }

    #[test]
    fn the_memory_floor_of_a_deepseek_ocr_token_on_an_h200() {
        let catalogue = Catalogue::built_in().unwrap();
        let roofline = Roofline::new(catalogue.find("h200").unwrap(), [DType::Bf16], None).unwrap();
        let time = roofline.time(&work(1_165_825_536, 1_148_190_720), DType::Bf16).unwrap();
        // 1.148 GB at 4.8 TB/s: 0.239 ms; compute takes about a microsecond.
        assert!((time.total().as_millis() - 0.2392).abs() < 1e-4, "{}", time.total());
        assert_eq!(time.bound(), Bound::Memory);
    }

    #[test]
    fn a_missing_rate_is_an_error_that_lists_the_others() {
        let catalogue = Catalogue::built_in().unwrap();
        let error = Roofline::new(catalogue.find("t4").unwrap(), [DType::Bf16], None).unwrap_err().to_string();
        assert!(error.contains("t4 has no dense bf16 matrix peak") && error.contains("fp16"), "{error}");
    }

    #[test]
    fn fp32_gemms_run_on_the_vector_unit_where_the_matrix_unit_lacks_the_type() {
        let catalogue = Catalogue::built_in().unwrap();
        let h200 = catalogue.find("h200").unwrap();
        let roofline = Roofline::new(h200, [DType::Fp32], None).unwrap();
        assert_eq!(roofline.matrix(DType::Fp32), Some(roofline.vector()));
        assert_eq!(roofline.time(&work(1, 1), DType::Fp8), None);
    }

    #[test]
    fn a_model_cannot_span_devices_without_an_interconnect() {
        let catalogue = Catalogue::built_in().unwrap();
        let mut alone = catalogue.find("h200").unwrap().clone();
        alone.interconnect_bytes_per_second = None;
        let roofline = || Roofline::new(&alone, [DType::Bf16], None).unwrap();
        let error = roofline().linked(2).unwrap_err();
        assert_eq!(error.to_string(), "h200 has no interconnect, which a model on 2 devices needs");
        assert!(error.hint().unwrap().contains("interconnect_bytes_per_second"));
        assert!(roofline().linked(1).is_ok());
    }

    #[test]
    fn an_operation_shorter_than_its_launch_is_launch_bound() {
        let catalogue = Catalogue::built_in().unwrap();
        let h200 = catalogue.find("h200").unwrap();
        let roofline = Roofline::new(h200, [DType::Bf16], Some(Seconds::new(5e-6))).unwrap();
        let time = roofline.time(&work(1000, 1000), DType::Bf16).unwrap();
        assert_eq!(time.bound(), Bound::Launch);
        assert!(time.total().get() > 5e-6);
    }
}
