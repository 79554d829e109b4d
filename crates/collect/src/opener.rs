//! Shows a file in the program that the desktop has for it.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;

use crate::error::CollectError;
use crate::tool::{find_program, path_folders};

/// Programs that do it, on Linux and on macOS.
const OPENERS: [&str; 2] = ["xdg-open", "open"];

/// Starts the program and does not wait for it: a browser may stay for hours.
pub fn open_file(path: &Path) -> Result<(), CollectError> {
    let folders = path_folders();
    let found = OPENERS.iter().find_map(|name| find_program(OsStr::new(name), &folders));
    let failed = |program: &Path, reason| CollectError::Start { program: program.to_owned(), reason };
    let program = found.ok_or_else(|| failed(Path::new(OPENERS[0]), std::io::ErrorKind::NotFound.into()))?;
    let mut command = std::process::Command::new(&program);
    command.arg(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map(|_| ()).map_err(|reason| failed(&program, reason))
}
