//! Comparing the files of a run with its manifest.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;

use types::{Artifact, FileProblem, FileProblemKind, UserError, Verification};

use super::content::{Digest, kind_of};
use super::{MANIFEST, RelativePath, SOURCES};

/// Hashes every listed file again, and finds the files that are not listed. Links are not followed.
pub(super) fn verify(folder: &Path, files: &[Artifact]) -> Result<Verification, UserError> {
    let problems = files.iter().filter_map(|artifact| problem(folder, artifact)).collect();
    Ok(Verification { checked: files.len() as u64, problems, unlisted: unlisted(folder, files)? })
}

/// Files that are not listed, and are neither the list nor a source that came with a packed run.
pub(super) fn unlisted(folder: &Path, files: &[Artifact]) -> Result<Vec<String>, UserError> {
    let mut found = BTreeSet::new();
    collect_files(folder, "", &mut found)?;
    found.remove(MANIFEST);
    for artifact in files {
        found.remove(&artifact.path);
    }
    Ok(found.into_iter().filter(|path| !path.starts_with(&format!("{SOURCES}/"))).collect())
}

fn problem(folder: &Path, artifact: &Artifact) -> Option<FileProblem> {
    let (kind, detail) = difference(folder, artifact)?;
    Some(FileProblem { path: artifact.path.clone(), kind, detail })
}

fn difference(folder: &Path, artifact: &Artifact) -> Option<(FileProblemKind, String)> {
    use FileProblemKind::{Changed, Missing, Refused, Unreadable};
    let path = match RelativePath::new(&artifact.path) {
        Ok(path) => path,
        // A manifest may come from anywhere; it must not make us read what lies outside its folder.
        Err(error) => return Some((Refused, error.to_string())),
    };
    for place in path.parents().chain([path.as_str()]) {
        let is_last = place == path.as_str();
        match fs::symlink_metadata(folder.join(place)) {
            Ok(found) if is_last && found.is_file() && found.len() != artifact.bytes.get() => {
                return Some((Changed, format!("expected {} bytes, found {}", artifact.bytes.get(), found.len())));
            }
            Ok(found) if (is_last && found.is_file()) || (!is_last && found.is_dir()) => {}
            Ok(found) => return Some((Refused, format!("{place} is {}", kind_of(&found)))),
            Err(error) if error.kind() == ErrorKind::NotFound => return Some((Missing, "not found".to_owned())),
            Err(error) => return Some((Unreadable, error.to_string())),
        }
    }
    match File::open(path.under(folder)).and_then(Digest::of) {
        Ok(digest) if digest.sha256 == artifact.sha256 => None,
        Ok(digest) => Some((Changed, format!("expected sha256 {}, found {}", artifact.sha256, digest.sha256))),
        Err(error) => Some((Unreadable, error.to_string())),
    }
}

fn collect_files(folder: &Path, prefix: &str, found: &mut BTreeSet<String>) -> Result<(), UserError> {
    let failed = || UserError::io("list", folder);
    for entry in fs::read_dir(folder).map_err(failed())? {
        let entry = entry.map_err(failed())?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type().map_err(failed())?.is_dir() {
            collect_files(&entry.path(), &format!("{name}/"), found)?;
        } else {
            found.insert(name);
        }
    }
    Ok(())
}
