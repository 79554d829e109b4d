//! A workload: what one inference is asked to do, with nothing left open.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::DType;

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
    /// Made up.
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
    /// Prompt tokens that are no image tokens, the begin-of-sequence token included.
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
}
