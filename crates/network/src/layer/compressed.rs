//! Attention over a window of positions and over compressed entries of all earlier ones: one key that is the value too for
//! all heads, queries and outputs of low rank, as DeepSeek-V4 has it.

use types::{AttentionDetail, Op};

use super::{Linear, Norm, Rotary};
use crate::config::Names;
use crate::config::decoder::{CompressedConfig, Compression, NormConfig};
use crate::{Backend, Builder, Module, NetworkError, Ops, Param};

#[derive(Clone, Debug)]
pub(crate) struct CompressedAttention {
    module: Module,
    query: [Linear; 2],
    query_norm: Norm,
    head_norm: Norm,
    key: Linear,
    key_norm: Norm,
    output: [Linear; 2],
    sinks: Param,
    rotary: Rotary,
    compressor: Option<Compressor>,
    config: CompressedConfig,
    layer: usize,
}

/// What makes one entry of every few positions.
#[derive(Clone, Debug)]
struct Compressor {
    module: Module,
    entries: Entries,
    indexer: Option<Indexer>,
    every: u64,
    keep: Option<u64>,
}

#[derive(Clone, Debug)]
struct Entries {
    values: Linear,
    gates: Linear,
    bias: Param,
    norm: Norm,
    every: u64,
    width: u64,
}

/// What chooses entries, by small entries of its own.
#[derive(Clone, Debug)]
struct Indexer {
    module: Module,
    entries: Entries,
    query: Linear,
    scorer: Module,
    weights: Linear,
    heads: u64,
    width: u64,
    every: u64,
}

impl CompressedAttention {
    /// Attention of layer `layer`, which names its part of the cache.
    pub(crate) fn new(
        builder: &mut Builder,
        names: &Names,
        width: u64,
        config: CompressedConfig,
        norm: NormConfig,
        layer: usize,
    ) -> Self {
        let CompressedConfig { heads, head_width, query_rank, groups, group_rank, .. } = config;
        builder.module(names.attention_module, names.attention, |builder, module| {
            builder.setting("hidden_size", width);
            builder.setting("num_heads", heads);
            // One for all heads, so that devices that share heads each keep it whole.
            builder.setting("num_key_value_heads", 1);
            builder.setting("head_dim", head_width);
            builder.setting("sliding_window", config.window);
            let mut linear = |name, sizes| Linear::of_class(builder, name, "Linear", sizes, false);
            let query = [linear("q_a_proj", [width, query_rank]), linear("q_b_proj", [query_rank, heads * head_width])];
            let key = linear("kv_proj", [width, head_width]);
            let last = linear("o_b_proj", [groups * group_rank, width]);
            let sizes = [heads * head_width / groups, groups * group_rank];
            let first = Linear::of_class(builder, "o_a_proj", names.grouped_linear, sizes, false);
            Self {
                module,
                query,
                query_norm: Norm::new(builder, "q_a_norm", names.norm, query_rank, norm),
                head_norm: Norm::bare(builder, "q_b_norm", names.bare_norm, norm),
                key,
                key_norm: Norm::new(builder, "kv_norm", names.norm, head_width, norm),
                output: [first, last],
                sinks: builder.param("sinks", [heads]),
                rotary: Rotary::new(builder, None, config.rotary),
                compressor: config.compression.map(|part| Compressor::new(builder, names, width, &config, part, norm)),
                config,
                layer,
            }
        })
    }

    /// `x [B, S, O]`, whose first position is `offset`.
    pub(crate) fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor, offset: u64) -> Result<B::Tensor, NetworkError> {
        let CompressedConfig { heads, head_width, window, scale, groups, group_rank, .. } = self.config;
        b.scope(self.module, &[x], |b| {
            let [batch, length] = [b.shape(x).dims()[0], b.shape(x).dims()[1]];
            let squeezed = self.query[0].forward(b, x)?;
            let squeezed = self.query_norm.forward(b, &squeezed)?;
            let query = self.query[1].forward(b, &squeezed)?;
            let query = b.reshape(&query, [batch, length, heads, head_width])?;
            let query = b.permute(&query, [0, 2, 1, 3])?;
            let query = self.head_norm.forward(b, &query)?;
            let query = self.rotary.forward(b, &query, offset)?;
            let key = self.key.forward(b, x)?;
            let key = self.key_norm.forward(b, &key)?;
            let key = b.reshape(&key, [batch, 1, length, head_width])?;
            let key = self.rotary.forward(b, &key, offset)?;
            // The key is the value: there are no others to keep.
            let nothing = b.slice(&key, 3, 0, 0)?;
            let (keys, _) = b.cache(self.layer, key, nothing, Some(window))?;
            let sinks = b.param(self.sinks)?;
            let detail = AttentionDetail { window: Some(window), sinks: true, ..AttentionDetail::default() };
            let op = Op::Attention { causal: true, scale, fused: false, detail };
            let mut mixed = b.apply(op, &[&query, &keys, &keys, &sinks])?;
            if let Some(compressor) = &self.compressor {
                let far = compressor.forward(b, [x, &squeezed, &query], self.layer, (&self.rotary, offset))?;
                mixed = b.add(&mixed, &far)?;
            }
            // Values are rotated like keys, and turned back here.
            let mixed = self.rotary.forward(b, &mixed, offset)?;
            let mixed = b.permute_copy(&mixed, [1, 0, 2, 3])?;
            let each = heads / groups * head_width;
            let rows = b.reshape(&mixed, [groups, heads / groups, batch * length, head_width])?;
            let rows = b.permute_copy(&rows, [0, 2, 1, 3])?;
            let rows = b.reshape(&rows, [groups, batch * length, each])?;
            let weight = self.output[0].weight(b)?;
            let weight = b.reshape(&weight, [groups, group_rank, each])?;
            let grouped = b.apply(Op::MatMulTransposed, &[&rows, &weight])?;
            let grouped = b.permute_copy(&grouped, [1, 0, 2])?;
            let grouped = b.reshape(&grouped, [batch, length, groups * group_rank])?;
            self.output[1].forward(b, &grouped)
        })
    }
}

