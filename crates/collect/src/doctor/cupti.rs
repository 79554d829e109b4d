//! Is CUPTI there, does it load, and does it belong to the driver's CUDA?

use types::Verdict;

use super::{CheckOutcome, Probe};
use crate::tool::Version;

/// The oldest release whose kernel records are read.
const OLDEST_MAJOR: u32 = 12;

pub(super) fn examine(probe: &Probe) -> CheckOutcome {
    const INSTALL: &str = "install the CUDA toolkit, or run `python3 -m pip install nvidia-cuda-cupti`; needed to \
                           record GPU work without Nsight Systems";
    let capture = &probe.capture;
    let tools = &capture.environment.tools;
    let Some(cupti) = &tools.cupti else {
        return CheckOutcome::bad(Verdict::Missing, "libcupti not found in a CUDA toolkit or next to torch", INSTALL);
    };
    let path = cupti.path.as_deref().unwrap_or("an unknown path");
    let version = cupti.version.as_deref().unwrap_or("(unknown version)");
    let interface = match &capture.cupti_interface {
        Some(Ok(interface)) => format!(" (interface {interface})"),
        Some(Err(reason)) => {
            let found = format!("cannot load libcupti {version}: {reason}");
            return CheckOutcome::bad(Verdict::Missing, found, INSTALL);
        }
        None => String::new(),
    };
    let found = format!("libcupti {version}{interface} at {path}");
    let driver = tools.cuda_driver.as_deref().and_then(Version::read).map(|cuda| cuda.major());
    match (capture.cupti_major, driver) {
        (Some(own), _) if own < OLDEST_MAJOR => CheckOutcome::bad(Verdict::TooOld, found, INSTALL),
        (Some(own), Some(driver)) if own < driver => CheckOutcome::bad(
            Verdict::Warning,
            format!("{found}; it is for CUDA {own}, but the driver supports CUDA {driver}"),
            format!(
                "install the CUDA {driver} toolkit; otherwise records of programs built for CUDA {driver} may be lost"
            ),
        ),
        _ => CheckOutcome::ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::sample;

    #[test]
    fn each_state_of_the_library_has_its_verdict() {
        let verdict = |change: fn(&mut Probe)| {
            let mut probe = sample::h200();
            change(&mut probe);
            examine(&probe).verdict
        };
        assert_eq!(verdict(|_| {}), Verdict::Ok);
        assert_eq!(verdict(|probe| probe.capture.environment.tools.cupti = None), Verdict::Missing);
        let broken = |probe: &mut Probe| probe.capture.cupti_interface = Some(Err("wrong ELF class".into()));
        assert_eq!(verdict(broken), Verdict::Missing);
        assert_eq!(verdict(|probe| probe.capture.cupti_major = Some(11)), Verdict::TooOld);
        assert_eq!(verdict(|probe| probe.capture.cupti_major = Some(12)), Verdict::Warning);
        assert_eq!(verdict(|probe| probe.capture.cupti_major = None), Verdict::Ok, "nothing speaks against it");
    }
}
