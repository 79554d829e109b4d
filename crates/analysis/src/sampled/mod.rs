//! The kernels that matter, and what hardware counters say of them.
//!
//! In come a timeline with its attribution, and the launches that a profiler replayed; out goes a row per kernel. `choice`
//! ranks the launches of the timeline by kernel, grid and block within a stage; `launch` reads the counters of replayed
//! launches; `join` puts those beside the chosen kernels (by `likeness` of their names where it must) as a
//! `counted_kernel` each; `model` puts the model's operations beside both. Running the profiler is left to `collect`,
//! reading its pages to `ingest`.

mod base_name;
mod choice;
mod counted_kernel;
mod join;
mod launch;
mod likeness;
mod model;

pub use choice::{Candidate, Choice, StageRange, choose};
pub use join::{KernelJoin, join};
pub use launch::CountedLaunch;
pub use model::lay_beside;
