//! What a model is made of and asked to do.

pub(crate) mod cost;
pub(crate) mod dtype;
pub(crate) mod op;
pub(crate) mod rotary;
pub(crate) mod workload;
