//! Time on devices: busy, idle, overlapping, and what the host did while a device waited.
//!
//! Everything here is interval arithmetic over the rows of a timeline. Which stage a row belongs to is decided in
//! [`crate::attribution`]; what to make of the numbers in findings.

mod activity;
mod span;

pub use activity::{Activity, activity, devices};
pub use span::{Span, Spans};
