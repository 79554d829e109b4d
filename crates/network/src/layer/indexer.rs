//! Indexers of sparse attention: small keys of their own choose which positions, or blocks of positions, a query sees.

use types::{Op, RotaryForm, RotaryLayout};

use super::{LayerNorm, Linear, Norm, Rotary};
use crate::config::Names;
use crate::config::decoder::{BlockIndexerConfig, IndexerConfig, NormConfig, RotaryConfig};
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

/// One that chooses blocks, with queries of its own.
#[derive(Clone, Debug)]
pub(crate) struct BlockIndexer {
    module: Module,
    query: Linear,
    key: Linear,
    norms: [Norm; 2],
    rotary: Rotary,
    config: BlockIndexerConfig,
    layer: usize,
}

impl BlockIndexer {
    /// Of attention in layer `layer` of that width.
    pub(crate) fn new(
        builder: &mut Builder,
        names: &Names,
        width: u64,
        (config, rotary): (BlockIndexerConfig, RotaryConfig),
        norm: NormConfig,
        layer: usize,
    ) -> Self {
        let rotary = RotaryConfig { width: rotary.width.min(config.width), ..rotary };
        builder.module("indexer", names.indexer, |builder, module| {
            builder.setting("num_heads", config.heads);
            builder.setting("head_dim", config.width);
            let query = Linear::new(builder, "q_proj", width, config.heads * config.width, false);
            let key = Linear::new(builder, "k_proj", width, config.width, false);
            let norms = ["q_norm", "k_norm"].map(|name| Norm::new(builder, name, names.norm, config.width, norm));
            Self { module, query, key, norms, rotary: Rotary::new(builder, None, rotary), config, layer }
        })
    }

    /// Scores of all positions for each of `x [B, S, O]`; which blocks are best changes no cost.
    pub(crate) fn score<B: Backend>(&self, b: &mut B, x: &B::Tensor, offset: u64) -> Result<B::Tensor, NetworkError> {
        let BlockIndexerConfig { heads, width, .. } = self.config;
        b.scope(self.module, &[x], |b| {
            let [batch, length] = [b.shape(x).dims()[0], b.shape(x).dims()[1]];
            let mut made = [None, None];
            for (at, (projection, heads)) in [(&self.query, heads), (&self.key, 1)].into_iter().enumerate() {
                let projected = projection.forward(b, x)?;
                let split = b.reshape(&projected, [batch, length, heads, width])?;
                let normed = self.norms[at].forward(b, &split)?;
                let turned = b.permute(&normed, [0, 2, 1, 3])?;
                made[at] = Some(self.rotary.forward(b, &turned, offset)?);
            }
            let [Some(query), Some(key)] = made else {
                return Err(NetworkError::Prompt("an indexer without keys".to_owned()));
            };
            let nothing = b.slice(&key, 3, 0, 0)?;
            let (keys, _) = b.cache(BESIDE + self.layer, key, nothing, None)?;
            // One key for all heads.
            let query = b.reshape(&query, [batch, 1, heads * length, width])?;
            b.apply(Op::MatMulTransposed, &[&query, &keys])
        })
    }
}
