//! Energy that the GPUs of this machine took over a while, from their own counters.

use nvml_wrapper::Nvml;
use types::{Joules, LoadEnergy};

use super::gpu;
use crate::tool::Places;

/// Counters of energy, read once at the start.
#[derive(Debug)]
pub struct EnergyMeter {
    nvml: Nvml,
    /// Millijoules of each GPU; absent for one that does not count.
    start: Vec<Option<u64>>,
}

impl EnergyMeter {
    /// Reads the counters; `None` where there is no GPU.
    pub fn start() -> Option<Self> {
        let nvml = gpu::start(&Places::of_this_machine().libraries).ok()?;
        let count = nvml.device_count().ok().filter(|count| *count > 0)?;
        let start = (0..count).map(|index| millijoules(&nvml, index)).collect();
        Some(Self { nvml, start })
    }

    /// What was taken since, by the GPUs that run a program now; by all of them where the driver names no program. `None` where one of
    /// them does not count.
    pub fn taken(&self) -> Option<LoadEnergy> {
        let all = 0..self.start.len() as u32;
        let busy: Vec<u32> = all.clone().filter(|index| runs_a_program(&self.nvml, *index)).collect();
        let of = if busy.is_empty() { all.collect() } else { busy };
        let taken = |index: &u32| millijoules(&self.nvml, *index)?.checked_sub(self.start[*index as usize]?);
        let sum: u64 = of.iter().map(taken).collect::<Option<Vec<_>>>()?.iter().sum();
        Some(LoadEnergy { joules: Joules::from_millijoules(sum), gpus: of.len() as u64 })
    }
}

fn millijoules(nvml: &Nvml, index: u32) -> Option<u64> {
    nvml.device_by_index(index).ok()?.total_energy_consumption().ok()
}

fn runs_a_program(nvml: &Nvml, index: u32) -> bool {
    nvml.device_by_index(index).and_then(|device| device.running_compute_processes()).is_ok_and(|all| !all.is_empty())
}
