//! run.
