//! What a model is made of and asked to do.

mod cost;
mod dtype;
mod op;
mod rotary;
mod workload;

pub use cost::*;
pub use dtype::*;
pub use op::*;
pub use rotary::*;
pub use workload::*;
