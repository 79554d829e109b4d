//! One layer of the decoder: attention and feed-forward, each of the parts its configuration chooses, and norms around them.

use std::sync::Arc;

use types::{ActivationKind, Op};

use super::{CacheKind, CacheLayer};
use crate::config::Names;
use crate::config::decoder::{AttentionConfig, DecoderConfig, FeedForwardConfig, LayerConfig, NormPlacement, Values};
use crate::layer::{
    AltUp, CompressedAttention, DenseBesideExperts, GatedDelta, GatedMlp, GatedMlpNames, GroupedAttention,
    HyperConnection, LatentAttention, MixtureOfExperts, Norm, PerLayerInput, PlainMlp, SharedBlock, ShortConv, Source,
    StateSpace, Weights,
};
use crate::{Backend, Builder, Module, NetworkError, Ops, Param};

#[derive(Debug)]
pub(super) struct Layer {
    module: Module,
    attention: Attention,
    feed_forward: FeedForward,
    norms: Norms,
    residual_scale: Option<f64>,
    /// What it does with embeddings of its own.
    own: Option<PerLayerInput>,
    /// A block in front that other layers share.
    shared: Option<Box<SharedBlock>>,
    /// What it does with streams, where there are several.
    altup: Option<Box<AltUp>>,
    /// What collapses and mixes streams around attention and around the feed-forward.
    hyper: Option<Box<[HyperConnection; 2]>>,
    scalar: Option<Param>,
}

#[derive(Debug)]
enum Attention {
    Grouped(Box<GroupedAttention>),
    Latent(Box<LatentAttention>),
    Delta(GatedDelta),
    Compressed(Box<CompressedAttention>),
    StateSpace(StateSpace),
    /// Both, and factors on the input and output of the first and on the output of the second.
    Hybrid(Box<(GroupedAttention, StateSpace)>, [f64; 3]),
    ShortConv(ShortConv),
    /// To a picture, and factors on what it gives and on what the feed-forward gives. Without a picture the layer is not run.
    Cross(Box<GroupedAttention>, [Param; 2]),
    Absent,
}

