//! Counters of one kernel, from those of its replayed launches.

use types::{BytesPerSecond, ComputeUnit, CountedKernel, DType, Flops, FlopsPerByte, FlopsPerSecond, Hardware, Spread};

use super::launch::CountedLaunch;
use crate::statistics::share;

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
    let bound = sm.zip(memory).map(|(sm, memory)| match (sm, memory) {
        (sm, memory) if sm.max(memory) < NEAR => "latency",
        (sm, memory) if sm >= memory => "compute",
        _ => "memory",
    });
    let amount = |flops: f64| Flops::new(flops.round().max(0.0) as u128);
    CountedKernel {
        launches: all.len() as u64,
        time_ns,
        dram_bytes,
        dram_bytes_per_second: dram.zip(seconds).map(|(bytes, seconds)| BytesPerSecond::new(bytes / seconds)),
        dram_share: weighted(all, |one| one.dram_share),
        l2_hit_share: weighted(all, |one| one.l2_hits),
        sm_share: sm,
        memory_share: memory,
        tensor_share: weighted(all, |one| one.tensor),
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
        bound: bound.map(str::to_owned),
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
