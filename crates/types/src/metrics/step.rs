//! Steps of a run: what repeats, before anything is called prefill or decode.

use serde::{Deserialize, Serialize};

use crate::{Bytes, Flops, JsonSchema, Nanos, Remark, Statistics};

/// Steps of a trace, with the time each takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Steps {
    /// What marks them.
    pub basis: StepBasis,
    /// Milliseconds from the start of a step to the end of its device work.
    pub wall_ms: Option<Statistics>,
    /// Milliseconds in which the device is busy with the work of a step.
    pub device_ms: Option<Statistics>,
    /// One by one, in order.
    pub list: Vec<StepSummary>,
}

/// What marks steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepBasis {
    /// Annotations of a serving engine.
    EngineAnnotations,
    /// `ProfilerStep#N` of the torch profiler.
    ProfilerSteps,
    /// Decode steps that ranges mark, or that tokens chosen and looked up again show.
    DecodeSteps,
    /// Ranges of the program that differ only in a number, and that most of the work is launched in.
    CountedRanges,
    /// Kernels that choose a token: each ends a pass.
    TokenChoices,
    /// Kernels that repeat in exactly the same order, three times or more often.
    Repetition,
}

/// One step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepSummary {
    /// Its annotation, or its number.
    pub name: String,
    /// `prefill`, `decode`, `mixed`, `verify` or `draft` where the engine says; absent where nothing does.
    pub label: Option<StepLabel>,
    /// When the host starts to prepare it, on the clock of the trace.
    pub start_ns: Option<Nanos>,
    /// When its first work starts on the device; absent without work.
    pub device_start_ns: Option<Nanos>,
    /// When its last work ends.
    pub device_end_ns: Option<Nanos>,
    /// Time on the host.
    pub host_ns: Nanos,
    /// From its start, or the end of the step before it, to the end of its device work or its host part, whichever is
    /// later; without waiting behind work that the trace does not hold.
    pub wall_ns: Nanos,
    /// The device was busy with its work.
    pub device_ns: Nanos,
    /// Kernels.
    pub kernels: u64,
    /// The batch, where the engine says.
    pub batch: Option<StepBatch>,
    /// Tokens that its kernels process, with those that pad the batch; absent where nothing tells.
    pub processed_tokens: Option<u64>,
    /// Modelled work; absent where the model, or the context of a sequence, is not known.
    pub work: Option<StepWork>,
}

/// Modelled work of a step, and what share of the device's peak rates it used in the step's wall time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepWork {
    /// Matrix operations.
    pub flops_matrix: Flops,
    /// Bytes that must move.
    pub bytes: Bytes,
    /// Roofline time; absent where the device is not known, or was quicker, which means that the model does not fit.
    pub roofline_ns: Option<Nanos>,
    /// Share of the peak rate; absent without one, and where it cannot be true.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub mfu: Option<f64>,
    /// Share of the peak bandwidth; absent without one, and where it cannot be true.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub mbu: Option<f64>,
}

crate::named! {
    /// What a step does, as its engine says.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum StepLabel {
        /// Prompts alone.
        Prefill = "prefill",
        /// Decoding sequences alone.
        Decode = "decode",
        /// Both.
        Mixed = "mixed",
        /// Speculative decoding: the model checks tokens that a draft proposes.
        Verify = "verify",
        /// Speculative decoding: the draft's own pass over prompts or tokens that the model processes as well.
        Draft = "draft",
    }
}

/// The batch of a step, as a serving engine annotates it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepBatch {
    /// Tokens processed; absent where some of them may be rejected or are counted elsewhere.
    pub tokens: Option<u64>,
    /// Sequences whose prompt is processed.
    pub context: StepGroup,
    /// Sequences that decode.
    pub generation: StepGroup,
}

/// Some sequences of a step. Sums are over the sequences; absent where the engine does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepGroup {
    /// How many.
    pub sequences: u64,
    /// Query lengths.
    pub query_tokens: Option<u64>,
    /// Key lengths.
    pub key_tokens: Option<u64>,
    /// Squared query lengths.
    pub query_squared: Option<u64>,
    /// Query length times key length.
    pub query_key: Option<u64>,
}

impl StepBatch {
    /// What the step does.
    pub fn label(&self) -> Option<StepLabel> {
        match (self.context.sequences, self.generation.sequences) {
            (0, 0) => None,
            (_, 0) => Some(StepLabel::Prefill),
            (0, _) => Some(StepLabel::Decode),
            _ => Some(StepLabel::Mixed),
        }
    }
}

impl StepGroup {
    /// Whether a sequence processes more than one token, on average.
    pub fn is_wide(&self) -> bool {
        self.query_tokens > Some(self.sequences)
    }
}

/// What kind of run a trace shows, and by what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunKind {
    /// The kind.
    pub kind: RunKindName,
    /// What shows it.
    pub evidence: Remark,
}

crate::named! {
    /// Kinds of runs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum RunKindName {
        /// Gradients are computed.
        Training = "training",
        /// A serving engine.
        Serving = "serving",
        /// Text is generated token by token.
        Generation = "generation",
        /// A language model runs; whether it prefills or decodes, nothing says.
        Inference = "inference",
        /// A graph is captured and not replayed.
        GraphCapture = "graph_capture",
        /// A diffusion pipeline.
        Diffusion = "diffusion",
        /// Attention over all positions of the input at once, with nothing masked.
        Encoder = "encoder",
        /// Operators of a framework without a backward pass; nothing says more.
        Forward = "forward",
        /// Nothing in the trace says.
        Program = "program",
    }
}
