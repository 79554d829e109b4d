//! What a device can do, with a source for every number.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Bytes, BytesPerSecond, DType, FlopsPerSecond, JsonSchema, Nanos, SchemaTag};

crate::named! {
    /// The part of a device that does the arithmetic.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum ComputeUnit {
        /// Tensor cores, or the matrix kernels of a processor.
        Matrix = "matrix",
        /// Everything else.
        Vector = "vector",
    }
}

/// A document a number was taken from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Its title.
    pub title: String,
    /// Who published it.
    pub publisher: String,
    /// When, where the document says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// Where it can be found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// What a reader must know to find the number in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A number and the key of the source it was taken from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sourced<T> {
    /// The number.
    pub value: T,
    /// Key into the device's `sources`.
    pub source: String,
    /// How it was derived, where the source does not print it as it stands here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A dense rate of one unit for one element type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Peak {
    /// Element type of the operands.
    pub dtype: DType,
    /// Unit that reaches it.
    pub unit: ComputeUnit,
    /// Element type sums are kept in; matrix rates depend on it on some devices.
    pub accumulate: Option<DType>,
    /// Operations per second, a multiply-add being two, without sparsity.
    pub flops: FlopsPerSecond,
    /// Key into the device's `sources`.
    pub source: String,
    /// How it was derived, where the source does not print it as it stands here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A device as its vendor, or a calibration, describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hardware {
    /// Name used on the command line.
    pub id: String,
    /// Name people use.
    pub name: String,
    /// Who makes it.
    pub vendor: String,
    /// Exact names the driver reports for it.
    #[serde(default)]
    pub nvml_names: Vec<String>,
    /// Chip generation.
    pub architecture: String,
    /// CUDA compute capability, such as `9.0`.
    pub compute_capability: Option<String>,
    /// Memory size.
    pub memory_bytes: Bytes,
    /// Memory bandwidth.
    pub bytes_per_second: BytesPerSecond,
    /// Last-level cache.
    pub l2_bytes: Option<Bytes>,
    /// Streaming multiprocessors, or cores of a processor.
    pub sm_count: u32,
    /// Highest clock the rates assume.
    pub boost_clock_hz: Option<f64>,
    /// Most power the board may draw, watts; absent where no document states it.
    pub power_watts: Option<f64>,
    /// Bandwidth to other devices, both directions together.
    pub interconnect_bytes_per_second: Option<BytesPerSecond>,
    /// Dense rates.
    pub peaks: Vec<Peak>,
    /// For each number above, the key of its source; for derived numbers, how.
    pub number_sources: BTreeMap<String, NumberSource>,
    /// The documents, by key.
    pub sources: BTreeMap<String, Source>,
}

/// Where a scalar of a device comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NumberSource {
    /// Key into `sources`.
    pub source: String,
    /// How it was derived, where the source does not print it as it stands here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Hardware {
    /// The rate of `unit` for operands of `dtype`.
    ///
    /// Where a device lists several accumulation types the widest one is meant, because that is what deep-learning
    /// libraries use unless told otherwise; asking for a rate the device does not list gives `None`, never a guess.
    pub fn peak(&self, dtype: DType, unit: ComputeUnit) -> Option<&Peak> {
        self.peaks
            .iter()
            .filter(|peak| peak.dtype == dtype && peak.unit == unit)
            .max_by_key(|peak| peak.accumulate.map_or(0, DType::bits))
    }

    /// What all links of the device carry in one direction together. Absent where the catalogue's figure is of a bridge,
    /// which a board may or may not have.
    pub fn link_bytes_per_second(&self) -> Option<BytesPerSecond> {
        let source = self.number_sources.get("interconnect_bytes_per_second");
        let is_optional = source.and_then(|source| source.note.as_ref()).is_some_and(|note| note.contains("bridge"));
        let both = self.interconnect_bytes_per_second.filter(|_| !is_optional)?;
        Some(BytesPerSecond::new(both.get() / 2.0))
    }

    /// The rate at which matrix work in `dtype` is done at most. Single precision stays single precision unless somebody
    /// allows TF32, so where the matrix unit does not do it the vector unit does.
    pub fn matrix_peak(&self, dtype: DType) -> Option<&Peak> {
        let vector = || self.peak(dtype, ComputeUnit::Vector).filter(|_| dtype == DType::Fp32);
        self.peak(dtype, ComputeUnit::Matrix).or_else(vector)
    }
}

