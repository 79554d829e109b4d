//! What the records of a run mean: statistics, stages, utilisation, operators, findings.
//!
//! Records come in, a document goes out; nothing is opened, started or timed here. What cannot be told from the records
//! is absent, never zero.

pub mod alignment;
pub mod attribution;
mod compare;
mod counter;
mod device;
mod finding;
pub mod kernel;
mod loss;
mod modules;
mod operators;
mod overhead;
mod profile;
pub mod ranks;
mod records;
pub mod region;
#[cfg(test)]
mod sample;
pub mod sampled;
mod stages;
pub mod statistics;
pub mod time;
mod timings;
pub mod trace;
mod utilisation;

pub use compare::{RunRecords, Sides, compare};
pub use profile::profile;
pub use records::{InputWork, PricedOperator, ProfileRecords};
