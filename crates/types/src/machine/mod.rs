//! What it runs on.

pub(crate) mod device;
pub(crate) mod diagnosis;
pub(crate) mod environment;
pub(crate) mod hardware;
