//! The folder of a run that is being made.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use jiff::Zoned;
use types::{Artifact, Document, RunManifest, RunState, RunStatus, SchemaTag, StepRecord, UserError};

use crate::error::{not_plain, still_running};

use super::claim::{Claim, RunRequest};
use super::content::{
    Digest, TEMPORARY_SUFFIX, TemporaryFile, create_private_folder, fill, kind_of, make_private, sync_folder,
};
use super::{MANIFEST, RelativePath, StoredRun, owner};
use crate::moment::moment;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything asked for is there.
    Complete,
    /// A requested artifact or a part of an input is missing, for these reasons.
    Partial(Vec<String>),
    /// There is no result, for these reasons.
    Failed(Vec<String>),
}

/// A run folder under the hands of the one process that may write to it.
///
/// Dropped without [`finish`](Self::finish) it still says `running` on disk, and readers see that its process is gone: the
/// truth after a kill. An error that is noticed should be recorded with [`fail`](Self::fail).
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    /// As it is on disk.
    manifest: RunManifest,
    /// Whole files that the manifest on disk does not list yet.
    unlisted: BTreeMap<String, Artifact>,
    /// Folders with new names in them.
    unsynced: BTreeSet<PathBuf>,
    temporary_count: u64,
}

impl Outcome {
    /// Complete when nothing is missing, partial otherwise.
    pub fn from_missing(reasons: Vec<String>) -> Self {
        if reasons.is_empty() { Self::Complete } else { Self::Partial(reasons) }
    }

    fn into_status(self) -> (RunStatus, Vec<String>) {
        match self {
            Self::Complete => (RunStatus::Complete, Vec::new()),
            Self::Partial(reasons) => (RunStatus::Partial, reasons),
            Self::Failed(reasons) => (RunStatus::Failed, reasons),
        }
    }
}

impl RunFolder {
    /// Makes the folder and its manifest, with status `running`.
    pub fn create(request: RunRequest) -> Result<Self, UserError> {
        Self::create_at(request, &moment())
    }

