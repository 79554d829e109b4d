//! `llm-perf query`: SQL over the tables of runs.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use flow::query::{self, AnswerPart, QUESTIONS, Query, QueryEngine, QueryOutcome, VIEWS};
use flow::{StopRequest, csv_line, json_row, rows_table};
use serde_json::Value;
use types::{Bytes, Exit, UserError};

use crate::context::Context;
use crate::screen::{ScreenTable, terminal_width};
use crate::size::size;

/// Rows of a table on the terminal; other formats have all.
const TABLE_ROWS: u64 = 1_000;

/// How long a cluster may take where nobody says: one that lost an executor may never answer.
const CLUSTER_SECONDS: u64 = 600;

/// Query one or more runs with SQL
#[derive(Debug, clap::Args)]
#[command(override_usage = USAGE)]
pub(crate) struct Arguments {
    /// Runs (name or a prefix of it, `latest`, folder) or folders with tables, then an SQL query or the name of a built-in
    /// query
    #[arg(value_name = "RUN|DIR|QUERY", required_unless_present = "list")]
    words: Vec<OsString>,
    /// List the built-in queries, tables and views; with names, print their SQL
    #[arg(long)]
    list: bool,
    /// Output format [default: by the extension of --out, else table]
    #[arg(long, value_name = "FORMAT", value_enum)]
    format: Option<FormatName>,
    /// Write the result to a file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Engine: auto, duckdb, datafusion, or ballista://HOST:PORT for a cluster
    #[arg(long, value_name = "ENGINE", default_value = "auto", value_parser = engine)]
    engine: QueryEngine,
    /// Memory limit of the engine; the rest spills to $TMPDIR
    #[arg(long, value_name = "SIZE", default_value = "2GB", value_parser = memory)]
    memory: Bytes,
    /// Time limit of the query, in seconds [default: none, or 600 on a cluster]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    timeout: Option<u64>,
    /// Python with the engine [default: $LLM_PERF_PYTHON, else the first on PATH that has one]
    #[arg(long, value_name = "PROGRAM")]
    python: Option<String>,
}

const USAGE: &str = "llm-perf query [OPTIONS] <RUN|DIR>... <QUERY>
       llm-perf query --list [NAME]...";

/// A format of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum FormatName {
    Table,
    Csv,
    Json,
    Parquet,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, UserError> {
    if arguments.list {
        let names: Vec<_> = arguments.words.iter().map(|name| name.to_string_lossy().into_owned()).collect();
        return list(&names, context);
    }
    let format = format(arguments)?;
    let on_a_cluster = matches!(arguments.engine, QueryEngine::Ballista { .. }).then_some(CLUSTER_SECONDS);
    let question = Query {
        limit: (format == FormatName::Table).then_some(TABLE_ROWS),
        engine: arguments.engine.clone(),
        python: arguments.python.clone(),
        memory: arguments.memory,
        time: arguments.timeout.or(on_a_cluster).map(Duration::from_secs),
        ..asked(&arguments.words)?
    };
    if let Some(out) = &arguments.out {
        query::free(out)?;
    }
    let stop = StopRequest::catch();
    let stopped = || stop.is_set();
    let outcome = match (&arguments.out, format) {
        (Some(out), FormatName::Parquet) => query::query_to_parquet(&question, out, &stopped)?,
        (Some(out), _) => {
            let mut outcome = None;
            query::put(out, |file| {
                let mut buffered = io::BufWriter::new(file);
                outcome = Some(answer(&question, format, &stopped, &mut buffered)?.map_err(query::untaken)?);
                buffered.flush().map_err(query::untaken)
            })?;
            outcome.ok_or_else(|| UserError::failed("the query returned no result"))?
        }
        (None, _) => {
            let mut ended = None;
            context.messages.data(|out| {
                // A reader that has had enough ends the query, and is no failure.
                ended = Some(match answer(&question, format, &stopped, out) {
                    Ok(taken) => Ok(taken?),
                    Err(error) => Err(error),
                });
                Ok(())
            })?;
            match ended {
                Some(result) => result?,
                None => return Ok(Exit::Done),
            }
        }
    };
    finish(&outcome, arguments.out.as_deref(), context);
    Ok(Exit::Done)
}

