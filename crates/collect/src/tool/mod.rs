//! The programs and libraries of others: where each one is looked for, how it is asked for its version, and how the
//! answer is read. One file per tool.
//!
//! Argument lists and readers are pure; [`crate::process`] runs things.

pub(crate) mod cupti;
pub(crate) mod git;
pub mod inject;
pub mod ncu;
pub mod nsys;
pub(crate) mod python;
pub mod query;
pub(crate) mod requirements;
pub(crate) mod toolkit;
pub mod torch;

mod complaint;
mod installed_tool;
mod places;
mod version;

pub use complaint::Complaint;
pub use installed_tool::InstalledTool;
use installed_tool::ask_version;
pub(crate) use places::Places;
pub(crate) use places::is_program;
pub use places::{find_program, path_folders};
pub use requirements::Shortfall;
pub(crate) use version::Version;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use crate::process::{Ending, Interrupt, Limits, Process};
use crate::{Command, Output};

/// How long one tool may take to answer. All tools are asked at the same time, and a healthy one answers in a tenth of
/// this.
const ANSWER_LIMIT: Duration = Duration::from_millis(1500);

/// Most that is kept of an answer. A version is a few hundred bytes and a list of metrics a few hundred thousand; a program
/// that prints without end is cut here.
const ANSWER_BYTES: usize = 8 << 20;

/// Runs a small helper program and gives back what it prints, or in words why it did not answer.
pub(crate) fn ask(command: Command, limit: Duration) -> Result<String, String> {
    let command = command.with_output(Output::Kept(ANSWER_BYTES), Output::Kept(ANSWER_BYTES));
    let limits = Limits { time: Some(limit), grace: Duration::ZERO, ..Limits::default() };
    let finished = Process::start(&command).and_then(|process| process.wait(&limits, Interrupt::Ignored));
    let finished = finished.map_err(|error| error.to_string())?;
    let line = finished.stderr.lines().map(str::trim).find(|line| !line.is_empty());
    match finished.ending {
        Ending::Code(0) => Ok(finished.stdout),
        Ending::OutOfTime => Err("it timed out".to_owned()),
        ending => Err(format!("it {ending}{}", line.map(|line| format!(": {line}")).unwrap_or_default())),
    }
}

/// The word the tool knows a choice by, which is also the word of the configuration.
fn word(choice: impl Serialize) -> String {
    match serde_json::to_value(choice) {
        Ok(serde_json::Value::String(word)) => word,
        // Only plain choices of these tools come here, and these are words.
        _ => String::new(),
    }
}

/// A path with an ending behind its whole name.
fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
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
}
