//! Replayed launches laid beside the timeline's: by base name, grid and block; where several kernels share all three, by
//! how alike their full names are, and by the order in which they come.

use types::{
    BytesPerSecond, ComputeUnit, CountedKernel, DType, DeviceId, Flops, FlopsPerByte, FlopsPerSecond, Hardware, Nanos,
    SampledKernel, Severity, Spread,
};

use super::choose::{Candidate, Choice};
use super::launch::CountedLaunch;
use super::name::{base_name, likeness};

/// Below this share of both peaks a kernel is near neither: it waits for something else. Nsight Compute draws the same
/// line.
const NEAR: f64 = 0.6;

/// Chosen kernels with their counters.
#[derive(Clone, Debug, PartialEq)]
pub struct Joined {
    /// One row for each chosen kernel.
    pub kernels: Vec<SampledKernel>,
    /// Replayed launches that are none of the chosen kernels.
    pub strangers: u64,
    /// What is uncertain.
    pub quality: Vec<types::QualityCounter>,
}

/// Joins the chosen kernels of one stage with the launches that were replayed in it.
pub fn join(choice: &Choice, launches: &[CountedLaunch], rates: Option<&Hardware>) -> Joined {
    let mut of_kernel: Vec<Vec<&CountedLaunch>> = vec![Vec::new(); choice.kernels.len()];
    let bases: Vec<String> = choice.kernels.iter().map(|kernel| base_name(&kernel.name)).collect();
    let mut strangers = 0;
    for launch in launches {
        let base = base_name(&launch.name);
        let fits = |place: &usize| {
            let kernel = &choice.kernels[*place];
            bases[*place] == base
                && launch.grid.is_none_or(|grid| grid == kernel.grid)
                && launch.block.is_none_or(|block| block == kernel.block)
        };
        // The first of equals, which is the one with more time in it.
        let likeness = |place: usize| likeness(&choice.kernels[place].name, &launch.name);
        let found = (0..choice.kernels.len()).filter(fits).fold(None, |best: Option<(usize, f64)>, place| {
            let alike = likeness(place);
            if best.is_none_or(|(_, most)| alike > most) { Some((place, alike)) } else { best }
        });
        match found {
            Some((place, _)) => of_kernel[place].push(launch),
            None => strangers += 1,
        }
    }
    let rows = choice.kernels.iter().zip(&of_kernel);
    let kernels: Vec<_> = rows.map(|(kernel, launches)| row(kernel, launches, rates)).collect();
    let without = kernels.iter().filter(|kernel| kernel.counted.is_none()).count() as u64;
    let mut quality = Vec::new();
    let mut add = |counter: &str, value: u64, of: usize, remedy: &str| {
        let share = (of > 0).then(|| value as f64 / of as f64);
        let (counter, remedy) = (counter.to_owned(), remedy.to_owned());
        if value > 0 {
            quality.push(types::QualityCounter { counter, value, share, severity: Severity::Info, remedy });
        }
    };
    let of_stage = choice.stage.map(|stage| format!(" in {stage}")).unwrap_or_default();
    add(
        "counted_launches_not_chosen",
        strangers,
        launches.len(),
        &format!("launches were replayed{of_stage} that are none of the chosen kernels; their counters are in ncu/"),
    );
    if !launches.is_empty() {
        add(
            "chosen_kernels_not_counted",
            without,
            kernels.len(),
            &format!(
                "chosen kernels{of_stage} have no counters: no launch with that name, grid and block was replayed"
            ),
        );
    }
    Joined { kernels, strangers, quality }
}

fn row(kernel: &Candidate, launches: &[&CountedLaunch], rates: Option<&Hardware>) -> SampledKernel {
    let calls = i64::try_from(kernel.calls).unwrap_or(i64::MAX);
    SampledKernel {
        name: kernel.name.clone(),
        short_name: kernel.short_name.clone(),
        family: kernel.family.clone(),
        stage: kernel.stage,
        device: DeviceId::cuda(kernel.device),
        grid: kernel.grid,
        block: kernel.block,
        calls: kernel.calls,
        total_ns: kernel.total,
        mean_ns: Nanos::new(kernel.total.get().checked_div(calls).unwrap_or_default()),
        min_ns: kernel.min,
        max_ns: kernel.max,
        stage_share: kernel.share,
        counted: (!launches.is_empty()).then(|| counted(launches, rates)),
        modelled: None,
    }
}

fn counted(all: &[&CountedLaunch], rates: Option<&Hardware>) -> CountedKernel {
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
    // Each kernel is held against the unit it used most: the matrix unit in its element type, else single precision.
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
        roofline_share: roofline.zip(rate).and_then(|((most, _), rate)| crate::statistics::share(rate, most)),
        roofline_side: roofline.map(|(_, side)| side.to_owned()),
        bound: bound.map(str::to_owned),
    }
}

/// Mean, least and most; absent where one is.
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
    (weight > 0.0).then(|| parts / weight)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(name: &str, grid: u32) -> Candidate {
        Candidate {
            name: name.to_owned(),
            symbols: Default::default(),
            short_name: name.to_owned(),
            family: "gemm".to_owned(),
            stage: None,
            device: 0,
            grid: [grid, 1, 1],
            block: [128, 1, 1],
            registers: None,
            calls: 4,
            total: Nanos::new(400),
            min: Nanos::new(50),
            max: Nanos::new(200),
            share: Some(0.5),
        }
    }

    fn launch(name: &str, grid: u32, time: f64, dram: f64) -> CountedLaunch {
        CountedLaunch {
            name: name.to_owned(),
            grid: Some([grid, 1, 1]),
            block: Some([128, 1, 1]),
            time: Some(time),
            dram: Some(dram),
            flops_tensor: Some(4000.0),
            sm: Some(0.2),
            memory: Some(0.7),
            ..CountedLaunch::default()
        }
    }

    fn choice(kernels: Vec<Candidate>) -> Choice {
        Choice { stage: None, kernels, others: std::collections::BTreeSet::new(), ranges: Vec::new(), share: None }
    }

    #[test]
    fn launches_find_their_kernel_by_name_grid_and_block() {
        let choice = choice(vec![candidate("void ns::f<(int)1>(int)", 4), candidate("void ns::f<(int)1>(int)", 8)]);
        let launches = [
            launch("void f<1>(int)", 8, 100.0, 50.0),
            launch("void f<1>(int)", 8, 300.0, 150.0),
            launch("g", 8, 1.0, 1.0),
        ];
        let joined = join(&choice, &launches, None);
        assert_eq!((joined.kernels[0].counted.is_none(), joined.strangers), (true, 1));
        let counted = joined.kernels[1].counted.as_ref().unwrap();
        assert_eq!(counted.launches, 2);
        assert_eq!(counted.dram_bytes, Some(Spread { mean: 100.0, min: 50.0, max: 150.0 }));
        assert_eq!(counted.bound.as_deref(), Some("memory"));
        let names: Vec<_> = joined.quality.iter().map(|counter| counter.counter.as_str()).collect();
        assert_eq!(names, ["counted_launches_not_chosen", "chosen_kernels_not_counted"]);
    }

    #[test]
    fn kernels_that_share_name_grid_and_block_are_told_apart_by_their_arguments() {
        let choice = choice(vec![candidate("void f<ns::add<int>>(int)", 4), candidate("void f<ns::mul<int>>(int)", 4)]);
        let joined = join(&choice, &[launch("void f<mul<int>>(int)", 4, 1.0, 1.0)], None);
        assert!(joined.kernels[0].counted.is_none() && joined.kernels[1].counted.is_some());
    }
}
