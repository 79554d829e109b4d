//! Counters of one kernel, from those of its replayed launches.

use types::{BytesPerSecond, ComputeUnit, CountedKernel, DType, Flops, FlopsPerByte, FlopsPerSecond, Hardware, Spread};

use super::launch::CountedLaunch;
use crate::statistics::share;

/// How near a kernel comes to each peak; what was not counted is absent.
#[derive(Clone, Copy, Default)]
struct Throughput {
    /// Of the multiprocessors, tensor pipes included.
    compute: Option<f64>,
    dram: Option<f64>,
    /// Of whatever part of the memory system is nearest to its peak.
    memory: Option<f64>,
    l2: Option<f64>,
    l1: Option<f64>,
}

impl Throughput {
    /// What a kernel is bound by. Device memory is compared with the multiprocessors, as in a roofline: a GEMM keeps shared memory as
    /// busy as its tensor pipes, and is not memory-bound for that. Caches are named where neither is near its peak.
    fn bound(self) -> Option<&'static str> {
        let compute = self.compute?;
        match (self.dram, self.memory) {
            (Some(dram), _) if compute.max(dram) >= NEAR => Some(if compute >= dram { "compute" } else { "memory" }),
            (None, Some(memory)) if compute >= NEAR && compute >= memory => Some("compute"),
            (_, Some(memory)) if compute.max(memory) < NEAR => Some("latency"),
            (Some(_), Some(_)) => Some(match (self.l2, self.l1) {
                (None, None) => "cache",
                (l2, l1) if l2 >= l1 => "L2",
                _ => "L1",
            }),
            _ => None,
        }
    }
}

/// Below this share of both peaks a kernel is near neither: it waits for something else. Nsight Compute draws the same
/// line.
const NEAR: f64 = 0.6;

/// Means over the launches, weighted by time where they are shares; `rates` are those of the device.
pub(super) fn counted(all: &[&CountedLaunch], rates: Option<&Hardware>) -> CountedKernel {
    let time_ns = spread(all, |one| one.time);
    let dram_bytes = spread(all, |one| one.dram);
    let seconds = time_ns.map(|time| time.mean / 1e9).filter(|seconds| *seconds > 0.0);
    let mean = |value: fn(&CountedLaunch) -> Option<f64>| spread(all, value).map(|spread| spread.mean);
    let (tensor, vector) = (mean(|one| one.flops_tensor), mean(|one| one.flops_vector));
    let flops = match (tensor, vector) {
        (None, None) => None,
        (tensor, vector) => Some(tensor.unwrap_or(0.0) + vector.unwrap_or(0.0)),
    };
    let dram = dram_bytes.map(|bytes| bytes.mean);
    let intensity = flops.zip(dram.filter(|bytes| *bytes > 0.0)).map(|(flops, bytes)| flops / bytes);
    let rate = flops.zip(seconds).map(|(flops, seconds)| flops / seconds);
    // Each kernel is rated relative to the peak of the unit it used most: the matrix unit in its element type, else single precision.
    let peak = rates.and_then(|rates| {
        let dtype = all.iter().find_map(|one| one.tensor_dtype);
        let uses_tensor = tensor.unwrap_or(0.0) > vector.unwrap_or(0.0);
        match dtype.filter(|_| uses_tensor) {
            Some(dtype) => rates.peak(dtype, ComputeUnit::Matrix),
            None => rates.peak(DType::Fp32, ComputeUnit::Vector),
        }
    });
    let roofline = rates.zip(peak).zip(intensity).map(|((rates, peak), intensity)| {
        let slope = intensity * rates.bytes_per_second.get();
        if slope < peak.flops.get() { (slope, "memory") } else { (peak.flops.get(), "compute") }
    });
    let (sm, memory) = (weighted(all, |one| one.sm), weighted(all, |one| one.memory));
    let tensor_share = weighted(all, |one| one.tensor);
    let dram_rate = dram.zip(seconds).map(|(bytes, seconds)| bytes / seconds);
    let of_peak = || share(dram_rate?, rates?.bytes_per_second.get());
    let throughput = Throughput {
        compute: [sm, tensor_share].into_iter().flatten().reduce(f64::max),
        dram: weighted(all, |one| one.dram_share).or_else(of_peak),
        memory,
        l2: weighted(all, |one| one.l2),
        l1: weighted(all, |one| one.l1),
    };
    let amount = |flops: f64| Flops::new(flops.round().max(0.0) as u128);
    CountedKernel {
        launches: all.len() as u64,
        time_ns,
        dram_bytes,
        dram_bytes_per_second: dram_rate.map(BytesPerSecond::new),
        dram_share: weighted(all, |one| one.dram_share),
        l2_hit_share: weighted(all, |one| one.l2_hits),
        sm_share: sm,
        memory_share: memory,
        tensor_share,
        occupancy_achieved: weighted(all, |one| one.occupancy),
        occupancy_theoretical: weighted(all, |one| one.occupancy_most),
        occupancy_limiter: all[0].limiter.map(str::to_owned),
        registers_per_thread: all[0].registers,
        shared_bytes_per_block: all[0].shared,
        waves: all[0].waves,
        flops_tensor: tensor.map(amount),
        flops_vector: vector.map(amount),
        arithmetic_intensity: intensity.map(FlopsPerByte::new),
        flops_per_second: rate.map(FlopsPerSecond::new),
        roofline_share: roofline.zip(rate).and_then(|((most, _), rate)| share(rate, most)),
        roofline_side: roofline.map(|(_, side)| side.to_owned()),
        bound: throughput.bound().map(str::to_owned),
    }
}

