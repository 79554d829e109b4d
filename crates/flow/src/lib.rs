//! What a verb does, as a list of passes.
//!
//! Takes plain settings and gives back documents; what is printed, and how, is left to the command line.

pub mod doctor;
pub mod environment;
pub mod hardware;
pub mod runs;
pub mod validate;

pub use collect::CollectError;
pub use report::ReportError;
