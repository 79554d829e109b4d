//! All that touches the machine: the run folder, the environment, child processes, calibration.
//!
//! Nothing here interprets a result; readers of what is collected live in other crates.

pub mod calibrate;
pub mod disturbance;
pub mod doctor;
pub mod document;
pub mod environment;
pub mod identity;
pub mod process;
pub mod rank;
pub mod run;
pub mod spill;
pub mod tool;

mod command;
mod error;
mod moment;
mod opener;
mod secret;
mod user_folder;
mod whole_file;

pub use command::{Command, Output, command_line};
pub use error::{bundle_exists, still_running};
pub use opener::open_file;
pub use secret::{MASK, WrittenArguments, masked, masked_always, without_tokens, write_arguments};
pub use whole_file::write_whole;
