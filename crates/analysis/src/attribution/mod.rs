//! Where every kernel, copy and memset belongs: the call that launched it, the operator and the range around that call, the
//! stage and the decode step.
//!
//! In comes a [`Timeline`], out goes an [`Attribution`]. Work belongs to what launched it, not to what happened to be open
//! on the host while it ran: a device runs behind its host. The one join is therefore from work to call, by correlation
//! number; everything else is looked up at the moment of the call, on its thread. Work without a call in the trace stays
//! without a place and is counted. Kernels of a CUDA graph share one call; the ranges in which they were captured tell
//! them apart.
//!
//! Files in the order they are used: `correlation` joins work to calls and `launch` orders those calls; with `nesting`,
//! which rebuilds what was open on a thread, `operator` finds the operator around a launch and `forest` the ranges;
//! `graph` adds the ranges of a capture, and `captured` the operators of one that another trace holds. Stages come from ranges (`marks`, and `aside` for loading and warming up), else from
//! annotations of a serving `engine`, else from tokens that one pass chooses and the next looks up (`infer`); each fills
//! `stages` with a `stage` for each run, whose `wall` ends with its device work, and a `step` for each decode step. What callers ask of the result: `projection`, `step_series`, `coverage` (in `amount`s) and `quality`.

mod amount;
mod aside;
mod backlog;
mod captured;
mod correlation;
mod coverage;
pub(crate) mod engine;
mod forest;
pub(crate) mod graph;
mod infer;
mod launch;
mod marks;
mod nesting;
mod operator;
mod projection;
mod quality;
mod stage;
mod stages;
mod step;
mod step_series;
mod wall;

use types::timeline::{CapturedRangeId, Timeline};
use types::{Facts, Nanos, QualityCounter, Remark, Stage};

use crate::time::{Lulls, Spans};

pub use amount::Amount;
pub use aside::Asides;
pub use captured::{is_capture, join_capture};
pub use coverage::Coverage;
pub use projection::{Projection, Projections, RangeSum};
pub use stage::{Inference, StageInstance, StageOrigin};
pub use step::StepInstance;
pub use step_series::{StepSeries, step_series};

pub(crate) use backlog::Backlog;
pub(crate) use infer::{is_sampling, training};
pub(crate) use wall::behind_others;

use correlation::Join;
use forest::Forest;
use launch::Launches;
use stages::Stages;

/// Place of a range in [`Timeline::ranges`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RangeIndex(pub u32);

/// What attribution may use beyond the timeline.
#[derive(Clone, Debug)]
pub struct AttributionSettings {
    /// Name of the model, where the user says; allows the vision stages of a known model to be inferred.
    pub model: Option<String>,
    /// Whether stages may be inferred where no range names one.
    pub infer: bool,
}

impl Default for AttributionSettings {
    fn default() -> Self {
        Self { model: None, infer: true }
    }
}

/// Where every kernel, copy and memset belongs. The lists that are per work have one entry for each row of
/// [`Timeline::work`], in the same order.
#[derive(Clone, Debug)]
pub struct Attribution {
    /// Per work: the call that launched it, in [`Timeline::calls`].
    pub launch: Vec<Option<u32>>,
    /// Per work: the innermost framework operator around the launch, in [`Timeline::operators`].
    pub operator: Vec<Option<u32>>,
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
    /// Every run of a stage, in order of their start; parents before children.
    pub stages: Vec<StageInstance>,
    /// Every decode step, in order of their start.
    pub steps: Vec<StepInstance>,
    /// Loading and warming up, where ranges say so.
    pub asides: Asides,
    /// Per work: whether it was launched while loading or warming up, in no stage; empty where nothing was.
    pub aside: Vec<bool>,
    /// How the stages were found, or why not.
    pub inference: Inference,
    /// Ranges projected onto the device.
    pub projections: Projections,
    /// When the server had no request; absent where its requests are not known.
    pub without_requests: Option<Spans>,
    /// When an annotated server was in no step for long.
    pub between_steps: Spans,
    /// How much work has a place.
    pub coverage: Coverage,
    /// What has none, and what to do about it.
    pub quality: Vec<QualityCounter>,
}

