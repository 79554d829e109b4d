//! A timeline prepared for its readers: where each row of it belongs.

use super::IdleStretch;
use crate::{Nanos, Stage};

/// What is known of the rows of a timeline.
#[derive(Clone, Debug, Default)]
pub struct TimelineView {
    /// Where device work belongs: one entry for each row of `Timeline::work`, in the same order.
    pub work: Vec<WorkPlace>,
    /// When a device was idle, and why.
    pub idle: Vec<IdleStretch>,
    /// Runs of stages, in order of their start.
    pub stages: Vec<NamedSpan>,
    /// Steps, in order.
    pub steps: Vec<NamedSpan>,
}

/// Where a kernel, copy or memset belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkPlace {
    /// What kind of work it is, such as `gemm`.
    pub family: &'static str,
    /// The call that launched it, in `Timeline::calls`.
    pub launch: Option<u32>,
    /// The innermost operator around the launch, in `Timeline::operators`.
    pub operator: Option<u32>,
    /// The innermost range around the launch, in `Timeline::ranges`.
    pub range: Option<u32>,
    /// The innermost stage.
    pub stage: Option<Stage>,
}

/// A stretch of time with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedSpan {
    /// Its name.
    pub name: String,
    /// Start, on the clock of the timeline.
    pub start: Nanos,
    /// How long.
    pub length: Nanos,
}
