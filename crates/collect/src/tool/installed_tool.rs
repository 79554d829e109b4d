//! A tool of this machine, and how it is asked for its version.

use std::path::{Path, PathBuf};

use super::{Places, ask};
use crate::Command;

/// A tool that is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledTool {
    /// Where.
    pub path: PathBuf,
    /// Its version; absent when it would not say.
    pub version: Option<String>,
    /// Why it would not say, or from where the version was taken instead.
    pub note: Option<String>,
}

/// Asks a program for its version and reads the answer; the release number in its path stands in where it does not
/// answer (`/opt/nvidia/nsight-compute/2025.3.1/ncu`).
pub(super) fn ask_version(
    places: &Places,
    path: PathBuf,
    arguments: &[&str],
    read: fn(&str) -> Option<String>,
) -> InstalledTool {
    let said = ask(Command::new(&path, arguments), places.limit);
    let version = said.and_then(|text| read(&text).ok_or_else(|| "its output could not be parsed".to_owned()));
    match version {
        Ok(version) => InstalledTool { path, version: Some(version), note: None },
        Err(reason) => {
            let version = release_in_path(&path);
            let instead = if version.is_some() { "; using the version in its path" } else { "" };
            let note = Some(format!("{} did not report its version: {reason}{instead}", path.display()));
            InstalledTool { path, version, note }
        }
    }
}

/// The last folder name of a path that is, or ends in, a release number of three parts: `2025.3.1`, `nsight-compute-2025.3.1`.
fn release_in_path(path: &Path) -> Option<String> {
    path.ancestors().skip(1).filter_map(|folder| folder.file_name()?.to_str()).find_map(|name| {
        let release = name.rsplit('-').next()?;
        let parts: Vec<&str> = release.split('.').collect();
        let numbers = parts.iter().all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
        (parts.len() >= 3 && numbers).then(|| release.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::ncu;
    use crate::tool::tests::{fake_program, patient};

    #[test]
    fn a_release_number_is_found_in_a_path_from_the_inside_out() {
        let release = |path: &str| release_in_path(Path::new(path));
        assert_eq!(
            release("/opt/nvidia/nsight-compute/2025.3.1/host/target-linux-x64/nsys").as_deref(),
            Some("2025.3.1")
        );
        assert_eq!(release("/usr/local/cuda-13.0/nsight-compute-2024.1.0/ncu").as_deref(), Some("2024.1.0"));
        assert_eq!(release("/usr/local/cuda-13.0/bin/ncu"), None);
        assert_eq!(release("/usr/bin/2025.3.1"), None, "the program's own name is no folder");
    }

    #[test]
    fn a_tool_that_fails_is_still_found_and_says_why_it_has_no_version() {
        let folder = tempfile::tempdir().unwrap();
        let path = fake_program(folder.path(), "nsys", "echo 'libdw.so.1: cannot open' >&2; exit 127");
        let found = ask_version(&patient(), path.clone(), &["--version"], |_| None);
        assert_eq!(found.version, None);
        let expected =
            format!("{} did not report its version: it exited with code 127: libdw.so.1: cannot open", path.display());
        assert_eq!(found.note, Some(expected));
    }

    #[test]
    fn a_tool_that_answers_nonsense_takes_its_version_from_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = fake_program(&folder.path().join("nsight-compute/2025.3.1"), "ncu", "echo hello");
        let found = ask_version(&patient(), path, &["--version"], ncu::read_version);
        assert_eq!(found.version.as_deref(), Some("2025.3.1"));
        assert!(found.note.unwrap().ends_with("its output could not be parsed; using the version in its path"));
    }
}
