//! An encoder of text or of frames of sound, and a decoder that starts from one token and attends to what the encoder gives.

use types::{ActivationKind, Op};

use super::{CacheLayout, Prompt};
use crate::config::encoder_decoder::{EncoderDecoderConfig, StackConfig, TablePositions};
use crate::layer::{ActivationLayer, Conv1d, Embedding, LayerNorm, Linear, MultiHead, MultiHeadConfig, Sees};
use crate::{Backend, Blueprint, Builder, Module, NetworkError, Ops, Repetition};

/// Of every norm; the published configurations do not say.
const EPSILON: f64 = 1e-5;

/// The network.
#[derive(Debug)]
pub struct EncoderDecoder {
    blueprint: Blueprint,
    /// Everything but the head; the root where there is none.
    model: Module,
    /// The table of both halves, where they share one.
    shared: Option<Embedding>,
    encoder: Stack,
    decoder: Stack,
    /// Absent where the table of embeddings is used as a matrix, or where there is no head.
    head: Option<Linear>,
    cache: CacheLayout,
    config: EncoderDecoderConfig,
}

/// The encoder or the decoder.
#[derive(Debug)]
struct Stack {
    module: Module,
    /// What is in front of a table of tokens where sound is read.
    convolutions: Option<[Conv1d; 2]>,
    /// Absent where both halves share one, or where sound is read.
    embedding: Option<Embedding>,
    positions: Option<Embedding>,
    embedding_norm: Option<LayerNorm>,
    layers: Vec<Layer>,
    norm: Option<LayerNorm>,
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
    norm_before: bool,
}

impl EncoderDecoder {
    /// The network of these sizes.
    pub fn new(config: &EncoderDecoderConfig) -> Self {
        let family = config.family;
        let mut builder = Builder::new(config.class());
        builder.setting("vocab_size", config.vocabulary());
        builder.setting("d_model", config.width);
        builder.setting("encoder_layers", config.encoder.layers);
        builder.setting("decoder_layers", config.decoder.layers);
        let parts = |builder: &mut Builder, module: Module| {
            let shared = (config.shared_table && !family.of_sound)
                .then(|| Embedding::new(builder, "shared", config.vocabulary(), config.width));
            (module, shared, Stack::new(builder, config, true), Stack::new(builder, config, false))
        };
        let (model, shared, encoder, decoder) = if config.has_head {
            builder.module("model", family.model, parts)
        } else {
            let root = builder.current();
            parts(&mut builder, root)
        };
        let head = (config.has_head && !config.tied_embeddings)
            .then(|| Linear::new(&mut builder, family.head, config.width, config.vocabulary(), false));
        let cache = CacheLayout::of_both(config.decoder.layers, 2 * config.width);
        Self { blueprint: builder.finish(), model, shared, encoder, decoder, head, cache, config: config.clone() }
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
    pub fn config(&self) -> &EncoderDecoderConfig {
        &self.config
    }

    /// Most tokens of the decoder, where a table bounds them.
    pub fn most_tokens(&self) -> Option<u64> {
        matches!(self.config.family.positions, TablePositions::Table(_)).then_some(self.config.positions)
    }

    /// Whether its encoder reads sound.
    pub fn hears(&self) -> bool {
        self.config.family.of_sound
    }

    /// Logits `[B, S, V]` of the decoder's tokens. The source is given at prefill: token ids `[B, T]`, or frames
    /// `[B, frequencies, 2 T]`.
    pub fn forward<B: Backend>(&self, b: &mut B, prompt: &Prompt<B::Tensor>) -> Result<B::Tensor, NetworkError> {
        let mut inputs = vec![&prompt.input];
        inputs.extend(&prompt.source);
        let run = |b: &mut B| {
            let source = match &prompt.source {
                None => None,
                Some(source) => Some(self.encoder.forward(b, self, source, (None, 0))?),
            };
            self.decoder.forward(b, self, &prompt.input, (Some(source.as_ref()), prompt.offset))
        };
        // The root is entered by whoever reads the network.
        let hidden = if self.model == self.blueprint.root() { run(b)? } else { b.scope(self.model, &inputs, run)? };
        let length = b.shape(&hidden).dims()[1];
        let wanted = if prompt.last_logits_only && length > 1 { b.slice(&hidden, 1, length - 1, 1)? } else { hidden };
        match (&self.head, self.decoder.embedding.as_ref().or(self.shared.as_ref())) {
            (Some(head), _) => head.forward(b, &wanted),
            (None, Some(table)) if self.config.has_head => {
                let table = table.table(b)?;
                b.apply(Op::Linear, &[&wanted, &table])
            }
            _ => Ok(wanted),
        }
    }
}

impl Stack {
    fn new(builder: &mut Builder, config: &EncoderDecoderConfig, is_encoder: bool) -> Self {
        let (family, width, at) = (config.family, config.width, usize::from(!is_encoder));
        let (name, stack) = if is_encoder { ("encoder", config.encoder) } else { ("decoder", config.decoder) };
        let rows = if is_encoder { config.source_positions } else { config.positions };
        let of_sound = is_encoder && family.of_sound;
        builder.module(name, family.stacks[at], |builder, module| {
            let convolutions = config.frequencies.filter(|_| of_sound).map(|frequencies| {
                let first = Conv1d::new(builder, "conv1", [frequencies, width], 1);
                [first, Conv1d::new(builder, "conv2", [width, width], 2)]
            });
            let own = !of_sound && (family.of_sound || !config.shared_table);
            let embedding = own.then(|| Embedding::new(builder, "embed_tokens", config.vocabularies[at], width));
            let class = if of_sound { "Embedding" } else { family.positions_class };
            let positions = match family.positions {
                TablePositions::Computed => None,
                TablePositions::Table(first) => {
                    Some(Embedding::scaled(builder, "embed_positions", class, [rows + first, width], None))
                }
            };
            let embedding_norm =
                family.embedding_norm.then(|| LayerNorm::new(builder, "layernorm_embedding", width, EPSILON));
            let (_, layers) = builder.list("layers", Repetition::Sequential, stack.layers, |builder, index| {
                Layer::new(builder, config, stack, is_encoder, index)
            });
            let norm = family.final_norm.then(|| LayerNorm::new(builder, "layer_norm", width, EPSILON));
            Self { module, convolutions, embedding, positions, embedding_norm, layers, norm }
        })
    }

