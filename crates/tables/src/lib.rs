//! Runs as Parquet tables, for questions that span ranks, runs and machines.
//!
//! [`Table`] is the schema: every table with its columns, as data; the reference page is printed from it. [`TableWriter`]
//! turns rows into Parquet as they come, [`rows`] makes the rows of one rank from its timeline and its metrics, and
//! [`read`] gives the rows of a small table back. Files and folders are the caller's business.

mod cell;
mod error;
mod facts;
mod reader;
pub mod rows;
mod schema;
mod writer;

pub use cell::Cell;
pub use error::TableError;
pub use facts::rank_facts;
pub use reader::{TableColumns, read};
pub use schema::{Column, ColumnKind, SCHEMA, Table, reference};
pub use writer::TableWriter;
