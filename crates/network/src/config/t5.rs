//! T5, mT5 and UMT5: an encoder of text and a decoder that attends to it.

use std::sync::LazyLock;

use types::{ActivationKind, DType};

use super::family::activation_named;
use super::fields::{ConfigProblem, Fields, MOST_LAYERS};
use super::table::{Columns, Row, columns};

/// Sizes of an encoder and a decoder.
#[derive(Clone, Debug, PartialEq)]
pub struct T5Config {
    /// Names of its classes.
    pub(crate) family: &'static T5Family,
    /// Tokens it knows.
    pub vocabulary: u64,
    /// Width of the hidden states.
    pub width: u64,
    /// Layers of the encoder.
    pub encoder_layers: u64,
    /// Layers of the decoder.
    pub decoder_layers: u64,
    /// Attention heads.
    pub heads: u64,
    /// Width of a head, which need not divide that of the hidden states.
    pub head_width: u64,
    /// Inner width of the feed-forward.
    pub inner: u64,
    /// Its nonlinearity.
    pub activation: ActivationKind,
    /// Whether the feed-forward has a gate.
    pub gated: bool,
    /// Rows of the table of distances.
    pub buckets: u64,
    /// From which distance on positions share the last row.
    pub furthest: u64,
    /// Added to the mean square in norms.
    pub epsilon: f64,
    /// Whether the head shares the table of embeddings.
    pub tied_embeddings: bool,
    /// Whether hidden states are divided by the root of their width in front of the head.
    pub scaled_head: bool,
    /// The decoder's first token.
    pub start_token: u64,
    /// Element type of the published weights.
    pub dtype: DType,
}

columns! {
    /// What models of one family are called.
    #[derive(PartialEq, Eq)]
    T5Family in "" {
        conditional: &'static str,
        stack: &'static str,
        block: &'static str,
        /// Parts of a block: attention to itself, attention to the encoder, feed-forward.
        parts: [&'static str; 3],
        attention: &'static str,
        /// Feed-forwards without a gate and with one.
        dense: [&'static str; 2],
        norm: &'static str,
        /// Whether every layer has a table of distances; otherwise the first one's serves all.
        distances_everywhere: bool,
        /// Whether the head is scaled; absent where it is if the embeddings are tied.
        scaled_head: Option<bool>,
        vocabulary: u64,
        feed_forward: &'static str,
    } also {
        kind: &'static str = Row::kind,
    }
}

/// Every family.
pub(super) static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    Row::all(
        "[all -]
package = -
home = -
conditional = ~ForConditionalGeneration
stack = ~Stack
block = ~Block
parts = ~LayerSelfAttention ~LayerCrossAttention ~LayerFF
attention = ~Attention
dense = ~DenseActDense ~DenseGatedActDense
norm = ~LayerNorm
distances_everywhere = false
scaled_head = -
vocabulary = 32128
feed_forward = relu
[t5 T5]
[mt5 MT5]
scaled_head = false
vocabulary = 250112
feed_forward = gated-gelu
[umt5 UMT5 like mt5]
scaled_head = true
distances_everywhere = true
",
    )
});

impl T5Family {
    pub(super) fn all() -> &'static [Self] {
        static ALL: LazyLock<Vec<T5Family>> = LazyLock::new(|| ROWS.iter().filter_map(T5Family::of).collect());
        &ALL
    }
}

