//! Time on devices: busy, idle, overlapping, and what the host did while a device waited.
//!
//! In come the rows of a timeline and, per row, the call that launched it; out go times. Everything here is interval
//! arithmetic (`span`). `activity` says when a device was busy in a window and `gap` when it was not; `host` divides each
//! gap by what the host did, into the causes of `waiting`. `queue_depth` is how far the host was ahead. Which stage a row
//! belongs to is decided in `attribution`, which uses the spans of this room; what to make of the numbers in findings.

mod activity;
mod gap;
mod host;
mod queue_depth;
mod span;
mod waiting;

pub use activity::{Activity, activity, devices};
pub use gap::{Gap, gaps, waiting};
pub(crate) use host::{Host, cause_of_call};
pub use queue_depth::{QueueDepth, queue_depth};
pub use span::{Span, Spans};
pub use waiting::{GapCause, Waiting};