fn finish(outcome: &QueryOutcome, out: Option<&Path>, context: &Context) {
    let rows = if outcome.rows == 1 { "1 row".to_owned() } else { format!("{} rows", flow::grouped(outcome.rows)) };
    if outcome.more {
        context.messages.warning(format!("only the first {rows} are shown; use `--format csv` for all"));
    }
    let place = out.map(|out| format!(": {}", out.display())).unwrap_or_default();
    context.messages.note(format!("{rows}, {}{place}", outcome.engine));
}

/// What is asked, by the last word; the others are folders.
fn asked(words: &[OsString]) -> Result<Query, UserError> {
    let Some((last, folders)) = words.split_last() else { return Err(UserError::usage("missing query")) };
    // Bytes that are no text are a path.
    let Some(last) = last.to_str() else { return Err(missing(&last.to_string_lossy())) };
    let named = query::is_name(last).then(|| query::find(last));
    let sql = named.map_or(Ok(last.to_owned()), |found| found.map(|question| question.sql.to_owned()));
    let is_folder = Path::new(last).is_dir();
    let sql = match sql {
        Ok(_) if is_folder && !folders.is_empty() && !query::is_name(last) => Err(last),
        Ok(sql) => Ok(sql),
        Err(_) if is_folder => Err(last),
        Err(meant) => return Err(unknown("query", last, meant)),
    };
    match sql {
        Ok(sql) if !folders.is_empty() => Ok(Query {
            paths: folders.iter().map(PathBuf::from).collect(),
            sql,
            engine: QueryEngine::Auto,
            python: None,
            memory: Bytes::new(0),
            limit: None,
            time: None,
        }),
        Ok(_) => {
            Err(UserError::usage("missing run or folder")
                .hint("name one before the query: llm-perf query latest 'SQL'"))
        }
        Err(folder) => Err(missing(folder)),
    }
}

/// A folder where a query should be.
fn missing(folder: &str) -> UserError {
    UserError::usage(format!("missing query after `{folder}`"))
        .hint(format!("add one, such as `llm-perf query {folder} top-kernels`; `llm-perf query --list` lists all"))
}

fn format(arguments: &Arguments) -> Result<FormatName, UserError> {
    let ending = arguments.out.as_deref().and_then(Path::extension).and_then(|ending| ending.to_str());
    let by_name = match ending {
        Some("csv") => FormatName::Csv,
        Some("json") => FormatName::Json,
        Some("parquet") => FormatName::Parquet,
        _ => FormatName::Table,
    };
    let format = arguments.format.unwrap_or(by_name);
    if format == FormatName::Parquet && arguments.out.is_none() {
        return Err(UserError::usage("cannot print Parquet").hint("name a file with --out FILE"));
    }
    Ok(format)
}

/// Writes the answer as it comes; a table when it is whole. The error inside is one of writing.
fn answer(
    question: &Query,
    format: FormatName,
    stop: &dyn Fn() -> bool,
    out: &mut dyn Write,
) -> Result<io::Result<QueryOutcome>, UserError> {
    let mut names = Vec::new();
    let mut table: Vec<Vec<Value>> = Vec::new();
    let mut is_first = true;
    let outcome = query::query(question, stop, &mut |part| {
        match part {
            AnswerPart::Columns(columns) => {
                names = columns;
                let heads: Vec<Value> = names.iter().map(|name| Value::from(name.as_str())).collect();
                match format {
                    FormatName::Csv => out.write_all(csv_line(&heads).as_bytes())?,
                    FormatName::Json => out.write_all(b"[")?,
                    FormatName::Table | FormatName::Parquet => {}
                }
            }
            AnswerPart::Rows(rows) if format == FormatName::Table => table.extend(rows),
            AnswerPart::Rows(rows) => {
                for row in &rows {
                    match format {
                        FormatName::Csv => out.write_all(csv_line(row).as_bytes())?,
                        _ => {
                            let separator = if is_first { "\n" } else { ",\n" };
                            write!(out, "{separator}{}", json_row(&names, row))?;
                        }
                    }
                    is_first = false;
                }
            }
        }
        Ok(())
    })?;
    let Ok(outcome) = outcome else { return Ok(outcome) };
    let end = match format {
        FormatName::Json => out.write_all(if is_first { b"]\n" } else { b"\n]\n" }),
        FormatName::Table => write!(out, "{}", rows_table(&names, &table)),
        FormatName::Csv | FormatName::Parquet => Ok(()),
    };
    Ok(end.map(|()| outcome))
}

