//! `query`: one SELECT over the tables of runs, by an engine that the user's Python has.
//!
//! The engine runs in a process of its own that is told which files belong to which table and is kept to the folders named.
//! Rows come back as they are found; how they are shown is left to whoever asked.

mod error;
mod question;
mod statement;

use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use collect::process::{Interrupt, Limits, Process};
use collect::run::{DEFAULT_ROOT, StoredRun};
use collect::tool::query::{
    DRIVER, PROTOCOL, QueryEvent, QueryPython, QueryRequest, TableRequest, command, interpreter,
};
use collect::{Command, Output};
use serde_json::Value;
use tables::{ColumnKind, SCHEMA, Table};
use types::{Bytes, UserError};

pub use collect::tool::query::QueryEngine;
pub use error::untaken;
pub use question::{QUESTIONS, Question, VIEWS, find, is_name};

use crate::pipeline::recorded::earlier::{self, RunPurpose};
use crate::pipeline::scratch::scratch_folder;
use crate::pipeline::tables::files::{TableFiles, some_table_files, table_files};
use crate::pipeline::tables::of_run as run_tables;

/// How often it is asked whether the user wants to stop.
const PAUSE: Duration = Duration::from_millis(100);

/// Lines of an answer that wait to be taken, at most: a slow reader holds the engine back.
const WAITING: usize = 16;

/// Name of the folder that the engine spills into.
const SPILL: &str = "spill";

/// Bytes of the output of the process that are kept for a message.
const OUTPUT_KEPT: usize = 1 << 16;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Folders with tables, and runs.
    pub paths: Vec<PathBuf>,
    /// The statement.
    pub sql: String,
    /// What runs it.
    pub engine: QueryEngine,
    /// The interpreter; absent: the first that has the engine.
    pub python: Option<String>,
    /// What the engine may use before it spills.
    pub memory: Bytes,
    /// Most rows; absent: all.
    pub limit: Option<u64>,
    /// How long it may take; absent: as long as it takes.
    pub time: Option<Duration>,
}

/// A part of an answer: the columns first, then rows.
#[derive(Clone, Debug, PartialEq)]
pub enum AnswerPart {
    /// Names of the columns, no two alike.
    Columns(Vec<String>),
    /// Some rows.
    Rows(Vec<Vec<Value>>),
}

/// How a query ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryOutcome {
    /// Rows of the answer.
    pub rows: u64,
    /// Whether there are more than were asked for.
    pub more: bool,
    /// The engine and its version.
    pub engine: String,
}

/// Names of the columns of every table.
pub fn tables() -> Vec<(&'static str, Vec<&'static str>)> {
    let columns = |table: Table| table.columns().iter().map(|column| column.name).collect();
    Table::ALL.into_iter().map(|table| (table.name(), columns(table))).collect()
}

/// Runs a query and hands its answer over, part by part. The error inside is the one of `take`.
pub fn query(
    query: &Query,
    stop: &dyn Fn() -> bool,
    take: &mut dyn FnMut(AnswerPart) -> std::io::Result<()>,
) -> Result<std::io::Result<QueryOutcome>, UserError> {
    run(&Prepared::new(query)?, None, stop, take)
}

/// Runs a query and writes its answer as a Parquet file.
pub fn query_to_parquet(query: &Query, out: &Path, stop: &dyn Fn() -> bool) -> Result<QueryOutcome, UserError> {
    let prepared = Prepared::new(query)?;
    // The one folder that the engine may write to.
    let written = prepared.folder.path().join(SPILL).join("answer.parquet");
    let outcome = run(&prepared, Some(&written), stop, &mut |_| Ok(()))?.map_err(untaken)?;
    put(out, |file| {
        let copied = std::fs::File::open(&written).and_then(|mut answer| std::io::copy(&mut answer, file));
        copied.map(|_| ()).map_err(untaken)
    })?;
    Ok(outcome)
}

/// Writes a file that appears whole or not at all, and replaces none.
pub fn put(path: &Path, write: impl FnOnce(&mut std::fs::File) -> Result<(), UserError>) -> Result<(), UserError> {
    free(path)?;
    let failed = UserError::io("write", path);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".llm-perf-query").tempfile_in(folder).map_err(&failed)?;
    write(file.as_file_mut())?;
    file.persist_noclobber(path).map_err(|error| failed(error.error))?;
    Ok(())
}

