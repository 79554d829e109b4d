//! A workload: what one inference is asked to do, with nothing left open.

use serde::{Deserialize, Serialize};

use crate::{DType, JsonSchema};

/// How attention is computed; decides what is materialised and which blocks are skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AttentionKind {
    /// Scores written to memory, the full square computed.
    Eager,
    /// Scores never leave the chip, blocks above the diagonal skipped.
    Flash,
}

/// For which positions of the prompt the head computes logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogitsKind {
    /// Every position, as the published DeepSeek-OCR does.
    All,
    /// The last position, which is all that generation needs.
    Last,
}

/// How tokens spread over experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RoutingKind {
    /// Every expert is as likely as any other, independently for each token.
    Balanced,
}

/// What the pages look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PageKind {
    /// Mostly running text.
    TextHeavy,
    /// Text, tables and figures.
    MixedLayout,
    /// Mostly pictures.
    ImageRich,
    /// Synthetic.
    Synthetic,
    /// Nobody says.
    Unknown,
}

/// The image part of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct ImageWorkload {
    /// Side of the padded global view, in pixels.
    pub base_size: u64,
    /// Side of one tile, in pixels.
    pub image_size: u64,
    /// Tiles across and down; `[1, 1]` means no tiles.
    pub crop_grid: [u64; 2],
    /// Tokens the image takes in the prompt, by the model's own rule.
    pub image_tokens: u64,
    /// Pixels across and down that the picture is resized to, for models that take pictures of any shape.
    pub pixels: Option<[u64; 2]>,
}

/// How weights and the cache are stored where that is not the workload's own element type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Quantisation {
    /// Element type of the decoder's matrices; absent: the workload's.
    pub weights: Option<DType>,
    /// Neighbours in a row that share a scale; absent: the whole row shares one.
    pub group: Option<u64>,
    /// Whether a zero point, stored like the weights, stands beside every scale.
    #[serde(default)]
    pub zero_points: bool,
    /// Element type activations are turned into for a product with such weights; absent: weights are turned back instead.
    pub activations: Option<DType>,
    /// Element type of the cache; absent: the workload's.
    pub kv: Option<DType>,
}

/// Over how many devices the model is spread, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Parallel {
    /// Devices that share every matrix, by heads and inner width.
    #[serde(default = "one")]
    pub tensor: u64,
    /// Devices, or groups of them, that the experts are dealt out to.
    #[serde(default = "one")]
    pub expert: u64,
    /// Groups of devices that hold the layers one after the other.
    #[serde(default = "one")]
    pub pipeline: u64,
}

const fn one() -> u64 {
    1
}

impl Default for Parallel {
    fn default() -> Self {
        Self { tensor: 1, expert: 1, pipeline: 1 }
    }
}

impl Parallel {
    /// Devices of one pipeline stage: tensor and expert groups are laid over each other.
    pub fn devices_per_stage(&self) -> u64 {
        self.tensor.max(self.expert)
    }

    /// All devices.
    pub fn devices(&self) -> u64 {
        self.devices_per_stage().saturating_mul(self.pipeline)
    }

    /// Groups that each process a part of the batch: one, unless experts are dealt out to more devices than share a matrix.
    pub fn data(&self) -> u64 {
        self.devices_per_stage() / self.tensor.max(1)
    }

    /// Whether there is one device only.
    pub fn is_single(&self) -> bool {
        self.devices() == 1
    }
}

/// One workload, resolved: every derived quantity is filled in and consistent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Workload {
    /// Name of the profile it started from.
    pub profile_id: String,
    /// What it stands for, in a sentence.
    pub description: String,
    /// What the pages look like.
    pub doc_kind: PageKind,
    /// Pages of one request.
    pub num_pages: u64,
    /// Requests processed together.
    pub batch: u64,
    /// The image part; absent for text-only prompts.
    pub image: Option<ImageWorkload>,
    /// Prompt tokens that are no image tokens, the beginning-of-sequence token included.
    pub text_tokens: u64,
    /// All prompt tokens: image and text.
    pub seq_len: u64,
    /// Tokens generated.
    pub max_new_tokens: u64,
    /// Decode forward passes; prefill yields the first token, so one less than the tokens generated.
    pub decode_steps: u64,
    /// Element type of weights and activations.
    pub dtype: DType,
    /// How attention is computed.
    pub attention: AttentionKind,
    /// Positions whose logits prefill computes.
    pub logits: LogitsKind,
    /// How tokens spread over experts.
    pub routing: RoutingKind,
    /// How weights and the cache are stored.
    #[serde(default)]
    pub quantisation: Quantisation,
    /// Over how many devices it is spread.
    #[serde(default)]
    pub parallel: Parallel,
}
