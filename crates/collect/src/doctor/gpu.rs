//! Is a GPU visible, free, and at its own speed?

use types::{GpuInfo, Verdict};

use super::{CheckOutcome, Probe, listed};
use crate::environment::GpuProblem;

/// Share of a GPU's memory from which someone else is at work on it; the driver itself keeps less than one percent.
const BUSY_SHARE: f64 = 0.05;

/// Reasons that make every number worse, as the driver names them. An idle GPU and set clocks are none.
const SLOWED: [&str; 5] =
    ["hw_slowdown", "hw_thermal_slowdown", "sw_thermal_slowdown", "hw_power_brake_slowdown", "sync_boost"];

pub(super) fn examine(probe: &Probe) -> CheckOutcome {
    let gpus = &probe.capture.environment.gpus;
    if gpus.is_empty() {
        return match probe.capture.gpu_problem {
            Some(GpuProblem::NoDevice) | None => CheckOutcome::bad(
                Verdict::Missing,
                "the driver reports no GPU",
                "in a container, start it with `--gpus all`; in a VM, pass the GPU through",
            ),
            Some(_) => CheckOutcome::skipped("no NVIDIA driver"),
        };
    }
    let found = listed(&gpus.iter().map(description).collect::<Vec<_>>());
    let those = |wanted: &dyn Fn(&GpuInfo) -> bool| {
        let indices: Vec<String> =
            gpus.iter().filter(|gpu| wanted(gpu)).map(|gpu| format!("GPU {}", gpu.index)).collect();
        (!indices.is_empty()).then(|| listed(&indices))
    };
    if let Some(closed) = those(&|gpu| gpu.compute_mode.as_deref() == Some("prohibited")) {
        let found = format!("{found}; {closed} unavailable (compute mode `prohibited`)");
        return CheckOutcome::bad(Verdict::NotPermitted, found, "run `sudo nvidia-smi --compute-mode=DEFAULT`");
    }
    if let Some(slow) = those(&|gpu| slowed(gpu).next().is_some()) {
        let reasons: Vec<String> = gpus.iter().flat_map(slowed).map(str::to_owned).collect();
        let found = format!("{found}; {slow} throttled ({})", listed(&reasons));
        return CheckOutcome::bad(
            Verdict::Warning,
            found,
            "check its cooling and power: `nvidia-smi --query --display=PERFORMANCE`",
        );
    }
    if let Some(busy) = those(&|gpu| used_share(gpu).is_some_and(|share| share > BUSY_SHARE)) {
        let found = format!("{found}; {busy} in use by another program");
        return CheckOutcome::bad(
            Verdict::Warning,
            found,
            "timings will be noisy; stop other GPU jobs (`nvidia-smi` lists them)",
        );
    }
    CheckOutcome::ok(found)
}

fn description(gpu: &GpuInfo) -> String {
    let name = gpu.name.as_deref().unwrap_or("unnamed GPU");
    let memory = gpu.memory_bytes.map(|memory| format!(", {memory}")).unwrap_or_default();
    let split = if gpu.mig_enabled == Some(true) { ", MIG enabled" } else { "" };
    format!("cuda:{} {name}{memory}{split}", gpu.index)
}

fn used_share(gpu: &GpuInfo) -> Option<f64> {
    let (used, all) = gpu.memory_used_bytes.zip(gpu.memory_bytes)?;
    Some(used.as_f64() / all.as_f64())
}

fn slowed(gpu: &GpuInfo) -> impl Iterator<Item = &str> {
    gpu.throttle_reasons.iter().flatten().map(String::as_str).filter(|reason| SLOWED.contains(reason))
}

#[cfg(test)]
mod tests {
    use types::Bytes;

    use super::*;
    use crate::doctor::sample;

    fn outcome(change: fn(&mut GpuInfo)) -> CheckOutcome {
        let mut probe = sample::h200();
        change(&mut probe.capture.environment.gpus[0]);
        examine(&probe)
    }

    #[test]
    fn no_gpu_is_missing_with_a_driver_and_not_asked_about_without_one() {
        let mut probe = sample::processor_only();
        assert_eq!(examine(&probe).verdict, Verdict::Skipped);
        probe.capture.gpu_problem = Some(GpuProblem::NoDevice);
        assert_eq!(examine(&probe).verdict, Verdict::Missing);
    }

    #[test]
    fn an_idle_gpu_is_fine_and_a_hot_or_busy_one_is_not() {
        assert_eq!(outcome(|_| {}), CheckOutcome::ok("cuda:0 NVIDIA H200, 150 GB"));
        let hot = outcome(|gpu| gpu.throttle_reasons = Some(vec!["hw_thermal_slowdown".into()]));
        assert_eq!(hot.verdict, Verdict::Warning);
        assert!(hot.found.ends_with("GPU 0 throttled (hw_thermal_slowdown)"), "{}", hot.found);
        let busy = outcome(|gpu| gpu.memory_used_bytes = Some(Bytes::new(100 << 30)));
        assert_eq!(busy.verdict, Verdict::Warning);
        let closed = outcome(|gpu| gpu.compute_mode = Some("prohibited".into()));
        assert_eq!(closed.verdict, Verdict::NotPermitted);
    }

    #[test]
    fn what_a_gpu_does_not_say_is_not_held_against_it() {
        let silent = outcome(|gpu| {
            gpu.throttle_reasons = None;
            gpu.memory_used_bytes = None;
            gpu.compute_mode = None;
        });
        assert_eq!(silent.verdict, Verdict::Ok);
    }
}