/// Whether a file may be written there.
pub fn free(path: &Path) -> Result<(), UserError> {
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    Err(UserError::usage(format!("{} already exists", path.display()))
        .hint("nothing was overwritten; choose another file with `--out FILE`"))
}

/// Everything that can fail before the engine is started has not failed.
struct Prepared<'a> {
    query: &'a Query,
    sql: &'a str,
    files: TableFiles,
    python: QueryPython,
    /// Private to the user, and gone afterwards.
    folder: tempfile::TempDir,
}

impl<'a> Prepared<'a> {
    fn new(query: &'a Query) -> Result<Self, UserError> {
        let sql = statement::single_select(&query.sql)?;
        let sources = query.paths.iter().map(|path| Source::of(path)).collect::<Result<Vec<_>, _>>()?;
        let mut paths: Vec<PathBuf> = sources.iter().filter_map(Source::folder).collect();
        if !paths.is_empty() {
            some_table_files(&paths)?;
        }
        let python = interpreter(query.python.as_deref(), &query.engine)?;
        let folder = scratch_folder().map_err(UserError::io("write", &std::env::temp_dir()))?;
        // Making tables may take a while, so that everything else that can fail comes first.
        for run in sources.iter().filter_map(Source::run) {
            let made = folder.path().join("tables").join(&run.manifest().run_id);
            run_tables::write(run, &made)?;
            paths.push(made);
        }
        let files = some_table_files(&paths)?;
        Ok(Self { query, sql, files, python, folder })
    }

    /// The command, with its driver and its request on disk.
    fn command(&self, parquet: Option<&Path>) -> Result<Command, UserError> {
        let [driver, request, temporary] =
            ["query.py", "request.json", SPILL].map(|name| self.folder.path().join(name));
        let failed = |path: &Path| UserError::io("write", path);
        std::fs::create_dir(&temporary).map_err(failed(&temporary))?;
        let of_table = |table: Table| TableRequest {
            name: table.name().to_owned(),
            columns: table
                .columns()
                .iter()
                .map(|column| (column.name.to_owned(), sql_type(column.kind).to_owned()))
                .collect(),
            files: self.files.files.get(table.name()).cloned().unwrap_or_default(),
        };
        let asked = QueryRequest {
            protocol: PROTOCOL,
            schema: SCHEMA.to_owned(),
            engine: self.python.engine.name().to_owned(),
            address: match &self.python.engine {
                QueryEngine::Ballista { scheduler } => Some(format!("df://{scheduler}")),
                _ => None,
            },
            memory_bytes: self.query.memory.get(),
            temporary,
            folders: self.files.folders.clone(),
            tables: Table::ALL.into_iter().map(of_table).collect(),
            views: VIEWS.iter().map(|view| (view.name.to_owned(), view.sql.to_owned())).collect(),
            sql: self.sql.to_owned(),
            limit: self.query.limit,
            parquet: parquet.map(Path::to_owned),
        };
        let asked = serde_json::to_vec(&asked).map_err(|error| failed(&request)(error.into()))?;
        std::fs::write(&driver, DRIVER).map_err(failed(&driver))?;
        std::fs::write(&request, asked).map_err(failed(&request))?;
        Ok(command(&self.python.program, &driver, &request)
            .with_output(Output::Kept(OUTPUT_KEPT), Output::Kept(OUTPUT_KEPT)))
    }
}

/// What a path of a query names.
enum Source {
    /// A folder with tables.
    Folder(PathBuf),
    /// A run without tables of its own, for which they are made.
    Run(Box<StoredRun>),
}

impl Source {
    fn of(path: &Path) -> Result<Self, UserError> {
        let is_run = || path.join("manifest.json").is_file() && matches!(table_files(&[path.to_owned()]), Ok(None));
        match path.to_str() {
            Some(name) if !path.exists() && path.components().count() == 1 => {
                Ok(Self::Run(Box::new(earlier::find(Path::new(DEFAULT_ROOT), name, RunPurpose::Export)?)))
            }
            _ if is_run() => Ok(Self::Run(Box::new(StoredRun::open(path)?))),
            _ => Ok(Self::Folder(path.to_owned())),
        }
    }

