//! How a run gets a folder of its own.
//!
//! Making a folder either succeeds for exactly one process or fails, so it decides who has a name. A folder that was there
//! before, empty, is claimed by a file that likewise can be made only once.

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use jiff::Zoned;

use types::UserError;

use super::MANIFEST;
use super::content::{TEMPORARY_SUFFIX, TemporaryFile, create_private_folder};
use super::index::RunIndex;
use crate::error::out_taken;
use crate::masked;

/// Where runs go unless the user says otherwise.
pub const DEFAULT_ROOT: &str = "tmp/profile-output";

/// What is known about a run before it starts.
#[derive(Clone, Debug)]
pub struct RunRequest {
    /// Folder beneath which the run gets its own; made when absent.
    pub root: PathBuf,
    /// Its name there, with a number behind it where that is taken; absent: the time.
    pub id: Option<String>,
    /// The run folder itself, when the user names it; must be absent or empty.
    pub out: Option<PathBuf>,
    /// Where a run that lies elsewhere is noted, so that it is found by its name.
    pub index: Option<RunIndex>,
    /// Verb that makes the run, such as `profile`.
    pub verb: String,
    /// Command line, as given.
    pub command: Vec<String>,
    /// Model it is about.
    pub model: Option<String>,
    /// Device it is about.
    pub device: Option<String>,
}

/// A folder that belongs to this run alone, with nothing in it but the file that will become the manifest.
pub(super) struct Claim {
    pub(super) run_id: String,
    /// Before the folder, because fields are dropped in order and only an empty folder can be removed.
    pub(super) manifest: (TemporaryFile, fs::File),
    pub(super) folder: ClaimedFolder,
}

/// The claimed folder. Unless it is kept, it is removed again if it was made for this run and has nothing in it.
pub(super) struct ClaimedFolder {
    path: PathBuf,
    remove: bool,
}

impl RunRequest {
    /// A run of that verb beneath [`DEFAULT_ROOT`], about no model and no device.
    pub fn new(verb: impl Into<String>, command: Vec<OsString>) -> Self {
        Self {
            root: DEFAULT_ROOT.into(),
            id: None,
            out: None,
            index: None,
            verb: verb.into(),
            command: masked(command).iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            model: None,
            device: None,
        }
    }

    pub(super) fn claim(&self, now: &Zoned) -> Result<Claim, UserError> {
        let id = self.id.clone().unwrap_or_else(|| now.strftime("%Y%m%d-%H%M%S").to_string());
        let (run_id, folder) = match &self.out {
            Some(out) => (id, make_or_reuse(out)?),
            None => make_numbered(&self.root, &id)?,
        };
        let manifest = claim_empty(&folder.path)?;
        Ok(Claim { run_id, manifest, folder })
    }
}

impl ClaimedFolder {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn keep(mut self) -> PathBuf {
        self.remove = false;
        std::mem::take(&mut self.path)
    }
}

impl Drop for ClaimedFolder {
    fn drop(&mut self) {
        if self.remove {
            // Best effort, and harmless: a folder with anything in it is not removed.
            let _ = fs::remove_dir(&self.path);
        }
    }
}

/// Makes `root/id`, or `root/id-2`, `root/id-3` ... where that is taken.
fn make_numbered(root: &Path, id: &str) -> Result<(String, ClaimedFolder), UserError> {
    fs::create_dir_all(root).map_err(UserError::io("create folder", root))?;
    let mut run_id = id.to_owned();
    let mut number = 1_u64;
    loop {
        let path = root.join(&run_id);
        match create_private_folder(&path) {
            Ok(()) => return Ok((run_id, ClaimedFolder { path, remove: true })),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                number += 1;
                run_id = format!("{id}-{number}");
            }
            Err(error) => return Err(UserError::io("create folder", &path)(error)),
        }
    }
}

