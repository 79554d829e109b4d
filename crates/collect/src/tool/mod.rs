//! The programs and libraries of others: where each one is looked for, how it is asked for its version, and how the
//! answer is read. One file per tool.
//!
//! Argument lists and readers are pure; [`crate::process`] runs things.

pub(crate) mod cupti;
pub(crate) mod git;
pub mod inject;
pub mod ncu;
pub(crate) mod needs;
pub mod nsys;
pub(crate) mod python;
pub(crate) mod toolkit;
pub mod torch;

mod complaint;
mod places;
mod version;

pub use complaint::Complaint;
pub use needs::Shortfall;
pub(crate) use places::Places;
pub(crate) use places::is_program;
pub use places::{find_program, path_folders};
pub(crate) use version::Version;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::process::{Ending, Interrupt, Limits, Process};
use crate::{Command, Output};

/// How long one tool may take to answer. All tools are asked at the same time, and a healthy one answers in a tenth of
/// this.
const ANSWER_LIMIT: Duration = Duration::from_millis(1500);

/// Most that is kept of an answer. A version is a few hundred bytes and a list of metrics a few hundred thousand; a program
/// that prints without end is cut here.
const ANSWER_BYTES: usize = 8 << 20;

/// A tool that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Where.
    pub path: PathBuf,
    /// Its version; absent when it would not say.
    pub version: Option<String>,
    /// Why it would not say, or from where the version was taken instead.
    pub note: Option<String>,
}

/// Runs a small helper program and gives back what it prints, or in words why it did not answer.
pub(crate) fn ask(command: Command, limit: Duration) -> Result<String, String> {
    let command = command.with_output(Output::Kept(ANSWER_BYTES), Output::Kept(ANSWER_BYTES));
    let limits = Limits { time: Some(limit), grace: Duration::ZERO, ..Limits::default() };
    let finished = Process::start(&command).and_then(|process| process.wait(&limits, Interrupt::Ignored));
    let finished = finished.map_err(|error| error.to_string())?;
    let line = finished.stderr.lines().map(str::trim).find(|line| !line.is_empty());
    match finished.ending {
        Ending::Code(0) => Ok(finished.stdout),
        Ending::OutOfTime => Err("it did not answer in time".to_owned()),
        ending => Err(format!("it {ending}{}", line.map(|line| format!(": {line}")).unwrap_or_default())),
    }
}

/// Asks a program for its version and reads the answer; the release number in its path stands in where it does not
/// answer (`/opt/nvidia/nsight-compute/2025.3.1/ncu`).
fn ask_version(places: &Places, path: PathBuf, arguments: &[&str], read: fn(&str) -> Option<String>) -> Found {
    let said = ask(Command::new(&path, arguments), places.limit);
    let version = said.and_then(|text| read(&text).ok_or_else(|| "its answer was not understood".to_owned()));
    match version {
        Ok(version) => Found { path, version: Some(version), note: None },
        Err(reason) => {
            let version = release_in_path(&path);
            let instead = if version.is_some() { "; the version is the one in its path" } else { "" };
            let note = Some(format!("{} would not say its version: {reason}{instead}", path.display()));
            Found { path, version, note }
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
pub(crate) mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// Writes a program that runs `script`, and gives back its path.
    pub(crate) fn fake_program(folder: &Path, name: &str, script: &str) -> PathBuf {
        std::fs::create_dir_all(folder).unwrap();
        let path = folder.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Nowhere to look, and time to answer: for tests that are about the answer.
    pub(crate) fn patient() -> Places {
        Places { limit: Duration::from_secs(60), ..Places::default() }
    }

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
            format!("{} would not say its version: it exited with code 127: libdw.so.1: cannot open", path.display());
        assert_eq!(found.note, Some(expected));
    }

    #[test]
    fn a_tool_that_answers_nonsense_takes_its_version_from_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = fake_program(&folder.path().join("nsight-compute/2025.3.1"), "ncu", "echo hello");
        let found = ask_version(&patient(), path, &["--version"], ncu::read_version);
        assert_eq!(found.version.as_deref(), Some("2025.3.1"));
        assert!(found.note.unwrap().ends_with("its answer was not understood; the version is the one in its path"));
    }
}
