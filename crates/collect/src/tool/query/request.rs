//! What a driver is asked.

use std::path::PathBuf;

use serde::Serialize;

/// Version of the request and the events.
pub const PROTOCOL: u32 = 1;

/// Everything a driver needs to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct QueryRequest {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// Schema that files must say they have.
    pub schema: String,
    /// `duckdb`, `datafusion` or `ballista`.
    pub engine: String,
    /// Address of a scheduler.
    pub address: Option<String>,
    /// What the engine may use before it spills.
    pub memory_bytes: u64,
    /// A private folder to spill into.
    pub temporary: PathBuf,
    /// The folders the statement may read from.
    pub folders: Vec<PathBuf>,
    /// Every table of the schema, with files or without.
    pub tables: Vec<TableRequest>,
    /// Names and statements of views, in the order in which they build on one another.
    pub views: Vec<(String, String)>,
    /// The statement.
    pub sql: String,
    /// Most rows to answer with; absent: all.
    pub limit: Option<u64>,
    /// The file the answer goes to; absent: it comes as events.
    pub parquet: Option<PathBuf>,
}

/// One table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TableRequest {
    /// Its name.
    pub name: String,
    /// Its columns and their types, as SQL names them.
    pub columns: Vec<(String, String)>,
    /// Its files.
    pub files: Vec<TableFile>,
}

/// One file of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TableFile {
    /// The file.
    pub path: PathBuf,
    /// The job it belongs to.
    pub job: String,
    /// The folder above `job=NAME/rank=N`; absent where the file lies elsewhere.
    pub root: Option<PathBuf>,
}