fn unknown(what: &str, name: &str, meant: Option<&str>) -> UserError {
    let meant = meant.map_or(String::new(), |meant| format!("did you mean `{meant}`? "));
    UserError::usage(format!("unknown {what} `{name}`")).hint(format!("{meant}`llm-perf query --list` lists all"))
}

/// The questions, tables and views, or the SQL of those that are named.
fn list(names: &[String], context: &Context) -> Result<Exit, UserError> {
    if names.is_empty() {
        return context.messages.print(&listing(terminal_width()));
    }
    let mut text = String::new();
    for name in names {
        let view = VIEWS.iter().find(|view| view.name == name);
        let found =
            view.map_or_else(|| query::find(name), Ok).map_err(|meant| unknown("query or view", name, meant))?;
        text += found.sql;
    }
    context.messages.print(&text)
}

fn listing(width: Option<usize>) -> String {
    let table = |rows: Vec<(&str, String)>| {
        let mut table = ScreenTable::new("|");
        rows.into_iter().for_each(|(name, about)| table.row([format!("  {name}"), about]));
        table.text(width)
    };
    let about = |questions: &[query::Question]| {
        table(questions.iter().map(|one| (one.name, one.answers().to_owned())).collect())
    };
    let columns = |columns: &[&str]| {
        let names: Vec<&str> = columns.iter().copied().filter(|name| *name != "job").collect();
        format!("job, {}", names.join(", "))
    };
    let tables = query::tables();
    let tables = table(tables.iter().map(|(name, of)| (*name, columns(of))).collect());
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write!(text, "Built-in queries (llm-perf query RUN NAME):\n{}\n", about(&QUESTIONS));
    let _ = write!(text, "Views:\n{}\n", about(&VIEWS));
    let _ = write!(text, "Tables:\n{tables}");
    text
}

fn engine(text: &str) -> Result<QueryEngine, String> {
    match text {
        "auto" => Ok(QueryEngine::Auto),
        "duckdb" => Ok(QueryEngine::DuckDb),
        "datafusion" => Ok(QueryEngine::DataFusion),
        _ => {
            let scheduler =
                text.strip_prefix("ballista://").ok_or("expected auto, duckdb, datafusion or ballista://HOST:PORT")?;
            let place =
                scheduler.rsplit_once(':').filter(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
            if place.is_none() || scheduler.contains(['/', '@', '?', '#']) {
                return Err("expected ballista://HOST:PORT, such as ballista://head:50050".to_owned());
            }
            Ok(QueryEngine::Ballista { scheduler: scheduler.to_owned() })
        }
    }
}

/// Memory of an engine.
fn memory(text: &str) -> Result<Bytes, String> {
    // Below this neither engine can read a row group.
    size(text).and_then(|bytes| {
        if bytes < Bytes::new(64_000_000) { Err("expected at least 64MB".to_owned()) } else { Ok(bytes) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn the_last_word_is_what_is_asked() {
        let asked_for = asked(&words(&["a", "b", "SELECT 1"])).unwrap();
        assert_eq!((asked_for.paths.len(), asked_for.sql.as_str()), (2, "SELECT 1"));
        assert!(asked(&words(&["a", "top-kernels"])).unwrap().sql.contains("FROM kernels"));
        let error = asked(&words(&["a", "top-kernel"])).unwrap_err();
        assert_eq!(error.message, "unknown query `top-kernel`");
        assert_eq!(asked(&words(&["SELECT 1"])).unwrap_err().message, "missing run or folder");
        let folder = tempfile::tempdir().unwrap();
        let error = asked(&words(&["a", folder.path().to_str().unwrap()])).unwrap_err();
        assert!(error.message.starts_with("missing query after `/"), "{}", error.message);
    }

    #[test]
    fn sizes_and_engines_are_read_or_refused() {
        assert_eq!(memory("2GB"), Ok(Bytes::new(2_000_000_000)));
        assert!(memory("63MB").is_err());
        assert_eq!(engine("ballista://head:50050"), Ok(QueryEngine::Ballista { scheduler: "head:50050".to_owned() }));
        for wrong in ["spark", "ballista://", "ballista://head", "ballista://a:1/x", "ballista://:1"] {
            assert!(engine(wrong).is_err(), "{wrong}");
        }
    }
}
