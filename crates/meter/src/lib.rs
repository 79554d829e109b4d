//! What a model costs and what a device could do, from descriptions alone: no measurement enters here.

pub mod hardware;
