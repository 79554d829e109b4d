//! What was seen: the parts a run may have, each with where it comes from.
//!
//! A part that is absent was not collected; nothing stands in for it. Gathering is left to `flow`, conclusions to
//! [`crate::metrics`].

use std::collections::BTreeMap;

use types::timeline::Timeline;
use types::{
    Bytes, Clock, CommandRun, Cost, DeviceId, FlopCheck, InferenceDisturbance, Nanos, OperatorRecord, OutputChange,
    Overhead, PeakMemory, QualityCounter, RegionSummary, Remedies, RoutingCounts, Sample, Served, TraceSource,
    TryStatus, TryTurn,
};

use crate::attribution::Attribution;
use crate::counter::{LaunchCounters, ListedKernel};
use crate::pressure::{Cold, Pressure};
use crate::time::Spans;

/// Everything one run has to show.
#[derive(Debug, Default)]
pub struct Evidence<'a> {
    /// Clocks of its timestamps.
    pub clocks: Vec<Clock>,
    /// Measured: passes without a profiler.
    pub plain: Option<PlainRuns>,
    /// Measured: the pass of our own engine that times every operator.
    pub operators: OperatorPass,
    /// Measured and counted: what profilers recorded.
    pub trace: Option<Trace<'a>>,
    /// Measured: timelines of a pass of its own under a profiler that names operators; they count where those of the trace
    /// name none.
    pub operator_timelines: Vec<PlacedTimeline<'a>>,
    /// Measured: a program, from outside.
    pub command: Option<CommandRuns>,
    /// Commands that took turns with it.
    pub commands_beside: Vec<CommandRuns>,
    /// What every inference got of the machine.
    pub disturbance: Vec<InferenceDisturbance>,
    /// Counted: regions that Nsight Compute profiled; they replace those of the timelines.
    pub regions: Option<Vec<RegionSummary>>,
    /// Measured: the other ranks of a distributed run.
    pub ranks: Option<RankRuns>,
    /// Counted: memory of the model.
    pub memory: Option<PeakMemory>,
    /// Counted: FLOPs, beside the analytic model's.
    pub flop_checks: Vec<FlopCheck>,
    /// Measured: remedies that were tried, each against the baseline in turns.
    pub tries: Vec<TryRuns>,
    /// Measured: requests of a load on a server, joined to its steps.
    pub requests: Option<JoinedRequests>,
    /// What the profiler cost, where whoever ran it has timed that; otherwise it follows from the stages.
    pub overhead: Option<Overhead>,
    /// What was asked for and is missing.
    pub missing: Vec<String>,
    /// What was dropped or is uncertain, as far as the collecting side knows.
    pub quality: Vec<QualityCounter>,
}

/// Requests of a load, and what is known of them besides.
#[derive(Clone, Debug, Default)]
pub struct JoinedRequests {
    /// The load and every request.
    pub served: Served,
    /// When the server had none, on the clock of the timeline with its steps; absent where that is not known.
    pub without: Option<Spans>,
    /// The place of that timeline.
    pub timeline: usize,
    /// Why requests have no steps; `None` where they do.
    pub apart: Option<Apart>,
    /// What held them up; `None` where they were not joined.
    pub(crate) pressure: Option<Pressure>,
    /// The cold start of the load that latencies are of.
    pub(crate) cold: Option<Cold>,
}

/// Why requests could not be joined to steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apart {
    /// No timeline has steps of a server.
    NoSteps,
    /// Only launches of CUDA graphs were timed: between steps a server may have computed as well as waited.
    GraphsOnly,
    /// Steps do not say how many sequences they process, and when output arrived does not tell.
    Unannotated,
    /// Several processes have steps that nothing annotates, and not the same ones.
    SeveralServers,
    /// No request says when it was due.
    NoTimes,
    /// Steps and requests are not of one run.
    NothingFits,
}

/// Passes without a profiler.
#[derive(Clone, Debug, Default)]
pub struct PlainRuns {
    /// Stage times, warm-up flagged: one sample per instance of each stage, nested ones included (`vision` is the sum of
    /// `sam`, `clip` and `projector` of that prefill).
    pub samples: Vec<Sample>,
    /// Stage times of the profiled pass over the same inputs, on the same clock.
    pub profiled: Vec<Sample>,
    /// Time loading the model took; absent where nobody timed it.
    pub load_ns: Option<Nanos>,
}

/// The pass in which our own engine times every operator.
#[derive(Clone, Debug, Default)]
pub struct OperatorPass {
    /// Every call, each with its price. Their stage is the innermost one.
    pub calls: Vec<PricedOperator>,
    /// Where mixtures of experts sent their tokens; empty without experts.
    pub routing: Vec<RoutingCounts>,
}

