//! Runs as they lie on disk, made by this process or any other.

use std::cmp::Reverse;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use types::{
    Bytes, Document, RunDetail, RunListing, RunManifest, RunState, RunStatus, SchemaTag, UserError, Verification,
};

use crate::error::not_plain;

use super::content::kind_of;
use super::index::RunIndex;
use super::owner::{self, Liveness};
use super::{MANIFEST, verify};

/// A run folder whose manifest could be read.
#[derive(Clone, Debug)]
pub struct StoredRun {
    path: PathBuf,
    manifest: RunManifest,
}

impl StoredRun {
    /// Reads the manifest of a folder.
    pub fn open(path: &Path) -> Result<Self, UserError> {
        let file = path.join(MANIFEST);
        match fs::metadata(&file) {
            // Asked first, because reading a pipe of that name would never end.
            Ok(found) if !found.is_file() => {
                return Err(not_plain(&file, "file", kind_of(&found)));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let name = path.display();
                let message = if path.is_dir() {
                    format!("{name} has no manifest.json: it is not a run, or it was stopped before it started")
                } else {
                    format!("folder {name} not found")
                };
                return Err(UserError::usage(message).hint("list the runs with `llm-perf runs`"));
            }
            Err(error) => return Err(UserError::io("read", &file)(error)),
            Ok(_) => {}
        }
        let text = crate::document::read(&file).map_err(UserError::io("read", &file))?;
        let manifest = RunManifest::from_json(&text)
            .map_err(|reason| UserError::failed(format!("cannot read {} as a manifest: {reason}", file.display())))?;
        Ok(Self { path: path.to_owned(), manifest })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The bytes of one of its files. A run may come from anywhere, and the file may be a pipe.
    pub fn read(&self, name: &str) -> std::io::Result<Vec<u8>> {
        crate::document::read(&self.path.join(name))
    }

    /// The text of one of its files.
    pub fn read_text(&self, name: &str) -> std::io::Result<String> {
        crate::document::read_text(&self.path.join(name))
    }

    /// What the run says of itself.
    pub fn manifest(&self) -> &RunManifest {
        &self.manifest
    }

    /// How it stands now, and why.
    pub fn state(&self) -> (RunState, Vec<String>) {
        let reasons = self.manifest.reasons.clone();
        match self.manifest.status {
            RunStatus::Complete => (RunState::Complete, reasons),
            RunStatus::Partial => (RunState::Partial, reasons),
            RunStatus::Failed => (RunState::Failed, reasons),
            RunStatus::Running => match owner::liveness(&self.manifest.process) {
                Liveness::Alive => (RunState::Running, reasons),
                Liveness::Gone(why) => (RunState::Interrupted, vec![why.to_owned()]),
                Liveness::Unknown(why) => (RunState::Running, vec![why.to_owned()]),
            },
        }
    }

    /// Its line in a list.
    pub fn listing(&self) -> RunListing {
        let (state, reasons) = self.state();
        let manifest = &self.manifest;
        RunListing {
            id: folder_name(&self.path),
            path: self.path.display().to_string(),
            state,
            reasons,
            verb: Some(manifest.verb.clone()),
            model: manifest.model.clone(),
            device: manifest.device.clone(),
            started_at: Some(manifest.started_at.clone()),
            ended_at: manifest.ended_at.clone(),
            file_count: Some(manifest.files.len() as u64),
            bytes: total(manifest),
        }
    }

    /// Whether the manifest lists a file of that name.
    pub fn has_file(&self, name: &str) -> bool {
        self.manifest.files.iter().any(|file| file.path == name)
    }

    /// All there is to say about it, short of looking into its files.
    pub fn detail(&self) -> RunDetail {
        RunDetail {
            schema: SchemaTag::new(),
            run: self.listing(),
            command: self.manifest.command.clone(),
            tool_version: self.manifest.tool_version.clone(),
            steps: self.manifest.steps.clone(),
            files: self.manifest.files.clone(),
            verification: None,
        }
    }

    /// Deletes its folder and everything in it.
    pub fn delete(&self) -> Result<(), UserError> {
        std::fs::remove_dir_all(&self.path).map_err(UserError::io("delete", &self.path))
    }

    /// Files in its folder that its manifest does not list.
    pub fn unlisted(&self) -> Result<Vec<String>, UserError> {
        verify::unlisted(&self.path, &self.manifest.files)
    }

    /// Compares every file with the manifest. A run that is still being made may change meanwhile.
    pub fn verify(&self) -> Result<Verification, UserError> {
        verify::verify(&self.path, &self.manifest.files)
    }
}

/// Every folder beneath `root`, newest first; those that cannot be read come last. No such root is no runs.
pub fn list_runs(root: &Path) -> Result<Vec<RunListing>, UserError> {
    list_runs_with(root, None)
}

/// The same with the runs that the index knows beside them.
pub fn list_runs_with(root: &Path, index: Option<&RunIndex>) -> Result<Vec<RunListing>, UserError> {
    Ok(runs_with(root, index)?.into_iter().map(|(listing, _)| listing).collect())
}

/// The same as they are stored, where they can be read.
pub fn runs_with(root: &Path, index: Option<&RunIndex>) -> Result<Vec<(RunListing, Option<StoredRun>)>, UserError> {
    let mut paths = Vec::new();
    match fs::read_dir(root) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        entries => {
            for entry in entries.map_err(UserError::io("list", root))? {
                paths.push(entry.map_err(UserError::io("list", root))?.path());
            }
        }
    }
    paths.extend(index.map(|index| index.runs_beside(root)).unwrap_or_default());
    let mut runs = Vec::new();
    for path in paths.into_iter().filter(|path| path.is_dir()) {
        runs.push(match StoredRun::open(&path) {
            Ok(run) => (run.listing(), Some(run)),
            Err(error) => (unreadable(&path, &error), None),
        });
    }
    runs.sort_by_cached_key(|(run, _)| {
        let started: Option<Timestamp> = run.started_at.as_deref().and_then(|text| text.parse().ok());
        Reverse((started, run.id.clone()))
    });
    Ok(runs)
}

fn unreadable(path: &Path, error: &UserError) -> RunListing {
    RunListing {
        id: folder_name(path),
        path: path.display().to_string(),
        state: RunState::Unreadable,
        reasons: vec![error.to_string()],
        verb: None,
        model: None,
        device: None,
        started_at: None,
        ended_at: None,
        file_count: None,
        bytes: None,
    }
}

/// The last part of the path; of `.` and the like, the last part of what it stands for.
fn folder_name(path: &Path) -> String {
    let named = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    named(path)
        .or_else(|| fs::canonicalize(path).ok().as_deref().and_then(named))
        .unwrap_or_else(|| path.display().to_string())
}

/// The sum of sizes that anybody may have written into a manifest, so it may not fit.
fn total(manifest: &RunManifest) -> Option<Bytes> {
    manifest.files.iter().try_fold(0_u64, |sum, file| sum.checked_add(file.bytes.get())).map(Bytes::new)
}
