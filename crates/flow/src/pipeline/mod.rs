//! The road every verb walks.
//!
//! In order: a [`model`], a [`target`] and the [`hardware`] are found by name; [`trace`] reads files into placed timelines;
//! [`subject`] resolves what ran, once; [`analytic`] models it; [`bundle`] writes what came of it; [`run`] holds the run
//! folder from its creation to its end.

pub(crate) mod analytic;
pub(crate) mod assumptions;
pub(crate) mod bundle;
pub(crate) mod calibration;
pub(crate) mod devices;
pub(crate) mod documents;
pub(crate) mod earlier;
mod engine;
pub(crate) mod error;
pub(crate) mod gguf;
pub mod hardware;
pub(crate) mod imported;
pub mod machine;
pub(crate) mod metrics;
pub mod model;
mod model_fit;
pub(crate) mod modelled;
pub(crate) mod processor;
pub(crate) mod progress;
pub(crate) mod provenance;
pub(crate) mod recording;
pub(crate) mod regions;
pub(crate) mod run;
pub(crate) mod run_points;
pub(crate) mod run_tables;
pub(crate) mod subject;
pub(crate) mod table_files;
pub(crate) mod tables;
pub(crate) mod tables_error;
pub mod target;
pub(crate) mod thumbnails;
pub(crate) mod trace;
pub(crate) mod work;
pub(crate) mod workload;
