//! The one decoder: every language model here is this, with parts chosen by its configuration.

use types::Op;

use super::{CacheKind, CacheLayer, CacheLayout, Prompt};
use crate::config::decoder::{
    AttentionConfig, DecoderConfig, FeedForwardConfig, LayerConfig, NormPlacement, PositionsConfig,
};
use crate::config::family::is_computed;
use crate::layer::{
    Embedding, GatedDelta, GatedMlp, GatedMlpNames, GroupedAttention, LatentAttention, Linear, MixtureOfExperts, Norm,
    PlainMlp, StateSpace,
};
use crate::{Backend, Blueprint, Builder, Module, NetworkError, Ops, Repetition};

/// A language model: a decoder and its head.
#[derive(Debug)]
pub struct LanguageModel {
    blueprint: Blueprint,
    model: Module,
    decoder: Decoder,
    head: Head,
    computed: bool,
}

/// Everything between token ids and final norm.
#[derive(Debug)]
pub(crate) struct Decoder {
    embedding: Embedding,
    positions: Option<(Embedding, PositionsConfig)>,
    layers: Vec<Layer>,
    norm: Norm,
    cache: CacheLayout,
}

/// Hidden states to logits.
#[derive(Debug)]
pub(crate) struct Head {
    /// Absent where the token embedding's table is used as a matrix.
    own: Option<Linear>,
    softcap: Option<f64>,
    scale: Option<f64>,
}

#[derive(Debug)]
struct Layer {
    module: Module,
    attention: Attention,
    feed_forward: FeedForward,
    norms: Norms,
    residual_scale: Option<f64>,
}

#[derive(Debug)]
enum Attention {
    Grouped(GroupedAttention),
    Latent(Box<LatentAttention>),
    Delta(GatedDelta),
    StateSpace(StateSpace),
    Absent,
}

#[derive(Debug)]
enum FeedForward {
    Gated(GatedMlp),
    Plain(PlainMlp),
    Mixture(Box<MixtureOfExperts>),
    Absent,
}

/// Norms of a layer, each where the layer has one.
#[derive(Debug)]
struct Norms {
    before_attention: Option<Norm>,
    after_attention: Option<Norm>,
    before_feed_forward: Option<Norm>,
    after_feed_forward: Option<Norm>,
    /// Whether the feed-forward is given what attention is given, instead of what it gives.
    parallel: bool,
}

impl LanguageModel {
    /// The network of these sizes.
    pub fn new(config: &DecoderConfig) -> Self {
        let names = &config.family.names;
        let mut builder = Builder::new(names.causal);
        sizes(&mut builder, config);
        let (model, decoder) = builder.module(names.model_module, names.model, |builder, module| {
            sizes(builder, config);
            (module, Decoder::new(builder, config))
        });
        let head = Head::new(&mut builder, config);
        Self { blueprint: finish(builder, config), model, decoder, head, computed: is_computed(config.family) }
    }

    /// Its modules and parameters.
    pub fn blueprint(&self) -> &Blueprint {
        &self.blueprint
    }

    /// What its cache keeps.
    pub fn cache(&self) -> &CacheLayout {
        self.decoder.cache()
    }

    /// Whether its logits were compared with transformers; otherwise it is for modelling only.
    pub fn is_computed(&self) -> bool {
        self.computed
    }

