//! Operators summed up: those our own engine timed, with their price ([`priced`]), and those of a framework in a timeline
//! ([`traced`]).

pub(crate) mod priced;
mod stage_clock;
pub(crate) mod traced;
