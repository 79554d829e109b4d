//! SQL over Parquet tables: a driver in one file of Python, the request it reads, and the events it answers with.
//!
//! The engine is one that the user's interpreter has: DuckDB, DataFusion, or Ballista for a cluster. What may be asked and
//! how an answer is shown is left to `flow`.

mod event;
mod request;

use std::path::{Path, PathBuf};
use std::time::Duration;

use types::UserError;

use super::Places;
use super::python::{self, NoInterpreter, Python};
use crate::Command;
use crate::error::no_python;

pub use event::{QueryEvent, QueryFailure, QueryFailureKind};
pub use request::{PROTOCOL, QueryRequest, TableFile, TableRequest};

/// The driver.
pub const DRIVER: &str = include_str!("query.py");

/// How long an interpreter may take to say what it can import.
const ANSWER_LIMIT: Duration = Duration::from_secs(15);

/// What runs a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryEngine {
    /// DuckDB where it is found, else DataFusion.
    Auto,
    /// DuckDB, in a process on this machine.
    DuckDb,
    /// DataFusion, in a process on this machine.
    DataFusion,
    /// A Ballista cluster.
    Ballista {
        /// `HOST:PORT` of its scheduler.
        scheduler: String,
    },
}

/// An interpreter with the engine it will use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryPython {
    /// The interpreter.
    pub program: PathBuf,
    /// The engine: one of those that are named, never [`QueryEngine::Auto`].
    pub engine: QueryEngine,
}

impl QueryEngine {
    /// What the driver calls it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Auto | Self::DuckDb => "duckdb",
            Self::DataFusion => "datafusion",
            Self::Ballista { .. } => "ballista",
        }
    }

    /// Whether an interpreter can be it.
    fn is_in(&self, python: &Python) -> bool {
        match self {
            Self::Auto => python.duckdb.is_some() || python.datafusion.is_some(),
            Self::DuckDb => python.duckdb.is_some(),
            Self::DataFusion => python.datafusion.is_some(),
            Self::Ballista { .. } => python.ballista.is_some() && python.datafusion.is_some(),
        }
    }

    /// The packages it needs, and what to install.
    fn packages(&self) -> (&'static str, &'static str) {
        match self {
            Self::Auto => ("duckdb or datafusion", "duckdb"),
            Self::DuckDb => ("duckdb", "duckdb"),
            Self::DataFusion => ("datafusion", "datafusion"),
            Self::Ballista { .. } => ("ballista and datafusion", "ballista datafusion"),
        }
    }
}

/// The interpreter to use: the one that is named, else `LLM_PERF_PYTHON`, else the first on `PATH` that has the engine.
pub fn interpreter(named: Option<&str>, engine: &QueryEngine) -> Result<QueryPython, UserError> {
    find(&Places { limit: ANSWER_LIMIT, ..Places::of_this_machine() }, named, engine)
}

fn find(places: &Places, named: Option<&str>, engine: &QueryEngine) -> Result<QueryPython, UserError> {
    let (package, install) = engine.packages();
    match python::search(places, named, |python| engine.is_in(python)) {
        Ok((program, python)) => {
            let engine = match engine {
                QueryEngine::Auto if python.duckdb.is_some() => QueryEngine::DuckDb,
                QueryEngine::Auto => QueryEngine::DataFusion,
                named => named.clone(),
            };
            Ok(QueryPython { program, engine })
        }
        Err(NoInterpreter::Absent(named)) => Err(no_python(named.as_deref())),
        Err(NoInterpreter::Lacking(asked)) => {
            let message = format!("no Python interpreter with {package} found; tried: {}", asked.join(", "));
            Err(UserError::failed(message).hint(format!(
                "run `pip install {install}`, or choose an interpreter that has it: pass --python PATH or set \
                 LLM_PERF_PYTHON"
            )))
        }
    }
}

/// The command that runs the driver in the file `driver` on the request in the file `request`.
pub fn command(python: &Path, driver: &Path, request: &Path) -> Command {
    Command::new(python, [driver, request]).with_variable("PYTHONUNBUFFERED", "1")
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::tool::tests::{fake_program, patient};

    fn answering(packages: &str) -> String {
        format!(r#"echo '{{"version":"3.11","executable":"x",{packages}"folders":[]}}'"#)
    }

    #[test]
    fn duckdb_comes_before_datafusion_where_nobody_chooses() {
        let root = tempfile::tempdir().unwrap();
        let both = fake_program(root.path(), "python3", &answering(r#""duckdb":"1.4.0","datafusion":"54.1.0","#));
        let places = Places { python: Some(both.clone()), ..patient() };
        let chosen = |engine| find(&places, None, &engine).map(|python| python.engine);
        assert_eq!(chosen(QueryEngine::Auto).unwrap(), QueryEngine::DuckDb);
        assert_eq!(chosen(QueryEngine::DataFusion).unwrap(), QueryEngine::DataFusion);
        let cluster = QueryEngine::Ballista { scheduler: "head:50050".to_owned() };
        let error = chosen(cluster).unwrap_err();
        let expected = format!("no Python interpreter with ballista and datafusion found; tried: {}", both.display());
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn where_no_engine_is_found_the_message_says_what_to_install() {
        let root = tempfile::tempdir().unwrap();
        fake_program(root.path(), "python3", &answering(""));
        let places = Places { path: vec![root.path().to_owned()], ..patient() };
        let error = find(&places, None, &QueryEngine::Auto).unwrap_err();
        assert!(
            error.to_string().starts_with("no Python interpreter with duckdb or datafusion found; tried: "),
            "{error}"
        );
        assert!(error.hints[0].starts_with("run `pip install duckdb`"), "{:?}", error.hints);
        let error = find(&Places::default(), None, &QueryEngine::Auto).unwrap_err();
        assert_eq!(error.to_string(), "python3 not found on PATH");
    }
}
