//! What a model costs and what a device could do, from descriptions alone: no measurement enters here.
//!
//! A [`Meter`] is a backend whose tensors are shapes. Running a network on it gives a record of every operation with its
//! price: FLOPs and bytes, each term with the formula it comes from. [`predict`] does that for a whole workload, and a
//! [`Roofline`] turns the prices into roofline times. [`summarise`] lays both out by stage and module.

mod affine;
mod arena;
mod category;
mod error;
mod estimate;
pub mod hardware;
mod layer_kinds;
mod layout;
mod memory;
mod message;
mod meter;
mod pass;
mod predict;
pub mod price;
mod roofline;
mod shape_tensor;
mod shard;
mod sharing;
mod spread;
mod storage;
mod summary;
mod tally;
mod term;
mod times;
mod workload;

pub use affine::AffineCost;
pub use category::Category;
pub use error::MeterError;
pub use estimate::{Estimate, Estimator, StageTimes};
pub use memory::Footprint;
pub use message::{Collective, Message};
pub use meter::{Meter, MeterSettings};
pub use pass::{ModuleCall, OpRecord, Pass, TallyRow};
pub use predict::{DecodeOp, DecodePass, Prediction, predict};
pub use roofline::{Bound, OpTime, Roofline, RooflineError};
pub use shard::UnevenSplit;
pub use spread::Spread;
pub use summary::{Subject, basic_assumptions, layer_pages, matrix_dtypes, model_spec, summarise};
pub use term::{Quantity, Symbols, Term};
pub use times::Times;
pub use workload::{WorkloadError, WorkloadSettings};
