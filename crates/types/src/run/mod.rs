//! The run folder: what is in it, how it was made, whether it holds.

pub(crate) mod bundle;
pub(crate) mod capture;
pub(crate) mod deep_plan;
pub(crate) mod input_digest;
pub(crate) mod inputs;
pub(crate) mod manifest;
pub(crate) mod runs;
pub(crate) mod validation;
