//! The kernels that matter, and what hardware counters say of them.
//!
//! [`choose()`] ranks the launches of a timeline by kernel, grid and block within a stage; [`join()`] lays the launches that
//! a profiler replayed beside them; [`lay_beside`] lays the model's operations beside both. Running the profiler is left to
//! `collect`, reading its pages to `ingest`.

mod choose;
mod join;
mod launch;
mod model;
mod name;

pub use choose::{Candidate, Choice, StageRange, choose};
pub use join::{Joined, join};
pub use launch::CountedLaunch;
pub use model::lay_beside;
pub use name::base_name;
