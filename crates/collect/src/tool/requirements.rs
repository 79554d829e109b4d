//! Which releases of NVIDIA's profilers serve, and what is peculiar to some: all that depends on a version is here.

use types::Verdict;

use super::{InstalledTool, Version};

/// What a profiler must be at least.
pub(crate) struct Requirements {
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

/// Nsight Systems.
pub(crate) const NSYS: Requirements = Requirements {
    name: "nsys",
    package: "Nsight Systems",
    oldest: [2023, 1],
    because: "older releases name their reports differently",
    before: "loses kernels silently",
    shipped: [(12, [2022, 4]), (13, [2025, 3])],
};

/// Nsight Compute.
pub(crate) const NCU: Requirements = Requirements {
    name: "ncu",
    package: "Nsight Compute",
    oldest: [2022, 4],
    because: "older releases do not support application range replay",
    before: "may refuse to profile",
    shipped: [(12, [2022, 4]), (13, [2025, 3])],
};

/// The first release of Nsight Compute that counts launches by kernel, grid and block (`--filter-mode`).
pub(crate) const NCU_LAUNCH_CONFIGURATIONS: [u32; 2] = [2023, 2];

/// The first release of Nsight Systems that says `--gpu-metrics-devices`; before, the last word had no `s`.
pub(crate) const NSYS_METRICS_DEVICES: [u32; 2] = [2024, 4];

/// Why a tool does not serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortfall {
    /// Which kind.
    pub verdict: Verdict,
    /// What was found.
    pub found: String,
    /// What to do.
    pub next_step: String,
}

impl Requirements {
    /// What was found of a tool with this path and version, for a driver of that CUDA; or why it does not serve.
    pub(crate) fn examine(
        &self,
        tool: Option<(&str, Option<&str>)>,
        cuda_driver: Option<&str>,
    ) -> Result<String, Shortfall> {
        let Self { name, package, .. } = self;
        let driver = cuda_driver.and_then(Version::read);
        let required = self.for_cuda(driver.as_ref().map(Version::major));
        let install = format!("install {package} {required} or newer and put `{name}` on PATH");
        let short = |verdict, found, next_step| Err(Shortfall { verdict, found, next_step });
        let Some((path, version)) = tool else {
            let purpose = if driver.is_some() { "" } else { "; not needed for CPU runs" };
            let found = format!("{name} not found on PATH, in a CUDA toolkit or in /opt/nvidia");
            return short(Verdict::Missing, found, format!("{install}{purpose}"));
        };
        let Some(version) = version.and_then(Version::read) else {
            let found = format!("{path} did not report its version");
            let next = format!("check `{path} --version`, or {install}");
            return short(Verdict::Warning, found, next);
        };
        let found = format!("{name} {version} at {path}");
        if version >= required {
            return Ok(found);
        }
        let reason = match driver {
            Some(cuda) if version >= Version::of(&self.oldest) => {
                format!("it is too old for the driver's CUDA {cuda} and {}", self.before)
            }
            _ => self.because.to_owned(),
        };
        short(Verdict::TooOld, format!("{found}; {reason}"), install)
    }

    /// The tool that was found, if it serves with a driver of that CUDA. One that will not say its version is given the
    /// benefit of the doubt.
    pub(crate) fn serving(
        &self,
        found: Option<InstalledTool>,
        cuda_driver: Option<&str>,
    ) -> Result<InstalledTool, Shortfall> {
        let path = found.as_ref().map(|found| found.path.display().to_string());
        let tool = path.as_deref().map(|path| (path, found.as_ref().and_then(|found| found.version.as_deref())));
        match (self.examine(tool, cuda_driver), found) {
            (Ok(_) | Err(Shortfall { verdict: Verdict::Warning, .. }), Some(found)) => Ok(found),
            (Err(shortfall), _) => Err(shortfall),
            (Ok(what), None) => Err(Shortfall { verdict: Verdict::Missing, found: what, next_step: String::new() }),
        }
    }

    /// The oldest release that serves with a driver of that CUDA.
    fn for_cuda(&self, cuda: Option<u32>) -> Version {
        let shipped = self.shipped.iter().filter(|(major, _)| cuda.is_some_and(|cuda| *major <= cuda));
        let shipped = shipped.map(|(_, release)| Version::of(release)).max();
        shipped.into_iter().chain([Version::of(&self.oldest)]).max().unwrap_or_else(|| Version::of(&self.oldest))
    }
}

/// Whether a release is at least `since`; one that is not known is taken to be new.
pub(crate) fn is_since(version: Option<&str>, since: [u32; 2]) -> bool {
    version.and_then(Version::read).is_none_or(|version| version >= Version::of(&since))
}