    fn create_at(request: RunRequest, now: &Zoned) -> Result<Self, UserError> {
        let Claim { run_id, folder, manifest: (temporary, file) } = request.claim(now)?;
        let manifest = RunManifest {
            schema: SchemaTag::new(),
            run_id,
            status: RunStatus::Running,
            reasons: Vec::new(),
            verb: request.verb,
            command: request.command,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            model: request.model,
            device: request.device,
            started_at: rfc3339(now),
            ended_at: None,
            process: owner::current(),
            steps: Vec::new(),
            files: Vec::new(),
            redacted: None,
        };
        place(temporary, file, &folder.path().join(MANIFEST), |out| write_pretty(out, &manifest))?;
        let path = folder.keep();
        sync_folder(&path)?;
        if let (Some(index), Some(_)) = (&request.index, &request.out) {
            index.add(&request.root, &path);
        }
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            sync_folder(parent)?;
        }
        Ok(Self { path, manifest, unlisted: BTreeMap::new(), unsynced: BTreeSet::new(), temporary_count: 0 })
    }

    /// Goes on with a run that was stopped: the manifest says `running` again, with this process, and what the step that
    /// was stopped has left in `scratch` folders is removed. A run that somebody is still making is refused.
    pub fn resume(run: &StoredRun, scratch: &[&str]) -> Result<Self, UserError> {
        let path = run.path().to_owned();
        if run.state().0 == RunState::Running {
            return Err(still_running(&path));
        }
        let mut next = run.manifest().clone();
        let mut folder = Self {
            manifest: next.clone(),
            unlisted: BTreeMap::new(),
            unsynced: BTreeSet::new(),
            temporary_count: 0,
            path,
        };
        (next.status, next.reasons, next.ended_at) = (RunStatus::Running, Vec::new(), None);
        next.process = owner::current();
        folder.write_manifest(next)?;
        sync_folder(&folder.path)?;
        for name in scratch {
            folder.remove_unlisted(name)?;
        }
        Ok(folder)
    }

    /// Removes files beneath a folder of the run that the manifest does not list.
    fn remove_unlisted(&self, name: &str) -> Result<(), UserError> {
        let folder = self.path.join(name);
        // A link could lead out of the run folder, and nothing out there is ours to remove.
        match fs::symlink_metadata(&folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(UserError::io("list", &folder)(error)),
            Ok(found) if !found.is_dir() => {
                return Err(not_plain(&folder, "folder", kind_of(&found)));
            }
            Ok(_) => {}
        }
        let entries = fs::read_dir(&folder).map_err(UserError::io("list", &folder))?;
        for entry in entries {
            let entry = entry.map_err(UserError::io("list", &folder))?;
            let Ok(file_name) = entry.file_name().into_string() else { continue };
            let within = format!("{name}/{file_name}");
            let kind = entry.file_type().map_err(UserError::io("read", &entry.path()))?;
            if kind.is_dir() {
                self.remove_unlisted(&within)?;
            } else if kind.is_file() && !self.manifest.files.iter().any(|file| file.path == within) {
                fs::remove_file(entry.path()).map_err(UserError::io("remove", &entry.path()))?;
            }
        }
        Ok(())
    }

    /// Whether a step of that name has ended.
    pub fn has_step(&self, name: &str) -> bool {
        self.manifest.steps.iter().any(|step| step.name == name)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Name of the run.
    pub fn id(&self) -> &str {
        &self.manifest.run_id
    }

    /// The manifest as it is on disk.
    pub fn manifest(&self) -> &RunManifest {
        &self.manifest
    }

    /// Writes a file; it is listed when the step ends. A file of this run is replaced, any other is left alone.
    pub fn write_file(&mut self, path: &str, content: &[u8]) -> Result<(), UserError> {
        self.write_with(path, |out| out.write_all(content))
    }

    /// Writes a document of ours as indented JSON.
    pub fn write_json<D: Document>(&mut self, path: &str, document: &D) -> Result<(), UserError> {
        self.write(path, Some(D::SCHEMA.to_string()), |out| write_pretty(out, document))
    }

    /// Writes a file piece by piece, for content that should not be held in memory.
    pub fn write_with(
        &mut self,
        path: &str,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), UserError> {
        self.write(path, None, write)
    }

    /// Where a child process may write a file, which [`adopt`](Self::adopt) then takes in. Nothing is there yet.
    pub fn prepare(&mut self, path: &str) -> Result<PathBuf, UserError> {
        let path = RelativePath::new(path)?;
        self.make_parents(&path)?;
        let target = path.under(&self.path);
        self.refuse_strangers(&path, &target)?;
        Ok(target)
    }

    /// Takes in a file that a child process has written and will not touch again.
    pub fn adopt(&mut self, path: &str) -> Result<(), UserError> {
        let path = RelativePath::new(path)?;
        self.make_parents(&path)?;
        let target = path.under(&self.path);
        let found = fs::symlink_metadata(&target).map_err(UserError::io("read", &target))?;
        if !found.is_file() {
            return Err(not_plain(&target, "file", kind_of(&found)));
        }
        self.unlist(&path)?;
        make_private(&target).map_err(UserError::io("make private", &target))?;
        let file = File::open(&target).map_err(UserError::io("read", &target))?;
        let digest = Digest::of(&file).map_err(UserError::io("read", &target))?;
        file.sync_all().map_err(UserError::io("sync", &target))?;
        self.list_later(&path, digest, None);
        Ok(())
    }

    /// Ends a step: what was written since the last one is on disk for good, and listed.
    pub fn end_step(&mut self, name: &str) -> Result<(), UserError> {
        let mut next = self.with_unlisted();
        next.steps.push(StepRecord { name: name.to_owned(), ended_at: now() });
        self.replace_manifest(next)
    }

    /// Ends the run. What was written since the last step is listed too.
    pub fn finish(mut self, outcome: Outcome) -> Result<RunManifest, UserError> {
        let mut next = self.with_unlisted();
        (next.status, next.reasons) = outcome.into_status();
        next.ended_at = Some(now());
        self.replace_manifest(next)?;
        Ok(self.manifest)
    }

    /// Ends the run as failed; for the way out after an error.
    pub fn fail(self, reason: impl Into<String>) -> Result<RunManifest, UserError> {
        self.finish(Outcome::Failed(vec![reason.into()]))
    }

    fn write(
        &mut self,
        path: &str,
        document: Option<String>,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), UserError> {
        let path = RelativePath::new(path)?;
        self.make_parents(&path)?;
        let target = path.under(&self.path);
        self.refuse_strangers(&path, &target)?;
        let previous = self.unlist(&path)?;
        match self.write_whole(&target, write) {
            Ok(digest) => {
                self.list_later(&path, digest, document);
                Ok(())
            }
            Err(error) => {
                // Nothing was renamed, so the file that was to be replaced is still there as it was.
                self.unlisted.extend(previous.map(|artifact| (artifact.path.clone(), artifact)));
                Err(error)
            }
        }
    }

    fn write_whole(
        &mut self,
        target: &Path,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<Digest, UserError> {
        // Unlike the target's own name with an ending, this cannot become too long or meet a file of the run.
        self.temporary_count += 1;
        let name = format!(".{}-{}{TEMPORARY_SUFFIX}", self.manifest.process.pid, self.temporary_count);
        let (temporary, file) =
            TemporaryFile::create(target.with_file_name(name)).map_err(UserError::io("write", target))?;
        place(temporary, file, target, write)
    }

    /// Nothing is overwritten that this run has not written.
    fn refuse_strangers(&self, path: &RelativePath, target: &Path) -> Result<(), UserError> {
        let own = self.unlisted.contains_key(path.as_str()) || self.is_listed(path);
        match fs::symlink_metadata(target) {
            Ok(found) if found.is_dir() => Err(not_plain(target, "file", kind_of(&found))),
            Ok(_) if !own => {
                let message = format!("{} already exists and was not written by this run", target.display());
                Err(UserError::failed(message).hint("nothing was overwritten; move it away and run again"))
            }
            Err(error) if error.kind() != ErrorKind::NotFound => Err(UserError::io("write", target)(error)),
            _ => Ok(()),
        }
    }

    /// Makes the folders on the way to a file. A link among them could lead out of the run folder.
    fn make_parents(&mut self, path: &RelativePath) -> Result<(), UserError> {
        for parent in path.parents() {
            let folder = self.path.join(parent);
            match fs::symlink_metadata(&folder) {
                Ok(found) if found.is_dir() => {}
                Ok(found) => {
                    return Err(not_plain(&folder, "folder", kind_of(&found)));
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    create_private_folder(&folder).map_err(UserError::io("create folder", &folder))?;
                    self.unsynced.extend(folder.parent().map(Path::to_owned));
                }
                Err(error) => return Err(UserError::io("create folder", &folder)(error)),
            }
        }
        Ok(())
    }

    fn is_listed(&self, path: &RelativePath) -> bool {
        self.manifest.files.iter().any(|artifact| artifact.path == path.as_str())
    }

    /// Takes a file off the manifest, on disk first, so that it may change; gives back what was known of it.
    fn unlist(&mut self, path: &RelativePath) -> Result<Option<Artifact>, UserError> {
        if self.is_listed(path) {
            let mut next = self.manifest.clone();
            let (this, others) = next.files.into_iter().partition(|artifact| artifact.path == path.as_str());
            next.files = others;
            self.write_manifest(next)?;
            self.unlisted.extend(this.into_iter().map(|artifact: Artifact| (artifact.path.clone(), artifact)));
            sync_folder(&self.path)?;
        }
        Ok(self.unlisted.remove(path.as_str()))
    }

    fn list_later(&mut self, path: &RelativePath, digest: Digest, document: Option<String>) {
        let artifact =
            Artifact { path: path.as_str().to_owned(), bytes: digest.bytes, sha256: digest.sha256, document };
        self.unsynced.extend(path.under(&self.path).parent().map(Path::to_owned));
        self.unlisted.insert(artifact.path.clone(), artifact);
    }

    /// The manifest with everything that is whole.
    fn with_unlisted(&self) -> RunManifest {
        let mut next = self.manifest.clone();
        next.files.extend(self.unlisted.values().cloned());
        next.files.sort_by(|a, b| a.path.cmp(&b.path));
        next
    }

    /// Syncs the folders, so that the files last before the manifest that lists them does.
    fn replace_manifest(&mut self, next: RunManifest) -> Result<(), UserError> {
        while let Some(folder) = self.unsynced.first() {
            sync_folder(folder)?;
            self.unsynced.pop_first();
        }
        self.write_manifest(next)?;
        self.unlisted.clear();
        sync_folder(&self.path)
    }

    fn write_manifest(&mut self, next: RunManifest) -> Result<(), UserError> {
        self.write_whole(&self.path.join(MANIFEST), |out| write_pretty(out, &next))?;
        self.manifest = next;
        Ok(())
    }
}

/// Fills a temporary file and gives it its name.
fn place(
    temporary: TemporaryFile,
    file: File,
    target: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<Digest, UserError> {
    fill(file, write)
        .and_then(|digest| temporary.rename(target).map(|()| digest))
        .map_err(UserError::io("write", target))
}

fn write_pretty(out: &mut dyn Write, document: &impl Document) -> io::Result<()> {
    document.write_json(out)?;
    out.write_all(b"\n")
}

/// This moment, as manifests and reports write it.
pub fn now() -> String {
    rfc3339(&moment())
}

fn rfc3339(time: &Zoned) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%.3f%:z").to_string()
}
