//! Whisper: an encoder of thirty seconds of sound and a decoder that attends to it.

use types::{ActivationKind, DType};

use super::family::activation_named;
use super::fields::{ConfigProblem, Fields, MOST_LAYERS};
use super::t5::unquantised;

/// Class of the published model.
pub(crate) const CLASS: &str = "WhisperForConditionalGeneration";

/// Sizes of Whisper.
#[derive(Clone, Debug, PartialEq)]
pub struct WhisperConfig {
    /// Tokens it knows.
    pub vocabulary: u64,
    /// Width of the hidden states.
    pub width: u64,
    /// Frequencies of a frame of sound.
    pub frequencies: u64,
    /// Positions of the encoder, each of two frames.
    pub source_positions: u64,
    /// Positions of the decoder at most.
    pub positions: u64,
    /// The encoder's layers.
    pub encoder: WhisperStack,
    /// The decoder's layers.
    pub decoder: WhisperStack,
    /// Nonlinearity of the feed-forwards.
    pub activation: ActivationKind,
    /// Whether the head shares the table of embeddings.
    pub tied_embeddings: bool,
    /// The decoder's first token.
    pub start_token: u64,
    /// Element type of the published weights.
    pub dtype: DType,
}

/// Layers of one half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WhisperStack {
    /// How many.
    pub layers: u64,
    /// Attention heads.
    pub heads: u64,
    /// Inner width of the feed-forward.
    pub inner: u64,
}

impl WhisperConfig {
    pub(crate) fn read(fields: &Fields<'_>) -> Result<Self, ConfigProblem> {
        unquantised(fields)?;
        let width = fields.size_or("d_model", 384)?;
        let stack = |layers, heads, inner| {
            let stack = WhisperStack {
                layers: fields.size_or(layers, 4)?,
                heads: fields.size_or(heads, 6)?,
                inner: fields.size_or(inner, 1536)?,
            };
            fields.at_most(layers, stack.layers, MOST_LAYERS)?;
            fields.divides(("d_model", width), (heads, stack.heads))?;
            Ok(stack)
        };
        let encoder = stack("encoder_layers", "encoder_attention_heads", "encoder_ffn_dim")?;
        let decoder = stack("decoder_layers", "decoder_attention_heads", "decoder_ffn_dim")?;
        let activation = fields.optional_text("activation_function")?.unwrap_or_else(|| "gelu".to_owned());
        let known = activation_named(&activation);
        Ok(Self {
            vocabulary: fields.size_or("vocab_size", 51_865)?,
            width,
            frequencies: fields.size_or("num_mel_bins", 80)?,
            source_positions: fields.size_or("max_source_positions", 1500)?,
            positions: fields.size_or("max_target_positions", 448)?,
            encoder,
            decoder,
            activation: known.ok_or_else(|| fields.wrong("activation_function", activation, "gelu, relu or silu"))?,
            tied_embeddings: fields.ties(true)?,
            start_token: fields.count_or("decoder_start_token_id", 50_257)?,
            dtype: fields.dtype_or(DType::Fp32)?,
        })
    }
}
