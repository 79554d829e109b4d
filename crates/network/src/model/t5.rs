//! T5: an encoder over the prompt, and a decoder that starts from one token and attends to what the encoder gives.

use types::Op;

use super::{CacheLayout, Prompt};
use crate::config::decoder::{NormConfig, NormKind, NormPlacement};
use crate::config::t5::T5Config;
use crate::layer::{ActivationLayer, Embedding, Linear, MultiHead, MultiHeadConfig, Norm, Sees};
use crate::{Backend, Blueprint, Builder, Module, NetworkError, Ops, Repetition};

/// The network.
#[derive(Debug)]
pub struct T5 {
    blueprint: Blueprint,
    embedding: Embedding,
    encoder: Stack,
    decoder: Stack,
    /// Absent where the table of embeddings is used as a matrix.
    head: Option<Linear>,
    cache: CacheLayout,
    config: T5Config,
}

/// The encoder's layers, or the decoder's.
#[derive(Debug)]
struct Stack {
    module: Module,
    blocks: Vec<Block>,
    norm: Norm,
    /// Whether positions see later ones.
    both_ways: bool,
    furthest: u64,
}

#[derive(Debug)]
struct Block {
    module: Module,
    /// Scores of distances, where this layer has a table of its own.
    distances: Option<Embedding>,
    itself: Attends,
    source: Option<Attends>,
    feed_forward: FeedForward,
}

/// Attention with the norm in front of it.
#[derive(Debug)]
struct Attends {
    module: Module,
    norm: Norm,
    attention: MultiHead,
}

#[derive(Debug)]
struct FeedForward {
    module: Module,
    norm: Norm,
    dense: Module,
    gate: Option<Linear>,
    up: Linear,
    down: Linear,
    activation: ActivationLayer,
}

impl T5 {
    /// The network of these sizes.
    pub fn new(config: &T5Config) -> Self {
        let mut builder = Builder::new(config.class());
        builder.setting("vocab_size", config.vocabulary);
        builder.setting("d_model", config.width);
        builder.setting("num_layers", config.encoder_layers);
        builder.setting("num_decoder_layers", config.decoder_layers);
        let embedding = Embedding::new(&mut builder, "shared", config.vocabulary, config.width);
        let encoder = Stack::new(&mut builder, config, true);
        let decoder = Stack::new(&mut builder, config, false);
        let head = (!config.tied_embeddings)
            .then(|| Linear::new(&mut builder, "lm_head", config.width, config.vocabulary, false));
        let cache = CacheLayout::of_both(config.decoder_layers, 2 * config.heads * config.head_width);
        Self { blueprint: builder.finish(), embedding, encoder, decoder, head, cache, config: config.clone() }
    }

    /// Its modules and parameters.
    pub fn blueprint(&self) -> &Blueprint {
        &self.blueprint
    }

    /// What its cache keeps.
    pub fn cache(&self) -> &CacheLayout {
        &self.cache
    }

    /// The decoder's first token.
    pub fn start_token(&self) -> u64 {
        self.config.start_token
    }

    /// Logits `[B, S, V]` of the decoder's tokens; the source is token ids `[B, T]`, given at prefill.
    pub fn forward<B: Backend>(&self, b: &mut B, prompt: &Prompt<B::Tensor>) -> Result<B::Tensor, NetworkError> {
        let source = match &prompt.source {
            None => None,
            Some(ids) => {
                let embedded = self.embedding.forward(b, ids)?;
                Some(self.encoder.forward(b, &embedded, Sees::Everything, 0)?)
            }
        };
        let embedded = self.embedding.forward(b, &prompt.input)?;
        let hidden = self.decoder.forward(b, &embedded, Sees::Source(source.as_ref()), prompt.offset)?;
        let length = b.shape(&hidden).dims()[1];
        let wanted = if prompt.last_logits_only && length > 1 { b.slice(&hidden, 1, length - 1, 1)? } else { hidden };
        let wanted = if self.config.scaled_head {
            let factor = 1.0 / (self.config.width as f64).sqrt();
            b.apply(Op::Scale { factor }, &[&wanted])?
        } else {
            wanted
        };
        match &self.head {
            Some(head) => head.forward(b, &wanted),
            None => {
                let table = self.embedding.table(b)?;
                b.apply(Op::Linear, &[&wanted, &table])
            }
        }
    }
}

impl Stack {
    fn new(builder: &mut Builder, config: &T5Config, is_encoder: bool) -> Self {
        let (name, layers) =
            if is_encoder { ("encoder", config.encoder_layers) } else { ("decoder", config.decoder_layers) };
        builder.module(name, config.family.stack, |builder, module| {
            builder.setting("d_model", config.width);
            builder.setting("num_layers", layers);
            builder.setting("is_decoder", !is_encoder);
            let (_, blocks) = builder.list("block", Repetition::Sequential, layers, |builder, index| {
                Block::new(builder, config, is_encoder, index)
            });
            let norm = norm(builder, "final_layer_norm", config);
            Self { module, blocks, norm, both_ways: is_encoder, furthest: config.furthest }
        })
    }

