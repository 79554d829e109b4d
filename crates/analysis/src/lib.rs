//! What the records of a run mean: statistics, stages, utilisation, operators, findings.
//!
//! Records come in, a document goes out; nothing is opened, started or timed here. What cannot be told from the records
//! is absent, never zero.

mod records;

pub use records::{InputWork, PricedOperator, ProfileRecords};
