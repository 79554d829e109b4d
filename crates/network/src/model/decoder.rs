//! The decoder stack that language models share: embedding, layers, final norm and head.

use super::CacheLayout;
use crate::layer::{
    DecoderAttention, DecoderAttentionSettings, Embedding, GatedMlp, Linear, MixtureOfExperts, MixtureSettings, RmsNorm,
};
use crate::{Backend, Builder, Module, NetworkError, Ops, Repetition};

/// Class names of the published model.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DecoderClasses {
    pub(crate) layer: &'static str,
    pub(crate) attention: &'static str,
    pub(crate) rotary: Option<&'static str>,
    pub(crate) norm: &'static str,
    pub(crate) mlp: &'static str,
}

/// Sizes of a decoder.
#[derive(Clone, Debug)]
pub(crate) struct DecoderSettings {
    pub(crate) classes: DecoderClasses,
    pub(crate) vocabulary: u64,
    pub(crate) width: u64,
    pub(crate) layers: u64,
    pub(crate) heads: u64,
    pub(crate) key_value_heads: u64,
    pub(crate) head_width: u64,
    pub(crate) attention_bias: bool,
    pub(crate) dense_inner: u64,
    /// Layers before this one are dense, the others mix experts; absent where all are dense.
    pub(crate) mixture: Option<(u64, MixtureSettings)>,
    pub(crate) epsilon: f64,
    pub(crate) theta: f64,
}

/// Everything between token embeddings and final norm.
#[derive(Debug)]
pub(crate) struct Decoder {
    embedding: Embedding,
    layers: Vec<Layer>,
    norm: RmsNorm,
    cache: CacheLayout,
}

#[derive(Debug)]
struct Layer {
    module: Module,
    attention: DecoderAttention,
    feed_forward: FeedForward,
    input_norm: RmsNorm,
    post_attention_norm: RmsNorm,
}

#[derive(Debug)]
enum FeedForward {
    Dense(GatedMlp),
    Mixture(Box<MixtureOfExperts>),
}

impl Decoder {
    /// Adds `embed_tokens`, `layers` and `norm` to the module under construction.
    pub(crate) fn new(builder: &mut Builder, settings: &DecoderSettings) -> Self {
        let &DecoderSettings { classes, width, epsilon, .. } = settings;
        let embedding = Embedding::new(builder, "embed_tokens", settings.vocabulary, width);
        let (_, layers) = builder.list("layers", Repetition::Sequential, settings.layers, |builder, index| {
            Layer::new(builder, index, settings)
        });
        let cache =
            CacheLayout { layers: settings.layers, heads: settings.key_value_heads, head_width: settings.head_width };
        Self { embedding, layers, norm: RmsNorm::new(builder, "norm", classes.norm, width, epsilon), cache }
    }

    pub(crate) fn cache(&self) -> CacheLayout {
        self.cache
    }

    pub(crate) fn embedding(&self) -> &Embedding {
        &self.embedding
    }

    pub(crate) fn embed<B: Backend>(&self, b: &mut B, ids: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        self.embedding.forward(b, ids)
    }

    /// Embeddings `[B, S, O]`, the first at position `offset`, to hidden states.
    pub(crate) fn forward<B: Backend>(
        &self,
        b: &mut B,
        embedded: B::Tensor,
        offset: u64,
    ) -> Result<B::Tensor, NetworkError> {
        let mut x = embedded;
        for layer in &self.layers {
            x = layer.forward(b, &x, offset)?;
        }
        self.norm.forward(b, &x)
    }
}

impl Layer {
    fn new(builder: &mut Builder, index: u64, settings: &DecoderSettings) -> Self {
        let &DecoderSettings { classes, width, epsilon, .. } = settings;
        builder.module(index.to_string(), classes.layer, |builder, module| {
            builder.setting("hidden_size", width);
            builder.setting("layer_idx", index);
            let attention = DecoderAttention::new(
                builder,
                DecoderAttentionSettings {
                    class: classes.attention,
                    rotary_class: classes.rotary,
                    width,
                    heads: settings.heads,
                    key_value_heads: settings.key_value_heads,
                    head_width: settings.head_width,
                    bias: settings.attention_bias,
                    theta: settings.theta,
                    layer: index as usize,
                },
            );
            let feed_forward = match settings.mixture {
                Some((first, mixture)) if index >= first => {
                    FeedForward::Mixture(Box::new(MixtureOfExperts::new(builder, mixture)))
                }
                _ => FeedForward::Dense(GatedMlp::new(builder, "mlp", classes.mlp, width, settings.dense_inner)),
            };
            Self {
                module,
                attention,
                feed_forward,
                input_norm: RmsNorm::new(builder, "input_layernorm", classes.norm, width, epsilon),
                post_attention_norm: RmsNorm::new(builder, "post_attention_layernorm", classes.norm, width, epsilon),
            }
        })
    }

    fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor, offset: u64) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[x], |b| {
            let normed = self.input_norm.forward(b, x)?;
            let mixed = self.attention.forward(b, &normed, offset)?;
            drop(normed);
            let x = b.add(x, &mixed)?;
            drop(mixed);
            let normed = self.post_attention_norm.forward(b, &x)?;
            let inner = match &self.feed_forward {
                FeedForward::Dense(mlp) => mlp.forward(b, &normed)?,
                FeedForward::Mixture(mixture) => mixture.forward(b, &normed)?,
            };
            b.add(&x, &inner)
        })
    }
}

/// Logits of all positions of `hidden [B, S, O]`, or of the last one.
pub(crate) fn logits<B: Backend>(
    b: &mut B,
    head: &Linear,
    hidden: &B::Tensor,
    last_only: bool,
) -> Result<B::Tensor, NetworkError> {
    let length = b.shape(hidden).dims()[1];
    if last_only && length > 1 {
        let last = b.slice(hidden, 1, length - 1, 1)?;
        return head.forward(b, &last);
    }
    head.forward(b, hidden)
}