    /// `x [B, S, O]`, whose first position is `offset`; what else it sees is everything, or the source.
    fn forward<B: Backend>(
        &self,
        b: &mut B,
        x: &B::Tensor,
        sees: Sees<'_, B::Tensor>,
        offset: u64,
    ) -> Result<B::Tensor, NetworkError> {
        let mut inputs = vec![x];
        inputs.extend(sees.given());
        b.scope(self.module, &inputs, |b| {
            let queries = b.shape(x).dims()[1];
            let mut x = x.clone();
            let mut distances = None;
            for block in &self.blocks {
                if let Some(table) = &block.distances {
                    let op = Op::DistanceBias {
                        queries,
                        keys: offset + queries,
                        furthest: self.furthest,
                        both_ways: self.both_ways,
                    };
                    distances = Some(table.applied(b, op)?);
                }
                x = block.forward(b, &x, sees, distances.as_ref())?;
            }
            self.norm.forward(b, &x)
        })
    }
}

impl Block {
    fn new(builder: &mut Builder, config: &T5Config, is_encoder: bool, index: u64) -> Self {
        let family = config.family;
        let [of_itself, of_source, of_feed_forward] = family.parts;
        let layer = index as usize;
        builder.module(index.to_string(), family.block, |builder, module| {
            builder.module("layer", "ModuleList", |builder, _| {
                let mut distances = None;
                let itself = builder.module("0", of_itself, |builder, module| {
                    let has_table = index == 0 || family.distances_everywhere;
                    let attention = attention(builder, "SelfAttention", config, layer, |builder| {
                        distances = has_table
                            .then(|| Embedding::new(builder, "relative_attention_bias", config.buckets, config.heads));
                    });
                    Attends { module, attention, norm: norm(builder, "layer_norm", config) }
                });
                let source = (!is_encoder).then(|| {
                    builder.module("1", of_source, |builder, module| {
                        let attention = attention(builder, "EncDecAttention", config, layer, |_| ());
                        Attends { module, attention, norm: norm(builder, "layer_norm", config) }
                    })
                });
                let last = if is_encoder { "1" } else { "2" };
                let feed_forward =
                    builder.module(last, of_feed_forward, |builder, module| FeedForward::new(builder, module, config));
                Self { module, distances, itself, source, feed_forward }
            })
        })
    }

    fn forward<B: Backend>(
        &self,
        b: &mut B,
        x: &B::Tensor,
        sees: Sees<'_, B::Tensor>,
        distances: Option<&B::Tensor>,
    ) -> Result<B::Tensor, NetworkError> {
        let mut inputs = vec![x];
        inputs.extend(distances);
        inputs.extend(sees.given());
        b.scope(self.module, &inputs, |b| {
            let own = if self.source.is_some() { Sees::Earlier } else { Sees::Everything };
            let mut x = self.itself.forward(b, x, own, distances)?;
            if let Some(source) = &self.source {
                x = source.forward(b, &x, sees, None)?;
            }
            self.feed_forward.forward(b, &x)
        })
    }
}

impl Attends {
    fn forward<B: Backend>(
        &self,
        b: &mut B,
        x: &B::Tensor,
        sees: Sees<'_, B::Tensor>,
        distances: Option<&B::Tensor>,
    ) -> Result<B::Tensor, NetworkError> {
        let mut inputs = vec![x];
        inputs.extend(distances);
        inputs.extend(sees.given());
        b.scope(self.module, &inputs, |b| {
            let given = self.norm.forward(b, x)?;
            let mixed = self.attention.forward(b, &given, sees, distances)?;
            b.add(x, &mixed)
        })
    }
}

impl FeedForward {
    fn new(builder: &mut Builder, module: Module, config: &T5Config) -> Self {
        let &T5Config { width, inner, gated, .. } = config;
        let class = config.family.dense[usize::from(gated)];
        let (dense, gate, up, down, activation) = builder.module("DenseReluDense", class, |builder, dense| {
            let gate = gated.then(|| Linear::new(builder, "wi_0", width, inner, false));
            let up = Linear::new(builder, if gated { "wi_1" } else { "wi" }, width, inner, false);
            let down = Linear::new(builder, "wo", inner, width, false);
            let activation = ActivationLayer::new(builder, "act", config.activation);
            (dense, gate, up, down, activation)
        });
        Self { module, norm: norm(builder, "layer_norm", config), dense, gate, up, down, activation }
    }

    fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[x], |b| {
            let given = self.norm.forward(b, x)?;
            let made = b.scope(self.dense, &[&given], |b| {
                let inner = match &self.gate {
                    None => {
                        let up = self.up.forward(b, &given)?;
                        self.activation.forward(b, &up)?
                    }
                    Some(gate) => {
                        let gate = gate.forward(b, &given)?;
                        let gate = self.activation.forward(b, &gate)?;
                        let up = self.up.forward(b, &given)?;
                        b.multiply(&gate, &up)?
                    }
                };
                self.down.forward(b, &inner)
            })?;
            b.add(x, &made)
        })
    }
}

fn norm(builder: &mut Builder, name: &str, config: &T5Config) -> Norm {
    let kind = NormConfig { epsilon: config.epsilon, kind: NormKind::Rms, placement: NormPlacement::Before };
    Norm::new(builder, name, config.family.norm, config.width, kind)
}

/// Scores are not scaled: the published weights make up for it.
fn attention(
    builder: &mut Builder,
    name: &str,
    config: &T5Config,
    layer: usize,
    more: impl FnOnce(&mut Builder),
) -> MultiHead {
    let projections = ["q", "k", "v", "o"].map(|name| (name, false));
    let &T5Config { width, heads, head_width, .. } = config;
    let sizes = MultiHeadConfig { width, heads, head_width, scale: 1.0, projections };
    MultiHead::with(builder, (name, config.family.attention), sizes, layer, more)
}
