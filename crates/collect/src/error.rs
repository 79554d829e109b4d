//! What goes wrong in several places while the machine is touched, as the user reads it.

use std::path::Path;

use types::UserError;

/// The chosen run folder is in use; `state` says what it is: `is not empty`, `is a file`.
pub(crate) fn out_taken(path: &Path, state: &str) -> UserError {
    UserError::usage(format!("{} {state}; a run needs a new or empty folder", path.display()))
        .hint("nothing was overwritten; choose another folder with `--out DIR`")
}

/// A link, folder or device where a plain `file` or `folder` of the run should be.
pub(crate) fn not_plain(path: &Path, expected: &str, found: &str) -> UserError {
    UserError::failed(format!("{} is {found}, not a plain {expected}", path.display()))
}

/// Somebody is still making a run.
pub fn still_running(path: &Path) -> UserError {
    UserError::usage(format!("{} is still running", path.display()))
        .hint("wait for it to finish, or stop its process first")
}

/// Something stands where a bundle is to be written.
pub fn bundle_exists(path: &Path) -> UserError {
    UserError::usage(format!("{} already exists", path.display()))
        .hint("nothing was overwritten; choose another file with `--out FILE`")
}

/// A bundle is not what its index says, or none at all; `place` is the file inside, or the part of the bundle.
pub(crate) fn bad_bundle(path: &Path, place: &str, reason: &str) -> UserError {
    let hint = if reason.contains("newer llm-perf") {
        "nothing was unpacked; update llm-perf and unpack it again"
    } else {
        "nothing was unpacked; the file may be truncated or damaged; copy it again"
    };
    UserError::failed(format!("cannot unpack {}: {place}: {reason}", path.display())).hint(hint)
}

/// A program could not be started.
pub(crate) fn not_started(program: &Path, reason: std::io::Error) -> UserError {
    UserError::failed(format!("cannot start {}: {reason}", program.display()))
}

/// There is no interpreter: of that name, or any.
pub(crate) fn no_python(named: Option<&str>) -> UserError {
    match named {
        Some(named) => UserError::usage(format!("Python interpreter `{named}` not found")),
        None => UserError::failed("python3 not found on PATH"),
    }
    .hint(CHOOSE_PYTHON)
}

/// What to do without the right interpreter.
pub(crate) const CHOOSE_PYTHON: &str =
    "choose the interpreter your models run with: pass --python PATH or set LLM_PERF_PYTHON";

/// The processor could not be measured.
pub(crate) fn not_calibrated(what: &str, reason: &str) -> UserError {
    UserError::failed(format!("cannot calibrate this CPU: {what}: {reason}"))
}