#[derive(Debug)]
enum FeedForward {
    Gated(GatedMlp),
    Plain(PlainMlp),
    Mixture(Box<MixtureOfExperts>),
    Beside(Box<DenseBesideExperts>),
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

impl Layer {
    pub(super) fn new(
        builder: &mut Builder,
        index: usize,
        config: &DecoderConfig,
        blocks: &mut Vec<Arc<Weights>>,
    ) -> Self {
        let (names, width, norm) = (&config.family.names, config.width, config.norm);
        let layer = &config.layers[index];
        let class = match layer.attention {
            AttentionConfig::StateSpace(_) | AttentionConfig::Delta(_) => {
                names.state_space_layer.unwrap_or(names.layer)
            }
            AttentionConfig::Cross(_) => names.cross[0],
            _ => names.layer,
        };
        builder.module(index.to_string(), class, |builder, module| {
            builder.setting("hidden_size", width);
            builder.setting("layer_idx", index);
            let attention = match layer.attention {
                AttentionConfig::Grouped(part) => {
                    Attention::Grouped(Box::new(GroupedAttention::new(builder, names, width, part, norm, index)))
                }
                AttentionConfig::Latent(part) => {
                    Attention::Latent(Box::new(LatentAttention::new(builder, names, width, part, norm, index)))
                }
                AttentionConfig::Delta(part) => Attention::Delta(GatedDelta::new(builder, names, width, part, norm)),
                AttentionConfig::Compressed(part) => {
                    Attention::Compressed(Box::new(CompressedAttention::new(builder, names, width, part, norm, index)))
                }
                AttentionConfig::StateSpace(part) => {
                    Attention::StateSpace(StateSpace::new(builder, names, width, part, norm))
                }
                AttentionConfig::Hybrid(part) => {
                    let state_space = StateSpace::new(builder, names, width, part.state_space, norm);
                    let attention = GroupedAttention::new(builder, names, width, part.attention, norm, index);
                    Attention::Hybrid(Box::new((attention, state_space)), part.scales)
                }
                AttentionConfig::ShortConv(part) => Attention::ShortConv(ShortConv::new(builder, names, width, part)),
                AttentionConfig::Cross(part) => {
                    let names = Names { attention_module: "cross_attn", attention: names.cross[1], ..*names };
                    let attention = GroupedAttention::new(builder, &names, width, part, norm, index);
                    let gates = ["cross_attn_attn_gate", "cross_attn_mlp_gate"].map(|gate| builder.param(gate, [1]));
                    Attention::Cross(Box::new(attention), gates)
                }
                AttentionConfig::Absent => Attention::Absent,
            };
            let feed_forward = match &layer.feed_forward {
                FeedForwardConfig::Gated(part) => {
                    let (projections, fused) = (names.mlp_modules, names.fused_mlp);
                    let norm = (norm.placement == NormPlacement::Inside).then_some((names.norm, norm));
                    let (module, class) = (names.mlp_module, names.mlp);
                    let names = GatedMlpNames { module, class, projections, fused, norm };
                    FeedForward::Gated(GatedMlp::new(builder, names, width, *part))
                }
                FeedForwardConfig::Plain(part) => {
                    FeedForward::Plain(PlainMlp::of_decoder(builder, names, width, *part))
                }
                FeedForwardConfig::Mixture(part) => {
                    FeedForward::Mixture(Box::new(MixtureOfExperts::new(builder, names, width, part)))
                }
                FeedForwardConfig::Beside(part) => {
                    FeedForward::Beside(Box::new(DenseBesideExperts::new(builder, names, width, part, norm)))
                }
                FeedForwardConfig::Absent => FeedForward::Absent,
            };
            let shared = config.shared.as_ref().filter(|shared| shared.layers[index]).map(|shared| {
                let place = shared.layers[..index].iter().filter(|is_one| **is_one).count() as u64;
                let part = (shared.block, norm);
                Box::new(SharedBlock::new(builder, names, width, part, (index, place), blocks))
            });
            let linear = matches!(layer.attention, AttentionConfig::Delta(_));
            let mixes = matches!(layer.feed_forward, FeedForwardConfig::Mixture(_));
            let parallel = matches!(norm.placement, NormPlacement::Parallel { .. });
            let (before, after) = match norm.placement {
                NormPlacement::Before | NormPlacement::Inside => ([true; 2], [false; 2]),
                NormPlacement::AfterSoftmax => ([linear; 2], [!linear; 2]),
                NormPlacement::AfterExperts => ([true; 2], [false, mixes]),
                NormPlacement::Around => ([true; 2], [true; 2]),
                NormPlacement::After => ([false; 2], [true; 2]),
                NormPlacement::Parallel { both } => ([true, both], [false; 2]),
            };
            let attends = layer.attention != AttentionConfig::Absent;
            let feeds = layer.feed_forward != FeedForwardConfig::Absent;
            let wanted = [before[0] && attends, after[0] && attends, before[1] && feeds, after[1] && feeds];
            let mut named =
                |at: usize| wanted[at].then(|| Norm::new(builder, names.layer_norms[at], names.norm, width, norm));
            let norms = Norms {
                before_attention: named(0),
                after_attention: named(1),
                before_feed_forward: named(2),
                after_feed_forward: named(3),
                parallel,
            };
            let activation = match layer.feed_forward {
                FeedForwardConfig::Gated(part) => part.activation,
                FeedForwardConfig::Beside(part) => part.dense.activation,
                _ => ActivationKind::Silu,
            };
            let per_layer = config.per_layer;
            let own = per_layer.map(|part| PerLayerInput::new(builder, names, width, part, norm, activation));
            let altup = config.streams.map(|part| Box::new(AltUp::new(builder, names, width, part, norm)));
            let mut connect = |name, part| HyperConnection::new(builder, names, name, width, part, norm);
            let hyper = config.hyper.map(|part| Box::new([connect("attn_hc", part), connect("ffn_hc", part)]));
            let scalar = config.layer_scalar.then(|| builder.buffer("layer_scalar", [1]));
            Self {
                module,
                attention,
                feed_forward,
                norms,
                residual_scale: config.residual_scale,
                own,
                shared,
                altup,
                hyper,
                scalar,
            }
        })
    }

    /// `x [B, S, O]`, the layer's own embeddings `[B, S, 1, width]` and what cross-attention sees, where there are any.
    pub(super) fn forward<B: Backend>(
        &self,
        b: &mut B,
        x: &B::Tensor,
        [own, source, embedded]: [Option<&B::Tensor>; 3],
        offset: u64,
    ) -> Result<B::Tensor, NetworkError> {
        if let Attention::Cross(attention, gates) = &self.attention {
            return self.cross(b, x, source, (attention, *gates));
        }
        b.scope(self.module, &[x], |b| {
            if let (Some(altup), Some(part), Some(own)) = (&self.altup, &self.own, own) {
                return self.one_of_several(b, x, (altup, part, own), offset);
            }
            if let Some(hyper) = &self.hyper {
                return self.connected(b, x, hyper, offset);
            }
            let mut x = self.mixed(b, x, embedded, offset)?;
            if let (Some(part), Some(own)) = (&self.own, own) {
                x = part.forward(b, &x, own)?;
            }
            match self.scalar {
                None => Ok(x),
                Some(scalar) => {
                    let scalar = b.param(scalar)?;
                    b.multiply(&x, &scalar)
                }
            }
        })
    }

