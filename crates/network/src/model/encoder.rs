//! An encoder of text with the head it was published with: every position sees every other, and nothing is kept.

use types::{ActivationKind, Op};

use super::Prompt;
use super::decoder::finish;
use super::distil_layer::DistilLayer;
use super::encoder_attention::attend;
use crate::config::encoder::{EncoderConfig, EncoderHead, EncoderVariant};
use crate::layer::{Embedding, LayerNorm, Linear};
use crate::{Backend, Blueprint, Builder, Module, NetworkError, Ops, Param, Repetition};

/// The network.
#[derive(Debug)]
pub struct Encoder {
    blueprint: Blueprint,
    /// The encoder itself; the root where nothing stands beside it.
    model: Module,
    embeddings: Embeddings,
    encoder: Module,
    layers: Vec<Layer>,
    head: Head,
    config: EncoderConfig,
}

#[derive(Debug)]
struct Embeddings {
    module: Module,
    words: Embedding,
    positions: Embedding,
    segments: Option<Embedding>,
    norm: LayerNorm,
}

#[derive(Debug)]
enum Layer {
    Bert(Box<BertLayer>),
    Distil(Box<DistilLayer>),
}

#[derive(Debug)]
struct BertLayer {
    module: Module,
    attention: Module,
    core: Module,
    inputs: [Linear; 3],
    mixed: Added,
    intermediate: (Module, Linear),
    output: Added,
}

/// A projection whose output is added to what came before, then normed.
#[derive(Debug)]
struct Added {
    module: Module,
    dense: Linear,
    norm: LayerNorm,
}

#[derive(Debug)]
enum Head {
    Pooled(Pooler),
    /// A pooler inside the encoder, then scores.
    Classes(Pooler, Linear),
    /// Scores of the first position behind a dense layer of the classifier's own.
    Classifier {
        module: Module,
        dense: Linear,
        scores: Linear,
    },
    /// Scores of the first position behind a dense layer.
    Dense([Linear; 2]),
    TokenClasses(Linear),
    /// Modules around it from the outside in; absent matrix: the table of embeddings.
    Tokens {
        dense: Linear,
        norm: LayerNorm,
        own: Option<Linear>,
        bias: Option<Param>,
    },
    /// Hidden states as they are.
    Absent,
}

#[derive(Debug)]
struct Pooler {
    module: Module,
    dense: Linear,
}

impl Encoder {
    /// The network of these sizes.
    pub fn new(config: &EncoderConfig) -> Self {
        let family = config.family;
        let mut builder = Builder::new(config.class());
        let pooled = match config.head {
            EncoderHead::Pooled => family.variant != EncoderVariant::Distil,
            EncoderHead::Classes(_) => family.variant == EncoderVariant::Bert,
            EncoderHead::TokenClasses(_) | EncoderHead::Tokens => false,
        };
        let parts = |builder: &mut Builder, module: Module| {
            builder.setting("vocab_size", config.vocabulary);
            builder.setting("hidden_size", config.width);
            builder.setting("num_hidden_layers", config.layers);
            builder.setting("num_attention_heads", config.heads);
            let embeddings = Embeddings::new(builder, config);
            let distil = family.variant == EncoderVariant::Distil;
            let name = if distil { "transformer" } else { "encoder" };
            let (encoder, layers) = builder.module(name, family.encoder, |builder, module| {
                let (_, layers) = builder.list("layer", Repetition::Sequential, config.layers, |builder, index| {
                    Layer::new(builder, index, config)
                });
                (module, layers)
            });
            let pooler = pooled.then(|| {
                builder.module("pooler", family.pooler, |builder, module| Pooler {
                    module,
                    dense: Linear::new(builder, "dense", config.width, config.width, true),
                })
            });
            (module, embeddings, encoder, layers, pooler)
        };
        let (model, embeddings, encoder, layers, pooler) = match config.head {
            EncoderHead::Pooled => {
                let root = builder.current();
                parts(&mut builder, root)
            }
            _ => builder.module(family.module, family.classes[0], parts),
        };
        let head = Head::new(&mut builder, config, pooler);
        let blueprint = finish(builder, config.quantisation.as_ref());
        Self { blueprint, model, embeddings, encoder, layers, head, config: config.clone() }
    }

