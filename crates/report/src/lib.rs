//! How results are written down: documents and their validation.
//!
//! Nothing is computed here; what is written comes from the crates that measure and model.

pub mod analytic;
pub mod compare;
pub mod deep;
mod error;
pub mod export;
mod markdown;
mod number;
pub mod profile;
pub mod regions;
mod schema;
pub mod sweep;
mod table;
mod validate;
mod violation;
mod yaml;

pub use error::ReportError;
pub use schema::find_schema;
pub use validate::{Validation, validate};
pub use yaml::yaml;