    /// Token ids or frames, the first at `offset`; a decoder sees a source, which is given at prefill.
    fn forward<B: Backend>(
        &self,
        b: &mut B,
        whole: &EncoderDecoder,
        input: &B::Tensor,
        (source, offset): (Option<Option<&B::Tensor>>, u64),
    ) -> Result<B::Tensor, NetworkError> {
        let mut inputs = vec![input];
        inputs.extend(source.flatten());
        b.scope(self.module, &inputs, |b| {
            let mut x = match (&self.convolutions, self.embedding.as_ref().or(whole.shared.as_ref())) {
                (Some(convolutions), _) => frames(b, convolutions, input)?,
                (None, Some(table)) => {
                    let rows = table.forward(b, input)?;
                    match whole.config.embedding_scale {
                        None => rows,
                        Some(factor) => b.apply(Op::Scale { factor }, &[&rows])?,
                    }
                }
                (None, None) => return Err(NetworkError::Prompt("an encoder without a table of tokens".to_owned())),
            };
            if let (Some(table), TablePositions::Table(first)) = (&self.positions, whole.config.family.positions) {
                let table = table.table(b)?;
                let [length, rows] = [b.shape(&x).dims()[1], b.shape(&table).dims()[0] - first];
                if self.convolutions.is_some() && length != rows {
                    let expected =
                        format!("{length} audio positions; this encoder takes {rows}, which is thirty seconds");
                    return Err(NetworkError::Prompt(expected));
                }
                if length > rows {
                    return Err(NetworkError::Prompt(format!("{length} tokens; this model has {rows} positions")));
                }
                // A position past the table costs what the last one costs; whoever computes asks for none.
                let positions = b.slice(&table, 0, first + offset.min(rows - length), length)?;
                x = b.add(&x, &positions)?;
            }
            if let Some(norm) = &self.embedding_norm {
                x = norm.forward(b, &x)?;
            }
            for layer in &self.layers {
                x = layer.forward(b, &x, source)?;
            }
            self.norm.as_ref().map_or_else(|| Ok(x.clone()), |norm| norm.forward(b, &x))
        })
    }
}

/// Frames `[B, frequencies, 2 T]` as positions `[B, T, O]`.
fn frames<B: Backend>(b: &mut B, convolutions: &[Conv1d; 2], frames: &B::Tensor) -> Result<B::Tensor, NetworkError> {
    let mut x = frames.clone();
    for convolution in convolutions {
        x = convolution.forward(b, &x)?;
        x = b.activation(ActivationKind::Gelu, &x)?;
    }
    b.permute_copy(&x, [0, 2, 1])
}

impl Layer {
    fn new(
        builder: &mut Builder,
        config: &EncoderDecoderConfig,
        stack: StackConfig,
        is_encoder: bool,
        index: u64,
    ) -> Self {
        let (family, width) = (config.family, config.width);
        let head_width = width / stack.heads;
        let sizes = MultiHeadConfig {
            width,
            heads: stack.heads,
            head_width,
            scale: 1.0 / (head_width as f64).sqrt(),
            projections: [("q_proj", true), ("k_proj", family.key_bias), ("v_proj", true), ("out_proj", true)],
        };
        let class = family.layers[usize::from(!is_encoder)];
        builder.module(index.to_string(), class, |builder, module| {
            let attends = |builder: &mut Builder, name: &str| {
                let attention = MultiHead::new(builder, (name, family.attention), sizes, index as usize);
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
                norm_before: family.norm_before,
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
            let sees = if self.source.is_some() { Sees::Earlier } else { Sees::Everything };
            let (norm, attention) = &self.itself;
            let mut x = self.added(b, x, norm, |b, x| attention.forward(b, x, sees, None))?;
            if let (Some((norm, attention)), Some(source)) = (&self.source, source) {
                x = self.added(b, &x, norm, |b, x| attention.forward(b, x, Sees::Source(source), None))?;
            }
            self.added(b, &x, &self.norm, |b, x| {
                let inner = self.first.forward(b, x)?;
                let inner = self.activation.forward(b, &inner)?;
                self.second.forward(b, &inner)
            })
        })
    }

    /// `x` and what a part makes of it, normed in front of the part or behind the sum.
    fn added<B: Backend>(
        &self,
        b: &mut B,
        x: &B::Tensor,
        norm: &LayerNorm,
        part: impl FnOnce(&mut B, &B::Tensor) -> Result<B::Tensor, NetworkError>,
    ) -> Result<B::Tensor, NetworkError> {
        if self.norm_before {
            let given = norm.forward(b, x)?;
            let made = part(b, &given)?;
            return b.add(x, &made);
        }
        let made = part(b, x)?;
        let sum = b.add(x, &made)?;
        norm.forward(b, &sum)
    }
}
