//! The verbs, one module each. A verb gathers evidence, lets `analysis::metrics` make the metrics, and writes; none uses
//! another.

pub mod analyze;
pub mod attach;
pub mod calibrate;
pub mod capacity;
pub mod compare;
pub mod deep;
pub mod doctor;
pub mod export;
pub mod fleet;
pub mod import;
pub mod pack;
pub mod page;
pub mod predict;
pub mod profile;
pub mod query;
pub mod regions;
pub mod runs;
pub mod serve;
pub mod show;
pub mod sweep;
pub mod unpack;
pub mod validate;
pub mod whatif;
pub mod workload;
