//! Time on devices: what the host did while a device waited, and how far it was ahead.
//!
//! In come the rows of a timeline and, per row, the call that launched it; out go times. Everything here is interval
//! arithmetic (`span`). `host` divides a gap by what the host did, as the names of its `call`s say, into a `waiting`.
//! `queue_depth` is how far the host was ahead. How a device's time divides as a whole is in `device_time`; which stage a
//! row belongs to is decided in `attribution`, which uses the spans of this room.

mod call;
mod host;
mod queue_depth;
mod span;
mod unix;
mod waiting;

pub use call::kernel_launches;
pub(crate) use call::{CaptureCall, cause_of_call, is_kernel_launch};
pub(crate) use host::{Host, LATENCY, Lulls, behind_launch};
pub use queue_depth::{QueueDepth, devices, queue_depth};
pub use span::{Span, Spans};
pub use unix::unix_zero;
pub use waiting::Waiting;
