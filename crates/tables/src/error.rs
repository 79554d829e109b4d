//! What goes wrong with a table.

use crate::Table;

/// Why a table cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// It cannot be written.
    #[error("cannot write the table {}: {reason}", table.name())]
    Write {
        /// The table.
        table: Table,
        /// What the writer said.
        reason: String,
    },
    /// It is no Parquet, or a damaged one.
    #[error("cannot read the table {}: {reason}", table.name())]
    Damaged {
        /// The table.
        table: Table,
        /// What the reader said.
        reason: String,
    },
    /// It was made under another schema.
    #[error("the table {} has schema {found}; this llm-perf reads {}", table.name(), crate::SCHEMA)]
    Schema {
        /// The table.
        table: Table,
        /// The schema it names, or `none`.
        found: String,
    },
    /// A column is missing or of another type.
    #[error("the table {} has no column {column} of type {}", table.name(), kind)]
    Column {
        /// The table.
        table: Table,
        /// The column.
        column: &'static str,
        /// Its type.
        kind: &'static str,
    },
}