    fn folder(&self) -> Option<PathBuf> {
        if let Self::Folder(path) = self { Some(path.clone()) } else { None }
    }

    fn run(&self) -> Option<&StoredRun> {
        if let Self::Run(run) = self { Some(run) } else { None }
    }
}

fn run(
    prepared: &Prepared<'_>,
    parquet: Option<&Path>,
    stop: &dyn Fn() -> bool,
    take: &mut dyn FnMut(AnswerPart) -> std::io::Result<()>,
) -> Result<std::io::Result<QueryOutcome>, UserError> {
    let (process, lines) = Process::start_with_channel(&prepared.command(parquet)?)?;
    let (sender, receiver) = sync_channel(WAITING);
    // A thread of its own reads, so that a silent engine does not keep the user from stopping it.
    let reader = std::thread::spawn(move || lines.map_while(|line| sender.send(line).ok()).count());
    let name = prepared.python.engine.name();
    let mut engine = name.to_owned();
    let mut end = None;
    let started = Instant::now();
    let late = || prepared.query.time.filter(|most| started.elapsed() >= *most);
    loop {
        let event = match receiver.recv_timeout(PAUSE) {
            Ok(line) => serde_json::from_slice::<QueryEvent>(line.as_bytes()).ok(),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => None,
        };
        let taken = match event {
            Some(QueryEvent::Hello { version, .. }) => {
                engine = format!("{name} {version}");
                Ok(())
            }
            Some(QueryEvent::Columns { names, .. }) => take(AnswerPart::Columns(distinct(names))),
            Some(QueryEvent::Rows { rows }) => take(AnswerPart::Rows(rows)),
            Some(QueryEvent::Failed(failure)) => {
                end = Some(Err(error::failed(&failure, name, prepared.query.memory)));
                Ok(())
            }
            Some(QueryEvent::Done { rows, more }) => {
                end = Some(Ok(Ok(QueryOutcome { rows, more, engine: engine.clone() })));
                Ok(())
            }
            None => Ok(()),
        };
        let given_up = match taken {
            Err(reason) => Some(Ok(Err(reason))),
            Ok(()) if stop() => Some(Err(UserError::failed("the query was stopped"))),
            Ok(()) => late().map(|limit| {
                Err(error::out_of_time(limit, matches!(prepared.python.engine, QueryEngine::Ballista { .. })))
            }),
        };
        if given_up.is_some() {
            process.kill();
            end = given_up;
            break;
        }
    }
    drop(receiver);
    let outcome = process.wait(&Limits::default(), Interrupt::Ignored)?;
    let _ = reader.join();
    end.unwrap_or_else(|| {
        Err(UserError::failed(format!("{engine} {} before the query finished", outcome.ending))
            .quoting(outcome.last_lines(8))
            .hint("a file may be damaged, or memory ran out; set the memory limit with --memory"))
    })
}

/// A type as SQL names it.
fn sql_type(kind: ColumnKind) -> &'static str {
    match kind {
        ColumnKind::Integer => "INTEGER",
        ColumnKind::Long | ColumnKind::Time => "BIGINT",
        ColumnKind::Text => "VARCHAR",
        ColumnKind::Flag => "BOOLEAN",
    }
}

/// The names, the second of two alike with a number behind it.
fn distinct(names: Vec<String>) -> Vec<String> {
    let mut given: Vec<String> = Vec::with_capacity(names.len());
    for name in names {
        let numbered = (2..).map(|number| format!("{name}_{number}"));
        let free = std::iter::once(name.clone()).chain(numbered).find(|one| !given.contains(one));
        given.push(free.unwrap_or(name));
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_the_same_name_are_told_apart() {
        let names = ["a", "b", "a", "a_2", "a"].map(str::to_owned).to_vec();
        assert_eq!(distinct(names), ["a", "b", "a_2", "a_2_2", "a_3"]);
    }

    #[test]
    fn a_file_that_is_there_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("answer.csv");
        put(&path, |file| std::io::Write::write_all(file, b"1").map_err(untaken)).unwrap();
        let again = put(&path, |_| Ok(())).unwrap_err();
        assert!(again.to_string().ends_with("already exists"), "{again}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "1");
    }
}
