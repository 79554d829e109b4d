//! A timeline prepared for its readers: where each row of it belongs.

use super::IdleStretch;
use crate::{Nanos, Stage};

/// What is known of the rows of a timeline.
#[derive(Default)]
pub struct TimelineView<'a> {
    /// Where device work belongs.
    pub work: Places<'a>,
    /// When a device was idle, and why.
    pub idle: Vec<IdleStretch>,
    /// Runs of stages, in order of their start.
    pub stages: Vec<NamedSpan>,
    /// Steps, in order.
    pub steps: Vec<NamedSpan>,
}

/// Where each row of `Timeline::work` belongs. It is looked up when it is asked for: a list would grow with millions of rows.
#[derive(Default)]
pub struct Places<'a>(Option<Box<dyn Fn(usize) -> WorkPlace + 'a>>);

impl<'a> Places<'a> {
    /// What a function says of each row.
    pub fn new(of: impl Fn(usize) -> WorkPlace + 'a) -> Self {
        Self(Some(Box::new(of)))
    }

    /// Of one row; absent where nothing is known of any.
    pub fn get(&self, row: usize) -> Option<WorkPlace> {
        self.0.as_ref().map(|of| of(row))
    }
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
