//! What a run is measured on, and what it can do at most.

pub(crate) mod calibration;
pub mod hardware;
pub mod machine;
pub(crate) mod processor;
