//! The indexer of sparse attention: small keys of its own choose which positions a query sees.

use types::{Op, RotaryForm, RotaryLayout};

use super::{LayerNorm, Linear, Rotary};
use crate::config::Names;
use crate::config::decoder::{IndexerConfig, RotaryConfig};
use crate::{Backend, Builder, Module, NetworkError, Ops};

/// Its part of the cache lies beside that of its layer.
const BESIDE: usize = 1 << 20;

#[derive(Clone, Debug)]
pub(crate) struct Indexer {
    module: Module,
    query: Linear,
    key: Linear,
    norm: LayerNorm,
    weights: Linear,
    rotary: Rotary,
    config: IndexerConfig,
    layer: usize,
}

impl Indexer {
    /// Of attention in layer `layer` of that width, whose queries are squeezed to `rank`.
    pub(crate) fn new(
        builder: &mut Builder,
        names: &Names,
        [width, rank]: [u64; 2],
        config: IndexerConfig,
        rotary: RotaryConfig,
        layer: usize,
    ) -> Self {
        let layout = if config.interleaved { RotaryLayout::Interleaved } else { RotaryLayout::Halves };
        let rotary = RotaryConfig { form: RotaryForm { layout, ..rotary.form }, ..rotary };
        builder.module("indexer", names.indexer, |builder, module| {
            builder.setting("n_heads", config.heads);
            builder.setting("head_dim", config.width);
            Self {
                module,
                query: Linear::new(builder, "wq_b", rank, config.heads * config.width, false),
                key: Linear::new(builder, "wk", width, config.width, false),
                norm: LayerNorm::new(builder, "k_norm", config.width, 1e-6),
                weights: Linear::new(builder, "weights_proj", width, config.heads, false),
                rotary: Rotary::new(builder, None, rotary),
                config,
                layer,
            }
        })
    }

    /// Positions that each of `x [B, S, O]` sees, `keep` at most; `squeezed [B, S, R]` makes the queries.
    pub(crate) fn forward<B: Backend>(
        &self,
        b: &mut B,
        [x, squeezed]: [&B::Tensor; 2],
        offset: u64,
        keep: u64,
    ) -> Result<B::Tensor, NetworkError> {
        let IndexerConfig { heads, width, .. } = self.config;
        b.scope(self.module, &[x], |b| {
            let [batch, length] = [b.shape(x).dims()[0], b.shape(x).dims()[1]];
            let query = self.query.forward(b, squeezed)?;
            let query = b.reshape(&query, [batch, length, heads, width])?;
            let query = b.permute(&query, [0, 2, 1, 3])?;
            let query = self.rotary.forward(b, &query, offset)?;
            let key = self.key.forward(b, x)?;
            let key = self.norm.forward(b, &key)?;
            let key = b.reshape(&key, [batch, 1, length, width])?;
            let key = self.rotary.forward(b, &key, offset)?;
            // Keys only: there are no values to keep.
            let nothing = b.slice(&key, 3, 0, 0)?;
            let (keys, _) = b.cache(BESIDE + self.layer, key, nothing, None)?;
            let weights = self.weights.forward(b, x)?;
            b.apply(Op::IndexPositions { keep }, &[&query, &keys, &weights])
        })
    }
}
