//! Parquet tables of a run, one folder for each rank: `DIR/job=NAME/rank=N/TABLE.parquet`.
//!
//! A rank's folder appears as a whole or not at all, so that as many processes as there are ranks can write into one place
//! without knowing of each other.

pub(crate) mod files;
pub(crate) mod of_run;

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use collect::document;
use tables::rows::{RankOrigin, RankRows};
use tables::{Table, TableError, TableWriter};
use types::{Metrics, TraceSource, UserError};

use crate::pipeline::trace::Placed;

/// What every engine reads as "no value" in the name of a folder.
const NO_RANK: &str = "__HIVE_DEFAULT_PARTITION__";

/// Where tables go.
#[derive(Clone, Debug)]
pub struct TablesRequest {
    /// The folder of all jobs.
    pub folder: PathBuf,
    /// Name of the job.
    pub job: String,
}

impl TablesRequest {
    /// Tables of a job. Its name, unless given, is that of the folder its trace lies in: ranks of a job usually share one.
    pub fn new(folder: &Path, job: Option<&str>, trace: &Path) -> Result<Self, UserError> {
        let inside = || {
            let whole = fs::canonicalize(trace).ok()?;
            Some(whole.parent()?.file_name()?.to_string_lossy().into_owned())
        };
        let plain = |letter: char| if letter.is_alphanumeric() || "._-".contains(letter) { letter } else { '_' };
        let job = match job {
            Some(job) => job.to_owned(),
            None => inside().map(|name| name.chars().map(plain).collect()).unwrap_or_else(|| "job".to_owned()),
        };
        if job.is_empty() || job.starts_with('.') || job.chars().any(|letter| plain(letter) != letter) {
            return Err(UserError::usage(format!(
                "invalid job name {job:?}: use letters, digits, dots, dashes and underscores"
            )));
        }
        Ok(Self { folder: folder.to_owned(), job })
    }
}

/// Writes the tables of every rank; the folders they are in.
pub(crate) fn write(
    request: &TablesRequest,
    placed: &[Placed],
    sources: &[TraceSource],
    metrics: &Metrics,
) -> Result<Vec<PathBuf>, UserError> {
    if placed.is_empty() {
        return Err(UserError::usage(
            "cannot write tables without a timeline: the files contain only sums and counters",
        )
        .hint("import a torch profiler trace, an nsys export or a collector file"));
    }
    let job = request.folder.join(format!("job={}", request.job));
    refuse_link(&job)?;
    fs::create_dir_all(&job).map_err(at(&job))?;
    let mut folders = Vec::new();
    for one in placed {
        let among_others = placed.len() > 1;
        let own = |source: &&TraceSource| !among_others || source.rank == one.rank;
        let sources: Vec<_> = sources.iter().filter(own).cloned().collect();
        let origin = RankOrigin { job: &request.job, rank: one.rank, among_others, sources: &sources };
        let rows = RankRows::new(&one.timeline, &one.attribution, metrics, origin);
        folders.push(rank(&job, one.rank, &sources, &rows)?);
    }
    Ok(folders)
}

/// A link that somebody has put there would lead the tables to another place.
fn refuse_link(path: &Path) -> Result<(), UserError> {
    match path.symlink_metadata() {
        Ok(found) if found.is_symlink() => {
            let error = UserError::usage(format!("{} is a link; tables are not written through links", path.display()));
            Err(error.hint("remove it, or pass the folder that it points to with `--tables`"))
        }
        _ => Ok(()),
    }
}

/// One rank: written beside its place, and moved there when it is whole.
fn rank(job: &Path, rank: Option<u32>, sources: &[TraceSource], rows: &RankRows<'_>) -> Result<PathBuf, UserError> {
    let name = rank.map_or_else(|| format!("rank={NO_RANK}"), |rank| format!("rank={rank}"));
    let path = job.join(&name);
    refuse_link(&path)?;
    if path.symlink_metadata().is_ok() {
        let found = origin(&path)?;
        if !matches!(sources, [only] if is_of(only, &found.1)) {
            let (path, found) = (path.display(), found.0);
            return Err(UserError::usage(format!("{path} already exists, from another trace ({found})"))
                .hint("nothing was overwritten; choose another job name with `--job NAME`"));
        }
    }
    let draft = job.join(format!(".{name}.{}", std::process::id()));
    fs::create_dir(&draft).map_err(at(&draft))?;
    let written = Table::ALL.into_iter().try_for_each(|table| write_table(&draft.join(table.file_name()), table, rows));
    let moved = written.and_then(|()| {
        if path.exists() {
            fs::remove_dir_all(&path).map_err(at(&path))?;
        }
        fs::rename(&draft, &path).map_err(at(&path))
    });
    if moved.is_err() {
        // What is half-written is of no use to anyone; why it failed matters more than whether it can be removed.
        let _ = fs::remove_dir_all(&draft);
    }
    moved.map(|()| path)
}

/// A table, unless it has no rows.
fn write_table(path: &Path, table: Table, rows: &RankRows<'_>) -> Result<(), UserError> {
    let wrong = |error| wrong_table(path, &error);
    let mut writer: Option<TableWriter<BufWriter<File>>> = None;
    let mut failed: Option<io::Error> = None;
    let result = rows.write(table, &mut |cells| {
        if writer.is_none() {
            let file = match File::create_new(path) {
                Ok(file) => file,
                Err(error) => {
                    let reason = error.to_string();
                    failed = Some(error);
                    return Err(TableError::Write { table, reason });
                }
            };
            writer = Some(TableWriter::new(table, BufWriter::new(file))?);
        }
        writer.as_mut().map_or(Ok(()), |writer| writer.row(cells))
    });
    if let Some(reason) = failed {
        return Err(at(path)(reason));
    }
    result.map_err(wrong)?;
    writer.map_or(Ok(0), TableWriter::finish).map_err(wrong)?;
    Ok(())
}

/// Whether a digest, as tables have it, is that of a trace.
fn is_of(source: &TraceSource, digest: &str) -> bool {
    source.digest().is_some_and(|own| own.to_string() == digest)
        || collect::run::digest(Path::new(&source.path)).is_ok_and(|(_, sha256)| sha256 == digest)
}

/// Where the rows of a rank come from: the trace, and its digest.
fn origin(folder: &Path) -> Result<(String, String), UserError> {
    let runs = read(&folder.join(Table::Runs.file_name()), Table::Runs)?;
    let text = |column: &str| runs.text(0, column).unwrap_or_default().to_owned();
    Ok((text("source"), text("sha256")))
}

/// Most bytes of a table that is read into memory; one row for each of a hundred million kernels is a tenth of it.
const LARGEST_TABLE: u64 = 32 << 30;

/// Reads a table.
pub(crate) fn read(path: &Path, table: Table) -> Result<tables::TableColumns, UserError> {
    let content = document::open(path).and_then(|file| document::read_from(file, LARGEST_TABLE));
    tables::read(table, content.map_err(at(path))?).map_err(|error| wrong_table(path, &error))
}

/// A file that the system refuses.
fn at(path: &Path) -> impl Fn(io::Error) -> UserError {
    move |reason| UserError::failed(format!("{}: {reason}", path.display()))
}

/// A table that cannot be written or read.
fn wrong_table(path: &Path, error: &TableError) -> UserError {
    UserError::failed(format!("{}: {error}", path.display()))
        .hint("write the tables again with `llm-perf import FILE --tables DIR`")
}