impl Compressor {
    fn new(
        builder: &mut Builder,
        names: &Names,
        width: u64,
        config: &CompressedConfig,
        part: Compression,
        norm: NormConfig,
    ) -> Self {
        let class = names.compressors[usize::from(part.indexer.is_none())];
        builder.module("compressor", class, |builder, module| {
            builder.setting("compress_rate", part.every);
            Self {
                module,
                entries: Entries::new(builder, names, [width, config.head_width], part, norm),
                indexer: part.indexer.map(|indexer| {
                    builder.module("indexer", names.indexer, |builder, module| {
                        builder.setting("num_heads", indexer.heads);
                        builder.setting("head_dim", indexer.width);
                        builder.setting("index_topk", indexer.keep);
                        let outputs = indexer.heads * indexer.width;
                        let query = Linear::new(builder, "q_b_proj", config.query_rank, outputs, false);
                        let entries = Entries::new(builder, names, [width, indexer.width], part, norm);
                        let (scorer, weights) = builder.module("scorer", names.scorer, |builder, module| {
                            (module, Linear::new(builder, "weights_proj", width, indexer.heads, false))
                        });
                        let (heads, width, every) = (indexer.heads, indexer.width, part.every);
                        Indexer { module, entries, query, scorer, weights, heads, width, every }
                    })
                }),
                every: part.every,
                keep: part.indexer.map(|indexer| indexer.keep),
            }
        })
    }

    /// What queries `[B, H, S, D]` find among the entries of `x [B, S, O]` and of what came before it.
    fn forward<B: Backend>(
        &self,
        b: &mut B,
        [x, squeezed, query]: [&B::Tensor; 3],
        layer: usize,
        (rotary, offset): (&Rotary, u64),
    ) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[x], |b| {
            let entries = self.entries.forward(b, x, layer)?;
            if let Some(indexer) = &self.indexer {
                indexer.forward(b, [x, squeezed], layer, (rotary, offset))?;
            }
            b.apply(Op::AttendEntries { every: self.every, keep: self.keep }, &[query, &entries])
        })
    }
}

impl Entries {
    fn new(
        builder: &mut Builder,
        names: &Names,
        [inputs, width]: [u64; 2],
        part: Compression,
        norm: NormConfig,
    ) -> Self {
        // Overlapping groups make two values of each position, for its own group and for the next.
        let outputs = if part.indexer.is_some() { 2 * width } else { width };
        Self {
            values: Linear::new(builder, "kv_proj", inputs, outputs, false),
            gates: Linear::new(builder, "gate_proj", inputs, outputs, false),
            bias: builder.param("position_bias", [part.every, outputs]),
            norm: Norm::new(builder, "kv_norm", names.norm, width, norm),
            every: part.every,
            width,
        }
    }

    /// All entries, as the part `[B, 1, T, width / every]` of them that each position is.
    fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor, layer: usize) -> Result<B::Tensor, NetworkError> {
        let values = self.values.forward(b, x)?;
        let gates = self.gates.forward(b, x)?;
        let bias = b.param(self.bias)?;
        let weight = self.norm.weight(b)?;
        let op = Op::CompressPositions { every: self.every, width: self.width };
        let made = b.apply(op, &[&values, &gates, &bias, &weight])?;
        let nothing = b.slice(&made, 3, 0, 0)?;
        let (entries, _) = b.cache(layer, made, nothing, None)?;
        Ok(entries)
    }
}

impl Indexer {
    fn forward<B: Backend>(
        &self,
        b: &mut B,
        [x, squeezed]: [&B::Tensor; 2],
        layer: usize,
        (rotary, offset): (&Rotary, u64),
    ) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[x], |b| {
            let [batch, length] = [b.shape(x).dims()[0], b.shape(x).dims()[1]];
            let entries = self.entries.forward(b, x, layer)?;
            let query = self.query.forward(b, squeezed)?;
            let query = b.reshape(&query, [batch, length, self.heads, self.width])?;
            let query = b.permute(&query, [0, 2, 1, 3])?;
            let query = rotary.forward(b, &query, offset)?;
            b.scope(self.scorer, &[&query, &entries], |b| {
                let weights = self.weights.forward(b, x)?;
                b.apply(Op::IndexEntries { every: self.every }, &[&query, &entries, &weights])
            })
        })
    }
}
