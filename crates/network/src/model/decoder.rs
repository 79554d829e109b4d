//! The one decoder: every language model here is this, with parts chosen by its configuration.

use types::Op;

use super::{CacheLayer, CacheLayout, Prompt};
use crate::config::decoder::{AttentionConfig, DecoderConfig, FeedForwardConfig, LayerConfig};
use crate::layer::{
    Embedding, GatedMlp, GatedMlpNames, GroupedAttention, LatentAttention, Linear, MixtureOfExperts, RmsNorm,
};
use crate::{Backend, Blueprint, Builder, Module, NetworkError, Ops, Repetition};

/// A language model: a decoder and its head.
#[derive(Debug)]
pub struct LanguageModel {
    blueprint: Blueprint,
    model: Module,
    decoder: Decoder,
    head: Head,
}

/// Everything between token ids and final norm.
#[derive(Debug)]
pub(crate) struct Decoder {
    embedding: Embedding,
    layers: Vec<Layer>,
    norm: RmsNorm,
    cache: CacheLayout,
}

/// Hidden states to logits.
#[derive(Debug)]
pub(crate) struct Head {
    /// Absent where the token embedding's table is used as a matrix.
    own: Option<Linear>,
    softcap: Option<f64>,
}

#[derive(Debug)]
struct Layer {
    module: Module,
    attention: Attention,
    feed_forward: FeedForward,
    norms: Norms,
}

#[derive(Debug)]
enum Attention {
    Grouped(GroupedAttention),
    Latent(LatentAttention),
}

#[derive(Debug)]
enum FeedForward {
    Gated(GatedMlp),
    Mixture(Box<MixtureOfExperts>),
}

#[derive(Debug)]
struct Norms {
    before_attention: RmsNorm,
    before_feed_forward: RmsNorm,
    /// On what attention and feed-forward give, before it is added.
    after: Option<[RmsNorm; 2]>,
}

impl LanguageModel {
    /// The network of these sizes.
    pub fn new(config: &DecoderConfig) -> Self {
        let names = &config.family.names;
        let mut builder = Builder::new(names.causal);
        sizes(&mut builder, config);
        let (model, decoder) = builder.module("model", names.model, |builder, module| {
            sizes(builder, config);
            (module, Decoder::new(builder, config))
        });
        let head = Head::new(&mut builder, config);
        Self { blueprint: finish(builder, config), model, decoder, head }
    }

    /// Its modules and parameters.
    pub fn blueprint(&self) -> &Blueprint {
        &self.blueprint
    }

    /// What its cache keeps.
    pub fn cache(&self) -> &CacheLayout {
        self.decoder.cache()
    }

    /// Logits `[B, S, V]`, or of the last position.
    pub fn forward<B: Backend>(&self, b: &mut B, prompt: &Prompt<B::Tensor>) -> Result<B::Tensor, NetworkError> {
        let hidden = b.scope(self.model, &[&prompt.input], |b| {
            let embedded = self.decoder.embed(b, &prompt.input)?;
            self.decoder.forward(b, embedded, prompt.offset)
        })?;
        self.head.forward(b, &self.decoder, &hidden, prompt.last_logits_only)
    }
}

/// The finished blueprint, its matrices kept as the checkpoint of this decoder keeps them.
pub(crate) fn finish(builder: Builder, config: &DecoderConfig) -> Blueprint {
    let blueprint = builder.finish();
    match &config.quantisation {
        None => blueprint,
        Some(quantisation) => blueprint.stored(|blueprint, param| quantisation.format(blueprint, param)),
    }
}

/// What the published classes around a decoder are constructed with.
pub(crate) fn sizes(builder: &mut Builder, config: &DecoderConfig) {
    builder.setting("vocab_size", config.vocabulary);
    builder.setting("hidden_size", config.width);
    builder.setting("num_hidden_layers", config.layers.len());
    builder.setting("num_attention_heads", config.heads);
}

impl Decoder {
    /// Adds `embed_tokens`, `layers` and `norm` to the module under construction.
    pub(crate) fn new(builder: &mut Builder, config: &DecoderConfig) -> Self {
        let names = &config.family.names;
        let sizes = [config.vocabulary, config.width];
        let embedding = Embedding::scaled(builder, "embed_tokens", names.embedding, sizes, config.embedding_scale);
        let count = config.layers.len() as u64;
        let (_, layers) = builder.list("layers", Repetition::Sequential, count, |builder, index| {
            Layer::new(builder, index as usize, config)
        });
        let norm = RmsNorm::new(builder, "norm", names.norm, config.width, config.norm);
        let cache = CacheLayout {
            layers: config.layers.iter().map(kept).collect(),
            dtype: config.quantisation.as_ref().and_then(|quantisation| quantisation.kv),
        };
        Self { embedding, layers, norm, cache }
    }

    pub(crate) fn cache(&self) -> &CacheLayout {
        &self.cache
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
        self.forward_with(b, embedded, offset, None)
    }

