//! One run of a stage, and how stages were found.

use types::timeline::ThreadId;
use types::{Nanos, Remark, Stage};

use crate::time::{Span, Spans};

/// How a stage was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StageOrigin {
    /// A range names it.
    Ranges,
    /// A serving engine annotates its step with the batch.
    Engine,
    /// A token that one pass chooses is looked up by the next.
    Tokens,
}

/// How the stages of a timeline were found, or why not.
#[derive(Clone, Debug, PartialEq)]
pub enum Inference {
    /// Ranges name them.
    NotNeeded,
    /// They follow from what the trace shows.
    Done {
        /// What it rests on.
        evidence: Remark,
    },
    /// They could not be.
    Refused {
        /// Why.
        reason: Remark,
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
    /// Its wall time: from the start of its host part, or the end of the run before it, to the end of its device work.
    pub wall: Span,
    /// When in that it waited behind work that the trace does not hold.
    pub behind: Spans,
    /// Whether the trace ended before it did.
    pub clipped: bool,
}

impl StageInstance {
    /// A run that no work is known of yet.
    pub(super) fn new(stage: Stage, host: Span, thread: ThreadId, origin: StageOrigin) -> Self {
        Self {
            stage,
            parent: None,
            host,
            device: None,
            work: 0,
            thread,
            origin,
            wall: host,
            behind: Spans::default(),
            clipped: false,
        }
    }

    /// Its wall time, without waiting behind others.
    pub fn wall_ns(&self) -> Nanos {
        self.wall.length() - self.behind.total()
    }
}