    /// Its modules and parameters.
    pub fn blueprint(&self) -> &Blueprint {
        &self.blueprint
    }

    /// What the head makes of token ids `[B, S]`.
    pub fn forward<B: Backend>(&self, b: &mut B, prompt: &Prompt<B::Tensor>) -> Result<B::Tensor, NetworkError> {
        let run = |b: &mut B| {
            let embedded = self.embeddings.forward(b, &prompt.input, self.config.family.first_position)?;
            b.scope(self.encoder, &[&embedded], |b| {
                let mut x = embedded.clone();
                for layer in &self.layers {
                    x = layer.forward(b, &x, &self.config)?;
                }
                Ok(x)
            })
        };
        // The root is entered by whoever reads the network.
        let hidden =
            if self.model == self.blueprint.root() { run(b)? } else { b.scope(self.model, &[&prompt.input], run)? };
        self.head.forward(b, &hidden, self)
    }
}

impl Embeddings {
    fn new(builder: &mut Builder, config: &EncoderConfig) -> Self {
        builder.module("embeddings", config.family.embeddings, |builder, module| Self {
            module,
            words: Embedding::new(builder, "word_embeddings", config.vocabulary, config.width),
            positions: Embedding::new(builder, "position_embeddings", config.positions, config.width),
            segments: (config.segments > 0)
                .then(|| Embedding::new(builder, "token_type_embeddings", config.segments, config.width)),
            norm: LayerNorm::new(builder, "LayerNorm", config.width, config.epsilon),
        })
    }

    fn forward<B: Backend>(&self, b: &mut B, ids: &B::Tensor, first: u64) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[ids], |b| {
            let mut x = self.words.forward(b, ids)?;
            let [length, width] = [b.shape(&x).dims()[1], b.shape(&x).last()];
            if let Some(segments) = &self.segments {
                let table = segments.table(b)?;
                let segment = b.slice(&table, 0, 0, 1)?;
                let segment = b.reshape(&segment, [1, 1, width])?;
                x = b.add(&x, &segment)?;
            }
            let table = self.positions.table(b)?;
            let rows = b.shape(&table).dims()[0];
            if first + length > rows {
                let most = rows.saturating_sub(first);
                return Err(NetworkError::Prompt(format!("{length} tokens; this encoder has {most} positions")));
            }
            let places = b.slice(&table, 0, first, length)?;
            let places = b.reshape(&places, [1, length, width])?;
            let x = b.add(&x, &places)?;
            self.norm.forward(b, &x)
        })
    }
}

impl Layer {
    fn new(builder: &mut Builder, index: u64, config: &EncoderConfig) -> Self {
        match config.family.variant {
            EncoderVariant::Distil => Self::Distil(Box::new(DistilLayer::new(builder, index, config))),
            _ => Self::Bert(Box::new(BertLayer::new(builder, index, config))),
        }
    }

    fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor, config: &EncoderConfig) -> Result<B::Tensor, NetworkError> {
        match self {
            Self::Bert(layer) => layer.forward(b, x, config),
            Self::Distil(layer) => layer.forward(b, x, config),
        }
    }
}

