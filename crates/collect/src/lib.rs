//! All that touches the machine: the run folder, the environment, child processes, calibration.
//!
//! Nothing here interprets a result; readers of what is collected live in other crates.

pub mod calibrate;
pub mod doctor;
pub mod environment;
pub mod run;

mod error;
mod process;
mod tool;

pub use error::CollectError;
