//! The Parquet tables beneath some folders.

use std::fs;
use std::path::{Path, PathBuf};

use tables::Table;

use super::tables_error::TablesError;

/// Folders within folders that are looked into.
const DEEPEST: usize = 8;

/// Folders of ranks, each with the name of its job; sorted.
#[derive(Clone, Debug, Default)]
pub(crate) struct RankFolders(pub(crate) Vec<(String, PathBuf)>);

impl RankFolders {
    /// All that are beneath a folder, or the folder itself.
    pub(crate) fn beneath(folder: &Path) -> Result<Self, TablesError> {
        let mut found = Vec::new();
        look(folder, DEEPEST, &mut found)?;
        found.sort();
        Ok(Self(found))
    }
}

fn look(folder: &Path, depth: usize, found: &mut Vec<(String, PathBuf)>) -> Result<(), TablesError> {
    if folder.join(Table::Runs.file_name()).is_file() {
        let job = folder.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
        let job = job.as_deref().and_then(|name| name.strip_prefix("job=")).unwrap_or("job").to_owned();
        found.push((job, folder.to_owned()));
        return Ok(());
    }
    if depth == 0 {
        return Ok(());
    }
    let io = |reason| TablesError::Io { path: folder.to_owned(), reason };
    for entry in fs::read_dir(folder).map_err(io)? {
        let entry = entry.map_err(io)?;
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        if !hidden && entry.path().is_dir() {
            look(&entry.path(), depth - 1, found)?;
        }
    }
    Ok(())
}
