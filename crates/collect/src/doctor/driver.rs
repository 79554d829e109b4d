//! Is the NVIDIA driver there, whole and new enough?

use types::Verdict;

use super::{CheckOutcome, Probe};
use crate::environment::GpuProblem;
use crate::tool::Version;

/// The oldest CUDA a driver may offer. Today's PyTorch packages and the records CUPTI gives are of CUDA 12; drivers before
/// R525 offer CUDA 11.
const OLDEST_CUDA: [u32; 2] = [12, 0];

pub(super) fn examine(probe: &Probe) -> CheckOutcome {
    let tools = &probe.capture.environment.tools;
    let missing = |found: String, step: &str| CheckOutcome::bad(Verdict::Missing, found, step);
    match (&probe.capture.gpu_problem, &probe.capture.kernel_driver) {
        (None | Some(GpuProblem::NoDevice), _) => {
            let driver = tools.driver.as_deref().unwrap_or("(unknown version)");
            let Some(cuda) = &tools.cuda_driver else {
                return CheckOutcome::ok(format!("driver {driver}"));
            };
            let found = format!("driver {driver}, CUDA {cuda}");
            if Version::read(cuda).is_some_and(|cuda| cuda < Version::of(&OLDEST_CUDA)) {
                return CheckOutcome::bad(
                    Verdict::TooOld,
                    found,
                    "install driver R525 or newer, which supports CUDA 12",
                );
            }
            CheckOutcome::ok(found)
        }
        (Some(GpuProblem::NoLibrary), None) => missing(
            "not found (no NVML library, libnvidia-ml.so.1)".to_owned(),
            "not needed for CPU runs; for GPU runs, install the NVIDIA driver (R525 or newer)",
        ),
        (Some(GpuProblem::NoLibrary), Some(kernel)) => missing(
            format!("kernel module {kernel} is loaded, but the driver libraries are missing"),
            "in a container, start it with `--gpus all` and NVIDIA_DRIVER_CAPABILITIES=compute,utility; otherwise \
             install the driver libraries of the same version",
        ),
        (Some(GpuProblem::DriverNotLoaded), _) => missing(
            "the driver libraries are installed, but the kernel module is not loaded".to_owned(),
            "on the host, run `sudo modprobe nvidia`; if that fails, `sudo dmesg | grep -i nvrm` shows why",
        ),
        (Some(GpuProblem::VersionMismatch), kernel) => CheckOutcome::bad(
            Verdict::TooOld,
            format!(
                "the driver libraries and the kernel module have different versions (module {})",
                kernel.as_deref().unwrap_or("(unknown)")
            ),
            "reboot to load the kernel module that matches the libraries",
        ),
        (Some(GpuProblem::NoPermission), _) => CheckOutcome::bad(
            Verdict::NotPermitted,
            "this user has no access to the driver",
            "give this user access to the device files; `ls -l /dev/nvidia*` shows their permissions",
        ),
        (Some(problem @ GpuProblem::Silent(_)), _) => {
            missing(problem.to_string(), "check `sudo dmesg | grep -i xid` for GPU errors, and reboot")
        }
        (Some(problem @ GpuProblem::Other(_)), _) => missing(problem.to_string(), "check whether `nvidia-smi` works"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::doctor::sample;

    fn outcome(problem: GpuProblem, kernel: Option<&str>) -> CheckOutcome {
        let mut probe = sample::processor_only();
        probe.capture.gpu_problem = Some(problem);
        probe.capture.kernel_driver = kernel.map(str::to_owned);
        examine(&probe)
    }

    #[test]
    fn a_container_without_its_gpu_is_told_from_a_machine_without_a_driver() {
        let machine = outcome(GpuProblem::NoLibrary, None);
        assert_eq!(machine.verdict, Verdict::Missing);
        assert!(machine.next_step.unwrap().contains("install the NVIDIA driver"));
        let container = outcome(GpuProblem::NoLibrary, Some("580.159.04"));
        assert!(container.next_step.unwrap().contains("--gpus all"));
    }

    #[test]
    fn each_failure_has_its_verdict() {
        assert_eq!(outcome(GpuProblem::DriverNotLoaded, None).verdict, Verdict::Missing);
        assert_eq!(outcome(GpuProblem::VersionMismatch, Some("580.1")).verdict, Verdict::TooOld);
        assert_eq!(outcome(GpuProblem::NoPermission, None).verdict, Verdict::NotPermitted);
        assert_eq!(outcome(GpuProblem::Silent(Duration::from_secs(15)), None).verdict, Verdict::Missing);
        assert_eq!(outcome(GpuProblem::Other("GPU lost".into()), None).found, "NVML failed: GPU lost");
    }

    #[test]
    fn a_driver_before_cuda_12_is_too_old() {
        let mut probe = sample::h200();
        assert_eq!(examine(&probe), CheckOutcome::ok("driver 580.159.04, CUDA 13.0"));
        probe.capture.environment.tools.cuda_driver = Some("11.8".into());
        assert_eq!(examine(&probe).verdict, Verdict::TooOld);
        probe.capture.environment.tools.cuda_driver = Some("12.0".into());
        assert_eq!(examine(&probe).verdict, Verdict::Ok);
    }
}
