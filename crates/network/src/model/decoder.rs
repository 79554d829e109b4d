//! The one decoder: every language model here is this, with parts chosen by its configuration.

use types::Op;

use super::decoder_layer::{Layer, kept};
use super::{CacheKind, CacheLayer, CacheLayout, Prompt};
use crate::config::decoder::{DecoderConfig, DecoderHead, HyperConfig, PositionsConfig};
use crate::config::quantisation::Quantisation;
use crate::layer::{Embedding, HyperConnection, Linear, Norm, PerLayerEmbeddings, Streams, streams};
use crate::{Backend, Blueprint, Builder, Module, NetworkError, Ops, Repetition};

/// A language model: a decoder and its head.
#[derive(Debug)]
pub struct LanguageModel {
    blueprint: Blueprint,
    model: Module,
    decoder: Decoder,
    head: Head,
    computed: bool,
    exact_positions: Option<u64>,
}

/// Everything between token ids and final norm.
#[derive(Debug)]
pub(crate) struct Decoder {
    embedding: Embedding,
    embedding_norm: Option<Norm>,
    positions: Option<(Embedding, PositionsConfig)>,
    per_layer: Option<PerLayerEmbeddings>,
    streams: Option<Streams>,
    /// What collapses the streams behind all layers.
    hyper: Option<(HyperConnection, HyperConfig)>,
    /// Whether layers are given the embeddings again.
    shares: bool,
    layers: Vec<Layer>,
    norm: Norm,
    cache: CacheLayout,
}

/// Hidden states to logits.
#[derive(Debug)]
pub(crate) struct Head {
    /// Absent where the token embedding's table is used as a matrix, or where there is no head.
    own: Option<Linear>,
    kind: DecoderHead,
    softcap: Option<f64>,
    scale: Option<f64>,
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
        let computed = config.family.is_computed && config.head == DecoderHead::Tokens;
        let exact_positions = config.exact_positions;
        Self {
            blueprint: finish(builder, config.quantisation.as_ref()),
            model,
            decoder,
            head,
            computed,
            exact_positions,
        }
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

    /// Positions behind which it is not built here as published; costs are the same there, logits are not.
    pub fn exact_positions(&self) -> Option<u64> {
        self.exact_positions
    }

    /// Logits `[B, S, V]`, or of the last position.
    pub fn forward<B: Backend>(&self, b: &mut B, prompt: &Prompt<B::Tensor>) -> Result<B::Tensor, NetworkError> {
        let hidden = b.scope(self.model, &[&prompt.input], |b| {
            let embedded = self.decoder.embed(b, &prompt.input, prompt.offset)?;
            let per_layer = self.decoder.per_layer.as_ref();
            let own = per_layer.map(|per_layer| per_layer.forward(b, &prompt.input, &embedded)).transpose()?;
            let more = Additions { own: own.as_ref(), source: prompt.source.as_ref(), ..Additions::none() };
            self.decoder.forward_with(b, embedded, prompt.offset, more)
        })?;
        self.head.forward(b, &self.decoder, &hidden, prompt.last_logits_only)
    }
}

/// What layers are given beside hidden states.
pub(crate) struct Additions<'a, T> {
    /// Features for the outputs of the first layers, at the positions that a mask marks.
    pub(crate) deep: Option<(&'a [T], &'a T)>,
    /// Embeddings of each layer, `[B, S, layers, width]`.
    pub(crate) own: Option<&'a T>,
    /// What cross-attention sees, `[B, T, O]`, at prefill.
    pub(crate) source: Option<&'a T>,
}

impl<T> Additions<'_, T> {
    pub(crate) const fn none() -> Self {
        Self { deep: None, own: None, source: None }
    }
}

