//! The engine: a backend that computes, so that the networks run.
//!
//! Loads weights, keeps the KV cache, times stages and, when asked, records every operation. What an operation
//! costs is priced elsewhere, from the shapes recorded here.

mod backend;
mod cache;
mod compute_error;
mod cubic;
mod error;
mod file;
mod heap;
pub mod image;
mod kernel;
pub mod nvtx;
mod op;
pub mod prompt;
mod recurrence;
mod rehearsal;
mod sampling;
mod session;
mod tensor;
mod threads;
mod tokenizer;
mod trace;
mod weights;

pub use backend::{Engine, Value};
pub use compute_error::ComputeError;
pub use error::EngineError;
pub use rehearsal::rehearse;
pub use sampling::{Sampler, SamplingSettings};
pub use session::{Features, Forward, Generation, ImageBatch, PageImages, PromptData, Session};
pub use tensor::Tensor;
pub use threads::Threads;
pub use tokenizer::{IMAGE_MARK, SpecialIds, Tokenizer};
pub use trace::{OpTrace, RangeTime, Trace};
pub use weights::{Checkpoint, Weights, load_weights};
