//! What stands behind an encoder of text: a pooler, scores of the whole text, or scores of each position.

use types::{ActivationKind, Op};

use crate::config::encoder::{EncoderConfig, EncoderHead, EncoderVariant, Pools};
use crate::layer::{Embedding, LayerNorm, Linear};
use crate::{Backend, Builder, Module, NetworkError, Ops, Param};

/// A head.
#[derive(Debug)]
pub(super) enum Head {
    Pooled(Pooler),
    /// A pooler inside the encoder, then scores.
    Classes(Pooler, Linear),
    /// Scores of the first position behind a dense layer of the classifier's own.
    Classifier {
        module: Module,
        dense: Linear,
        scores: Linear,
    },
    /// Scores behind a dense layer and a nonlinearity.
    Dense([Linear; 2], ActivationKind, Pools),
    TokenClasses(Linear),
    /// Modules around it from the outside in; absent matrix: the table of embeddings.
    Tokens {
        dense: Linear,
        norm: LayerNorm,
        own: Option<Linear>,
        bias: Option<Param>,
    },
    /// The table of embeddings, or a matrix, and a bias.
    Table {
        own: Option<Linear>,
        bias: Param,
    },
    /// Hidden states as they are.
    Absent,
}

/// The first position, behind a dense layer.
#[derive(Debug)]
pub(super) struct Pooler {
    /// Absent where the projection is all there is.
    pub(super) module: Option<Module>,
    pub(super) dense: Linear,
}

impl Head {
    /// That of a published class, with the pooler of its encoder.
    pub(super) fn new(builder: &mut Builder, config: &EncoderConfig, pooler: Option<Pooler>) -> Self {
        let &EncoderConfig { width, vocabulary, epsilon, .. } = config;
        match (config.head, pooler) {
            (EncoderHead::Pooled, Some(pooler)) => Self::Pooled(pooler),
            (EncoderHead::Classes(labels), Some(pooler)) => {
                Self::Classes(pooler, Linear::new(builder, "classifier", width, labels, true))
            }
            (EncoderHead::Classes(labels), None) if config.family.variant == EncoderVariant::Distil => {
                let dense = Linear::new(builder, "pre_classifier", width, width, true);
                let scores = Linear::new(builder, "classifier", width, labels, true);
                Self::Dense([dense, scores], ActivationKind::Relu, config.pools)
            }
            (EncoderHead::Classes(labels), None) if config.family.variant == EncoderVariant::Llama => {
                let dense = Linear::new(builder, "dense", width, width, true);
                let scores = Linear::new(builder, "classifier", width, labels, true);
                Self::Dense([dense, scores], ActivationKind::Gelu, config.pools)
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
            (EncoderHead::Tokens, _) if config.family.variant == EncoderVariant::Llama => {
                Self::TokenClasses(Linear::new(builder, "lm_head", width, vocabulary, false))
            }
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
            (EncoderHead::Tokens, _) if config.family.tokens_module.is_some() => Self::tokens(builder, config),
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

    /// Scores of tokens behind a dense layer of another width, or behind the hidden states themselves.
    fn tokens(builder: &mut Builder, config: &EncoderConfig) -> Self {
        let &EncoderConfig { width, vocabulary, head_width, .. } = config;
        let class = config.family.heads[1];
        match config.family.tokens_module.unwrap_or_default() {
            "table" => builder.module("lm_head", class, |builder, _| {
                let own = (!config.tied_embeddings).then(|| Linear::new(builder, "decoder", width, vocabulary, false));
                Self::Table { own, bias: builder.param("bias", [vocabulary]) }
            }),
            name => builder.module(name, class, |builder, _| {
                let dense = Linear::new(builder, "dense", width, head_width, true);
                let norm = if name == "lm_head" { "layer_norm" } else { "LayerNorm" };
                let norm = LayerNorm::new(builder, norm, head_width, config.epsilon);
                let bias = Some(builder.param("bias", [vocabulary]));
                let own = (!config.tied_embeddings || head_width != config.embedding_width)
                    .then(|| Linear::new(builder, "decoder", head_width, vocabulary, false));
                Self::Tokens { dense, norm, own, bias }
            }),
        }
    }

    /// What it makes of `hidden [B, S, O]`, where `words` is the table of embeddings.
    pub(super) fn forward<B: Backend>(
        &self,
        b: &mut B,
        hidden: &B::Tensor,
        config: &EncoderConfig,
        words: &Embedding,
    ) -> Result<B::Tensor, NetworkError> {
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
            Self::Dense([dense, scores], kind, pools) => {
                let x = match pools {
                    Pools::First => first(b, hidden)?,
                    Pools::Mean => mean(b, hidden)?,
                    Pools::Scores => hidden.clone(),
                };
                let x = dense.forward(b, &x)?;
                let x = b.activation(*kind, &x)?;
                let x = scores.forward(b, &x)?;
                if *pools == Pools::Scores { mean(b, &x) } else { Ok(x) }
            }
            Self::Absent => Ok(hidden.clone()),
            Self::Table { own, bias } => {
                let bias = b.param(*bias)?;
                match own {
                    Some(own) => {
                        let scores = own.forward(b, hidden)?;
                        b.add(&scores, &bias)
                    }
                    None => {
                        let table = words.table(b)?;
                        b.apply(Op::Linear, &[hidden, &table, &bias])
                    }
                }
            }
            Self::TokenClasses(scores) => scores.forward(b, hidden),
            Self::Tokens { dense, norm, own, bias } => {
                let x = dense.forward(b, hidden)?;
                let kind = if config.family.variant == EncoderVariant::Roberta {
                    ActivationKind::Gelu
                } else {
                    config.activation
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
                        let table = words.table(b)?;
                        let inputs: Vec<_> = [&x, &table].into_iter().chain(bias).collect();
                        b.apply(Op::Linear, &inputs)
                    }
                }
            }
        }
    }
}

impl Pooler {
    /// What it makes of `hidden [B, S, O]`.
    pub(super) fn forward<B: Backend>(&self, b: &mut B, hidden: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        let run = |b: &mut B| {
            let x = first(b, hidden)?;
            let x = self.dense.forward(b, &x)?;
            // tanh, as a cap of one.
            b.apply(Op::Softcap { limit: 1.0 }, &[&x])
        };
        match self.module {
            None => run(b),
            Some(module) => b.scope(module, &[hidden], run),
        }
    }
}

/// The mean of all positions of `[B, S, O]`.
pub(super) fn mean<B: Backend>(b: &mut B, hidden: &B::Tensor) -> Result<B::Tensor, NetworkError> {
    let [batch, length, width] = [0, 1, 2].map(|dim| b.shape(hidden).dims()[dim]);
    let columns = b.permute(hidden, [0, 2, 1])?;
    let columns = b.reshape(&columns, [batch, width, length, 1])?;
    b.apply(Op::GlobalAveragePool, &[&columns])
}

/// The first position of `[B, S, O]`.
fn first<B: Backend>(b: &mut B, hidden: &B::Tensor) -> Result<B::Tensor, NetworkError> {
    let [batch, width] = [b.shape(hidden).dims()[0], b.shape(hidden).last()];
    let first = b.slice(hidden, 1, 0, 1)?;
    b.reshape(&first, [batch, width])
}
