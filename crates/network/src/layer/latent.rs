//! Multi-head latent attention: the cache holds one latent vector and one rotated key a position, for all heads.

use types::{ActivationKind, AttentionDetail, AttentionKind, Chosen, Op};

use super::{Indexer, Linear, Norm, Rotary};
use crate::config::Names;
use crate::config::decoder::{LatentConfig, NormConfig};
use crate::{Backend, Builder, Module, NetworkError, Ops};

#[derive(Clone, Debug)]
pub(crate) struct LatentAttention {
    module: Module,
    query: Query,
    compress: Linear,
    norm: Norm,
    expand: Linear,
    output: Linear,
    /// To a gate of each head.
    gate: Option<Linear>,
    rotary: Option<Rotary>,
    indexer: Option<Indexer>,
    config: LatentConfig,
    layer: usize,
}

#[derive(Clone, Debug)]
enum Query {
    Direct(Linear),
    Squeezed { first: Linear, norm: Norm, second: Linear },
}

impl LatentAttention {
    /// Attention of layer `layer`, which names its part of the cache.
    pub(crate) fn new(
        builder: &mut Builder,
        names: &Names,
        width: u64,
        config: LatentConfig,
        norm: NormConfig,
        layer: usize,
    ) -> Self {
        let LatentConfig { heads, latent, plain_width, rotary_width, value_width, bias, .. } = config;
        builder.module("self_attn", names.attention, |builder, module| {
            builder.setting("hidden_size", width);
            builder.setting("num_heads", heads);
            builder.setting("kv_lora_rank", latent);
            builder.setting("qk_nope_head_dim", plain_width);
            builder.setting("qk_rope_head_dim", rotary_width);
            builder.setting("v_head_dim", value_width);
            let queries = heads * (plain_width + rotary_width);
            let query = match config.query_rank {
                None => Query::Direct(Linear::new(builder, "q_proj", width, queries, false)),
                Some(rank) => {
                    builder.setting("q_lora_rank", rank);
                    Query::Squeezed {
                        first: Linear::new(builder, "q_a_proj", width, rank, bias),
                        norm: Norm::new(builder, "q_a_layernorm", names.norm, rank, norm),
                        second: Linear::new(builder, "q_b_proj", rank, queries, false),
                    }
                }
            };
            let indexer = config
                .indexer
                .zip(config.query_rank.zip(config.rotary))
                .map(|(indexer, (rank, rotary))| Indexer::new(builder, names, [width, rank], indexer, rotary, layer));
            Self {
                module,
                query,
                indexer,
                compress: Linear::new(builder, "kv_a_proj_with_mqa", width, latent + rotary_width, bias),
                norm: Norm::new(builder, "kv_a_layernorm", names.norm, latent, norm),
                expand: Linear::new(builder, "kv_b_proj", latent, heads * (plain_width + value_width), false),
                output: Linear::new(builder, "o_proj", heads * value_width, width, bias),
                gate: config.gated.then(|| Linear::new(builder, "g_proj", width, heads, false)),
                rotary: config.rotary.map(|rotary| Rotary::new(builder, names.rotary, rotary)),
                config,
                layer,
            }
        })
    }

