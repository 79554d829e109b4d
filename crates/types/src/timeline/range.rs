//! NVTX ranges and user annotations.

use super::{NameId, ThreadId};
use crate::Nanos;

/// How a range was opened and closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RangeStyle {
    /// Pushed and popped on one thread, so that ranges of a thread nest.
    PushPop,
    /// Started and ended by handle: may overlap others and end on another thread.
    StartEnd,
}

/// One instance of a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// How it was opened and closed.
    pub style: RangeStyle,
    /// Its name.
    pub name: NameId,
    /// NVTX domain; absent for the default domain and for annotations of a framework.
    pub domain: Option<NameId>,
    /// Who opened it.
    pub thread: ThreadId,
    /// Opened.
    pub start: Nanos,
    /// Closed; absent when the trace ended first.
    pub end: Option<Nanos>,
}
