//! Time on devices: busy, idle, overlapping, and what the host did while a device waited.
//!
//! Everything here is interval arithmetic over the rows of a timeline. Which stage a row belongs to is decided in
//! [`crate::attribution`]; what to make of the numbers in findings.

mod activity;
mod gap;
mod queue_depth;
mod span;
mod step;

pub use activity::{Activity, activity, devices};
pub use gap::{Gap, GapCause, Waiting, gaps, waiting};
pub(crate) use gap::{Host, cause_of_call};
pub use queue_depth::{QueueDepth, queue_depth};
pub use span::{Span, Spans};
pub use step::{StepSeries, step_series};