    /// `x [B, S, O]`, whose first position is `offset`.
    pub(crate) fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor, offset: u64) -> Result<B::Tensor, NetworkError> {
        let LatentConfig { heads, latent, plain_width, rotary_width, value_width, .. } = self.config;
        b.scope(self.module, &[x], |b| {
            let [batch, length] = [b.shape(x).dims()[0], b.shape(x).dims()[1]];
            let mut chosen = None;
            let query = match &self.query {
                Query::Direct(project) => project.forward(b, x)?,
                Query::Squeezed { first, norm, second } => {
                    let squeezed = first.forward(b, x)?;
                    let squeezed = norm.forward(b, &squeezed)?;
                    if let (Some(indexer), Some(keep)) = (&self.indexer, self.config.keep) {
                        chosen = Some(indexer.forward(b, [x, &squeezed], offset, keep)?);
                    }
                    second.forward(b, &squeezed)?
                }
            };
            let query = b.reshape(&query, [batch, length, heads, plain_width + rotary_width])?;
            let query = b.permute(&query, [0, 2, 1, 3])?;
            let plain = b.slice(&query, 3, 0, plain_width)?;
            let turned = b.slice(&query, 3, plain_width, rotary_width)?;
            let turned = self.turned(b, turned, offset)?;
            let both = self.compress.forward(b, x)?;
            let latents = b.slice(&both, 2, 0, latent)?;
            let latents = self.norm.forward(b, &latents)?;
            let latents = b.reshape(&latents, [batch, 1, length, latent])?;
            let key = b.slice(&both, 2, latent, rotary_width)?;
            let key = b.reshape(&key, [batch, 1, length, rotary_width])?;
            let key = self.turned(b, key, offset)?;
            let (latents, keys) = b.cache(self.layer, latents, key, None)?;
            // One position at a time is cheaper without ever expanding the cache; the published code always expands.
            let mixed = if length == 1 && b.attention() == AttentionKind::Flash {
                let positions = b.shape(&latents).dims()[2];
                // Only the chosen positions are read; which ones they are changes no cost.
                let [latents, keys] = match self.config.keep.filter(|keep| *keep < positions) {
                    None => [latents, keys],
                    Some(keep) => [b.slice(&latents, 2, 0, keep)?, b.slice(&keys, 2, 0, keep)?],
                };
                self.absorbed(b, [&plain, &turned], [&latents, &keys])?
            } else {
                self.expanded(b, [&plain, &turned], [&latents, &keys], chosen.as_ref())?
            };
            let mut mixed = b.permute_copy(&mixed, [0, 2, 1, 3])?;
            if let Some(gate) = &self.gate {
                let gate = gate.forward(b, x)?;
                let gate = b.activation(ActivationKind::Sigmoid, &gate)?;
                let gate = b.reshape(&gate, [batch, length, heads, 1])?;
                mixed = b.multiply(&mixed, &gate)?;
            }
            let mixed = b.reshape(&mixed, [batch, length, heads * value_width])?;
            self.output.forward(b, &mixed)
        })
    }

    /// `x` rotated, where positions are told apart.
    fn turned<B: Backend>(&self, b: &mut B, x: B::Tensor, offset: u64) -> Result<B::Tensor, NetworkError> {
        self.rotary.as_ref().map_or_else(|| Ok(x.clone()), |rotary| rotary.forward(b, &x, offset))
    }

    /// Keys and values of all heads are made of all latents, then attention is plain.
    fn expanded<B: Backend>(
        &self,
        b: &mut B,
        [plain, turned]: [&B::Tensor; 2],
        [latents, keys]: [&B::Tensor; 2],
        chosen: Option<&B::Tensor>,
    ) -> Result<B::Tensor, NetworkError> {
        let LatentConfig { heads, latent, plain_width, value_width, scale, .. } = self.config;
        let [batch, positions] = [b.shape(latents).dims()[0], b.shape(latents).dims()[2]];
        let query = b.concat(3, &[plain, turned])?;
        let latents = b.reshape(latents, [batch, positions, latent])?;
        let made = self.expand.forward(b, &latents)?;
        let made = b.reshape(&made, [batch, positions, heads, plain_width + value_width])?;
        let made = b.permute(&made, [0, 2, 1, 3])?;
        let plain_keys = b.slice(&made, 3, 0, plain_width)?;
        let values = b.slice(&made, 3, plain_width, value_width)?;
        // The rotated part is one for all heads.
        let keys = b.concat(3, &[&plain_keys, keys])?;
        // A query that sees some positions has as many pairs as one that sees a window of so many.
        let by = match (self.config.keep, chosen) {
            (None, _) => Chosen::Nobody,
            (Some(_), Some(_)) => Chosen::Here,
            (Some(_), None) => Chosen::Elsewhere,
        };
        let detail = AttentionDetail { window: self.config.keep, chosen: by, ..AttentionDetail::default() };
        let op = Op::Attention { causal: true, scale, fused: false, detail };
        match chosen {
            None => b.apply(op, &[&query, &keys, &values]),
            Some(chosen) => b.apply(op, &[&query, &keys, &values, chosen]),
        }
    }

    /// The expanding matrix is applied to the query and to the result instead: the cache is read as it is, once.
    fn absorbed<B: Backend>(
        &self,
        b: &mut B,
        [plain, turned]: [&B::Tensor; 2],
        [latents, keys]: [&B::Tensor; 2],
    ) -> Result<B::Tensor, NetworkError> {
        let LatentConfig { heads, latent, plain_width, value_width, scale, .. } = self.config;
        let [batch, length] = [b.shape(plain).dims()[0], b.shape(plain).dims()[2]];
        let rows = batch * length;
        let weight = self.expand.weight(b)?;
        let weight = b.reshape(&weight, [heads, plain_width + value_width, latent])?;
        let to_latent = b.slice(&weight, 1, 0, plain_width)?;
        let to_latent = b.permute(&to_latent, [0, 2, 1])?;
        let query = b.permute_copy(plain, [1, 0, 2, 3])?;
        let query = b.reshape(&query, [heads, rows, plain_width])?;
        let query = b.apply(Op::MatMulTransposed, &[&query, &to_latent])?;
        let query = b.reshape(&query, [heads, batch, length, latent])?;
        let query = b.permute(&query, [1, 0, 2, 3])?;
        let mixed = b.apply(Op::LatentAttention { causal: true, scale }, &[&query, turned, latents, keys])?;
        let mixed = b.permute_copy(&mixed, [1, 0, 2, 3])?;
        let mixed = b.reshape(&mixed, [heads, rows, latent])?;
        let to_value = b.slice(&weight, 1, plain_width, value_width)?;
        let mixed = b.apply(Op::MatMulTransposed, &[&mixed, &to_value])?;
        let mixed = b.reshape(&mixed, [heads, batch, length, value_width])?;
        b.permute(&mixed, [1, 0, 2, 3])
    }
}