    /// Logits `[B, S, V]`, or of the last position.
    pub fn forward<B: Backend>(&self, b: &mut B, prompt: &Prompt<B::Tensor>) -> Result<B::Tensor, NetworkError> {
        let hidden = b.scope(self.model, &[&prompt.input], |b| {
            let embedded = self.decoder.embed(b, &prompt.input, prompt.offset)?;
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
        let embedding =
            Embedding::scaled(builder, names.embedding_module, names.embedding, sizes, config.embedding_scale);
        let positions = config.positions.map(|positions| {
            let (name, class) = names.positions;
            (Embedding::scaled(builder, name, class, [positions.rows, config.width], None), positions)
        });
        let count = config.layers.len() as u64;
        let (_, layers) = builder.list(names.layers_module, Repetition::Sequential, count, |builder, index| {
            Layer::new(builder, index as usize, config)
        });
        let norm = Norm::new(builder, names.final_norm, names.norm, config.width, config.norm);
        let cache = CacheLayout {
            layers: config.layers.iter().map(kept).collect(),
            dtype: config.quantisation.as_ref().and_then(|quantisation| quantisation.kv),
        };
        Self { embedding, positions, layers, norm, cache }
    }

    pub(crate) fn cache(&self) -> &CacheLayout {
        &self.cache
    }

    /// Token ids `[B, S]`, the first at position `offset`, to embeddings.
    pub(crate) fn embed<B: Backend>(&self, b: &mut B, ids: &B::Tensor, offset: u64) -> Result<B::Tensor, NetworkError> {
        let embedded = self.embedding.forward(b, ids)?;
        let Some((table, config)) = &self.positions else { return Ok(embedded) };
        let [_, length, width] = [0, 1, 2].map(|dim| b.shape(&embedded).dims()[dim]);
        // A position past the table costs what the last one costs; a network that computes never asks for it.
        let start = (offset + config.first).min(config.rows.saturating_sub(length));
        let table = table.table(b)?;
        let rows = b.slice(&table, 0, start, length)?;
        let rows = b.reshape(&rows, [1, length, width])?;
        b.add(&embedded, &rows)
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

/// What the cache keeps for a layer.
fn kept(layer: &LayerConfig) -> CacheLayer {
    let growing = |kind, elements, window| CacheLayer { kind, elements, window, state: [0, 0] };
    match layer.attention {
        AttentionConfig::Grouped(config) => {
            let kind = if config.detail.window.is_some() { CacheKind::Sliding } else { CacheKind::Full };
            growing(kind, 2 * config.key_value_heads * config.head_width, config.detail.window)
        }
        AttentionConfig::Latent(config) => {
            let indexed = config.indexer.map_or(0, |indexer| indexer.width);
            growing(CacheKind::Latent, config.latent + config.rotary_width + indexed, None)
        }
        AttentionConfig::Delta(config) => {
            let (keys, values) = (config.key_heads * config.key_width, config.value_heads * config.value_width);
            let state = [(2 * keys + values) * config.kernel, config.key_width * values];
            CacheLayer { state, ..growing(CacheKind::Linear, 0, None) }
        }
        AttentionConfig::StateSpace(config) => {
            let state = [config.channels() * config.kernel, config.inner * config.state];
            CacheLayer { state, ..growing(CacheKind::StateSpace, 0, None) }
        }
        AttentionConfig::Absent => growing(CacheKind::Absent, 0, None),
    }
}

impl Head {
    /// Adds `lm_head` to the module under construction, unless it is tied to the token embedding.
    pub(crate) fn new(builder: &mut Builder, config: &DecoderConfig) -> Self {
        let own = (!config.tied_embeddings)
            .then(|| Linear::new(builder, "lm_head", config.width, config.vocabulary, config.head_bias));
        Self { own, softcap: config.logit_softcap, scale: config.logit_scale }
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
        let logits = match self.scale {
            None => logits,
            Some(factor) => b.apply(Op::Scale { factor }, &[&logits])?,
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
        let class = match layer.attention {
            AttentionConfig::StateSpace(_) => names.state_space_layer.unwrap_or(names.layer),
            _ => names.layer,
        };
        builder.module(index.to_string(), class, |builder, module| {
            builder.setting("hidden_size", width);
            builder.setting("layer_idx", index);
            let attention = match layer.attention {
                AttentionConfig::Grouped(part) => {
                    Attention::Grouped(GroupedAttention::new(builder, names, width, part, norm, index))
                }
                AttentionConfig::Latent(part) => {
                    Attention::Latent(Box::new(LatentAttention::new(builder, names, width, part, norm, index)))
                }
                AttentionConfig::Delta(part) => Attention::Delta(GatedDelta::new(builder, names, width, part, norm)),
                AttentionConfig::StateSpace(part) => {
                    Attention::StateSpace(StateSpace::new(builder, names, width, part, norm))
                }
                AttentionConfig::Absent => Attention::Absent,
            };
            let feed_forward = match &layer.feed_forward {
                FeedForwardConfig::Gated(part) => {
                    let (projections, fused) = (names.mlp_modules, names.fused_mlp);
                    let names = GatedMlpNames { module: names.mlp_module, class: names.mlp, projections, fused };
                    FeedForward::Gated(GatedMlp::new(builder, names, width, *part))
                }
                FeedForwardConfig::Plain(part) => {
                    FeedForward::Plain(PlainMlp::of_decoder(builder, names, width, *part))
                }
                FeedForwardConfig::Mixture(part) => {
                    FeedForward::Mixture(Box::new(MixtureOfExperts::new(builder, names, width, part)))
                }
                FeedForwardConfig::Absent => FeedForward::Absent,
            };
            let (before, after, parallel) = match norm.placement {
                NormPlacement::Before => ([true; 2], false, false),
                NormPlacement::Around => ([true; 2], true, false),
                NormPlacement::After => ([false; 2], true, false),
                NormPlacement::Parallel { both } => ([true, both], false, true),
            };
            let attends = layer.attention != AttentionConfig::Absent;
            let feeds = layer.feed_forward != FeedForwardConfig::Absent;
            let wanted = [before[0] && attends, after && attends, before[1] && feeds, after && feeds];
            let mut named =
                |at: usize| wanted[at].then(|| Norm::new(builder, names.layer_norms[at], names.norm, width, norm));
            let norms = Norms {
                before_attention: named(0),
                after_attention: named(1),
                before_feed_forward: named(2),
                after_feed_forward: named(3),
                parallel,
            };
            Self { module, attention, feed_forward, norms, residual_scale: config.residual_scale }
        })
    }

    fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor, offset: u64) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[x], |b| {
            let given = normed(b, &self.norms.before_attention, x)?;
            let mixed = match &self.attention {
                Attention::Grouped(attention) => attention.forward(b, &given, offset)?,
                Attention::Latent(attention) => attention.forward(b, &given, offset)?,
                Attention::Delta(attention) => attention.forward(b, &given)?,
                Attention::StateSpace(part) => part.forward(b, &given)?,
                Attention::Absent => return self.feed_forward(b, x),
            };
            if self.norms.parallel {
                let given = match &self.norms.before_feed_forward {
                    None => given,
                    Some(norm) => norm.forward(b, x)?,
                };
                let inner = self.feed(b, &given)?;
                let x = self.added(b, x, mixed)?;
                return self.added(b, &x, inner);
            }
            drop(given);
            let mixed = normed(b, &self.norms.after_attention, &mixed)?;
            let x = self.added(b, x, mixed)?;
            self.feed_forward(b, &x)
        })
    }

    /// The part of the layer behind attention.
    fn feed_forward<B: Backend>(&self, b: &mut B, x: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        if matches!(self.feed_forward, FeedForward::Absent) {
            return Ok(x.clone());
        }
        let given = normed(b, &self.norms.before_feed_forward, x)?;
        let inner = self.feed(b, &given)?;
        let inner = normed(b, &self.norms.after_feed_forward, &inner)?;
        self.added(b, x, inner)
    }

    fn feed<B: Backend>(&self, b: &mut B, x: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        match &self.feed_forward {
            FeedForward::Gated(mlp) => mlp.forward(b, x),
            FeedForward::Plain(mlp) => mlp.forward(b, x),
            FeedForward::Mixture(mixture) => mixture.forward(b, x),
            FeedForward::Absent => Ok(x.clone()),
        }
    }

    /// `x` and what a part of the layer gives, which is scaled first where the family scales it.
    fn added<B: Backend>(&self, b: &mut B, x: &B::Tensor, part: B::Tensor) -> Result<B::Tensor, NetworkError> {
        match self.residual_scale {
            None => b.add(x, &part),
            Some(factor) => {
                let part = b.apply(Op::Scale { factor }, &[&part])?;
                b.add(x, &part)
            }
        }
    }
}

fn normed<B: Backend>(b: &mut B, norm: &Option<Norm>, x: &B::Tensor) -> Result<B::Tensor, NetworkError> {
    norm.as_ref().map_or_else(|| Ok(x.clone()), |norm| norm.forward(b, x))
}
