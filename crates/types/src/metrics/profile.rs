//! What a profiled run adds to its metrics: the settings it ran with, the inputs it ran on, its rates, its cost centres.

use serde::{Deserialize, Serialize};

use crate::{Bytes, DType, Flops, JsonSchema, Nanos, Stage};

/// How the inputs were run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileSettings {
    /// Runs of one input within an epoch, warm-up left out.
    pub repeats: u32,
    /// Passes over all inputs.
    pub epochs: u32,
    /// Rounds run first and left out of every aggregate.
    pub warmup_rounds: u32,
    /// Inputs run at once.
    pub batch: u32,
    /// Seed of what was drawn at random; absent when nothing was.
    pub seed: Option<u64>,
    /// Element type the weights are kept in; absent when the source does not say. `peak.dtype` is that of the arithmetic.
    pub weights_dtype: Option<DType>,
}

/// What is known of one input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InputFacts {
    /// Name, as in `samples[].input`.
    pub name: String,
    /// Width of the picture in pixels, as stored; absent without a picture.
    pub width: Option<u64>,
    /// Height of the picture in pixels, as stored; absent without a picture.
    pub height: Option<u64>,
    /// Tiles across and down; `[1, 1]` means no tiles, absent means no picture.
    pub crop_grid: Option<[u64; 2]>,
    /// Sequences, or pictures, in one pass.
    #[serde(default = "one")]
    pub batch: u64,
    /// Tokens of one prompt, image tokens included.
    pub prompt_tokens: u64,
    /// How many of them are image tokens.
    pub image_tokens: u64,
    /// Tokens generated in one sequence, the first included, which prefill gives.
    pub generated_tokens: u64,
}

fn one() -> u64 {
    1
}

/// Rates a user of the model sees. All are derived from medians; absent where the run does not tell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Throughput {
    /// Time to the first token: the median prefill.
    pub ttft_ns: Option<Nanos>,
    /// Time of each further token.
    pub time_per_output_token_ns: Option<Nanos>,
    /// Tokens decoded per second of decode.
    #[schemars(range(min = 0.0))]
    pub decode_tokens_per_second: Option<f64>,
    /// Tokens generated, the first included, per second of prefill and decode.
    #[schemars(range(min = 0.0))]
    pub end_to_end_tokens_per_second: Option<f64>,
    /// Prompt tokens per second of prefill.
    #[schemars(range(min = 0.0))]
    pub prefill_tokens_per_second: Option<f64>,
}

/// Where a mixture of experts sent the tokens of one stage: recorded in the profiled pass, each input once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RoutingCounts {
    /// Path of the module that holds the experts.
    pub path: String,
    /// Stage.
    pub stage: Stage,
    /// Tokens each expert got, in the order of the experts. A token counts once for every expert it was sent to.
    pub tokens_per_expert: Vec<u64>,
}

/// A part of the network that takes time, repeated layers taken together. Cost centres do not overlap.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CostCentre {
    /// Module path with `*` for the number of a layer.
    pub module: String,
    /// Stage.
    pub stage: Stage,
    /// Operators called.
    pub calls: u64,
    /// Time of its operators in the profiled pass.
    pub total_ns: Nanos,
    /// The same as a share of all operators.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub share: f64,
    /// Roofline time of its operators; absent where it is not known for all of them.
    pub speed_of_light_ns: Option<Nanos>,
    /// Matrix operations.
    pub flops_matrix: Flops,
    /// Memory its operators allocated; absent when not traced.
    pub bytes_allocated: Option<Bytes>,
}