impl T5Config {
    /// Class of the published model.
    pub fn class(&self) -> &'static str {
        self.family.conditional
    }

    /// Reads a model of `family`.
    pub(crate) fn read(fields: &Fields<'_>, family: &'static T5Family) -> Result<Self, ConfigProblem> {
        unquantised(fields)?;
        if let Some(class) = fields.text_list("architectures")?.into_iter().next()
            && !["ForConditionalGeneration", "WithLMHeadModel"].iter().any(|head| class.ends_with(head))
        {
            let expected = format!("`{}`: other heads of this family are not modelled", family.conditional);
            return Err(fields.wrong("architectures", format!("[\"{class}\"]"), expected));
        }
        let of_t5 = family.kind == "t5";
        let encoder_layers = fields.size_or("num_layers", if of_t5 { 6 } else { 8 })?;
        let decoder_layers = fields.size_or("num_decoder_layers", encoder_layers)?;
        for (name, layers) in [("num_layers", encoder_layers), ("num_decoder_layers", decoder_layers)] {
            fields.at_most(name, layers, MOST_LAYERS)?;
        }
        let stated = fields.optional_text("feed_forward_proj")?.unwrap_or_else(|| family.feed_forward.to_owned());
        let (gated, name) = match stated.strip_prefix("gated-") {
            // What transformers takes this name for.
            Some("gelu") => (true, "gelu_new"),
            Some(name) => (true, name),
            None => (false, stated.as_str()),
        };
        let activation = activation_named(name).ok_or_else(|| {
            fields.wrong("feed_forward_proj", format!("\"{stated}\""), "relu, gated-gelu or another known activation")
        })?;
        let buckets = fields.size_or("relative_attention_num_buckets", 32)?;
        let furthest = fields.size_or("relative_attention_max_distance", 128)?;
        // Half of the rows are for keys behind the query, and half of those for single distances.
        if !buckets.is_multiple_of(4) {
            return Err(fields.wrong("relative_attention_num_buckets", buckets, "a multiple of 4"));
        }
        if furthest <= buckets / 2 {
            let expected = format!("more than half of `relative_attention_num_buckets` ({buckets})");
            return Err(fields.wrong("relative_attention_max_distance", furthest, expected));
        }
        let tied_embeddings = fields.ties(true)?;
        Ok(Self {
            family,
            vocabulary: fields.size_or("vocab_size", family.vocabulary)?,
            width: fields.size_or("d_model", 512)?,
            encoder_layers,
            decoder_layers,
            heads: fields.size_or("num_heads", if of_t5 { 8 } else { 6 })?,
            head_width: fields.size_or("d_kv", 64)?,
            inner: fields.size_or("d_ff", if of_t5 { 2048 } else { 1024 })?,
            activation,
            gated,
            buckets,
            furthest,
            epsilon: fields.number_or("layer_norm_epsilon", 1e-6)?,
            tied_embeddings,
            scaled_head: family.scaled_head.unwrap_or(tied_embeddings),
            start_token: fields.count_or("decoder_start_token_id", 0)?,
            dtype: fields.dtype_or(DType::Fp32)?,
        })
    }
}

/// That no weights are quantised: how a checkpoint keeps them is only read for decoders.
pub(super) fn unquantised(fields: &Fields<'_>) -> Result<(), ConfigProblem> {
    if fields.states("quantization_config") {
        Err(fields.wrong(
            "quantization_config",
            "an object",
            "none: only unquantised weights of this family are supported",
        ))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::config::ModelConfig;

    fn read(text: &str) -> Result<ModelConfig, String> {
        ModelConfig::from_json("config.json", text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_head_of_its_own_is_not_scaled_in_t5_and_always_in_umt5() {
        let config = |kind: &str, tied: bool| {
            let text = format!(r#"{{"model_type": "{kind}", "d_model": 512, "tie_word_embeddings": {tied}}}"#);
            let Ok(ModelConfig::T5(config)) = read(&text) else { panic!("{text}") };
            (config.tied_embeddings, config.scaled_head)
        };
        assert_eq!((config("t5", true), config("t5", false)), ((true, true), (false, false)));
        assert_eq!((config("mt5", false), config("umt5", false)), ((false, false), (false, true)));
    }

    #[test]
    fn what_is_not_known_is_refused_by_its_field() {
        for (text, wanted) in [
            (
                r#"{"model_type": "t5", "d_model": 512, "feed_forward_proj": "gated-tanh"}"#,
                "`feed_forward_proj` is \"gated-tanh\"",
            ),
            (r#"{"model_type": "t5", "d_model": 512, "relative_attention_num_buckets": 30}"#, "a multiple of 4"),
            (
                r#"{"model_type": "t5", "d_model": 512, "relative_attention_max_distance": 8}"#,
                "`relative_attention_max_distance` is 8",
            ),
            (
                r#"{"model_type": "t5", "d_model": 512, "quantization_config": {"quant_method": "fp8"}}"#,
                "only unquantised weights",
            ),
            (r#"{"architectures": ["T5EncoderModel"], "model_type": "t5"}"#, "`T5EncoderModel`"),
            (
                r#"{"architectures": ["T5ForSequenceClassification"], "model_type": "t5", "d_model": 512}"#,
                "other heads of this family",
            ),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(wanted), "{error}");
        }
    }
}
