//! The Parquet tables in folders: which file holds what of which job and rank.
//!
//! The layout is `job=NAME/rank=N/TABLE.parquet` at any depth. A file that lies elsewhere belongs to the job that its folder is
//! named after. What is in the files is left to whoever reads them.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use collect::tool::query::TableFile;
use tables::Table;
use types::{Exit, UserError};

use super::NO_RANK;

/// Folders below a named one that are looked into, at most: deeper ones are a mistake, or a circle of mounts.
const DEEPEST: usize = 24;

/// Characters that engines read as patterns.
const PATTERNS: [char; 5] = ['*', '?', '[', '{', '\\'];

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TableFiles {
    /// The folders that were named, as the system knows them.
    pub(crate) folders: Vec<PathBuf>,
    /// Files by table.
    pub(crate) files: BTreeMap<&'static str, Vec<TableFile>>,
    /// All of them.
    known: HashSet<PathBuf>,
}

/// The tables of these folders.
pub(crate) fn table_files(paths: &[PathBuf]) -> Result<Option<TableFiles>, UserError> {
    let mut found = TableFiles::default();
    for path in paths {
        let folder = path.canonicalize().map_err(|reason| unlisted(path, &reason))?;
        if !folder.is_dir() {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            return Err(UserError::usage(format!("{} is a file, not a folder of tables", path.display()))
                .hint(format!("pass the folder instead: {}", folder.display())));
        }
        if !found.folders.contains(&folder) {
            found.search(&folder, 0)?;
            found.folders.push(folder);
        }
    }
    found.refuse_doubles()?;
    Ok(Some(found).filter(|found| !found.files.is_empty()))
}

/// The same where folders without tables are an error.
pub(crate) fn some_table_files(paths: &[PathBuf]) -> Result<TableFiles, UserError> {
    table_files(paths)?.ok_or_else(|| {
        UserError::usage(format!("no tables found in {}", listed(paths)))
            .hint("write tables with `llm-perf import FILE --tables DIR` or `llm-perf export RUN --format parquet`")
    })
}

/// A folder that is not there was named wrongly.
fn unlisted(folder: &Path, reason: &std::io::Error) -> UserError {
    let exit = if reason.kind() == std::io::ErrorKind::NotFound { Exit::Usage } else { Exit::Failed };
    UserError::failed(format!("cannot list {}: {reason}", folder.display())).exiting(exit)
}

impl TableFiles {
    /// Folders of ranks, each with the name of its job.
    pub(crate) fn ranks(&self) -> impl Iterator<Item = (&str, &Path)> {
        let runs = self.files.get(Table::Runs.name()).into_iter().flatten();
        runs.filter_map(|file| Some((file.job.as_str(), file.path.parent()?)))
    }