/// Attributes all device work of a timeline.
pub fn attribute(timeline: &Timeline, settings: &AttributionSettings) -> Attribution {
    let join = Join::new(timeline);
    let launches = Launches::new(timeline, &join.call);
    let last = trace_end(timeline);
    let ranges = Forest::new(timeline, &launches, last);
    let mut operators = operator::innermost(timeline, &launches, &join.call);
    for (row, operator) in &timeline.captured_operators {
        operators[*row as usize] = Some(*operator);
    }
    let engine_steps = engine::steps(timeline, &join.call, last);
    let stages = stages(timeline, &launches, &join.call, &engine_steps, settings, last);
    let contested = Amount::of(timeline, |place| {
        let launch = launches.of_work[place] as usize;
        ranges.contested.get(launch).copied().unwrap_or(false)
    });
    let range = launches.per_work(&ranges.innermost).map(|range| range.map(RangeIndex)).collect();
    let captured = graph::captured_ranges(timeline, &join.call);
    let aside = aside_work(timeline, &stages.asides, &join.call, &stages.instance);
    let between_steps = engine::between(&engine_steps);
    let mut attribution = Attribution {
        captured,
        asides: stages.asides,
        aside,
        launch: join.call,
        operator: operators,
        range,
        stage: stages.instance.iter().map(|place| place.map(|place| stages.stages[place as usize].stage)).collect(),
        instance: stages.instance,
        step: stages.step,
        stages: stages.stages,
        steps: stages.steps,
        inference: stages.inference,
        projections: Projections::new(timeline, ranges.spans, launches),
        without_requests: None,
        between_steps,
        coverage: Coverage::default(),
        quality: Vec::new(),
    };
    attribution.coverage = Coverage::of(timeline, &attribution);
    attribution.quality = quality::counters(timeline, &attribution, join.ambiguous, contested);
    attribution
}

/// When the trace ended: ranges left open are open until then.
pub(crate) fn trace_end(timeline: &Timeline) -> Nanos {
    let work = timeline.work.iter().map(|work| work.end());
    let calls = timeline.calls.iter().map(|call| call.end());
    let operators = timeline.operators.iter().map(|operator| operator.end());
    let ranges = timeline.ranges.iter().map(|range| range.end.unwrap_or(range.start));
    let last = work.chain(calls).chain(operators).chain(ranges).max().unwrap_or(Nanos::ZERO);
    last + Nanos::new(1)
}

/// Finds the stages: from ranges where any names one, otherwise from what else shows them where that is allowed. `last` is
/// when the trace ended.
fn stages(
    timeline: &Timeline,
    launches: &Launches,
    call_of_work: &[Option<u32>],
    engine_steps: &[engine::EngineStep],
    settings: &AttributionSettings,
    last: Nanos,
) -> Stages {
    let found = marks::stages(timeline, launches, last);
    let found = found.or_else(|| engine::stages(timeline, launches, engine_steps).filter(|_| settings.infer));
    let mut stages = match found {
        Some(stages) => stages,
        None if settings.infer => infer::infer(timeline, launches, settings, last),
        None => Stages::none(timeline, Remark::new("stages.not-inferred", Facts::new())),
    };
    stages.add_work(timeline);
    wall::fill(timeline, call_of_work, engine_steps, &mut stages.stages);
    stages
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
    /// The call that launched a row as part of a CUDA graph.
    pub(crate) fn graph_launches<'a>(&'a self, timeline: &'a Timeline) -> impl Fn(usize) -> Option<u32> + 'a {
        let is_graph: Vec<bool> = timeline.names.iter().map(|(_, name)| graph::launches_graph(name)).collect();
        move |row| self.launch[row].filter(|call| is_graph[timeline.calls[*call as usize].name.index()])
    }

    /// When a server had nothing to do.
    pub(crate) fn lulls(&self) -> Lulls<'_> {
        static NONE: Spans = Spans::NONE;
        Lulls { requests: self.without_requests.as_ref().unwrap_or(&NONE), steps: &self.between_steps }
    }

    /// Whether work was launched while loading or warming up.
    pub fn is_aside(&self, work: usize) -> bool {
        self.aside.get(work).copied().unwrap_or(false)
    }
}
