//! From a bundle back to a run folder.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use types::{BundleFile, BundleIndex, UserError};

use crate::error::{bad_bundle, not_plain, out_taken};

use super::super::content::{TEMPORARY_SUFFIX, TemporaryFile, create_private_folder, sync_folder};
use super::super::index::RunIndex;
use super::super::{MANIFEST, StoredRun};
use super::reader::Bundle;

/// A folder under a temporary name. Unless it gets its own name it is removed again, with what was unpacked so far.
struct TemporaryFolder {
    path: PathBuf,
    named: bool,
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        if !self.named {
            // Best effort: the failure that led here is already on its way up.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Unpacks a bundle into a folder that is absent or empty. The folder appears whole or not at all.
pub fn unpack(
    bundle: &Path,
    out: &Path,
    noted: Option<(&RunIndex, &Path)>,
    doing: &mut dyn FnMut(&BundleFile),
) -> Result<BundleIndex, UserError> {
    let input = open_plain(bundle)?;
    let mut bundle = Bundle::open(bundle, input)?;
    let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Some(name) = out.file_name() else {
        return Err(out_taken(out, "is not empty"));
    };
    refuse_taken(out)?;
    fs::create_dir_all(parent).map_err(UserError::io("create folder", parent))?;
    let path = parent.join(format!(".{}-{}{TEMPORARY_SUFFIX}", name.to_string_lossy(), std::process::id()));
    create_private_folder(&path).map_err(UserError::io("create folder", &path))?;
    let mut folder = TemporaryFolder { path, named: false };

    while write_next(&mut bundle, &folder.path, doing)? {}
    let name = bundle.name().to_owned();
    let index = bundle.finish()?;
    check_manifest(&name, &folder.path, &index)?;
    fs::rename(&folder.path, out).map_err(|error| match error.kind() {
        ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists | ErrorKind::NotADirectory => {
            out_taken(out, "is not empty")
        }
        _ => UserError::io("create folder", out)(error),
    })?;
    folder.named = true;
    sync_folder(parent)?;
    if let Some((index, root)) = noted {
        index.add(root, out);
    }
    Ok(index)
}

/// Asked before it is opened, because opening a pipe would wait for a writer.
fn open_plain(bundle: &Path) -> Result<File, UserError> {
    let found = fs::metadata(bundle).map_err(UserError::io("read", bundle))?;
    if !found.is_file() {
        let found = super::super::content::kind_of(&found);
        return Err(not_plain(bundle, "file", found));
    }
    File::open(bundle).map_err(UserError::io("read", bundle))
}

fn refuse_taken(out: &Path) -> Result<(), UserError> {
    let taken = |state| Err(out_taken(out, state));
    match fs::symlink_metadata(out) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(UserError::io("read", out)(error)),
        Ok(found) if found.is_symlink() => taken("is a link"),
        Ok(found) if !found.is_dir() => taken("is a file"),
        Ok(_) => match fs::read_dir(out).map_err(UserError::io("list", out))?.next() {
            None => Ok(()),
            Some(_) => taken("is not empty"),
        },
    }
}

/// Writes the next file; whether there was one.
fn write_next<R: std::io::Read>(
    bundle: &mut Bundle<R>,
    folder: &Path,
    doing: &mut dyn FnMut(&BundleFile),
) -> Result<bool, UserError> {
    let Some(next) = bundle.upcoming().cloned() else { return Ok(false) };
    doing(&next);
    let target = folder.join(&next.path);
    let failed = || UserError::io("write", &target);
    make_parents(folder, &next.path)?;
    let (temporary, mut file) = TemporaryFile::create(target.clone()).map_err(failed())?;
    bundle.next_file(&mut |piece| file.write_all(piece).map_err(failed()))?;
    file.sync_all().map_err(failed())?;
    temporary.keep();
    Ok(true)
}

fn make_parents(folder: &Path, path: &str) -> Result<(), UserError> {
    for (end, _) in path.match_indices('/') {
        let place = folder.join(&path[..end]);
        match create_private_folder(&place) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(UserError::io("create folder", &place)(error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The manifest inside lists exactly the files of the bundle, so that the folder is a run whose manifest is true.
fn check_manifest(name: &Path, folder: &Path, index: &BundleIndex) -> Result<(), UserError> {
    let refused = |reason: &str| bad_bundle(name, MANIFEST, reason);
    let run = StoredRun::open(folder).map_err(|error| refused(&error.to_string()))?;
    let mut listed: Vec<(&str, u64, &str)> =
        run.manifest().files.iter().map(|file| (file.path.as_str(), file.bytes.get(), file.sha256.as_str())).collect();
    let mut packed: Vec<(&str, u64, &str)> =
        index.files.iter().skip(1).map(|file| (file.path.as_str(), file.bytes.get(), file.sha256.as_str())).collect();
    listed.sort_unstable();
    packed.sort_unstable();
    if listed == packed { Ok(()) } else { Err(refused("its file list does not match the bundle")) }
}