    fn search(&mut self, folder: &Path, depth: usize) -> Result<(), UserError> {
        let unreadable = |reason| unlisted(folder, &reason);
        let entries: Result<Vec<_>, _> = std::fs::read_dir(folder).map_err(unreadable)?.collect();
        let mut paths: Vec<PathBuf> = entries.map_err(unreadable)?.iter().map(std::fs::DirEntry::path).collect();
        paths.sort();
        // A rank that is being written is hidden until it is whole.
        for path in paths.into_iter().filter(|path| name(path).is_none_or(|name| !name.starts_with('.'))) {
            let kind = path.symlink_metadata().map_err(unreadable)?.file_type();
            let table = table_of(&path);
            if kind.is_symlink() && (table.is_some() || path.is_dir()) {
                let path = path.display();
                return Err(UserError::usage(format!(
                    "{path} is a link; only files inside the given folders are read"
                ))
                .hint("pass the folder that it points to"));
            }
            match table {
                Some(table) if kind.is_file() => self.add(table, path)?,
                _ if kind.is_dir() && depth < DEEPEST => self.search(&path, depth + 1)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn add(&mut self, table: &'static str, path: PathBuf) -> Result<(), UserError> {
        if path.to_str().is_none_or(|text| text.contains(PATTERNS)) {
            let (path, patterns) = (path.display(), PATTERNS.map(String::from).join(" "));
            return Err(UserError::usage(format!(
                "{path} cannot be queried: its path is not UTF-8 or contains one of {patterns}"
            ))
            .hint("rename the folder"));
        }
        let file = placed(path)?;
        let files = self.files.entry(table).or_default();
        // A folder may be named together with one above it.
        if self.known.insert(file.path.clone()) {
            files.push(file);
        }
        Ok(())
    }

    /// What is there twice would be counted twice.
    fn refuse_doubles(&self) -> Result<(), UserError> {
        for (table, files) in &self.files {
            let mut seen: BTreeMap<(&str, Option<&str>), &Path> = BTreeMap::new();
            for file in files {
                let rank = file.path.parent().and_then(name).and_then(|name| name.strip_prefix("rank="));
                if let Some(first) = seen.insert((&file.job, rank), &file.path) {
                    let (first, second, job) = (first.display(), file.path.display(), &file.job);
                    let rank = rank.map_or_else(|| "no rank".to_owned(), |rank| format!("rank {rank}"));
                    return Err(UserError::usage(format!(
                        "{first} and {second} both hold `{table}` of job `{job}`, {rank}"
                    ))
                    .hint("pass only one of the folders, or give the jobs different names"));
                }
            }
        }
        Ok(())
    }
}

/// The table that a file of this name holds.
fn table_of(path: &Path) -> Option<&'static str> {
    let stem = name(path)?.strip_suffix(".parquet")?;
    Table::ALL.into_iter().map(Table::name).find(|table| *table == stem)
}

/// A file with its job, by the names of its folders.
fn placed(path: PathBuf) -> Result<TableFile, UserError> {
    let rank_folder = path.parent().unwrap_or(Path::new("/"));
    let job_folder = rank_folder.parent().unwrap_or(Path::new("/"));
    let rank = name(rank_folder).and_then(|name| name.strip_prefix("rank="));
    if rank.is_some_and(|rank| rank != NO_RANK && (rank.parse::<i32>().is_err() || rank.starts_with(['+', '-']))) {
        let folder = rank_folder.display();
        return Err(UserError::usage(format!("{folder} does not name a rank; expected `rank=N`")));
    }
    let named = |folder: &Path| name(folder).map(|name| name.strip_prefix("job=").unwrap_or(name).to_owned());
    let layout = rank.is_some() && name(job_folder).is_some_and(|name| name.starts_with("job="));
    let job = named(if rank.is_some() { job_folder } else { rank_folder }).unwrap_or_default();
    let root = layout.then(|| job_folder.parent().unwrap_or(Path::new("/")).to_owned());
    Ok(TableFile { job, root, path })
}

fn name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

fn listed(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for file in files {
            let path = root.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        root
    }

    fn found(root: &tempfile::TempDir) -> Result<TableFiles, UserError> {
        some_table_files(&[root.path().to_owned()])
    }

    #[test]
    fn jobs_are_read_off_the_folders_and_other_files_are_left_alone() {
        let root = folder(&[
            "a/job=x/rank=0/kernels.parquet",
            "a/job=x/rank=__HIVE_DEFAULT_PARTITION__/runs.parquet",
            "b/steps.parquet",
            "b/k.parquet",
        ]);
        let files = found(&root).unwrap();
        let real = root.path().canonicalize().unwrap();
        let kernels = &files.files["kernels"][0];
        assert_eq!((kernels.job.as_str(), kernels.root.as_deref()), ("x", Some(real.join("a").as_path())));
        let steps = &files.files["steps"][0];
        assert_eq!((steps.job.as_str(), steps.root.as_deref()), ("b", None));
        assert_eq!((files.files.len(), files.folders), (3, vec![real]));
    }

    #[test]
    fn a_file_is_found_once_however_often_its_folder_is_named() {
        let root = folder(&["job=x/rank=0/kernels.parquet"]);
        let paths = [root.path().to_owned(), root.path().join("job=x"), root.path().to_owned()];
        assert_eq!(some_table_files(&paths).unwrap().files["kernels"].len(), 1);
    }

    #[test]
    fn one_job_and_rank_in_two_folders_is_refused() {
        let root = folder(&["a/job=x/rank=0/kernels.parquet", "b/job=x/rank=0/kernels.parquet"]);
        let error = found(&root).unwrap_err();
        assert!(error.to_string().ends_with("both hold `kernels` of job `x`, rank 0"), "{error}");
        assert!(found(&folder(&["a/job=x/rank=0/kernels.parquet", "b/job=x/rank=1/kernels.parquet"])).is_ok());
    }

    #[test]
    fn what_is_no_folder_of_tables_says_what_to_do() {
        let empty = folder(&["notes.txt"]);
        assert!(found(&empty).unwrap_err().hints[0].contains("--tables"));
        let file = empty.path().join("notes.txt");
        let says = |found: Result<TableFiles, UserError>, what| found.unwrap_err().message.contains(what);
        assert!(says(some_table_files(&[file]), "is a file, not a folder"));
        let gone = table_files(&[empty.path().join("gone")]).unwrap_err();
        assert_eq!(gone.exit, Exit::Usage);
        assert!(says(found(&folder(&["job=x/rank=two/kernels.parquet"])), "does not name a rank"));
        assert!(says(found(&folder(&["job=a[1]/rank=2/kernels.parquet"])), "cannot be queried"));
    }

    #[cfg(unix)]
    #[test]
    fn links_are_not_followed() {
        let elsewhere = folder(&["kernels.parquet"]);
        let root = folder(&["job=x/rank=0/steps.parquet"]);
        std::os::unix::fs::symlink(elsewhere.path(), root.path().join("more")).unwrap();
        assert!(found(&root).unwrap_err().message.contains("is a link"));
    }
}