/// Output of `llm-perf hardware --json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HardwareListing {
    /// `llm-perf/hardware/1`.
    pub schema: SchemaTag<Self>,
    /// The devices asked for.
    pub devices: Vec<Hardware>,
}

/// One rate reached on this machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CalibratedRate {
    /// Element type of the operands.
    pub dtype: DType,
    /// Best rate of all rounds.
    pub flops: FlopsPerSecond,
    /// What was multiplied, such as `gemm 1024x1024x1024`.
    pub method: String,
    /// Time of every round, so that the spread can be judged.
    pub samples_ns: Vec<Nanos>,
}

/// Rates measured on this machine's processor, kept so that later runs need not measure them again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calibration {
    /// `llm-perf/calibration/1`.
    pub schema: SchemaTag<Self>,
    /// Processor it holds for.
    pub cpu_model: String,
    /// Threads it holds for.
    pub threads: u32,
    /// When it was measured, RFC 3339.
    pub measured_at: String,
    /// Version of llm-perf that measured it.
    pub tool_version: String,
    /// Matrix rates by element type.
    pub matrix: Vec<CalibratedRate>,
    /// Share of the time they wanted to run that the threads did run, while the first of these was measured; below one when
    /// something else was running, absent where the system does not say.
    pub thread_share: Option<f64>,
    /// Copy bandwidth, bytes read plus bytes written.
    pub bytes_per_second: BytesPerSecond,
    /// What was copied, such as `copy of 256 MiB, all threads`.
    pub copy_method: String,
    /// Time of every copy round.
    pub copy_samples_ns: Vec<Nanos>,
    /// Memory of the machine.
    pub memory_bytes: Bytes,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(peaks: Vec<Peak>) -> Hardware {
        Hardware {
            id: "x".into(),
            name: "X".into(),
            vendor: "V".into(),
            nvml_names: vec![],
            architecture: "A".into(),
            compute_capability: None,
            memory_bytes: Bytes::new(1),
            bytes_per_second: BytesPerSecond::new(1.0),
            l2_bytes: None,
            sm_count: 1,
            boost_clock_hz: None,
            power_watts: None,
            interconnect_bytes_per_second: None,
            peaks,
            number_sources: BTreeMap::new(),
            sources: BTreeMap::new(),
        }
    }

    fn peak(dtype: DType, unit: ComputeUnit, accumulate: Option<DType>, flops: f64) -> Peak {
        Peak { dtype, unit, accumulate, flops: FlopsPerSecond::new(flops), source: "s".into(), note: None }
    }

    #[test]
    fn the_widest_accumulation_is_the_default_rate() {
        let geforce = device(vec![
            peak(DType::Fp16, ComputeUnit::Matrix, Some(DType::Fp16), 330e12),
            peak(DType::Fp16, ComputeUnit::Matrix, Some(DType::Fp32), 165e12),
        ]);
        let rate = geforce.peak(DType::Fp16, ComputeUnit::Matrix).unwrap().flops;
        assert_eq!(rate, FlopsPerSecond::new(165e12));
    }

    #[test]
    fn a_rate_the_device_does_not_list_is_absent() {
        let device = device(vec![peak(DType::Bf16, ComputeUnit::Matrix, Some(DType::Fp32), 1e12)]);
        assert!(device.peak(DType::Fp8, ComputeUnit::Matrix).is_none());
        assert!(device.peak(DType::Bf16, ComputeUnit::Vector).is_none());
    }
}
