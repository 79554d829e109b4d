//! Whisper: an encoder over frames of sound, and a decoder that starts from one token and attends to what the encoder gives.

use types::{ActivationKind, Op};

use super::{CacheLayout, Prompt};
use crate::config::whisper::{CLASS, WhisperConfig, WhisperStack};
use crate::layer::{ActivationLayer, Conv1d, Embedding, LayerNorm, Linear, MultiHead, MultiHeadConfig, Sees};
use crate::{Backend, Blueprint, Builder, Module, NetworkError, Ops, Repetition};

/// Of every norm; the published configuration does not say.
const EPSILON: f64 = 1e-5;

/// The network.
#[derive(Debug)]
pub struct Whisper {
    blueprint: Blueprint,
    model: Module,
    encoder: Encoder,
    decoder: Decoder,
    /// Absent where the table of embeddings is used as a matrix.
    head: Option<Linear>,
    cache: CacheLayout,
    config: WhisperConfig,
}

#[derive(Debug)]
struct Encoder {
    module: Module,
    convolutions: [Conv1d; 2],
    positions: Embedding,
    layers: Vec<Layer>,
    norm: LayerNorm,
}

#[derive(Debug)]
struct Decoder {
    module: Module,
    embedding: Embedding,
    positions: Embedding,
    layers: Vec<Layer>,
    norm: LayerNorm,
}

#[derive(Debug)]
struct Layer {
    module: Module,
    itself: (LayerNorm, MultiHead),
    source: Option<(LayerNorm, MultiHead)>,
    norm: LayerNorm,
    first: Linear,
    activation: ActivationLayer,
    second: Linear,
}

impl Whisper {
    /// The network of these sizes.
    pub fn new(config: &WhisperConfig) -> Self {
        let mut builder = Builder::new(CLASS);
        builder.setting("vocab_size", config.vocabulary);
        builder.setting("d_model", config.width);
        builder.setting("encoder_layers", config.encoder.layers);
        builder.setting("decoder_layers", config.decoder.layers);
        let (model, encoder, decoder) = builder.module("model", "WhisperModel", |builder, module| {
            (module, Encoder::new(builder, config), Decoder::new(builder, config))
        });
        let head = (!config.tied_embeddings)
            .then(|| Linear::new(&mut builder, "proj_out", config.width, config.vocabulary, false));
        let cache = CacheLayout::of_both(config.decoder.layers, 2 * config.width);
        Self { blueprint: builder.finish(), model, encoder, decoder, head, cache, config: config.clone() }
    }

    /// Its modules and parameters.
    pub fn blueprint(&self) -> &Blueprint {
        &self.blueprint
    }

    /// What its cache keeps.
    pub fn cache(&self) -> &CacheLayout {
        &self.cache
    }

    /// Its sizes.
    pub fn config(&self) -> &WhisperConfig {
        &self.config
    }

    /// Logits `[B, S, V]` of the decoder's tokens; the source is frames `[B, frequencies, 2 T]`, given at prefill.
    pub fn forward<B: Backend>(&self, b: &mut B, prompt: &Prompt<B::Tensor>) -> Result<B::Tensor, NetworkError> {
        let mut inputs = vec![&prompt.input];
        inputs.extend(&prompt.source);
        let hidden = b.scope(self.model, &inputs, |b| {
            let source = prompt.source.as_ref().map(|frames| self.encoder.forward(b, frames)).transpose()?;
            self.decoder.forward(b, &prompt.input, source.as_ref(), prompt.offset)
        })?;
        let length = b.shape(&hidden).dims()[1];
        let wanted = if prompt.last_logits_only && length > 1 { b.slice(&hidden, 1, length - 1, 1)? } else { hidden };
        match &self.head {
            Some(head) => head.forward(b, &wanted),
            None => {
                let table = self.decoder.embedding.table(b)?;
                b.apply(Op::Linear, &[&wanted, &table])
            }
        }
    }
}

impl Encoder {
    fn new(builder: &mut Builder, config: &WhisperConfig) -> Self {
        let &WhisperConfig { width, frequencies, source_positions, encoder, .. } = config;
        builder.module("encoder", "WhisperEncoder", |builder, module| {
            let first = Conv1d::new(builder, "conv1", [frequencies, width], 1);
            let second = Conv1d::new(builder, "conv2", [width, width], 2);
            let positions = Embedding::new(builder, "embed_positions", source_positions, width);
            let (_, layers) = builder.list("layers", Repetition::Sequential, encoder.layers, |builder, index| {
                Layer::new(builder, config, encoder, true, index)
            });
            let norm = LayerNorm::new(builder, "layer_norm", width, EPSILON);
            Self { module, convolutions: [first, second], positions, layers, norm }
        })
    }