/// Mean, minimum and maximum; absent where one value is.
fn spread(all: &[&CountedLaunch], value: impl Fn(&CountedLaunch) -> Option<f64>) -> Option<Spread> {
    let values: Vec<f64> = all.iter().map(|one| value(one)).collect::<Option<_>>()?;
    let first = *values.first()?;
    Some(Spread {
        mean: values.iter().sum::<f64>() / values.len() as f64,
        min: values.iter().copied().fold(first, f64::min),
        max: values.iter().copied().fold(first, f64::max),
    })
}

/// Mean weighted by time; absent where one or its time is.
fn weighted(all: &[&CountedLaunch], value: impl Fn(&CountedLaunch) -> Option<f64>) -> Option<f64> {
    let weight: f64 = all.iter().map(|one| one.time).sum::<Option<f64>>()?;
    let parts: f64 = all.iter().map(|one| Some(value(one)? * one.time?)).sum::<Option<f64>>()?;
    share(parts, weight)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_memory_is_compared_with_the_multiprocessors_and_caches_are_named() {
        let bound = |compute, dram, memory, l2, l1| Throughput { compute, dram, memory, l2, l1 }.bound();
        // A GEMM whose operands pass through shared memory as fast as the tensor pipes take them.
        assert_eq!(bound(Some(0.933), Some(0.206), Some(0.95), Some(0.6), Some(0.95)), Some("compute"));
        assert_eq!(bound(Some(0.2), Some(0.9), Some(0.9), None, None), Some("memory"));
        assert_eq!(bound(Some(0.3), Some(0.1), Some(0.8), Some(0.8), Some(0.4)), Some("L2"));
        assert_eq!(bound(Some(0.3), Some(0.1), Some(0.8), Some(0.4), Some(0.8)), Some("L1"));
        assert_eq!(bound(Some(0.3), Some(0.1), Some(0.8), None, None), Some("cache"));
        assert_eq!(bound(Some(0.3), Some(0.1), Some(0.5), None, None), Some("latency"));
        // Without device memory nobody knows which part of the memory system is near its peak.
        assert_eq!(bound(Some(0.3), None, Some(0.8), None, None), None);
        assert_eq!(bound(Some(0.7), None, Some(0.6), None, None), Some("compute"));
    }
}
