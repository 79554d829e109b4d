//! The decoder of DeepSeek-OCR: experts as DeepSeek-V2 has them, attention as Llama has it.

use super::sizes::Sizes;
use super::{Definitions, Family, Names, names::names};
use crate::Routing;
use crate::config::ConfigProblem;
use crate::config::decoder::{
    AttentionConfig, DecoderConfig, ExpertStorage, FeedForwardConfig, GateConfig, MixtureConfig, ScoreKind,
    SharedConfig,
};
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
    let mixture = FeedForwardConfig::Mixture(mixture(fields, &sizes)?);
    let attention = AttentionConfig::Grouped(sizes.grouped());
    Ok(sizes.decoder(&FAMILY, |index| (attention, if (index as u64) < first { sizes.gated() } else { mixture })))
}

fn mixture(fields: &Fields<'_>, sizes: &Sizes) -> Result<MixtureConfig, ConfigProblem> {
    let inner = fields.size("moe_intermediate_size")?;
    let routing = Routing {
        experts: fields.size("n_routed_experts")?,
        per_token: fields.size("num_experts_per_tok")?,
        normalise: fields.flag_or("norm_topk_prob", false)?,
        scale: fields.number_or("routed_scaling_factor", 1.0)?,
    };
    if routing.per_token > routing.experts {
        let expected = format!("at most `n_routed_experts` ({})", routing.experts);
        return Err(fields.wrong("num_experts_per_tok", routing.per_token, expected));
    }
    let shared = fields.count_or("n_shared_experts", 0)?;
    Ok(MixtureConfig {
        expert: sizes.gated_of(inner),
        storage: ExpertStorage::Listed,
        routing,
        gate: GateConfig {
            scores: ScoreKind::Softmax,
            single_precision: true,
            bias: false,
            correction: false,
            groups: None,
        },
        shared: (shared > 0).then_some(SharedConfig { count: Some(shared), inner: inner * shared, gated: false }),
    })
}