    fn forward<B: Backend>(&self, b: &mut B, frames: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[frames], |b| {
            let mut x = frames.clone();
            for convolution in &self.convolutions {
                x = convolution.forward(b, &x)?;
                x = b.activation(ActivationKind::Gelu, &x)?;
            }
            let x = b.permute_copy(&x, [0, 2, 1])?;
            let positions = self.positions.table(b)?;
            let [length, rows] = [b.shape(&x).dims()[1], b.shape(&positions).dims()[0]];
            if length != rows {
                let expected = format!("{length} audio positions; this encoder takes {rows}, which is thirty seconds");
                return Err(NetworkError::Prompt(expected));
            }
            let mut x = b.add(&x, &positions)?;
            for layer in &self.layers {
                x = layer.forward(b, &x, None)?;
            }
            self.norm.forward(b, &x)
        })
    }
}

impl Decoder {
    fn new(builder: &mut Builder, config: &WhisperConfig) -> Self {
        let &WhisperConfig { width, vocabulary, positions, decoder, .. } = config;
        builder.module("decoder", "WhisperDecoder", |builder, module| {
            let embedding = Embedding::new(builder, "embed_tokens", vocabulary, width);
            let class = "WhisperPositionalEmbedding";
            let positions = Embedding::scaled(builder, "embed_positions", class, [positions, width], None);
            let (_, layers) = builder.list("layers", Repetition::Sequential, decoder.layers, |builder, index| {
                Layer::new(builder, config, decoder, false, index)
            });
            let norm = LayerNorm::new(builder, "layer_norm", width, EPSILON);
            Self { module, embedding, positions, layers, norm }
        })
    }

    fn forward<B: Backend>(
        &self,
        b: &mut B,
        ids: &B::Tensor,
        source: Option<&B::Tensor>,
        offset: u64,
    ) -> Result<B::Tensor, NetworkError> {
        let mut inputs = vec![ids];
        inputs.extend(source);
        b.scope(self.module, &inputs, |b| {
            let embedded = self.embedding.forward(b, ids)?;
            let table = self.positions.table(b)?;
            let [length, rows] = [b.shape(&embedded).dims()[1], b.shape(&table).dims()[0]];
            // A position past the table costs what the last one costs; whoever computes asks for none.
            let positions = b.slice(&table, 0, offset.min(rows.saturating_sub(length)), length)?;
            let mut x = b.add(&embedded, &positions)?;
            for layer in &self.layers {
                x = layer.forward(b, &x, Some(source))?;
            }
            self.norm.forward(b, &x)
        })
    }
}

impl Layer {
    fn new(builder: &mut Builder, config: &WhisperConfig, stack: WhisperStack, is_encoder: bool, index: u64) -> Self {
        let width = config.width;
        let head_width = width / stack.heads;
        let sizes = MultiHeadConfig {
            width,
            heads: stack.heads,
            head_width,
            scale: 1.0 / (head_width as f64).sqrt(),
            projections: [("q_proj", true), ("k_proj", false), ("v_proj", true), ("out_proj", true)],
        };
        let class = if is_encoder { "WhisperEncoderLayer" } else { "WhisperDecoderLayer" };
        builder.module(index.to_string(), class, |builder, module| {
            let attends = |builder: &mut Builder, name: &str| {
                let attention = MultiHead::new(builder, (name, "WhisperAttention"), sizes, index as usize);
                (LayerNorm::new(builder, &format!("{name}_layer_norm"), width, EPSILON), attention)
            };
            let itself = attends(builder, "self_attn");
            let activation = ActivationLayer::new(builder, "activation_fn", config.activation);
            Self {
                module,
                itself,
                source: (!is_encoder).then(|| attends(builder, "encoder_attn")),
                first: Linear::new(builder, "fc1", width, stack.inner, true),
                activation,
                second: Linear::new(builder, "fc2", stack.inner, width, true),
                norm: LayerNorm::new(builder, "final_layer_norm", width, EPSILON),
            }
        })
    }

    /// `x [B, S, O]`; a decoder's layer sees a source, which is given at prefill.
    fn forward<B: Backend>(
        &self,
        b: &mut B,
        x: &B::Tensor,
        source: Option<Option<&B::Tensor>>,
    ) -> Result<B::Tensor, NetworkError> {
        let mut inputs = vec![x];
        inputs.extend(source.flatten());
        b.scope(self.module, &inputs, |b| {
            let (norm, attention) = &self.itself;
            let given = norm.forward(b, x)?;
            let sees = if self.source.is_some() { Sees::Earlier } else { Sees::Everything };
            let mixed = attention.forward(b, &given, sees, None)?;
            let mut x = b.add(x, &mixed)?;
            if let (Some((norm, attention)), Some(source)) = (&self.source, source) {
                let given = norm.forward(b, &x)?;
                let mixed = attention.forward(b, &given, Sees::Source(source), None)?;
                x = b.add(&x, &mixed)?;
            }
            let given = self.norm.forward(b, &x)?;
            let inner = self.first.forward(b, &given)?;
            let inner = self.activation.forward(b, &inner)?;
            let made = self.second.forward(b, &inner)?;
            b.add(&x, &made)
        })
    }
}
