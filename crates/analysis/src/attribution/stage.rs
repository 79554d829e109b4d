//! Stages and decode steps: what is known of each run of them.

use types::timeline::{ThreadId, Timeline, WorkKind};
use types::{Nanos, Stage};

use super::aside::Asides;
use super::launch::Launches;
use super::{Settings, infer, marks};
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
    /// On the device: from the begin of the first to the end of the last piece of work, nested stages included.
    pub device: Option<Span>,
    /// Pieces of work, nested stages included.
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

/// One decode step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepInstance {
    /// Its number within its run of decode, from zero.
    pub number: u32,
    /// The run of decode it belongs to, in the list of stages.
    pub instance: Option<u32>,
    /// On the host.
    pub host: Span,
    /// On the device.
    pub device: Option<Span>,
    /// Pieces of work: kernels, copies and fills.
    pub work: u64,
    /// Kernels among them.
    pub kernels: u64,
    /// Time of all its work, summed.
    pub work_ns: Nanos,
}

/// Stages of a timeline and the place of each piece of work in them.
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

impl StepInstance {
    /// A step that no work is known of yet.
    pub(super) fn new(number: u32, instance: Option<u32>, host: Span) -> Self {
        Self { number, instance, host, device: None, work: 0, kernels: 0, work_ns: Nanos::ZERO }
    }
}

impl Stages {
    /// Nothing found, and why.
    pub(super) fn none(timeline: &Timeline, reason: String) -> Self {
        Self {
            stages: Vec::new(),
            steps: Vec::new(),
            instance: vec![None; timeline.work.len()],
            step: vec![None; timeline.work.len()],
            inference: Inference::Refused { reason },
            asides: Asides::default(),
        }
    }

    /// Adds each piece of work to its step, its stage and the stages around that one.
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

/// Finds the stages: from ranges where any names one, otherwise by inference where that is allowed. `last` is when the trace
/// ended.
pub(super) fn find(timeline: &Timeline, launches: &Launches, settings: &Settings, last: Nanos) -> Stages {
    let mut stages = match marks::stages(timeline, launches, last) {
        Some(stages) => stages,
        None if settings.infer => infer::infer(timeline, launches, settings, last),
        None => Stages::none(timeline, "no range names a stage, and inference is switched off".to_owned()),
    };
    stages.add_work(timeline);
    stages
}
