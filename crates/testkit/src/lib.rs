//! What tests and benchmarks need made; not part of the tool.

pub mod fleet;
pub mod formula;
pub mod need;
pub mod suite;
