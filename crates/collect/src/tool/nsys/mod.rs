//! Nsight Systems: where it is, which version, and what is typed to use it.
//!
//! [`Options`] are what the configuration says and give the command line. What the tool recorded is read elsewhere.

mod capture;
mod preset;

pub use capture::{export_sqlite, statistics, statistics_file};
pub use preset::{CaptureRange, Export, GraphTrace, Options, Preset, Sampling};

use std::path::{Path, PathBuf};

use super::places::{children, is_program};
use super::requirements::{NSYS, NSYS_METRICS_DEVICES, Shortfall, is_since};
use super::{InstalledTool, Places, ask_version};

/// Arguments that make it say its version.
pub(crate) const VERSION_ARGUMENTS: [&str; 1] = ["--version"];

/// The library that the copy inside Nsight Compute needs to make a report, and does not bring along.
pub(crate) const IMPORTER_LIBRARY: &str = "libdw.so.1";

/// The tool of this machine, if it serves with a driver of that CUDA (`13.0`) and can make reports; otherwise what to do.
pub fn serving(cuda_driver: Option<&str>) -> Result<InstalledTool, Shortfall> {
    let places = Places::of_this_machine();
    let found = NSYS.serving(find(&places), cuda_driver)?;
    if lacks_importer(&places, &found) {
        let what = format!("{} ships with Nsight Compute and lacks {IMPORTER_LIBRARY}", found.path.display());
        let next_step = super::Complaint::ImporterLibrary.hint().to_owned();
        return Err(Shortfall { verdict: types::Verdict::Missing, found: what, next_step });
    }
    Ok(found)
}

/// Whether this is the copy inside Nsight Compute and the library it makes reports with is nowhere.
pub(crate) fn lacks_importer(places: &Places, found: &InstalledTool) -> bool {
    let importer = |folder: &PathBuf| folder.join(IMPORTER_LIBRARY).exists();
    is_carried(&found.path) && !places.libraries.iter().any(importer)
}

/// The option that names devices for `--gpu-metrics-devices`, which older releases spell without the last letter.
fn metrics_devices_option(version: Option<&str>) -> &'static str {
    if is_since(version, NSYS_METRICS_DEVICES) { "--gpu-metrics-devices" } else { "--gpu-metrics-device" }
}

/// Finds it and asks its version.
pub(crate) fn find(places: &Places) -> Option<InstalledTool> {
    Some(ask_version(places, locate(places)?, &VERSION_ARGUMENTS, read_version))
}

/// `PATH`, the vendor's own package, the toolkits, and last the copy that Nsight Compute carries.
fn locate(places: &Places) -> Option<PathBuf> {
    let mut candidates: Vec<PathBuf> = places.on_path("nsys").into_iter().collect();
    for vendor in &places.vendor {
        for package in ["nsight-systems", "nsight-systems-cli"] {
            candidates.extend(children(&vendor.join(package), "").iter().map(|release| release.join("bin/nsys")));
        }
    }
    for toolkit in &places.toolkits {
        candidates.push(toolkit.join("bin/nsys"));
        candidates.extend(children(toolkit, "nsight-systems-").iter().map(|release| release.join("bin/nsys")));
    }
    for vendor in &places.vendor {
        candidates.extend(children(&vendor.join("nsight-compute"), "").iter().flat_map(|release| carried(release)));
    }
    for toolkit in &places.toolkits {
        candidates.extend(children(toolkit, "nsight-compute-").iter().flat_map(|release| carried(release)));
    }
    candidates.into_iter().find(|program| is_program(program))
}

/// The copy inside one release of Nsight Compute, whichever architecture it is for.
fn carried(release: &Path) -> Vec<PathBuf> {
    children(&release.join("host"), "target-linux-").into_iter().map(|target| target.join("nsys")).collect()
}

/// Whether this is the copy that Nsight Compute carries.
pub(crate) fn is_carried(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str().to_string_lossy().starts_with("nsight-compute"))
}

/// `NVIDIA Nsight Systems version 2025.3.1.90-253135822126v0`.
pub(crate) fn read_version(text: &str) -> Option<String> {
    let version =
        text.lines().find_map(|line| line.split_once("Nsight Systems version ")).map(|(_, version)| version)?;
    version.split_whitespace().next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::tests::{fake_program, patient};

    #[test]
    fn the_version_line_is_read() {
        // Printed by the nsys inside Nsight Compute 2025.3.1, and by Debian's 2023.4.
        let read = |text| read_version(text).unwrap();
        assert_eq!(read("NVIDIA Nsight Systems version 2025.3.1.90-253135822126v0\n"), "2025.3.1.90-253135822126v0");
        assert_eq!(read("NVIDIA Nsight Systems version 2023.4.4.54-234433681190v0\n"), "2023.4.4.54-234433681190v0");
        assert_eq!(read_version(""), None);
        assert_eq!(read_version("NVIDIA Nsight Systems version "), None);
    }

    #[test]
    fn the_copy_inside_nsight_compute_is_the_last_resort() {
        let root = tempfile::tempdir().unwrap();
        let places = Places { vendor: vec![root.path().to_owned()], ..patient() };
        assert_eq!(locate(&places), None);
        let inside = root.path().join("nsight-compute/2025.3.1/host/target-linux-x64");
        let inside = fake_program(&inside, "nsys", "echo NVIDIA Nsight Systems version 2025.3.1.90-1v0");
        assert_eq!(locate(&places), Some(inside.clone()));
        assert!(is_carried(&inside));
        let found = find(&places).unwrap();
        assert_eq!((found.version.as_deref(), found.note), (Some("2025.3.1.90-1v0"), None));

        let old = fake_program(&root.path().join("nsight-systems/2024.2.3/bin"), "nsys", "true");
        let new = fake_program(&root.path().join("nsight-systems/2025.3.2/bin"), "nsys", "true");
        assert_eq!(locate(&places), Some(new.clone()));
        assert!(!is_carried(&new));
        let on_path = Places { path: vec![old.parent().unwrap().to_owned()], ..places };
        assert_eq!(locate(&on_path), Some(old), "what the user put on PATH wins");
    }
}