impl BertLayer {
    fn new(builder: &mut Builder, index: u64, config: &EncoderConfig) -> Self {
        let &EncoderConfig { family, width, inner, .. } = config;
        builder.module(index.to_string(), family.layer, |builder, module| {
            builder.setting("hidden_size", width);
            let (attention, core, inputs, mixed) =
                builder.module("attention", family.attention[0], |builder, attention| {
                    let (core, inputs) = builder.module("self", family.attention[1], |builder, core| {
                        builder.setting("num_attention_heads", config.heads);
                        let mut linear = |name| Linear::new(builder, name, width, width, true);
                        (core, [linear("query"), linear("key"), linear("value")])
                    });
                    let mixed = Added::new(builder, family.attention[2], [width, width], config.epsilon);
                    (attention, core, inputs, mixed)
                });
            let intermediate = builder.module("intermediate", family.intermediate, |builder, module| {
                (module, Linear::new(builder, "dense", width, inner, true))
            });
            let output = Added::new(builder, family.output, [inner, width], config.epsilon);
            Self { module, attention, core, inputs, mixed, intermediate, output }
        })
    }

    fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor, config: &EncoderConfig) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[x], |b| {
            let x = b.scope(self.attention, &[x], |b| {
                let mixed = b.scope(self.core, &[x], |b| attend(b, x, &self.inputs, config))?;
                self.mixed.forward(b, &mixed, x)
            })?;
            let (module, dense) = &self.intermediate;
            let inner = b.scope(*module, &[&x], |b| {
                let inner = dense.forward(b, &x)?;
                b.activation(config.activation, &inner)
            })?;
            self.output.forward(b, &inner, &x)
        })
    }
}

impl Added {
    fn new(builder: &mut Builder, class: &'static str, [inputs, outputs]: [u64; 2], epsilon: f64) -> Self {
        builder.module("output", class, |builder, module| Self {
            module,
            dense: Linear::new(builder, "dense", inputs, outputs, true),
            norm: LayerNorm::new(builder, "LayerNorm", outputs, epsilon),
        })
    }

    fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor, before: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[x], |b| {
            let x = self.dense.forward(b, x)?;
            let x = b.add(&x, before)?;
            self.norm.forward(b, &x)
        })
    }
}

impl Head {
    fn new(builder: &mut Builder, config: &EncoderConfig, pooler: Option<Pooler>) -> Self {
        let &EncoderConfig { width, vocabulary, epsilon, .. } = config;
        match (config.head, pooler) {
            (EncoderHead::Pooled, Some(pooler)) => Self::Pooled(pooler),
            (EncoderHead::Classes(labels), Some(pooler)) => {
                Self::Classes(pooler, Linear::new(builder, "classifier", width, labels, true))
            }
            (EncoderHead::Classes(labels), None) if config.family.variant == EncoderVariant::Distil => {
                let dense = Linear::new(builder, "pre_classifier", width, width, true);
                Self::Dense([dense, Linear::new(builder, "classifier", width, labels, true)])
            }
            (EncoderHead::Classes(labels), None) => {
                let class = config.family.heads[0];
                builder.module("classifier", class, |builder, module| Self::Classifier {
                    module,
                    dense: Linear::new(builder, "dense", width, width, true),
                    scores: Linear::new(builder, "out_proj", width, labels, true),
                })
            }
            (EncoderHead::TokenClasses(labels), _) => {
                Self::TokenClasses(Linear::new(builder, "classifier", width, labels, true))
            }
            (EncoderHead::Pooled, None) => Self::Absent,
            (EncoderHead::Tokens, _) if config.family.variant == EncoderVariant::Distil => {
                let dense = Linear::new(builder, "vocab_transform", width, width, true);
                let norm = LayerNorm::new(builder, "vocab_layer_norm", width, epsilon);
                if config.tied_embeddings {
                    let bias = |builder: &mut Builder, _| builder.param("bias", [vocabulary]);
                    let bias = Some(builder.module("vocab_projector", "Linear", bias));
                    return Self::Tokens { dense, norm, own: None, bias };
                }
                let own = Some(Linear::new(builder, "vocab_projector", width, vocabulary, true));
                Self::Tokens { dense, norm, own, bias: None }
            }
            (EncoderHead::Tokens, _) => {
                let own = !config.tied_embeddings;
                let head = |builder: &mut Builder, norm: &str| {
                    let bias = Some(builder.param("bias", [vocabulary]));
                    let dense = Linear::new(builder, "dense", width, width, true);
                    let norm = LayerNorm::new(builder, norm, width, epsilon);
                    let own = own.then(|| Linear::new(builder, "decoder", width, vocabulary, false));
                    Self::Tokens { dense, norm, own, bias }
                };
                if config.family.variant == EncoderVariant::Roberta {
                    builder.module("lm_head", config.family.heads[1], |builder, _| head(builder, "layer_norm"))
                } else {
                    builder.module("cls", "BertOnlyMLMHead", |builder, _| {
                        builder.module("predictions", "BertLMPredictionHead", |builder, _| {
                            let bias = Some(builder.param("bias", [vocabulary]));
                            let (dense, norm) =
                                builder.module("transform", "BertPredictionHeadTransform", |builder, _| {
                                    let dense = Linear::new(builder, "dense", width, width, true);
                                    (dense, LayerNorm::new(builder, "LayerNorm", width, epsilon))
                                });
                            let own = own.then(|| Linear::new(builder, "decoder", width, vocabulary, false));
                            Self::Tokens { dense, norm, own, bias }
                        })
                    })
                }
            }
        }
    }

