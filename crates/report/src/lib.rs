//! How results are written down: documents and their validation, words, pages and how they are printed.
//!
//! - `words` has every sentence, and the one way to write a number;
//! - [`pages`] arranges documents into blocks;
//! - `render` prints blocks as Markdown, HTML or for a terminal.
//!
//! Nothing is concluded here. Figures come from documents and from the views of them that `analysis` fills.

mod error;
pub mod export;
pub mod html;
pub mod pages;
mod render;
mod rows;
mod rule;
mod schema;
mod validate;
mod violation;
pub mod words;
mod yaml;

pub use error::ReportError;
pub use render::{Page, Table, harmless, printable, wrapped};
pub use rows::{csv_line, json_row, rows_table};
pub use schema::find_schema;
pub use validate::{Validation, validate};
pub use words::number::grouped;
pub use yaml::{json_of_yaml, yaml};
