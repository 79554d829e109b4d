//! Are NVIDIA's profilers there, and new enough for the driver's CUDA?

use types::{ToolVersion, Verdict};

use super::{Outcome, Probe};
use crate::tool::Version;

/// What a profiler must be at least.
struct Needs {
    name: &'static str,
    package: &'static str,
    /// The oldest release at all, and why.
    oldest: [u32; 2],
    because: &'static str,
    /// What one from before the driver's CUDA does.
    before: &'static str,
    /// The releases that came with the first toolkit of each CUDA. One from before does not know that CUDA: nsys 2023.4
    /// records a tenth of the kernels of a CUDA 13 program and says nothing.
    shipped: [(u32, [u32; 2]); 2],
}

const NSYS: Needs = Needs {
    name: "nsys",
    package: "Nsight Systems",
    oldest: [2023, 1],
    because: "older ones have other names for their reports",
    before: "loses kernels without a word",
    shipped: [(12, [2022, 4]), (13, [2025, 3])],
};

const NCU: Needs = Needs {
    name: "ncu",
    package: "Nsight Compute",
    oldest: [2022, 4],
    because: "older ones do not replay ranges of an application",
    before: "may refuse to profile",
    shipped: [(12, [2022, 4]), (13, [2025, 3])],
};

pub(super) fn examine_nsys(probe: &Probe) -> Outcome {
    let outcome = examine(probe, &NSYS, probe.capture.environment.tools.nsys.as_ref());
    if outcome.verdict == Verdict::Ok && probe.capture.nsys_lacks_importer {
        return Outcome::bad(
            Verdict::Warning,
            format!("{}; it is the copy inside Nsight Compute and lacks libdw.so.1 to make reports", outcome.found),
            "install libdw: `sudo apt-get install libdw1`, or `sudo dnf install elfutils-libs`",
        );
    }
    outcome
}

pub(super) fn examine_ncu(probe: &Probe) -> Outcome {
    examine(probe, &NCU, probe.capture.environment.tools.ncu.as_ref())
}

fn examine(probe: &Probe, needs: &Needs, tool: Option<&ToolVersion>) -> Outcome {
    let Needs { name, package, .. } = needs;
    let driver = probe.capture.environment.tools.cuda_driver.as_deref().and_then(Version::read);
    let required = needs.for_cuda(driver.as_ref().map(Version::major));
    let install = format!("install {package} {required} or newer and put `{name}` on PATH");
    let Some(tool) = tool else {
        let purpose = if driver.is_some() { "" } else { "; not needed for runs on the CPU" };
        let found = format!("no {name} on PATH, in a toolkit or in /opt/nvidia");
        return Outcome::bad(Verdict::Missing, found, format!("{install}{purpose}"));
    };
    let path = tool.path.as_deref().unwrap_or("an unknown place");
    let Some(version) = tool.version.as_deref().and_then(Version::read) else {
        let found = format!("{path} would not say its version");
        return Outcome::bad(Verdict::Warning, found, format!("see what `{path} --version` says; otherwise {install}"));
    };
    let found = format!("{name} {version} in {path}");
    if version >= required {
        return Outcome::ok(found);
    }
    let reason = match driver {
        Some(cuda) if version >= Version::of(&needs.oldest) => {
            format!("it is older than the driver's CUDA {cuda} and {}", needs.before)
        }
        _ => needs.because.to_owned(),
    };
    Outcome::bad(Verdict::TooOld, format!("{found}; {reason}"), install)
}

impl Needs {
    /// The oldest release that serves with a driver of that CUDA.
    fn for_cuda(&self, cuda: Option<u32>) -> Version {
        let shipped = self.shipped.iter().filter(|(major, _)| cuda.is_some_and(|cuda| *major <= cuda));
        let shipped = shipped.map(|(_, release)| Version::of(release)).max();
        shipped.into_iter().chain([Version::of(&self.oldest)]).max().unwrap_or_else(|| Version::of(&self.oldest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::probe::samples::{self, tool};

    fn with_nsys(version: Option<&str>, cuda: Option<&str>) -> Outcome {
        let mut probe = samples::h200();
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
            "nsys 2023.4.4.54 in /usr/bin/nsys; it is older than the driver's CUDA 13.0 and loses kernels without a word"
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
        let mut probe = samples::h200();
        probe.capture.nsys_lacks_importer = true;
        let outcome = examine_nsys(&probe);
        assert_eq!(outcome.verdict, Verdict::Warning);
        assert!(outcome.next_step.unwrap().contains("libdw1"));
    }

    #[test]
    fn nsight_compute_is_held_to_its_own_releases() {
        let mut probe = samples::h200();
        assert_eq!(examine_ncu(&probe), Outcome::ok("ncu 2025.3.1.0 in /opt/nvidia/nsight-compute/2025.3.1/ncu"));
        probe.capture.environment.tools.ncu = Some(tool("2024.1.1.0", "/usr/bin/ncu"));
        assert_eq!(examine_ncu(&probe).verdict, Verdict::TooOld);
        probe.capture.environment.tools.ncu = None;
        assert_eq!(examine_ncu(&probe).verdict, Verdict::Missing);
    }
}