    /// `hidden [B, S, O]`.
    fn forward<B: Backend>(&self, b: &mut B, hidden: &B::Tensor, encoder: &Encoder) -> Result<B::Tensor, NetworkError> {
        match self {
            Self::Pooled(pooler) => pooler.forward(b, hidden),
            Self::Classes(pooler, scores) => {
                let pooled = pooler.forward(b, hidden)?;
                scores.forward(b, &pooled)
            }
            Self::Classifier { module, dense, scores } => b.scope(*module, &[hidden], |b| {
                let x = first(b, hidden)?;
                let x = dense.forward(b, &x)?;
                let x = b.apply(Op::Softcap { limit: 1.0 }, &[&x])?;
                scores.forward(b, &x)
            }),
            Self::Dense([dense, scores]) => {
                let x = first(b, hidden)?;
                let x = dense.forward(b, &x)?;
                let x = b.activation(ActivationKind::Relu, &x)?;
                scores.forward(b, &x)
            }
            Self::Absent => Ok(hidden.clone()),
            Self::TokenClasses(scores) => scores.forward(b, hidden),
            Self::Tokens { dense, norm, own, bias } => {
                let x = dense.forward(b, hidden)?;
                let kind = if encoder.config.family.variant == EncoderVariant::Roberta {
                    ActivationKind::Gelu
                } else {
                    encoder.config.activation
                };
                let x = b.activation(kind, &x)?;
                let x = norm.forward(b, &x)?;
                let bias = bias.map(|bias| b.param(bias)).transpose()?;
                match (own, &bias) {
                    (Some(own), None) => own.forward(b, &x),
                    (Some(own), Some(bias)) => {
                        let scores = own.forward(b, &x)?;
                        b.add(&scores, bias)
                    }
                    (None, bias) => {
                        let table = encoder.embeddings.words.table(b)?;
                        let inputs: Vec<_> = [&x, &table].into_iter().chain(bias).collect();
                        b.apply(Op::Linear, &inputs)
                    }
                }
            }
        }
    }
}

impl Pooler {
    fn forward<B: Backend>(&self, b: &mut B, hidden: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[hidden], |b| {
            let x = first(b, hidden)?;
            let x = self.dense.forward(b, &x)?;
            // tanh, as a cap of one.
            b.apply(Op::Softcap { limit: 1.0 }, &[&x])
        })
    }
}

/// The first position of `[B, S, O]`.
fn first<B: Backend>(b: &mut B, hidden: &B::Tensor) -> Result<B::Tensor, NetworkError> {
    let [batch, width] = [b.shape(hidden).dims()[0], b.shape(hidden).last()];
    let first = b.slice(hidden, 1, 0, 1)?;
    b.reshape(&first, [batch, width])
}
