//! How results are written down: documents and their validation.
//!
//! Nothing is computed here. Figures come from documents and from the views of them that `analysis` fills; they are
//! arranged, rounded and put into words.

pub mod analytic;
pub mod compare;
pub mod deep;
mod error;
mod escape;
pub mod export;
pub mod fleet;
pub mod html;
mod markdown;
mod number;
mod page;
pub mod profile;
pub mod regions;
mod rows;
mod rule;
mod schema;
pub mod sweep;
mod table;
mod validate;
mod violation;
pub mod whatif;
mod yaml;

pub use error::ReportError;
pub use number::grouped;
pub use rows::{csv_line, json_row, rows_table};
pub use schema::find_schema;
pub use table::{Table, harmless, printable};
pub use validate::{Validation, validate};
pub use yaml::yaml;
