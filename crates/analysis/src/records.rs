//! What a profiled run left behind, as the analysis wants it. Filling it is left to `flow`.

use std::collections::BTreeMap;

use types::{
    Clock, Cost, Device, InputFacts, Nanos, OperatorRecord, PeakUsed, ProfileSettings, QualityCounter, RoutingCounts,
    RunHeader, Sample, Stage, Work,
};

/// Everything one profiled run recorded, and the modelled work beside it.
#[derive(Clone, Debug)]
pub struct ProfileRecords {
    /// What was run.
    pub run: RunHeader,
    /// Devices of the run.
    pub devices: Vec<Device>,
    /// Clocks of its timestamps.
    pub clocks: Vec<Clock>,
    /// Stage times without instruments, warm-up flagged: one sample per instance of each stage, nested ones included
    /// (`vision` is the sum of `sam`, `clip` and `projector` of that prefill).
    pub samples: Vec<Sample>,
    /// What the inputs were.
    pub inputs: Vec<InputFacts>,
    /// Modelled work, one entry per input and stage, for that input's own prompt and generated tokens. A stage's work
    /// includes that of the stages nested in it.
    pub work: Vec<InputWork>,
    /// Operators of the instrumented pass, each with its price. Their stage is the innermost one.
    pub operators: Vec<PricedOperator>,
    /// Classes by module path, for modules that have no operator of their own; may be empty, and then such modules are
    /// not listed.
    pub classes: BTreeMap<String, String>,
    /// Where mixtures of experts sent their tokens in the instrumented pass; empty without experts.
    pub routing: Vec<RoutingCounts>,
    /// Stage times of the instrumented pass over the same inputs.
    pub profiled: Vec<Sample>,
    /// Rates utilisation is held against; absent when the device's are not known.
    pub peak: Option<PeakUsed>,
    /// Whether prefill computed the logits of all positions, not of the last alone.
    pub logits_all_positions: bool,
    /// Time loading the model took.
    pub load_ns: Nanos,
    /// How the inputs were run.
    pub settings: ProfileSettings,
    /// What was dropped or is uncertain, as far as the collecting side knows.
    pub quality: Vec<QualityCounter>,
}

impl ProfileRecords {
    /// A run in which nothing was measured.
    pub fn empty() -> Self {
        Self {
            run: RunHeader { id: String::new(), engine: String::new(), model: None, device: None, weights: None },
            devices: Vec::new(),
            clocks: Vec::new(),
            samples: Vec::new(),
            inputs: Vec::new(),
            work: Vec::new(),
            operators: Vec::new(),
            classes: BTreeMap::new(),
            routing: Vec::new(),
            profiled: Vec::new(),
            peak: None,
            logits_all_positions: false,
            load_ns: Nanos::ZERO,
            settings: ProfileSettings::default(),
            quality: Vec::new(),
        }
    }
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

/// One operator call and what it should cost.
#[derive(Clone, Debug)]
pub struct PricedOperator {
    /// The call.
    pub record: OperatorRecord,
    /// Class of the module it ran in.
    pub class: String,
    /// Modelled operations and traffic.
    pub cost: Cost,
    /// Least time the device needs for that; absent when its rates are not known.
    pub least_ns: Option<Nanos>,
}
