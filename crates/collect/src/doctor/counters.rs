//! May this process read the GPU's hardware counters? Without them ncu ends with `ERR_NVGPUCTRPERM`.

use types::Verdict;

use super::{CheckOutcome, Probe};
use crate::tool::Version;

/// The first driver that lets `CAP_PERFMON` read counters.
const PERFMON_DRIVER: u32 = 565;

pub(super) fn examine(probe: &Probe) -> CheckOutcome {
    let counters = &probe.counters;
    let environment = &probe.capture.environment;
    let driver = environment.tools.driver.as_deref().and_then(Version::read);
    if driver.is_none() {
        return CheckOutcome::skipped("no NVIDIA driver");
    }
    let restricted = match counters.restricted {
        Some(false) => return CheckOutcome::ok("available to all users (RmProfilingAdminOnly: 0)"),
        Some(true) => "restricted to administrators (RmProfilingAdminOnly: 1)",
        None => {
            return CheckOutcome::bad(
                Verdict::Warning,
                "the driver does not report who may read counters (/proc/driver/nvidia/params)",
                "run `ncu --query-metrics`: it fails with ERR_NVGPUCTRPERM if access is denied",
            );
        }
    };
    let perfmon = counters.performance_monitor && driver.is_some_and(|driver| driver.major() >= PERFMON_DRIVER);
    let held = match (counters.system_administrator, perfmon) {
        (true, _) => Some("CAP_SYS_ADMIN"),
        (false, true) => Some("CAP_PERFMON"),
        (false, false) => None,
    };
    match held {
        Some(capability) if counters.user_namespace => CheckOutcome::bad(
            Verdict::Warning,
            format!("{restricted}; this process has {capability} only inside its own user namespace"),
            format!("the driver may not accept that; if ncu fails with ERR_NVGPUCTRPERM, {ON_HOST}"),
        ),
        Some(capability) => CheckOutcome::ok(format!("{restricted}; this process has {capability}")),
        None => {
            let step = match &environment.operating_system.container {
                Some(_) => format!("start the container with `--cap-add=SYS_ADMIN`, or {ON_HOST}"),
                None => format!("run as root, or {ON_HOST}; a container needs `--cap-add=SYS_ADMIN`"),
            };
            CheckOutcome::bad(Verdict::NotPermitted, format!("{restricted}; ncu will fail with ERR_NVGPUCTRPERM"), step)
        }
    }
}

/// The setting for everyone. The module is loaded early on many systems, so the image it starts from must be made again.
const ON_HOST: &str = "on the host, add `options nvidia NVreg_RestrictProfilingToAdminUsers=0` to \
                       /etc/modprobe.d/nvidia-profiling.conf, run `sudo update-initramfs -u` (or `sudo dracut -f`) and \
                       reboot";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::sample;

    fn outcome(change: fn(&mut Probe)) -> CheckOutcome {
        let mut probe = sample::h200();
        probe.counters.restricted = Some(true);
        change(&mut probe);
        examine(&probe)
    }

    #[test]
    fn without_permission_the_exact_setting_is_given() {
        let outcome = outcome(|_| {});
        assert_eq!(outcome.verdict, Verdict::NotPermitted);
        assert!(outcome.found.contains("ERR_NVGPUCTRPERM"));
        let step = outcome.next_step.unwrap();
        assert!(step.contains("options nvidia NVreg_RestrictProfilingToAdminUsers=0"), "{step}");
        assert!(step.contains("--cap-add=SYS_ADMIN"), "{step}");
    }

    #[test]
    fn in_a_container_its_own_way_comes_first() {
        let outcome = outcome(|probe| probe.capture.environment.operating_system.container = Some("docker".into()));
        assert!(outcome.next_step.unwrap().starts_with("start the container with `--cap-add=SYS_ADMIN`"));
    }

    #[test]
    fn a_capability_opens_them() {
        let verdict = |change| outcome(change).verdict;
        assert_eq!(verdict(|probe| probe.counters.system_administrator = true), Verdict::Ok);
        assert_eq!(verdict(|probe| probe.counters.performance_monitor = true), Verdict::Ok);
        let before = |probe: &mut Probe| {
            probe.counters.performance_monitor = true;
            probe.capture.environment.tools.driver = Some("550.54.14".into());
        };
        assert_eq!(verdict(before), Verdict::NotPermitted, "CAP_PERFMON counts from R565 on");
        let rootless = |probe: &mut Probe| {
            probe.counters.system_administrator = true;
            probe.counters.user_namespace = true;
        };
        assert_eq!(verdict(rootless), Verdict::Warning);
    }

    #[test]
    fn what_the_driver_does_not_say_is_not_guessed() {
        assert_eq!(outcome(|probe| probe.counters.restricted = None).verdict, Verdict::Warning);
        assert_eq!(outcome(|probe| probe.counters.restricted = Some(false)).verdict, Verdict::Ok);
        assert_eq!(examine(&sample::processor_only()).verdict, Verdict::Skipped);
    }
}
