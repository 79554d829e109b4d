//! All that touches the machine: the run folder, the environment, child processes, calibration.
//!
//! Nothing here interprets a result; readers of what is collected live in other crates.

pub mod calibrate;
pub mod child;
pub mod doctor;
pub mod environment;
pub mod rank;
pub mod run;
pub mod tool;

mod error;
mod process;

pub use error::CollectError;
