//! What it runs on.

mod device;
mod diagnosis;
mod environment;
mod hardware;

pub use device::*;
pub use diagnosis::*;
pub use environment::*;
pub use hardware::*;
