//! Are NVIDIA's profilers there, and new enough for the driver's CUDA?

use types::{ToolVersion, Verdict};

use super::{CheckOutcome, Probe};
use crate::tool::requirements::{NCU, NSYS, Requirements};

pub(super) fn examine_nsys(probe: &Probe) -> CheckOutcome {
    let outcome = examine(probe, &NSYS, probe.capture.environment.tools.nsys.as_ref());
    if outcome.verdict == Verdict::Ok && probe.capture.nsys_lacks_importer {
        return CheckOutcome::bad(
            Verdict::Warning,
            format!(
                "{}; this copy ships with Nsight Compute and cannot write reports without libdw.so.1",
                outcome.found
            ),
            "install libdw: `sudo apt-get install libdw1`, or `sudo dnf install elfutils-libs`",
        );
    }
    outcome
}

pub(super) fn examine_ncu(probe: &Probe) -> CheckOutcome {
    examine(probe, &NCU, probe.capture.environment.tools.ncu.as_ref())
}

fn examine(probe: &Probe, needs: &Requirements, tool: Option<&ToolVersion>) -> CheckOutcome {
    let tool = tool.map(|tool| (tool.path.as_deref().unwrap_or("an unknown path"), tool.version.as_deref()));
    match needs.examine(tool, probe.capture.environment.tools.cuda_driver.as_deref()) {
        Ok(found) => CheckOutcome::ok(found),
        Err(short) => CheckOutcome::bad(short.verdict, short.found, short.next_step),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::sample::{self, tool};

    fn with_nsys(version: Option<&str>, cuda: Option<&str>) -> CheckOutcome {
        let mut probe = sample::h200();
        let tools = &mut probe.capture.environment.tools;
        tools.nsys = Some(ToolVersion { version: version.map(str::to_owned), path: Some("/usr/bin/nsys".into()) });
        tools.cuda_driver = cuda.map(str::to_owned);
        examine_nsys(&probe)
    }

    #[test]
    fn a_profiler_must_know_the_drivers_cuda() {
        let verdict = |version, cuda| with_nsys(Some(version), cuda).verdict;
        assert_eq!(verdict("2023.4.4.54-234433681190v0", Some("12.4")), Verdict::Ok);
        assert_eq!(verdict("2023.4.4.54-234433681190v0", Some("13.0")), Verdict::TooOld);
        assert_eq!(verdict("2025.3.1.90-253135822126v0", Some("13.0")), Verdict::Ok);
        assert_eq!(verdict("2025.3.1", Some("14.0")), Verdict::Ok, "a CUDA this build does not know is not guessed at");
        assert_eq!(verdict("2022.4.2.1", Some("12.0")), Verdict::TooOld, "its reports have other names");
        assert_eq!(verdict("2023.4.4", None), Verdict::Ok);
    }

    #[test]
    fn an_old_profiler_is_told_why_and_what_instead() {
        let outcome = with_nsys(Some("2023.4.4.54-234433681190v0"), Some("13.0"));
        assert_eq!(
            outcome.found,
            "nsys 2023.4.4.54 at /usr/bin/nsys; it is too old for the driver's CUDA 13.0 and loses kernels silently"
        );
        let step = outcome.next_step.unwrap();
        assert_eq!(step, "install Nsight Systems 2025.3 or newer and put `nsys` on PATH");
    }

    #[test]
    fn one_that_will_not_say_its_version_is_doubted() {
        assert_eq!(with_nsys(None, Some("13.0")).verdict, Verdict::Warning);
    }

    #[test]
    fn the_copy_without_its_library_cannot_make_reports() {
        let mut probe = sample::h200();
        probe.capture.nsys_lacks_importer = true;
        let outcome = examine_nsys(&probe);
        assert_eq!(outcome.verdict, Verdict::Warning);
        assert!(outcome.next_step.unwrap().contains("libdw1"));
    }

    #[test]
    fn nsight_compute_is_held_to_its_own_releases() {
        let mut probe = sample::h200();
        assert_eq!(examine_ncu(&probe), CheckOutcome::ok("ncu 2025.3.1.0 at /opt/nvidia/nsight-compute/2025.3.1/ncu"));
        probe.capture.environment.tools.ncu = Some(tool("2024.1.1.0", "/usr/bin/ncu"));
        assert_eq!(examine_ncu(&probe).verdict, Verdict::TooOld);
        probe.capture.environment.tools.ncu = None;
        assert_eq!(examine_ncu(&probe).verdict, Verdict::Missing);
    }
}