/// Makes the folder, or makes sure that what is there is a folder with nothing in it.
fn make_or_reuse(out: &Path) -> Result<ClaimedFolder, UserError> {
    let claimed = |remove| Ok(ClaimedFolder { path: out.to_owned(), remove });
    let taken = |state| Err(out_taken(out, state));
    if let Some(parent) = out.parent() {
        fs::create_dir_all(parent).map_err(UserError::io("create folder", parent))?;
    }
    match create_private_folder(out) {
        Ok(()) => claimed(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => match fs::metadata(out) {
            Ok(found) if !found.is_dir() => taken("is a file"),
            Ok(_) if entries(out)?.is_empty() => claimed(false),
            Ok(_) => taken("is not empty"),
            Err(error) if error.kind() == ErrorKind::NotFound => taken("is a broken link"),
            Err(error) => Err(UserError::io("read", out)(error)),
        },
        Err(error) => Err(UserError::io("create folder", out)(error)),
    }
}

/// Claims a folder that looked empty. Whoever comes second finds either the claim, which cannot be made twice, or the
/// manifest it became.
fn claim_empty(folder: &Path) -> Result<(TemporaryFile, fs::File), UserError> {
    let name = format!(".claim{TEMPORARY_SUFFIX}");
    let taken = || out_taken(folder, "is in use by another run");
    let claim = TemporaryFile::create(folder.join(&name)).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => taken(),
        _ => UserError::io("write", &folder.join(MANIFEST))(error),
    })?;
    match entries(folder)?.as_slice() {
        [only] if *only == *name => Ok(claim),
        _ => Err(taken()),
    }
}

fn entries(folder: &Path) -> Result<Vec<std::ffi::OsString>, UserError> {
    fs::read_dir(folder)
        .and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect())
        .map_err(UserError::io("list", folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(root: &Path) -> RunRequest {
        RunRequest { root: root.to_owned(), ..RunRequest::new("test", Vec::new()) }
    }

    fn noon() -> Zoned {
        jiff::civil::date(2025, 11, 15).at(12, 0, 0, 0).to_zoned(jiff::tz::TimeZone::UTC).unwrap()
    }

    fn claimed(request: &RunRequest) -> Result<String, UserError> {
        request.claim(&noon()).map(|claim| {
            claim.folder.keep();
            claim.run_id
        })
    }

    #[test]
    fn a_taken_second_gets_a_number() {
        let root = tempfile::tempdir().unwrap();
        let request = request(root.path());
        let ids: Vec<String> = (0..3).map(|_| claimed(&request).unwrap()).collect();
        assert_eq!(ids, ["20251115-120000", "20251115-120000-2", "20251115-120000-3"]);
    }

    #[test]
    fn threads_in_the_same_second_never_share_a_folder() {
        let root = tempfile::tempdir().unwrap();
        let request = request(root.path());
        let ids = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..16).map(|_| scope.spawn(|| claimed(&request).unwrap())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<std::collections::BTreeSet<_>>()
        });
        assert_eq!(ids.len(), 16);
    }

    #[test]
    fn of_many_threads_that_want_the_same_empty_folder_one_gets_it() {
        for _ in 0..20 {
            let root = tempfile::tempdir().unwrap();
            let request = RunRequest { out: Some(root.path().to_owned()), ..request(root.path()) };
            let won = std::thread::scope(|scope| {
                let claim = || {
                    let claim = request.claim(&noon())?;
                    claim
                        .manifest
                        .0
                        .rename(&root.path().join(MANIFEST))
                        .map_err(UserError::io("write", Path::new(MANIFEST)))
                };
                let threads: Vec<_> = (0..8).map(|_| scope.spawn(claim)).collect();
                threads.into_iter().filter_map(|thread| thread.join().unwrap().ok()).count()
            });
            assert_eq!(won, 1);
            assert_eq!(entries(root.path()).unwrap(), [MANIFEST]);
        }
    }

    #[test]
    fn a_claim_that_comes_to_nothing_leaves_nothing() {
        let root = tempfile::tempdir().unwrap();
        drop(request(root.path()).claim(&noon()).unwrap());
        assert!(entries(root.path()).unwrap().is_empty());
    }
}
