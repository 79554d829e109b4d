//! A folder for what lasts as long as a verb, in the system's folder for temporary files.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;

/// A new one that only this user may look into: it holds traces, queries and copies of runs.
pub(crate) fn scratch_folder() -> io::Result<TempDir> {
    tempfile::Builder::new().prefix("llm-perf-").permissions(Permissions::from_mode(0o700)).tempdir()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_else_may_look_into_it() {
        let folder = scratch_folder().unwrap();
        assert_eq!(folder.path().metadata().unwrap().permissions().mode() & 0o777, 0o700);
    }
}
