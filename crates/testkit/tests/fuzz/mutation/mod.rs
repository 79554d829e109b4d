//! How seeds are changed: one file for each shape of file, so that what is changed still looks like one and gets past the first check.

pub(crate) mod bytes;
pub(crate) mod json;
pub(crate) mod png;
pub(crate) mod rows;
pub(crate) mod safetensors;
pub(crate) mod sqlite;
pub(crate) mod wire;