/// The finished blueprint, its matrices kept as the checkpoint of this decoder keeps them.
pub(crate) fn finish(builder: Builder, quantisation: Option<&Quantisation>) -> Blueprint {
    let blueprint = builder.finish();
    match quantisation {
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
        let sizes = [config.vocabulary + config.further_tokens, config.width];
        let embedding =
            Embedding::scaled(builder, names.embedding_module, names.embedding, sizes, config.embedding_scale);
        let embedding_norm = (!names.embedding_norm.is_empty())
            .then(|| Norm::new(builder, names.embedding_norm, names.norm, config.width, config.norm));
        let positions = config.positions.map(|positions| {
            let (name, class) = names.positions;
            (Embedding::scaled(builder, name, class, [positions.rows, config.width], None), positions)
        });
        let count = config.layers.len() as u64;
        let per_layer = config
            .per_layer
            .map(|part| PerLayerEmbeddings::new(builder, names, [config.width, count], part, config.norm));
        let streams = config.streams.map(|streams| Streams::new(builder, config.width, streams, config.norm.epsilon));
        let mut blocks = Vec::new();
        let (_, layers) = builder.list(names.layers_module, Repetition::Sequential, count, |builder, index| {
            Layer::new(builder, index as usize, config, &mut blocks)
        });
        let hyper =
            config.hyper.map(|part| (HyperConnection::last(builder, names, config.width, part, config.norm), part));
        let norm = Norm::new(builder, names.final_norm, names.norm, config.width, config.norm);
        let cache = CacheLayout {
            layers: (config.layers.iter().enumerate())
                .map(|(index, layer)| {
                    let kept = kept(layer, config.width);
                    let shared = config.shared.as_ref().filter(|shared| shared.layers[index]);
                    shared.map_or(kept, |shared| {
                        let attention = shared.block.attention;
                        let elements = 2 * attention.key_value_heads * attention.head_width;
                        CacheLayer { kind: CacheKind::Hybrid, elements, ..kept }
                    })
                })
                .collect(),
            dtype: config.quantisation.as_ref().and_then(|quantisation| quantisation.kv),
        };
        let shares = config.shared.is_some();
        Self { embedding, embedding_norm, positions, per_layer, streams, hyper, shares, layers, norm, cache }
    }

    pub(crate) fn cache(&self) -> &CacheLayout {
        &self.cache
    }

    /// Token ids `[B, S]`, the first at position `offset`, to embeddings.
    pub(crate) fn embed<B: Backend>(&self, b: &mut B, ids: &B::Tensor, offset: u64) -> Result<B::Tensor, NetworkError> {
        let mut embedded = self.embedding.forward(b, ids)?;
        if let Some(norm) = &self.embedding_norm {
            embedded = norm.forward(b, &embedded)?;
        }
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
        self.forward_with(b, embedded, offset, Additions::none())
    }

    /// The same, with what layers are given beside hidden states.
    pub(crate) fn forward_with<B: Backend>(
        &self,
        b: &mut B,
        embedded: B::Tensor,
        offset: u64,
        more: Additions<'_, B::Tensor>,
    ) -> Result<B::Tensor, NetworkError> {
        let mut x = match (&self.streams, &self.hyper) {
            (Some(streams), _) => streams.part(b, &embedded)?,
            (None, Some((_, config))) => streams(b, &embedded, *config)?,
            (None, None) => embedded,
        };
        let start = self.shares.then(|| x.clone());
        for (index, layer) in self.layers.iter().enumerate() {
            let own = more.own.map(|own| b.slice(own, 2, index as u64, 1)).transpose()?;
            x = layer.forward(b, &x, [own.as_ref(), more.source, start.as_ref()], offset)?;
            if let Some((features, mask)) = more.deep
                && let Some(rows) = features.get(index)
            {
                x = b.apply(Op::AddRows, &[&x, rows, mask])?;
            }
        }
        if let Some(streams) = &self.streams {
            x = streams.join(b, &x)?;
        }
        if let Some((last, _)) = &self.hyper {
            [_, x] = last.collapse(b, &x)?;
        }
        self.norm.forward(b, &x)
    }
}

impl Head {
    /// Adds `lm_head` to the module under construction, unless it is tied to the token embedding.
    pub(crate) fn new(builder: &mut Builder, config: &DecoderConfig) -> Self {
        let own = match config.head {
            DecoderHead::Tokens if config.tied_embeddings => None,
            DecoderHead::Tokens => {
                Some(Linear::new(builder, "lm_head", config.width, config.vocabulary, config.head_bias))
            }
            DecoderHead::Scores { count, bias } => Some(Linear::new(builder, "score", config.width, count, bias)),
            DecoderHead::Absent => None,
        };
        Self { own, kind: config.head, softcap: config.logit_softcap, scale: config.logit_scale }
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
            None if self.kind == DecoderHead::Absent => return Ok(hidden),
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