/// One operator call and what it should cost.
#[derive(Clone, Debug)]
pub struct PricedOperator {
    /// The call.
    pub record: OperatorRecord,
    /// Class of the module it ran in.
    pub class: String,
    /// Modelled operations and traffic.
    pub cost: Cost,
    /// Roofline time of that; absent where the device's rates are not known.
    pub roofline_ns: Option<Nanos>,
}

/// What profilers recorded.
#[derive(Debug, Default)]
pub struct Trace<'a> {
    /// Timelines, one per rank.
    pub timelines: Vec<PlacedTimeline<'a>>,
    /// Hardware counters, launch by launch.
    pub counters: Vec<LaunchCounters>,
    /// Kernels as another tool has summed them up.
    pub listed: Vec<ListedKernel>,
    /// The files all of it was read from.
    pub sources: Vec<TraceSource>,
    /// Whether this program recorded them, in this run.
    pub recorded_here: bool,
    /// The input that was traced, where plain runs have several.
    pub input: Option<String>,
}

/// A timeline, where its rows belong, and what its devices are called in the run.
#[derive(Debug)]
pub struct PlacedTimeline<'a> {
    /// The timeline.
    pub timeline: &'a Timeline,
    /// Where its rows belong.
    pub attribution: &'a Attribution,
    /// Rank in a distributed run.
    pub rank: Option<u32>,
    /// Names of its devices by the ordinals it uses; others keep their ordinal.
    pub devices: BTreeMap<u32, DeviceId>,
}

/// A program that was run as it is.
#[derive(Clone, Debug)]
pub struct CommandRuns {
    /// The command, as one would type it.
    pub command: String,
    /// Its runs, in order.
    pub runs: Vec<CommandRun>,
}

/// One remedy, or several together, as they ran.
#[derive(Clone, Debug)]
pub struct TryRuns {
    /// What was changed.
    pub remedies: Remedies,
    /// What came of it.
    pub status: TryStatus,
    /// Why it was not carried through.
    pub reason: Option<String>,
    /// Inferences of both sides, in the order they ran.
    pub turns: Vec<TryTurn>,
    /// The answers side by side.
    pub output: Option<OutputChange>,
    /// Memory of the baseline, at most.
    pub baseline_peak_memory: Option<Bytes>,
    /// The same with the remedy.
    pub peak_memory: Option<Bytes>,
    /// What compiling or capturing took.
    pub compile: Option<Nanos>,
    /// What else is to be known.
    pub notes: Vec<String>,
}

/// The ranks of a distributed run: the one whose evidence this is, and the others.
#[derive(Clone, Debug)]
pub struct RankRuns {
    /// This one.
    pub own: u32,
    /// The others, each with its device and its stage times.
    pub others: Vec<(u32, Option<DeviceId>, Vec<Sample>)>,
}

impl TryRuns {
    /// One that has not run.
    pub fn new(remedies: Remedies, status: TryStatus, reason: Option<String>) -> Self {
        Self {
            remedies,
            status,
            reason,
            turns: Vec::new(),
            output: None,
            baseline_peak_memory: None,
            peak_memory: None,
            compile: None,
            notes: Vec::new(),
        }
    }
}

impl Evidence<'_> {
    /// Timelines, in order.
    pub(crate) fn timelines(&self) -> &[PlacedTimeline<'_>] {
        self.trace.as_ref().map(|trace| trace.timelines.as_slice()).unwrap_or_default()
    }

    /// Whether only launches of CUDA graphs were timed: nothing says when a device was idle, or why.
    pub(crate) fn has_graphs_only(&self) -> bool {
        self.timelines().iter().any(|placed| placed.timeline.graphs_only)
    }

    /// Times of stages in the profiled pass, on the clock of the plain runs.
    pub(crate) fn profiled(&self) -> &[Sample] {
        self.plain.as_ref().map(|plain| plain.profiled.as_slice()).unwrap_or_default()
    }
}

impl PlacedTimeline<'_> {
    /// The name of a device by the ordinal its timeline uses.
    pub(crate) fn device(&self, ordinal: u32) -> DeviceId {
        self.devices.get(&ordinal).cloned().unwrap_or_else(|| DeviceId::cuda(ordinal))
    }
}

impl CommandRuns {
    /// Milliseconds of the measured runs that ended well.
    pub(crate) fn milliseconds(&self) -> Vec<f64> {
        let measured = self.runs.iter().filter(|run| run.counts());
        measured.map(|run| run.wall_ns.get() as f64 / 1e6).collect()
    }
}