    /// Attention to the source that is given or was kept; nothing where there is none.
    fn cross<B: Backend>(
        &self,
        b: &mut B,
        x: &B::Tensor,
        source: Option<&B::Tensor>,
        (attention, gates): (&GroupedAttention, [Param; 2]),
    ) -> Result<B::Tensor, NetworkError> {
        let batch = b.shape(x).dims()[0];
        let held = match source {
            Some(source) => Some(Source::Given(source)),
            None => attention.held(b, batch)?.map(|(keys, values)| Source::Held(keys, values)),
        };
        let Some(held) = held else { return Ok(x.clone()) };
        let mut inputs = vec![x];
        inputs.extend(source);
        b.scope(self.module, &inputs, |b| {
            let given = normed(b, &self.norms.before_attention, x)?;
            let mixed = attention.cross(b, &given, held)?;
            let mixed = gated(b, &mixed, gates[0])?;
            let x = b.add(x, &mixed)?;
            let given = normed(b, &self.norms.before_feed_forward, &x)?;
            let inner = self.feed(b, &given, &x)?;
            let inner = gated(b, &inner, gates[1])?;
            b.add(&x, &inner)
        })
    }

    /// Streams `[N, B, S, O]`: one is computed, the others are predicted and corrected by it.
    fn one_of_several<B: Backend>(
        &self,
        b: &mut B,
        streams: &B::Tensor,
        (altup, part, own): (&AltUp, &PerLayerInput, &B::Tensor),
        offset: u64,
    ) -> Result<B::Tensor, NetworkError> {
        let predicted = altup.predict(b, streams)?;
        let active = altup.active(b, &predicted)?;
        let given = normed(b, &self.norms.before_attention, &active)?;
        let beside = altup.beside(b, &given)?;
        let mixed = self.attend(b, &given, offset)?;
        let mixed = normed(b, &self.norms.after_attention, &mixed)?;
        let x = b.add(&active, &mixed)?;
        let x = b.add(&x, &beside)?;
        let x = b.apply(Op::Scale { factor: std::f64::consts::FRAC_1_SQRT_2 }, &[&x])?;
        let made = self.feed_forward(b, &x)?;
        let corrected = altup.correct(b, &predicted, &made)?;
        let first = altup.active(b, &corrected)?;
        let first = altup.scaled(b, &first)?;
        let addition = part.addition(b, &first, own)?;
        altup.add_to_others(b, &corrected, &addition)
    }

    /// Streams `[B, S, N, O]`, collapsed for attention and for the feed-forward and mixed with what these give.
    fn connected<B: Backend>(
        &self,
        b: &mut B,
        streams: &B::Tensor,
        [around_attention, around_feed_forward]: &[HyperConnection; 2],
        offset: u64,
    ) -> Result<B::Tensor, NetworkError> {
        let [weights, x] = around_attention.collapse(b, streams)?;
        let given = normed(b, &self.norms.before_attention, &x)?;
        let mixed = self.attend(b, &given, offset)?;
        let streams = around_attention.mix(b, streams, &weights, &mixed)?;
        let [weights, x] = around_feed_forward.collapse(b, &streams)?;
        let given = normed(b, &self.norms.before_feed_forward, &x)?;
        let inner = self.feed(b, &given, &x)?;
        around_feed_forward.mix(b, &streams, &weights, &inner)
    }

    /// Attention, or what is in its place.
    fn attend<B: Backend>(&self, b: &mut B, given: &B::Tensor, offset: u64) -> Result<B::Tensor, NetworkError> {
        match &self.attention {
            Attention::Grouped(attention) => attention.forward(b, given, offset),
            Attention::Latent(attention) => attention.forward(b, given, offset),
            Attention::Delta(attention) => attention.forward(b, given),
            Attention::Compressed(attention) => attention.forward(b, given, offset),
            Attention::StateSpace(part) => part.forward(b, given),
            Attention::Hybrid(parts, [before, behind, beside]) => {
                let (attention, state_space) = parts.as_ref();
                let spaced = state_space.forward(b, given)?;
                let spaced = scaled(b, spaced, *beside)?;
                let given = scaled(b, given.clone(), *before)?;
                let mixed = attention.forward(b, &given, offset)?;
                let mixed = scaled(b, mixed, *behind)?;
                b.add(&spaced, &mixed)
            }
            Attention::ShortConv(part) => part.forward(b, given),
            // Done by the layer itself.
            Attention::Cross(..) | Attention::Absent => Ok(given.clone()),
        }
    }

