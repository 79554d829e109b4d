//! The run folder: what is in it, how it was made, whether it holds.

mod bundle;
mod capture;
mod deep_plan;
mod input_digest;
mod inputs;
mod manifest;
mod runs;
mod validation;

pub use bundle::*;
pub use capture::*;
pub use deep_plan::*;
pub use input_digest::*;
pub use inputs::*;
pub use manifest::*;
pub use runs::*;
pub use validation::*;
