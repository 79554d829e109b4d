//! What ran: everything that is known of a run before its measurements are looked at.
//!
//! Resolved once, by whoever gathers the run (`flow::pipeline`). What is not known is absent; nothing here was measured.

use std::collections::BTreeMap;

use types::{
    Caveat, Device, Hardware, InputFacts, Nanos, PeakUsed, ProfileSettings, RunHeader, Stage, TracedWorkload, Work,
};

use crate::alignment::ModelledRun;

/// What ran, on what, and what the model says it needs.
#[derive(Clone, Debug, Default)]
pub struct Subject {
    /// Name, engine, model, device and weights.
    pub run: RunHeader,
    /// Devices of the run.
    pub devices: Vec<Device>,
    /// What a reader must know of it before any measurement.
    pub caveats: Vec<Caveat>,
    /// How often the inputs were run; absent where the source does not say.
    pub settings: Option<ProfileSettings>,
    /// What the inputs were.
    pub inputs: Vec<InputFacts>,
    /// Whether prefill computed the logits of all positions, not of the last alone.
    pub logits_all_positions: bool,
    /// The workload of the traced pass, and what it rests on; absent without a trace.
    pub workload: Option<TracedWorkload>,
    /// Modelled work, one entry per input and stage, for that input's own prompt and generated tokens. A stage's work
    /// includes that of the stages nested in it.
    pub work: Vec<InputWork>,
    /// Roofline time of prefill and decode, one entry per input; empty where the model or the device is not known.
    pub roofline: Vec<InputRoofline>,
    /// The forward passes of the traced input, operation by operation; absent where the model or the workload is unknown.
    pub modelled: Option<ModelledRun>,
    /// Modelled work of the steps of a server, in the order of the trace's; empty where unknown.
    pub steps: Vec<Option<ModelledStep>>,
    /// Classes by module path, for modules without an operator of their own; without it such modules are not listed.
    pub classes: BTreeMap<String, String>,
    /// Rates that utilisation is relative to; absent where the device's are not known.
    pub peak: Option<PeakUsed>,
    /// The device; absent where the catalogue does not know it.
    pub hardware: Option<Hardware>,
    /// Multiprocessors of the device; absent where it is not known.
    pub multiprocessors: Option<u64>,
}

/// Modelled work of one step of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelledStep {
    /// The work.
    pub work: Work,
    /// Its roofline time; absent where the device is not known.
    pub roofline: Option<Nanos>,
}

/// Modelled work of one stage for one input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputWork {
    /// Input, as in [`InputFacts::name`].
    pub input: String,
    /// Stage.
    pub stage: Stage,
    /// The work of one instance.
    pub work: Work,
}

/// Roofline time of one stage of one input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputRoofline {
    /// Input, as in [`InputFacts::name`].
    pub input: String,
    /// Prefill or decode.
    pub stage: Stage,
    /// Of one instance.
    pub time: Nanos,
}
