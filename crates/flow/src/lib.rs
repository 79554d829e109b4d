//! What a verb does, as a list of passes.
//!
//! Takes plain settings and gives back documents; what is printed, and how, is left to the command line.

pub mod analyze;
pub mod command;
pub mod compare;
pub mod deep;
pub mod doctor;
pub mod environment;
pub mod export;
pub mod hardware;
pub mod import;
pub mod model;
mod modelled;
pub mod profile;
pub mod regions;
pub mod runs;
pub mod sweep;
pub mod target;
pub mod torch;
pub mod validate;
mod work;
pub mod workload;

pub use collect::CollectError;
pub use collect::command_line;
pub use collect::run::RunRequest;
pub use collect::tool::inject;
pub use meter::WorkloadSettings;
pub use report::ReportError;
