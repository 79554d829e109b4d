//! Mixtral: Mistral with a mixture of experts in every layer.

use super::mixture::mixture;
use super::sizes::Sizes;
use super::{Definitions, Family, Names, names};
use crate::config::ConfigProblem;
use crate::config::decoder::{AttentionConfig, DecoderConfig, FeedForwardConfig};
use crate::config::fields::Fields;

pub(crate) const FAMILY: Family = Family {
    home: "transformers.models.mixtral.modeling_mixtral",
    names: Names {
        expert: "MixtralBlockSparseTop2MLP",
        mixture_module: "block_sparse_moe",
        expert_modules: ["w1", "w3", "w2"],
        ..names!("Mixtral")
    },
    definitions: Definitions {
        layer: "h = x + self_attn(input_layernorm(x)); y = h + block_sparse_moe(post_attention_layernorm(h))",
        mlp: "y = w2(silu(w1(x)) * w3(x))",
        ..Definitions::COMMON
    },
};

pub(in crate::config) fn read(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = Sizes::read_with(fields, 1_000_000.0)?;
    let experts = ("num_local_experts", fields.size_or("num_local_experts", 8)?);
    let mixture = FeedForwardConfig::Mixture(mixture(fields, &sizes, experts, sizes.intermediate)?);
    let attention = sizes.grouped().with_window(fields.size_or_none("sliding_window")?);
    Ok(sizes.decoder(&FAMILY, |_| (AttentionConfig::Grouped(attention), mixture)))
}
