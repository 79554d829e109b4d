//! One run of a stage, and how stages were found.

use types::Stage;
use types::timeline::ThreadId;

use crate::time::Span;

/// How a stage was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StageOrigin {
    /// A range names it.
    Ranges,
    /// From the order and repetition of the work.
    Inferred,
}

/// How the stages of a timeline were found, or why not.
#[derive(Clone, Debug, PartialEq)]
pub enum Inference {
    /// Ranges name them.
    NotNeeded,
    /// They were inferred.
    Done {
        /// Between 0 and 1: how alike the repetitions are that it rests on.
        confidence: f64,
        /// What it rests on, in words.
        evidence: String,
    },
    /// They could not be.
    Refused {
        /// Why, in words.
        reason: String,
    },
}

/// One run of a stage.
#[derive(Clone, Debug, PartialEq)]
pub struct StageInstance {
    /// Which stage.
    pub stage: Stage,
    /// The run it is nested in, in the same list.
    pub parent: Option<u32>,
    /// On the host: while the range was open; inferred, from its first launch to the first launch after it.
    pub host: Span,
    /// On the device: from the start of its first kernel, copy or memset to the end of its last, nested stages included.
    pub device: Option<Span>,
    /// Kernels, copies and memsets, nested stages included.
    pub work: u64,
    /// The thread that ran it.
    pub thread: ThreadId,
    /// How it was found.
    pub origin: StageOrigin,
    /// Confidence where it was inferred, between 0 and 1.
    pub confidence: Option<f64>,
    /// Whether the trace ended before it did.
    pub clipped: bool,
}
