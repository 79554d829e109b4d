//! Sizes of Llama.

use types::DType;

use super::ConfigProblem;
use super::fields::Fields;

/// The whole model.
#[derive(Clone, Debug, PartialEq)]
pub struct LlamaConfig {
    /// Tokens it knows.
    pub vocabulary: u64,
    /// Width of the hidden states.
    pub width: u64,
    /// Layers.
    pub layers: u64,
    /// Attention heads.
    pub heads: u64,
    /// Key-value heads.
    pub key_value_heads: u64,
    /// Width of a head.
    pub head_width: u64,
    /// Inner width of the feed-forward.
    pub intermediate: u64,
    /// Whether the projections of attention have biases.
    pub attention_bias: bool,
    /// Whether the head shares the token embedding's table.
    pub tied_embeddings: bool,
    /// Added to the mean square in norms.
    pub epsilon: f64,
    /// Base of the rotary angles.
    pub theta: f64,
    /// Element type of the published weights.
    pub dtype: DType,
}

impl LlamaConfig {
    pub(crate) fn read(fields: &Fields<'_>) -> Result<Self, ConfigProblem> {
        let heads = fields.size("num_attention_heads")?;
        let width = fields.size("hidden_size")?;
        let key_value_heads = fields.size_or("num_key_value_heads", heads)?;
        fields.divides(("hidden_size", width), ("num_attention_heads", heads))?;
        fields.divides(("num_attention_heads", heads), ("num_key_value_heads", key_value_heads))?;
        if fields.flag_or("mlp_bias", false)? {
            return Err(fields.wrong("mlp_bias", true, "false: biases in the feed-forward are not modelled"));
        }
        Ok(Self {
            vocabulary: fields.size("vocab_size")?,
            width,
            layers: fields.size("num_hidden_layers")?,
            heads,
            key_value_heads,
            head_width: fields.size_or("head_dim", width / heads)?,
            intermediate: fields.size("intermediate_size")?,
            attention_bias: fields.flag_or("attention_bias", false)?,
            tied_embeddings: fields.flag_or("tie_word_embeddings", false)?,
            epsilon: fields.number_or("rms_norm_eps", 1e-6)?,
            theta: fields.number_or("rope_theta", 10_000.0)?,
            dtype: fields.dtype()?.unwrap_or(DType::Fp32),
        })
    }
}