    /// Attention and feed-forward.
    fn mixed<B: Backend>(
        &self,
        b: &mut B,
        x: &B::Tensor,
        embedded: Option<&B::Tensor>,
        offset: u64,
    ) -> Result<B::Tensor, NetworkError> {
        if matches!(self.attention, Attention::Absent) {
            return self.feed_forward(b, x);
        }
        let ahead = match (&self.shared, embedded) {
            (Some(shared), Some(embedded)) => {
                let added = shared.forward(b, [x, embedded], offset)?;
                b.add(x, &added)?
            }
            _ => x.clone(),
        };
        let given = normed(b, &self.norms.before_attention, &ahead)?;
        let mixed = self.attend(b, &given, offset)?;
        if self.norms.parallel {
            let given = match &self.norms.before_feed_forward {
                None => given,
                Some(norm) => norm.forward(b, x)?,
            };
            let inner = self.feed(b, &given, x)?;
            let x = self.added(b, x, mixed)?;
            return self.added(b, &x, inner);
        }
        drop(given);
        let mixed = normed(b, &self.norms.after_attention, &mixed)?;
        let x = self.added(b, x, mixed)?;
        self.feed_forward(b, &x)
    }

    /// The part of the layer behind attention.
    fn feed_forward<B: Backend>(&self, b: &mut B, x: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        if matches!(self.feed_forward, FeedForward::Absent) {
            return Ok(x.clone());
        }
        let given = normed(b, &self.norms.before_feed_forward, x)?;
        let inner = self.feed(b, &given, x)?;
        let inner = normed(b, &self.norms.after_feed_forward, &inner)?;
        self.added(b, x, inner)
    }

    /// The feed-forward of `given`, which is `x` normed.
    fn feed<B: Backend>(&self, b: &mut B, given: &B::Tensor, x: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        match &self.feed_forward {
            FeedForward::Gated(mlp) => mlp.forward(b, given),
            FeedForward::Plain(mlp) => mlp.forward(b, given),
            FeedForward::Mixture(mixture) => mixture.forward(b, given),
            FeedForward::Beside(both) => both.forward(b, given, x),
            FeedForward::Absent => Ok(given.clone()),
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

/// `x` times a factor; nothing is done where that is one.
fn scaled<B: Backend>(b: &mut B, x: B::Tensor, factor: f64) -> Result<B::Tensor, NetworkError> {
    if factor == 1.0 { Ok(x) } else { b.apply(Op::Scale { factor }, &[&x]) }
}

/// `x` times the hyperbolic tangent of a gate.
fn gated<B: Backend>(b: &mut B, x: &B::Tensor, gate: Param) -> Result<B::Tensor, NetworkError> {
    let gate = b.param(gate)?;
    // tanh, as a cap of one.
    let gate = b.apply(Op::Softcap { limit: 1.0 }, &[&gate])?;
    b.multiply(x, &gate)
}

fn normed<B: Backend>(b: &mut B, norm: &Option<Norm>, x: &B::Tensor) -> Result<B::Tensor, NetworkError> {
    norm.as_ref().map_or_else(|| Ok(x.clone()), |norm| norm.forward(b, x))
}

/// What the cache keeps for a layer of a decoder of that width.
pub(super) fn kept(layer: &LayerConfig, width: u64) -> CacheLayer {
    let growing = |kind, elements, window| CacheLayer { kind, elements, window, entries: 0, source: 0, state: [0, 0] };
    match layer.attention {
        AttentionConfig::Grouped(config) => {
            let kind = match (config.values, config.detail.window) {
                (Values::OfLayer(_), _) => return growing(CacheKind::Absent, 0, None),
                (_, None) => CacheKind::Full,
                (_, Some(_)) if config.detail.chunked.is_some() => CacheKind::Chunked,
                (_, Some(_)) => CacheKind::Sliding,
            };
            let indexed = config.blocks.map_or(0, |blocks| blocks.width);
            let elements = config.key_value_heads * (config.head_width + config.value_width) + indexed;
            growing(kind, elements, config.detail.window)
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
        AttentionConfig::Compressed(config) => CacheLayer {
            entries: config.entry_elements(),
            ..growing(CacheKind::Compressed, config.head_width, Some(config.window))
        },
        AttentionConfig::Hybrid(config) => {
            let state = config.state_space;
            let state = [state.channels() * state.kernel, state.inner * state.state];
            let elements =
                config.attention.key_value_heads * (config.attention.head_width + config.attention.value_width);
            CacheLayer { state, ..growing(CacheKind::Hybrid, elements, None) }
        }
        AttentionConfig::ShortConv(config) => {
            CacheLayer { state: [width * config.kernel, 0], ..growing(CacheKind::Convolution, 0, None) }
        }
        AttentionConfig::Cross(_) | AttentionConfig::Absent => growing(CacheKind::Absent, 0, None),
    }
}
