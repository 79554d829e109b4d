//! ModernBERT with the head it was published with: every position sees every other, or those around it.

use types::{ActivationKind, AttentionDetail, Op};

use super::Prompt;
use super::encoder_head::mean;
use crate::config::decoder::GatedConfig;
use crate::config::encoder::EncoderHead;
use crate::config::modern_encoder::{CLASSES, ModernEncoderConfig};
use crate::layer::{Embedding, GatedMlp, GatedMlpNames, Linear, Norm, Rotary};
use crate::{Backend, Blueprint, Builder, Module, NetworkError, Ops, Repetition};

/// The network.
#[derive(Debug)]
pub struct ModernEncoder {
    blueprint: Blueprint,
    /// The encoder itself; the root where nothing stands behind it.
    model: Module,
    embeddings: (Module, Embedding, Norm),
    layers: Vec<Layer>,
    norm: Norm,
    head: Option<Head>,
}

#[derive(Debug)]
struct Layer {
    module: Module,
    /// Absent in the first layer, in front of which the embeddings are normed.
    before_attention: Option<Norm>,
    attention: Attention,
    before_feed_forward: Norm,
    feed_forward: GatedMlp,
}

#[derive(Debug)]
struct Attention {
    module: Module,
    inputs: Linear,
    output: Linear,
    rotary: Rotary,
    heads: u64,
    window: Option<u64>,
}

/// What stands behind the encoder: a dense layer, and scores.
#[derive(Debug)]
struct Head {
    module: Module,
    dense: Linear,
    activation: ActivationKind,
    norm: Norm,
    scores: Scores,
}

#[derive(Debug)]
enum Scores {
    /// Of the whole text: of its first position, or of the mean of all.
    Text {
        scores: Linear,
        mean: bool,
    },
    Positions(Linear),
    /// With the table of embeddings as the matrix.
    Tied(Module, Option<crate::Param>),
}

impl ModernEncoder {
    /// The network of these sizes.
    pub fn new(config: &ModernEncoderConfig) -> Self {
        let mut builder = Builder::new(config.class());
        let parts = |builder: &mut Builder, module: Module| {
            builder.setting("vocab_size", config.vocabulary);
            builder.setting("hidden_size", config.width);
            builder.setting("num_hidden_layers", config.windows.len());
            builder.setting("num_attention_heads", config.heads);
            let embeddings = builder.module("embeddings", "ModernBertEmbeddings", |builder, module| {
                let table = Embedding::new(builder, "tok_embeddings", config.vocabulary, config.width);
                (module, table, Norm::new(builder, "norm", "LayerNorm", config.width, config.norm))
            });
            let count = config.windows.len() as u64;
            let (_, layers) = builder
                .list("layers", Repetition::Sequential, count, |builder, index| Layer::new(builder, index, config));
            let norm = Norm::new(builder, "final_norm", "LayerNorm", config.width, config.norm);
            (module, embeddings, layers, norm)
        };
        let (model, embeddings, layers, norm) = match config.head {
            EncoderHead::Pooled => {
                let root = builder.current();
                parts(&mut builder, root)
            }
            _ => builder.module("model", CLASSES[0], parts),
        };
        let head = Head::new(&mut builder, config);
        Self { blueprint: builder.finish(), model, embeddings, layers, norm, head }
    }

    /// Its modules and parameters.
    pub fn blueprint(&self) -> &Blueprint {
        &self.blueprint
    }

    /// What the head makes of token ids `[B, S]`.
    pub fn forward<B: Backend>(&self, b: &mut B, prompt: &Prompt<B::Tensor>) -> Result<B::Tensor, NetworkError> {
        let run = |b: &mut B| {
            let (module, table, norm) = &self.embeddings;
            let mut x = b.scope(*module, &[&prompt.input], |b| {
                let words = table.forward(b, &prompt.input)?;
                norm.forward(b, &words)
            })?;
            for layer in &self.layers {
                x = layer.forward(b, &x)?;
            }
            self.norm.forward(b, &x)
        };
        // The root is entered by whoever reads the network.
        let hidden =
            if self.model == self.blueprint.root() { run(b)? } else { b.scope(self.model, &[&prompt.input], run)? };
        match &self.head {
            None => Ok(hidden),
            Some(head) => head.forward(b, &hidden, &self.embeddings.1),
        }
    }
}

impl Layer {
    fn new(builder: &mut Builder, index: u64, config: &ModernEncoderConfig) -> Self {
        let &ModernEncoderConfig { width, heads, inner, norm, biases, .. } = config;
        let window = config.windows.get(index as usize).copied().flatten();
        builder.module(index.to_string(), "ModernBertEncoderLayer", |builder, module| {
            builder.setting("hidden_size", width);
            let normed = |builder: &mut Builder, name| Norm::new(builder, name, "LayerNorm", width, norm);
            let before_attention = (index > 0).then(|| normed(builder, "attn_norm"));
            let attention = builder.module("attn", "ModernBertAttention", |builder, module| {
                builder.setting("num_heads", heads);
                builder.setting("head_dim", width / heads);
                if let Some(window) = window {
                    builder.setting("sliding_window", window);
                }
                Attention {
                    module,
                    inputs: Linear::new(builder, "Wqkv", width, 3 * width, biases[0]),
                    output: Linear::new(builder, "Wo", width, width, biases[0]),
                    rotary: Rotary::new(builder, None, config.rotary[usize::from(window.is_some())]),
                    heads,
                    window,
                }
            });
            let before_feed_forward = normed(builder, "mlp_norm");
            let names = GatedMlpNames {
                module: "mlp",
                class: "ModernBertMLP",
                projections: ["Wi", "Wi", "Wo"],
                fused: "Wi",
                norm: None,
            };
            let gated = GatedConfig { inner, activation: config.activations[0], bias: biases[1], fused: true };
            let feed_forward = GatedMlp::new(builder, names, width, gated);
            Self { module, before_attention, attention, before_feed_forward, feed_forward }
        })
    }

    fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[x], |b| {
            let given = self.before_attention.as_ref().map_or_else(|| Ok(x.clone()), |norm| norm.forward(b, x))?;
            let mixed = self.attention.forward(b, &given)?;
            let x = b.add(x, &mixed)?;
            let given = self.before_feed_forward.forward(b, &x)?;
            let inner = self.feed_forward.forward(b, &given)?;
            b.add(&x, &inner)
        })
    }
}

impl Attention {
    fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[x], |b| {
            let [batch, length, width] = [0, 1, 2].map(|dim| b.shape(x).dims()[dim]);
            let each = width / self.heads;
            let all = self.inputs.forward(b, x)?;
            let all = b.reshape(&all, [batch, length, 3 * self.heads, each])?;
            let all = b.permute(&all, [0, 2, 1, 3])?;
            let mut part = |at: u64| b.slice(&all, 1, at * self.heads, self.heads);
            let [query, key, value] = [part(0)?, part(1)?, part(2)?];
            let query = self.rotary.forward(b, &query, 0)?;
            let key = self.rotary.forward(b, &key, 0)?;
            let detail = AttentionDetail { window: self.window, ..AttentionDetail::default() };
            let op = Op::Attention { causal: false, scale: 1.0 / (each as f64).sqrt(), fused: false, detail };
            let mixed = b.apply(op, &[&query, &key, &value])?;
            let mixed = b.permute_copy(&mixed, [0, 2, 1, 3])?;
            let mixed = b.reshape(&mixed, [batch, length, width])?;
            self.output.forward(b, &mixed)
        })
    }
}

impl Head {
    fn new(builder: &mut Builder, config: &ModernEncoderConfig) -> Option<Self> {
        let &ModernEncoderConfig { width, vocabulary, biases: [.., head_bias, token_bias], .. } = config;
        if config.head == EncoderHead::Pooled {
            return None;
        }
        let (module, dense, norm) = builder.module("head", "ModernBertPredictionHead", |builder, module| {
            let dense = Linear::new(builder, "dense", width, width, head_bias);
            (module, dense, Norm::new(builder, "norm", "LayerNorm", width, config.norm))
        });
        let scores = match config.head {
            EncoderHead::Classes(labels) => {
                let scores = Linear::new(builder, "classifier", width, labels, true);
                Scores::Text { scores, mean: config.pools_mean }
            }
            EncoderHead::TokenClasses(labels) => {
                Scores::Positions(Linear::new(builder, "classifier", width, labels, true))
            }
            EncoderHead::Tokens | EncoderHead::Pooled if config.tied_embeddings => {
                builder.module("decoder", "Linear", |builder, module| {
                    Scores::Tied(module, token_bias.then(|| builder.param("bias", [vocabulary])))
                })
            }
            EncoderHead::Tokens | EncoderHead::Pooled => {
                Scores::Positions(Linear::new(builder, "decoder", width, vocabulary, token_bias))
            }
        };
        Some(Self { module, dense, activation: config.activations[1], norm, scores })
    }

    /// `hidden [B, S, O]`.
    fn forward<B: Backend>(&self, b: &mut B, hidden: &B::Tensor, table: &Embedding) -> Result<B::Tensor, NetworkError> {
        let [batch, width] = [b.shape(hidden).dims()[0], b.shape(hidden).last()];
        let hidden = match &self.scores {
            Scores::Text { mean: true, .. } => mean(b, hidden)?,
            Scores::Text { mean: false, .. } => {
                let first = b.slice(hidden, 1, 0, 1)?;
                b.reshape(&first, [batch, width])?
            }
            Scores::Positions(_) | Scores::Tied(..) => hidden.clone(),
        };
        let x = b.scope(self.module, &[&hidden], |b| {
            let x = self.dense.forward(b, &hidden)?;
            let x = b.activation(self.activation, &x)?;
            self.norm.forward(b, &x)
        })?;
        match &self.scores {
            Scores::Text { scores, .. } | Scores::Positions(scores) => scores.forward(b, &x),
            Scores::Tied(module, bias) => b.scope(*module, &[&x], |b| {
                let table = table.table(b)?;
                match bias {
                    None => b.apply(Op::Linear, &[&x, &table]),
                    Some(bias) => {
                        let bias = b.param(*bias)?;
                        b.apply(Op::Linear, &[&x, &table, &bias])
                    }
                }
            }),
        }
    }
}
