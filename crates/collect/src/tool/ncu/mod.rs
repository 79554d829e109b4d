//! Nsight Compute: where it is, which version, and what is typed to use it.
//!
//! [`Options`] are what the configuration says, [`Capture`] is one run of the tool, and
//! [`Complaint`](super::Complaint) is what it says when it does not do as asked. What it counted is read elsewhere.

mod capture;
mod metrics;
mod pattern;
mod preset;

pub use capture::{Capture, FilterMode, Page, print_page, query_metrics};
pub use metrics::{ChipMetrics, known_metrics};
pub use pattern::{any_of, told_from};
pub use preset::{CacheControl, ClockControl, Options, Preset, Ranges, RegionOptions, TargetProcesses};

use std::path::PathBuf;

use super::places::{children, is_program};
use super::requirements::{NCU, NCU_LAUNCH_CONFIGURATIONS, Shortfall, is_since};
use super::{InstalledTool, Places, ask_version};

/// Arguments that make it say its version.
pub(crate) const VERSION_ARGUMENTS: [&str; 1] = ["--version"];

/// The tool of this machine, if it serves with a driver of that CUDA (`13.0`); otherwise what to do.
pub fn serving(cuda_driver: Option<&str>) -> Result<InstalledTool, Shortfall> {
    NCU.serving(find(&Places::of_this_machine()), cuda_driver)
}

/// How a release counts launches so that several of every kernel, grid and block are profiled. Releases before 2023.2
/// can only count all of them together.
pub fn launch_counting(tool: &InstalledTool) -> FilterMode {
    if is_since(tool.version.as_deref(), NCU_LAUNCH_CONFIGURATIONS) {
        FilterMode::PerLaunchConfig
    } else {
        FilterMode::Global
    }
}

/// Finds it and asks its version.
pub(crate) fn find(places: &Places) -> Option<InstalledTool> {
    Some(ask_version(places, locate(places)?, &VERSION_ARGUMENTS, read_version))
}

/// `PATH`, the vendor's own package, the toolkits.
fn locate(places: &Places) -> Option<PathBuf> {
    let mut candidates: Vec<PathBuf> = places.on_path("ncu").into_iter().collect();
    for vendor in &places.vendor {
        candidates.extend(children(&vendor.join("nsight-compute"), "").iter().map(|release| release.join("ncu")));
    }
    for toolkit in &places.toolkits {
        candidates.push(toolkit.join("bin/ncu"));
        candidates.extend(children(toolkit, "nsight-compute-").iter().map(|release| release.join("ncu")));
    }
    candidates.into_iter().find(|program| is_program(program))
}

/// `Version 2025.3.1.0 (build 36398880) (public-release)`, on a line of its own under two lines of titles.
pub(crate) fn read_version(text: &str) -> Option<String> {
    let version = text.lines().find_map(|line| line.trim().strip_prefix("Version "))?;
    version.split_whitespace().next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::tests::{fake_program, patient};

    #[test]
    fn the_version_line_is_read() {
        let text = "NVIDIA (R) Nsight Compute Command Line Profiler\n\
                    Copyright (c) 2018-2025 NVIDIA Corporation\n\
                    Version 2025.3.1.0 (build 36398880) (public-release)\n";
        assert_eq!(read_version(text).as_deref(), Some("2025.3.1.0"));
        assert_eq!(read_version("NVIDIA (R) Nsight Compute Command Line Profiler"), None);
    }

    #[test]
    fn the_newest_release_of_the_package_is_taken() {
        let root = tempfile::tempdir().unwrap();
        let places = Places { vendor: vec![root.path().to_owned()], ..patient() };
        assert_eq!(find(&places), None);
        for release in ["2024.1.0", "2025.3.1"] {
            let folder = root.path().join("nsight-compute").join(release);
            fake_program(&folder, "ncu", &format!("echo Version {release}.0 '(build 1)'"));
        }
        assert_eq!(find(&places).unwrap().version.as_deref(), Some("2025.3.1.0"));
    }
}