    /// The same, with features added to the outputs of the first layers at the positions of image tokens.
    pub(crate) fn forward_with<B: Backend>(
        &self,
        b: &mut B,
        embedded: B::Tensor,
        offset: u64,
        deep: Option<(&[B::Tensor], &B::Tensor)>,
    ) -> Result<B::Tensor, NetworkError> {
        let mut x = embedded;
        for (index, layer) in self.layers.iter().enumerate() {
            x = layer.forward(b, &x, offset)?;
            if let Some((features, mask)) = deep
                && let Some(rows) = features.get(index)
            {
                x = b.apply(Op::AddRows, &[&x, rows, mask])?;
            }
        }
        self.norm.forward(b, &x)
    }
}

/// What the cache keeps for one position of a layer.
fn kept(layer: &LayerConfig) -> CacheLayer {
    match layer.attention {
        AttentionConfig::Grouped(config) => {
            CacheLayer { elements: 2 * config.key_value_heads * config.head_width, window: config.detail.window }
        }
        AttentionConfig::Latent(config) => CacheLayer { elements: config.latent + config.rotary_width, window: None },
    }
}

impl Head {
    /// Adds `lm_head` to the module under construction, unless it is tied to the token embedding.
    pub(crate) fn new(builder: &mut Builder, config: &DecoderConfig) -> Self {
        let own =
            (!config.tied_embeddings).then(|| Linear::new(builder, "lm_head", config.width, config.vocabulary, false));
        Self { own, softcap: config.logit_softcap }
    }

    /// Logits of all positions of `hidden [B, S, O]`, or of the last one.
    pub(crate) fn forward<B: Backend>(
        &self,
        b: &mut B,
        decoder: &Decoder,
        hidden: &B::Tensor,
        last_only: bool,
    ) -> Result<B::Tensor, NetworkError> {
        let length = b.shape(hidden).dims()[1];
        let hidden = if last_only && length > 1 { b.slice(hidden, 1, length - 1, 1)? } else { hidden.clone() };
        let logits = match &self.own {
            Some(head) => head.forward(b, &hidden)?,
            None => {
                let table = decoder.embedding.table(b)?;
                b.apply(Op::Linear, &[&hidden, &table])?
            }
        };
        match self.softcap {
            None => Ok(logits),
            Some(limit) => b.apply(Op::Softcap { limit }, &[&logits]),
        }
    }
}

impl Layer {
    fn new(builder: &mut Builder, index: usize, config: &DecoderConfig) -> Self {
        let (names, width, norm) = (&config.family.names, config.width, config.norm);
        let layer = &config.layers[index];
        builder.module(index.to_string(), names.layer, |builder, module| {
            builder.setting("hidden_size", width);
            builder.setting("layer_idx", index);
            let attention = match layer.attention {
                AttentionConfig::Grouped(part) => {
                    Attention::Grouped(GroupedAttention::new(builder, names, width, part, norm, index))
                }
                AttentionConfig::Latent(part) => {
                    Attention::Latent(LatentAttention::new(builder, names, width, part, norm, index))
                }
            };
            let feed_forward = match &layer.feed_forward {
                FeedForwardConfig::Gated(part) => {
                    let projections = ["gate_proj", "up_proj", "down_proj"];
                    let names = GatedMlpNames { module: "mlp", class: names.mlp, projections };
                    FeedForward::Gated(GatedMlp::new(builder, names, width, *part))
                }
                FeedForwardConfig::Mixture(part) => {
                    FeedForward::Mixture(Box::new(MixtureOfExperts::new(builder, names, width, part)))
                }
            };
            let mut named = |name| RmsNorm::new(builder, name, names.norm, width, norm);
            // With norms around both, the one published as `post_attention` is behind attention instead of before the
            // feed-forward.
            let before_attention = named("input_layernorm");
            let norms = if norm.around {
                let after_attention = named("post_attention_layernorm");
                let before_feed_forward = named("pre_feedforward_layernorm");
                let after = Some([after_attention, named("post_feedforward_layernorm")]);
                Norms { before_attention, before_feed_forward, after }
            } else {
                Norms { before_attention, before_feed_forward: named("post_attention_layernorm"), after: None }
            };
            Self { module, attention, feed_forward, norms }
        })
    }

    fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor, offset: u64) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[x], |b| {
            let normed = self.norms.before_attention.forward(b, x)?;
            let mut mixed = match &self.attention {
                Attention::Grouped(attention) => attention.forward(b, &normed, offset)?,
                Attention::Latent(attention) => attention.forward(b, &normed, offset)?,
            };
            drop(normed);
            if let Some([after, _]) = &self.norms.after {
                mixed = after.forward(b, &mixed)?;
            }
            let x = b.add(x, &mixed)?;
            drop(mixed);
            let normed = self.norms.before_feed_forward.forward(b, &x)?;
            let mut inner = match &self.feed_forward {
                FeedForward::Gated(mlp) => mlp.forward(b, &normed)?,
                FeedForward::Mixture(mixture) => mixture.forward(b, &normed)?,
            };
            if let Some([_, after]) = &self.norms.after {
                inner = after.forward(b, &inner)?;
            }
            b.add(&x, &inner)
        })
    }
}
