//! A load on a server: requests as their client saw them, what they add up to, and the steps of the server they took.

mod capacity;
mod capacity_sweep;
mod json_lines;
mod latency;
mod request_log;
mod served;

pub use capacity::*;
pub use capacity_sweep::*;
pub use json_lines::*;
pub use latency::*;
pub use request_log::*;
pub use served::*;
