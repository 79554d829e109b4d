//! All stages and steps of a timeline, and which of them each kernel, copy and memset belongs to.

use types::Remark;
use types::timeline::{Timeline, WorkKind};

use super::aside::Asides;
use super::stage::{Inference, StageInstance};
use super::step::StepInstance;
use crate::time::Span;

/// Stages of a timeline, and the place of all work in them.
pub(super) struct Stages {
    pub(super) stages: Vec<StageInstance>,
    pub(super) steps: Vec<StepInstance>,
    /// Per work.
    pub(super) instance: Vec<Option<u32>>,
    /// Per work.
    pub(super) step: Vec<Option<u32>>,
    pub(super) inference: Inference,
    pub(super) asides: Asides,
}

impl Stages {
    /// Nothing found, and why.
    pub(super) fn none(timeline: &Timeline, reason: Remark) -> Self {
        Self {
            stages: Vec::new(),
            steps: Vec::new(),
            instance: vec![None; timeline.work.len()],
            step: vec![None; timeline.work.len()],
            inference: Inference::Refused { reason },
            asides: Asides::default(),
        }
    }

    /// Adds all work to its step, its stage and the stages around that one.
    pub(super) fn add_work(&mut self, timeline: &Timeline) {
        for (place, work) in timeline.work.iter().enumerate() {
            let span = Span::new(work.start, work.end());
            let covers = |device: &mut Option<Span>| *device = Some(device.map_or(span, |device| device.hull(span)));
            let mut instance = self.instance[place];
            while let Some(stage) = instance.map(|instance| &mut self.stages[instance as usize]) {
                stage.work += 1;
                covers(&mut stage.device);
                instance = stage.parent;
            }
            if let Some(step) = self.step[place].map(|step| &mut self.steps[step as usize]) {
                step.work += 1;
                step.kernels += u64::from(work.kind == WorkKind::Kernel);
                step.work_ns += work.duration;
                covers(&mut step.device);
            }
        }
    }
}
