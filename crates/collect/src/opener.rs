//! Shows a file in the program that the desktop has for it.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;

use types::UserError;

use crate::error::not_started;

use crate::tool::{find_program, path_folders};

/// Programs that do it, on Linux and on macOS.
const OPENERS: [&str; 2] = ["xdg-open", "open"];

/// Starts the program and does not wait for it: a browser may stay for hours.
pub fn open_file(path: &Path) -> Result<(), UserError> {
    let folders = path_folders();
    let found = OPENERS.iter().find_map(|name| find_program(OsStr::new(name), &folders));
    let program = found.ok_or_else(|| not_started(Path::new(OPENERS[0]), std::io::ErrorKind::NotFound.into()))?;
    let mut command = std::process::Command::new(&program);
    command.arg(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map(|_| ()).map_err(|reason| not_started(&program, reason))
}
