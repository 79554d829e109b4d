//! Replayed launches laid beside the timeline's: by function, grid and block; where several kernels share all three, by
//! how alike their full names are, and by the order in which they come.

use types::{Base, DeviceId, Facts, Hardware, Nanos, QualityCounter, SampledKernel, Severity};

use super::base_name::base_name;
use super::choice::{Candidate, Choice};
use super::counted_kernel::counted;
use super::launch::CountedLaunch;
use super::likeness::likeness;

/// Chosen kernels with their counters.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelJoin {
    /// One row for each chosen kernel.
    pub kernels: Vec<SampledKernel>,
    /// What is uncertain.
    pub quality: Vec<QualityCounter>,
}

/// Joins the chosen kernels of one stage with the launches that were replayed in it.
pub fn join(choice: &Choice, launches: &[CountedLaunch], rates: Option<&Hardware>) -> KernelJoin {
    let mut of_kernel: Vec<Vec<&CountedLaunch>> = vec![Vec::new(); choice.kernels.len()];
    let functions: Vec<String> = choice.kernels.iter().map(|kernel| base_name(&kernel.name)).collect();
    let mut strangers = 0;
    for launch in launches {
        let function = base_name(&launch.name);
        let fits = |place: &usize| {
            let kernel = &choice.kernels[*place];
            functions[*place] == function
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
    let facts = || Facts::new().with_known("part", choice.stage.map(Base::Stage));
    let strangers = QualityCounter::some("counted_launches_not_chosen", Severity::Info, strangers);
    let without = QualityCounter::some("chosen_kernels_not_counted", Severity::Info, without);
    let without = without.filter(|_| !launches.is_empty());
    let quality = [
        strangers.map(|counter| counter.of(launches.len() as u64).facts(facts())),
        without.map(|counter| counter.of(kernels.len() as u64).facts(facts())),
    ];
    let quality = quality.into_iter().flatten().collect();
    KernelJoin { kernels, quality }
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

#[cfg(test)]
mod tests {
    use types::Spread;

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
            dram_share: Some(0.7),
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
        assert_eq!((joined.kernels[0].counted.is_none(), joined.quality[0].value), (true, 1));
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
