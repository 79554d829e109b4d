//! What a model costs and what a device could do, from descriptions alone: no measurement enters here.
//!
//! A [`Meter`] is a backend whose tensors are shapes. Running a network on it gives a record of every operation with its
//! price: FLOPs and bytes, each term with the formula it comes from. [`predict`] does that for a whole workload, and a
//! [`Roofline`] turns the prices into roofline times. [`summarise`] lays both out by stage and module.
//!
//! ```
//! // `network` is the crate `llm-perf-network`.
//! use llm_perf_meter::hardware::Catalogue;
//! use llm_perf_meter::{Estimator, Roofline, WorkloadSettings};
//! use network::{Model, Preset};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let config = Preset::find("llama-3-8b").unwrap().config()?;
//! let model = Model::new(&config);
//! let workload = WorkloadSettings::of_text(512, 64).resolve(&model, config.dtype())?;
//! let estimate = Estimator::new(&model, &workload)?.estimate(&workload)?;
//!
//! let catalogue = Catalogue::built_in()?;
//! let roofline = Roofline::new(catalogue.find("h200").unwrap(), estimate.matrix_dtypes(), None)?;
//! let times = estimate.times(&roofline);
//! // A token of one sequence reads all weights, and computes little with them.
//! assert_eq!(times.decode.unwrap().bound().name(), "memory");
//! // 8.03 billion parameters in bf16.
//! assert_eq!(estimate.footprint().weights.to_string(), "16.1 GB");
//! # Ok(())
//! # }
//! ```

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
mod ragged;
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
pub use ragged::{RaggedCost, RaggedMeter, RaggedSequence};
pub use roofline::{Bound, OpTime, Roofline, RooflineError};
pub use shard::UnevenSplit;
pub use spread::Spread;
pub use summary::{Subject, basic_assumptions, layer_pages, matrix_dtypes, model_spec, summarise};
pub use term::{Quantity, Symbols, Term};
pub use times::Times;
pub use workload::{WorkloadError, WorkloadSettings};
