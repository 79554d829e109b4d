//! A profiled, imported or measured run.

use super::serving::ServingView;
use crate::{
    BytesPerSecond, CommandFacts, CommandRun, CopyTime, DeviceTime, Finding, IdleCause, IdleTime, KernelSummary,
    Metrics, ModuleSummary, Nanos, QualityCounter, Stage, StageSummary, Statistics, StepLabel, Try,
};

/// A run. Shares are absent where a part or the whole is unknown.
#[derive(Clone, Debug)]
pub struct RunView<'a> {
    /// The document.
    pub metrics: &'a Metrics,
    /// Every stage.
    pub stages: Vec<StageView<'a>>,
    /// What stands out about the stages.
    pub takeaways: Vec<Takeaway<'a>>,
    /// Median time of a forward pass, for networks that generate no tokens.
    pub forward_pass_ms: Option<f64>,
    /// How the time of each device divides.
    pub device_time: Vec<DeviceTimeView<'a>>,
    /// Annotated steps of a serving engine, by what they do.
    pub engine_steps: Vec<EngineStepsView>,
    /// The load on a server; absent where no requests are known.
    pub serving: Option<ServingView<'a>>,
    /// How much of the wall time its devices were busy, on average over the devices.
    pub busy_share: Option<f64>,
    /// How much of the profiled pass its device was busy.
    pub profiled_busy_share: Option<f64>,
    /// Kernels.
    pub kernels: KernelsView<'a>,
    /// The largest cost centres.
    pub cost_centres: CostCentresView<'a>,
    /// Modules of all layers together, longest self time first.
    pub module_kinds: Vec<&'a ModuleSummary>,
    /// Every finding.
    pub findings: Vec<FindingView<'a>>,
    /// The findings with the largest savings, largest first.
    pub largest_savings: Vec<FindingView<'a>>,
    /// Rules whose findings are more than information.
    pub warning_rules: Vec<&'a str>,
    /// Quality counters that are more than information.
    pub data_warnings: Vec<&'a QualityCounter>,
    /// Why there is no utilisation, where that was counted.
    pub utilisation_missing: Option<&'a QualityCounter>,
    /// Remedies that were tried.
    pub tries: TriesView<'a>,
    /// What would make the next recording tell more.
    pub next_steps: Vec<NextStep<'a>>,
    /// The commands that were measured, in the order given; none for a run of a model.
    pub commands: Vec<CommandView<'a>>,
    /// Measured inferences or runs of commands that something else on the machine disturbed, of how many; absent where nobody
    /// looked.
    pub disturbed: Option<[u64; 2]>,
    /// Why, each reason once.
    pub disturbance_causes: Vec<&'a str>,
}

/// Remedies that were tried, by what came of them.
#[derive(Clone, Debug, Default)]
pub struct TriesView<'a> {
    /// Those with figures.
    pub measured: Vec<&'a Try>,
    /// Those that could not be carried through, but for those that do not apply.
    pub unfinished: Vec<&'a Try>,
    /// Those that do not apply here.
    pub not_applicable: Vec<&'a Try>,
    /// Rounds, at most.
    pub rounds: u64,
    /// The one that saves most of a request's time, beyond doubt.
    pub fastest: Option<&'a Try>,
    /// The one with the highest throughput, where it is above the baseline's beyond doubt.
    pub highest_throughput: Option<&'a Try>,
}

/// The time of a device, as shares of its span.
#[derive(Clone, Debug)]
pub struct DeviceTimeView<'a> {
    /// The time.
    pub time: &'a DeviceTime,
    /// Busy.
    pub busy: Option<f64>,
    /// Kernels other than communication.
    pub compute: Option<f64>,
    /// Communication and no other kernel.
    pub communication_exposed: Option<f64>,
    /// Copies and memsets and no kernel.
    pub copies_exposed: Option<f64>,
    /// Idle.
    pub idle: Option<f64>,
    /// Idle, by cause.
    pub causes: Vec<(&'a IdleTime, Option<f64>)>,
    /// Copies with their rate.
    pub copies: Vec<(&'a CopyTime, Option<BytesPerSecond>)>,
}

/// A stretch of a timeline in which a device was idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleStretch {
    /// Ordinal of the device in the timeline.
    pub device: u32,
    /// Start, on the clock of the timeline.
    pub start: Nanos,
    /// How long.
    pub length: Nanos,
    /// What the host did meanwhile.
    pub cause: IdleCause,
}

