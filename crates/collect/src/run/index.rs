//! Runs that lie outside the folder where runs go: `--out` may put one anywhere, and it should still be found by its name.
//!
//! One line of JSON per run in a file of the user's. It only helps to find things: what cannot be written or read is left out, and a
//! run that was removed is not there any more.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::MANIFEST;
use crate::user_folder::user_folder;

/// From this size on, lines of runs that are gone are dropped.
const LARGEST: u64 = 256 * 1024;

/// The list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunIndex {
    file: PathBuf,
}

/// One run.
#[derive(Serialize, Deserialize)]
struct Line {
    /// The folder where runs went when it was made, absolute.
    root: PathBuf,
    /// Its folder, absolute.
    path: PathBuf,
}

impl RunIndex {
    /// The user's own; absent where the user has no folder for data.
    pub fn of_user() -> Option<Self> {
        user_folder().map(|folder| Self::at(folder.join("runs.jsonl")))
    }

    /// The list in that file.
    pub fn at(file: PathBuf) -> Self {
        Self { file }
    }

    /// Adds a run. Nobody fails for want of it.
    pub(super) fn add(&self, root: &Path, run: &Path) {
        let _ = self.try_add(root, run);
    }

    fn try_add(&self, root: &Path, run: &Path) -> io::Result<()> {
        let line = Line { root: std::path::absolute(root)?, path: std::path::absolute(run)? };
        if line.path.parent() == Some(&line.root) {
            return Ok(());
        }
        if let Some(folder) = self.file.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        if fs::metadata(&self.file).is_ok_and(|found| found.len() > LARGEST) {
            self.shorten()?;
        }
        // One write of one line, so that two runs that start together do not mix.
        let text = format!("{}\n", serde_json::to_string(&line)?);
        let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(&self.file)?;
        // One of an earlier version may be open to all.
        file.set_permissions(Permissions::from_mode(0o600))?;
        file.write_all(text.as_bytes())
    }

    fn shorten(&self) -> io::Result<()> {
        let kept: String = self
            .lines()
            .filter(|line| line.path.join(MANIFEST).is_file())
            .filter_map(|line| Some(format!("{}\n", serde_json::to_string(&line).ok()?)))
            .collect();
        let part = self.file.with_extension("part");
        let mut file = OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&part)?;
        file.write_all(kept.as_bytes())?;
        fs::rename(part, &self.file)
    }

    /// Folders of the runs that were made beside those in `root` and are still there.
    pub(super) fn runs_beside(&self, root: &Path) -> Vec<PathBuf> {
        let Ok(root) = std::path::absolute(root) else { return Vec::new() };
        let mut paths: Vec<PathBuf> = Vec::new();
        for line in self.lines().filter(|line| line.root == root) {
            if !paths.contains(&line.path) && line.path.join(MANIFEST).is_file() {
                paths.push(line.path);
            }
        }
        paths
    }

    fn lines(&self) -> impl Iterator<Item = Line> {
        let text = fs::read_to_string(&self.file).unwrap_or_default();
        let lines: Vec<Line> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        lines.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(folder: &Path, name: &str) -> PathBuf {
        let path = folder.join(name);
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join(MANIFEST), "{}").unwrap();
        path
    }

    #[test]
    fn a_run_elsewhere_is_found_beside_its_own_root_only() {
        let folder = tempfile::tempdir().unwrap();
        let (root, other) = (folder.path().join("root"), folder.path().join("other"));
        let index = RunIndex::at(folder.path().join("data/runs.jsonl"));
        let (here, gone) = (made(folder.path(), "here"), made(folder.path(), "gone"));
        index.add(&root, &here);
        index.add(&root, &here);
        index.add(&root, &gone);
        index.add(&other, &made(folder.path(), "there"));
        index.add(&root, &made(&root, "inside"));
        fs::remove_dir_all(gone).unwrap();
        assert_eq!(index.runs_beside(&root), [here]);
        let mode = |path: &str| folder.path().join(path).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("data"), mode("data/runs.jsonl")), (0o700, 0o600));
    }

    #[test]
    fn a_list_that_cannot_be_read_or_written_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        let index = RunIndex::at(folder.path().to_owned());
        index.add(folder.path(), &made(folder.path(), "a/b"));
        assert!(index.runs_beside(folder.path()).is_empty());
        let broken = RunIndex::at(folder.path().join("broken"));
        fs::write(folder.path().join("broken"), "not JSON\n{}\n").unwrap();
        assert!(broken.runs_beside(folder.path()).is_empty());
    }
}
