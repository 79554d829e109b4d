//! One annotated step.

use types::timeline::{ThreadId, Timeline};
use types::{Stage, StepBatch, StepLabel};

use crate::time::Span;

/// One annotated step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EngineStep {
    /// The annotation.
    pub(crate) name: String,
    /// What it does.
    pub(crate) label: Option<StepLabel>,
    /// The stage it belongs to.
    pub(in crate::attribution) stage: Option<Stage>,
    /// Its batch, where the annotation says.
    pub(crate) batch: Option<StepBatch>,
    /// On the host.
    pub(crate) host: Span,
    /// Who ran it.
    pub(crate) thread: ThreadId,
}

impl EngineStep {
    /// Calls it a draft: its prompts and tokens are those of the step that it drafts for.
    pub(super) fn drafts(&mut self) {
        self.label = Some(StepLabel::Draft);
        self.batch = self.batch.map(|batch| StepBatch { tokens: None, ..batch });
    }

    /// Whether it proposes tokens before the target verifies them. Other drafts follow the target's step.
    pub(super) fn leads(&self) -> bool {
        self.label == Some(StepLabel::Draft) && self.stage == Some(Stage::Decode) && !self.name.contains("EXTEND")
    }
}

/// Steps of each thread, as places among `steps`, which are in order of their start.
pub(super) fn by_thread(timeline: &Timeline, steps: &[EngineStep]) -> Vec<Vec<usize>> {
    let mut lanes = vec![Vec::new(); timeline.threads.len()];
    for (place, step) in steps.iter().enumerate() {
        lanes[step.thread.0 as usize].push(place);
    }
    lanes
}
