//! The road every verb walks.
//!
//! In order: a [`model`], a [`target`] and the [`device`] are found by name; [`trace`] reads files into placed timelines, and
//! [`recorded`] what an earlier run kept; [`subject`] resolves what ran, once; [`folder`] holds the run folder from its creation to its
//! end and writes what came of it; [`tables`] does so in columns. [`imported_run`] walks the rest of it for traces of others.

pub(crate) mod device;
pub(crate) mod folder;
pub(crate) mod imported_run;
pub(crate) mod load_file;
pub(crate) mod metrics;
pub mod model;
pub(crate) mod progress;
pub(crate) mod recorded;
pub(crate) mod requests;
pub(crate) mod scratch;
pub(crate) mod server_command;
pub(crate) mod subject;
pub(crate) mod tables;
pub mod target;
pub(crate) mod trace;