/// Steps of a serving engine that do the same.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineStepsView {
    /// What they do; absent where the engine's word for it is not known.
    pub label: Option<StepLabel>,
    /// Their annotation without its numbers.
    pub annotation: String,
    /// How many.
    pub steps: u64,
    /// Prompts of all; absent where one step does not say.
    pub prompts: Option<u64>,
    /// Decoding sequences of all; absent where one step does not say.
    pub sequences: Option<u64>,
    /// Tokens of all; absent where one step does not say.
    pub tokens: Option<u64>,
    /// Device time of all.
    pub device_ns: Nanos,
    /// Device time of one, on average.
    pub mean_ns: Option<Nanos>,
    /// Tokens per second of wall time.
    pub tokens_per_second: Option<f64>,
    /// Roofline time of one, on average; absent where one of them has none.
    pub roofline_mean_ns: Option<Nanos>,
}

/// A stage of a run.
#[derive(Clone, Copy, Debug)]
pub struct StageView<'a> {
    /// The stage.
    pub stage: &'a StageSummary,
    /// Its times in milliseconds.
    pub times: Option<&'a Statistics>,
    /// Its share of the run.
    pub run_share: Option<f64>,
    /// How much of its wall time its devices were busy, on average over the devices.
    pub busy_share: Option<f64>,
    /// Roofline time over measured time.
    pub efficiency: Option<f64>,
    /// Run-to-run variation.
    pub repeat_cv: Option<f64>,
    /// Variation between inputs.
    pub input_cv: Option<f64>,
    /// Its wall time in the profiled pass.
    pub profiled_ns: Option<Nanos>,
    /// How much of that time its device was busy.
    pub profiled_busy_share: Option<f64>,
}

/// What stands out about a stage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Takeaway<'a> {
    /// The stage.
    pub stage: Stage,
    /// Its share of the run.
    pub run_share: Option<f64>,
    /// The stage around it, and its share of that.
    pub parent: Option<(Stage, Option<f64>)>,
    /// Its longest part, and the share of that.
    pub longest_part: Option<(Stage, Option<f64>)>,
    /// Its utilisation of compute and of memory bandwidth.
    pub utilisation: Option<(f64, f64)>,
    /// What bounds it: the resource it uses much of, and clearly more than the other.
    pub bound: Option<Resource>,
    /// The largest cause of its lost time, and the share of its time that is, both of the pass of `loss_basis`.
    pub largest_loss: Option<(&'a str, Option<f64>)>,
    /// Which pass that is.
    pub loss_basis: LossBasis,
    /// Run-to-run variation.
    pub repeat_cv: Option<f64>,
}

/// The pass that lost time is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossBasis {
    /// All measured instances.
    Measured,
    /// The profiled pass beside them.
    ProfiledPass,
}

/// What can bound a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Arithmetic.
    Compute,
    /// Memory bandwidth.
    Memory,
}

/// Kernels of a run.
#[derive(Clone, Debug)]
pub struct KernelsView<'a> {
    /// Launches.
    pub calls: u64,
    /// Time of all kernels.
    pub total_ns: Nanos,
    /// One by one, as in the document.
    pub rows: Vec<KernelView<'a>>,
    /// Those that a stage launched, or all where no stage launched any: a user does not wait for what loads a model.
    pub of_stages: Vec<KernelView<'a>>,
    /// By family, longest first.
    pub families: Vec<FamilyView<'a>>,
    /// By family and stage, longest first.
    pub families_per_stage: Vec<FamilyView<'a>>,
}

