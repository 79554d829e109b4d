//! Counted work of a region against the roofs of its device.
//!
//! Operations are what the chip executed: vector units count adds and multiplies as one and fused multiply-adds as two,
//! packed half precision twice that; matrix units have a counter of operations per source type. Where only the rate of a
//! counter was collected, as the roofline sections do, the count is the rate times the elapsed cycles.

use types::counter::CounterTable;
use types::{
    Bytes, BytesPerSecond, ComputeUnit, DType, Flops, FlopsPerSecond, Hardware, Nanos, Origin, RegionRoofline,
};

use crate::counter::{TIME, VECTOR};

/// Cycles that rates per cycle are multiplied with.
const CYCLES: &str = "smsp__cycles_elapsed.avg";

/// Operations of the matrix units by what they read. Whole numbers are no floating-point work and left out.
const MATRIX: [(DType, &str); 6] = [
    (DType::Bf16, "bf16_dst_fp32"),
    (DType::Fp16, "fp16"),
    (DType::Fp64, "fp64"),
    (DType::Fp8, "fp8_sparsity_off"),
    (DType::Fp8, "fp8_sparsity_on"),
    (DType::Tf32, "tf32_dst_fp32"),
];

/// Whether a counter is used for the roofline, or to weigh others, so that readers need keep no more.
pub fn is_counted(counter: &str) -> bool {
    counter == TIME
        || counter.starts_with(CYCLES)
        || counter.starts_with("dram__bytes")
        || counter.starts_with("smsp__sass_thread_inst_executed_op_")
        || counter.starts_with("sm__ops_path_tensor_src_")
}

/// Work while rows are added.
#[derive(Clone, Debug, Default)]
pub(super) struct CountedWork {
    vector: Vec<(DType, f64)>,
    matrix: Vec<(DType, f64)>,
    bytes: Option<f64>,
    time: f64,
    /// Rows without traffic or time: then nothing can be said.
    incomplete: bool,
}

impl CountedWork {
    /// Adds one kernel or range.
    pub(super) fn add(&mut self, table: &CounterTable, row: usize) {
        let number = |name: &str| table.number(row, name);
        let time = number(TIME);
        let both = || Some(number("dram__bytes_read.sum")? + number("dram__bytes_write.sum")?);
        let by_rate = || Some(number("dram__bytes.sum.per_second")? * time? / 1e9);
        let bytes = number("dram__bytes.sum").or_else(both).or_else(by_rate);
        let (Some(time), Some(bytes)) = (time, bytes) else {
            self.incomplete = true;
            return;
        };
        self.time += time;
        self.bytes = Some(self.bytes.unwrap_or_default() + bytes);
        let by_clock = || Some(number(&format!("{CYCLES}.per_second"))? * time / 1e9);
        let cycles = number(CYCLES).or_else(by_clock);
        for (dtype, name, operations) in VECTOR {
            let by_rate = || Some(number(&format!("{name}.per_cycle_elapsed"))? * cycles?);
            if let Some(executed) = number(name).or_else(by_rate) {
                add(&mut self.vector, dtype, executed * operations);
            }
        }
        for (dtype, source) in MATRIX {
            if let Some(operations) = number(&format!("sm__ops_path_tensor_src_{source}.sum")) {
                add(&mut self.matrix, dtype, operations);
            }
        }
    }

    /// Against the device's roofs, where the device is known. Absent where traffic or time was not counted.
    pub(super) fn finish(&self, hardware: Option<&Hardware>) -> Option<RegionRoofline> {
        let bytes = self.bytes.filter(|_| !self.incomplete && self.time > 0.0)?;
        let seconds = self.time / 1e9;
        let (vector, matrix) = (sum(&self.vector), sum(&self.matrix));
        let flops = vector.map_or(matrix, |vector| Some(vector + matrix.unwrap_or_default()));
        let memory = hardware.map(|hardware| bytes / hardware.bytes_per_second.get());
        let compute = hardware.and_then(|hardware| compute_time(hardware, &self.vector, &self.matrix));
        let roofline = memory.map(|memory| memory.max(compute.unwrap_or_default()));
        // Without a count of matrix work, nobody knows how near the other roof is.
        let is_whole = matrix.is_some();
        let bound = memory
            .zip(compute)
            .filter(|_| is_whole)
            .map(|(memory, compute)| if memory >= compute { "memory" } else { "compute" });
        let whole = |number: f64| Flops::new(number.round().max(0.0) as u128);
        Some(RegionRoofline {
            flops_vector: vector.map(whole),
            flops_matrix: matrix.map(whole),
            dram_bytes: Bytes::new(bytes.round().max(0.0) as u64),
            time_ns: Nanos::new(self.time.round() as i64),
            flops_per_byte: flops.filter(|flops| *flops > 0.0 && bytes > 0.0).map(|flops| flops / bytes),
            flops_per_second: flops.map(|flops| FlopsPerSecond::new(flops / seconds)),
            bytes_per_second: BytesPerSecond::new(bytes / seconds),
            bandwidth_share: memory.map(|memory| memory / seconds),
            compute_share: compute.map(|compute| compute / seconds),
            bound: bound.map(str::to_owned),
            least_ns: roofline.map(|seconds| Nanos::new((seconds * 1e9).round() as i64)),
            origin: Origin::Counted,
        })
    }
}

/// Time the FLOPs need at peak: vector and matrix units work side by side. Absent where nothing was counted, or the device
/// lists no rate for something that was.
fn compute_time(hardware: &Hardware, vector: &[(DType, f64)], matrix: &[(DType, f64)]) -> Option<f64> {
    let time = |work: &[(DType, f64)], unit: ComputeUnit| -> Option<f64> {
        let mut time = 0.0;
        for (dtype, operations) in work.iter().filter(|(_, operations)| *operations > 0.0) {
            time += operations / hardware.peak(*dtype, unit)?.flops.get();
        }
        Some(time)
    };
    if vector.is_empty() && matrix.is_empty() {
        return None;
    }
    Some(time(vector, ComputeUnit::Vector)?.max(time(matrix, ComputeUnit::Matrix)?))
}

fn add(work: &mut Vec<(DType, f64)>, dtype: DType, operations: f64) {
    match work.iter_mut().find(|(known, _)| *known == dtype) {
        Some((_, sum)) => *sum += operations,
        None => work.push((dtype, operations)),
    }
}

fn sum(work: &[(DType, f64)]) -> Option<f64> {
    (!work.is_empty()).then(|| work.iter().map(|(_, operations)| operations).sum())
}
