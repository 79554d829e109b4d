//! Where every piece of device work belongs: the call that launched it, the operator and the range around that call, the
//! stage and the decode step.
//!
//! Work belongs to what launched it, not to what happened to be open on the host while it ran: a device runs behind its
//! host. So the one join is from work to call, by correlation number; everything else is looked up at the moment of the
//! call, on its thread. Work without a call in the trace stays without a place and is counted. Kernels of a CUDA graph have
//! one call together; what tells them apart are the ranges in which they were captured.
//!
//! Stages come from ranges where there are any, and are inferred otherwise (and say so). Sums over the result are left
//! to those who need them.

mod aside;
pub(crate) mod captured;
mod coverage;
mod infer;
mod launch;
mod marks;
mod nesting;
mod projection;
mod stage;

use types::timeline::{CapturedRangeId, OperatorKind, Timeline};
use types::{QualityCounter, Stage};

pub use aside::Asides;
pub use coverage::{Amount, Coverage};
pub use projection::{Projection, Projections, RangeSum};
pub use stage::{Inference, StageInstance, StageOrigin, StepInstance};

use launch::Launches;

/// Place of a range in [`Timeline::ranges`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RangeIndex(pub u32);

/// What attribution may use beyond the timeline.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Name of the model, where the user says; allows the vision stages of a known model to be inferred.
    pub model: Option<String>,
    /// Whether stages may be inferred where no range names one.
    pub infer: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { model: None, infer: true }
    }
}

/// Where every piece of device work belongs. The lists that are per work have one entry for each row of
/// [`Timeline::work`], in the same order.
#[derive(Clone, Debug)]
pub struct Attribution {
    /// Per work: the call that launched it, in [`Timeline::calls`].
    pub launch: Vec<Option<u32>>,
    /// Per work: the innermost framework operator around the launch, in [`Timeline::operators`].
    pub operator: Vec<Option<u32>>,
    /// Per work: the innermost Python function or module around the launch, in [`Timeline::operators`].
    pub python: Vec<Option<u32>>,
    /// Per work: the innermost pushed range around the launch.
    pub range: Vec<Option<RangeIndex>>,
    /// Per work: the innermost range that its node of a CUDA graph was captured in. It lies inside [`Self::range`] and says
    /// nothing of the stage, which is that of the launch.
    pub captured: Vec<Option<CapturedRangeId>>,
    /// Per work: the innermost stage. It counts for [`Stage::parent`] too.
    pub stage: Vec<Option<Stage>>,
    /// Per work: the instance of that stage, in [`Self::stages`].
    pub instance: Vec<Option<u32>>,
    /// Per work: the decode step, in [`Self::steps`].
    pub step: Vec<Option<u32>>,
    /// Every run of a stage, in order of their begin; parents before children.
    pub stages: Vec<StageInstance>,
    /// Every decode step, in order of their begin.
    pub steps: Vec<StepInstance>,
    /// Loading and warming up, where ranges say so.
    pub asides: Asides,
    /// Per work: whether it was launched while loading or warming up, in no stage; empty where nothing was.
    pub aside: Vec<bool>,
    /// How the stages were found, or why not.
    pub inference: Inference,
    /// Ranges projected onto the device.
    pub projections: Projections,
    /// How much work has a place.
    pub coverage: Coverage,
    /// What has none, and what to do about it.
    pub quality: Vec<QualityCounter>,
}

/// Attributes all device work of a timeline.
pub fn attribute(timeline: &Timeline, settings: &Settings) -> Attribution {
    let join = launch::join(timeline);
    let launches = Launches::new(timeline, &join.call);
    let last = projection::trace_end(timeline);
    let ranges = projection::Forest::new(timeline, &launches, last);
    let operators = launch::operators(timeline, &launches, &join.call, OperatorKind::Framework);
    let python = launch::operators(timeline, &launches, &join.call, OperatorKind::Python);
    let stages = stage::find(timeline, &launches, settings, last);
    let contested = Amount::of(timeline, |place| {
        let launch = launches.of_work[place] as usize;
        ranges.contested.get(launch).copied().unwrap_or(false)
    });
    let range = launches.per_work(&ranges.innermost).map(|range| range.map(RangeIndex)).collect();
    let captured = captured::ranges(timeline, &join.call);
    let aside = aside_work(timeline, &stages.asides, &join.call, &stages.instance);
    let mut attribution = Attribution {
        captured,
        asides: stages.asides,
        aside,
        launch: join.call,
        operator: operators,
        python,
        range,
        stage: stages.instance.iter().map(|place| place.map(|place| stages.stages[place as usize].stage)).collect(),
        instance: stages.instance,
        step: stages.step,
        stages: stages.stages,
        steps: stages.steps,
        inference: stages.inference,
        projections: Projections::new(timeline, ranges.into_spans(), launches),
        coverage: Coverage::default(),
        quality: Vec::new(),
    };
    attribution.coverage = Coverage::of(timeline, &attribution);
    attribution.quality = coverage::quality(timeline, &attribution, join.ambiguous, contested);
    attribution
}

fn aside_work(
    timeline: &Timeline,
    asides: &Asides,
    call_of_work: &[Option<u32>],
    instance_of_work: &[Option<u32>],
) -> Vec<bool> {
    if asides.is_empty() {
        return Vec::new();
    }
    let aside = |(call, instance): (&Option<u32>, &Option<u32>)| {
        let call = call.filter(|_| instance.is_none()).map(|call| &timeline.calls[call as usize]);
        call.is_some_and(|call| asides.hold(timeline, call.thread, call.start))
    };
    call_of_work.iter().zip(instance_of_work).map(aside).collect()
}

impl Attribution {
    /// Whether a piece of work was launched while loading or warming up.
    pub fn is_aside(&self, work: usize) -> bool {
        self.aside.get(work).copied().unwrap_or(false)
    }
}