/// A kernel in one stage on one device.
#[derive(Clone, Copy, Debug)]
pub struct KernelView<'a> {
    /// The kernel.
    pub kernel: &'a KernelSummary,
    /// Share of the time of all kernels.
    pub share: Option<f64>,
    /// Mean time of a launch.
    pub mean_ns: Option<Nanos>,
}

/// Kernels of a family.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FamilyView<'a> {
    /// The family.
    pub family: &'a str,
    /// The stage, where families are told apart by stage.
    pub stage: Option<Stage>,
    /// Time.
    pub total_ns: Nanos,
    /// Share of the time of all kernels.
    pub share: Option<f64>,
    /// Launches.
    pub calls: u64,
    /// Rows of the document.
    pub rows: u64,
}

/// A finding.
#[derive(Clone, Copy, Debug)]
pub struct FindingView<'a> {
    /// The finding.
    pub finding: &'a Finding,
    /// What acting on it saves; absent where that is unknown.
    pub saving: Option<Saving>,
}

/// What acting on a finding saves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Saving {
    /// Time saved.
    pub saves_ns: Nanos,
    /// Its share of the whole.
    pub share: Option<f64>,
    /// The stage that it is a share of; absent where it is a share of the basis.
    pub stage: Option<Stage>,
    /// What the whole is.
    pub basis: SavingBasis,
    /// The whole.
    pub whole_ns: Option<Nanos>,
    /// Time saved per input on average, where there were several.
    pub per_input_ns: Option<Nanos>,
}

/// What a saving is a share of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavingBasis {
    /// The run.
    Run,
    /// The stages of a trace.
    Stages,
    /// The time of all devices, of which there are so many.
    Devices(usize),
    /// The profiled pass.
    ProfiledPass,
    /// Plain runs of what was traced.
    PlainRun,
}

/// What would make the next recording tell more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NextStep<'a> {
    /// What utilisation needs.
    Utilisation {
        /// What is missing for it.
        remedy: &'a str,
        /// Stages without and all that were timed, where some have it.
        stages: Option<(u64, u64)>,
    },
    /// Stages are not marked.
    MarkStages,
    /// This share of the device's time is in no stage.
    MarkRest(f64),
}

/// A command that was measured.
#[derive(Clone, Debug)]
pub struct CommandView<'a> {
    /// The command.
    pub facts: &'a CommandFacts,
    /// Its runs.
    pub runs: Vec<CommandRunView<'a>>,
    /// Runs that were not warm-up.
    pub measured: u64,
    /// Mean processor time of the runs that count, in programs and in the system.
    pub cpu_mean: Option<[Nanos; 2]>,
    /// Its mean over that of the fastest command, and the standard error of that; absent for a single command.
    pub relative: Option<(f64, Option<f64>)>,
}

/// One run of a command.
#[derive(Clone, Copy, Debug)]
pub struct CommandRunView<'a> {
    /// The run.
    pub run: &'a CommandRun,
    /// Processor time over wall time.
    pub core_share: Option<f64>,
}

/// What takes the most time: parts of the network where they were timed, else operators where they launched most of the device
/// work, else kernels and copies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CostCentresView<'a> {
    /// What a row is: `part of the network`, `operator` or `kernel or copy`.
    pub kind: &'static str,
    /// What the shares are of.
    pub whole: &'static str,
    /// Largest first.
    pub rows: Vec<CostCentreView<'a>>,
    /// Their share, all together.
    pub share: Option<f64>,
    /// Share of the device work that framework operators launched; absent where either was not recorded.
    pub operator_share: Option<f64>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq)]
pub struct CostCentreView<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its stage.
    pub stage: Option<Stage>,
    /// Its time.
    pub time_ns: Nanos,
    /// The same as a share.
    pub share: Option<f64>,
    /// Its roofline time.
    pub roofline_ns: Option<Nanos>,
}
