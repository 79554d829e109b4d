//! The decoder of DeepSeek-OCR: experts as DeepSeek-V2 has them, attention as Llama has it.

use super::mixture::{PLAIN_GATE, mixture, shared};
use super::sizes::Sizes;
use super::{Definitions, Family, Names, names};
use crate::config::ConfigProblem;
use crate::config::decoder::{AttentionConfig, DecoderConfig, FeedForwardConfig, GateConfig, MixtureConfig};
use crate::config::fields::Fields;

pub(crate) const FAMILY: Family = Family {
    home: "modeling_deepseekocr",
    names: Names {
        causal: "DeepseekOCRForCausalLM",
        model: "DeepseekOCRModel",
        attention: "LlamaAttention",
        rotary: Some("LlamaRotaryEmbedding"),
        mixture: "DeepseekV2MoE",
        gate: "MoEGate",
        shared_module: "shared_experts",
        ..names!("DeepseekV2")
    },
    definitions: Definitions::COMMON,
};

pub(in crate::config) fn read(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    if fields.flag_or("use_mla", false)? {
        return Err(fields.wrong("use_mla", true, "false: latent attention is not part of DeepSeek-OCR"));
    }
    let sizes = Sizes::read(fields)?;
    let first = fields.count_or("first_k_dense_replace", 0)?;
    let mixture = FeedForwardConfig::Mixture(experts(fields, &sizes)?);
    let attention = AttentionConfig::Grouped(sizes.grouped());
    Ok(sizes.decoder(&FAMILY, |index| (attention, if (index as u64) < first { sizes.gated() } else { mixture })))
}

fn experts(fields: &Fields<'_>, sizes: &Sizes) -> Result<MixtureConfig, ConfigProblem> {
    let inner = fields.size("moe_intermediate_size")?;
    let experts = ("n_routed_experts", fields.size("n_routed_experts")?);
    let mut mixture = MixtureConfig {
        gate: GateConfig { single_precision: true, ..PLAIN_GATE },
        shared: shared(fields.count_or("n_shared_experts", 0)?, inner),
        ..mixture(fields, sizes, experts, inner)?
    };
    mixture.routing.normalise = fields.flag_or("norm_topk_prob", false)?;
    mixture.routing.scale = fields.number_or("routed_scaling_factor", 1.0)?;
    Ok(mixture)
}
