//! Operators summed up: those our own engine timed, with their price ([`priced`]), and those of a framework in a timeline
//! ([`traced`]), by their shapes too ([`shapes`]), with the work that the shapes alone tell ([`recorded_work`]), and
//! those that communicate ([`collectives`]).

pub(crate) mod collectives;
pub(crate) mod priced;
pub(crate) mod recorded_work;
pub(crate) mod shapes;
mod stage_clock;
pub(crate) mod traced;

pub use collectives::{CollectiveCall, collective_calls};
pub(crate) use collectives::{crossing_share, is_exchange};
