//! GPT-OSS: sinks, biases everywhere, alternating windows, experts kept in one tensor with a clamped gate.

use types::{AttentionDetail, RotaryForm, RotaryLayout, RotaryScaling};

use super::mixture::{PLAIN_GATE, mixture};
use super::sizes::Sizes;
use super::{Definitions, Family, Names, names};
use crate::config::ConfigProblem;
use crate::config::decoder::{
    AttentionConfig, DecoderConfig, ExpertStorage, FeedForwardConfig, GateConfig, GroupedConfig, MixtureConfig,
};
use crate::config::fields::Fields;

pub(crate) const FAMILY: Family = Family {
    home: "transformers.models.gpt_oss.modeling_gpt_oss",
    names: Names { mixture: "GptOssMLP", experts: "GptOssExperts", gate_module: "router", ..names!("GptOss") },
    definitions: Definitions {
        attention: "y = o_proj(softmax([q k^T / sqrt(d), sink], causal) v) with rotated q and k, the sink's share dropped; \
                    every other layer sees a window of keys only",
        gate: "scores = softmax over the k best of x W^T + bias",
        ..Definitions::COMMON
    },
};

pub(in crate::config) fn read(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let mut sizes = Sizes::read_with(fields, 150_000.0)?;
    if !fields.states("head_dim") {
        sizes = sizes.head_width(64);
    }
    if !["rope_parameters", "rope_scaling"].iter().any(|name| fields.states(name)) {
        // What the class takes where the file does not say.
        let stretch = 0.1 * 32f64.ln() + 1.0;
        let (factor, fast, slow, original) = (32.0, 32.0, 1.0, 4096.0);
        let scaling = RotaryScaling::Yarn { factor, fast, slow, original, magnitude: stretch, truncate: false };
        sizes.rotary.form = RotaryForm { layout: RotaryLayout::Halves, scaling };
    }
    let bias = fields.flag_or("attention_bias", true)?;
    let window = fields.optional_size("sliding_window")?;
    let sliding = sizes.sliding(fields, |index| index.is_multiple_of(2))?;
    let detail = AttentionDetail { sinks: true, ..AttentionDetail::default() };
    let attention = GroupedConfig { input_bias: bias, output_bias: bias, detail, ..sizes.grouped() };
    let experts = ("num_local_experts", fields.size_or("num_local_experts", 128)?);
    let storage = ExpertStorage::Stacked {
        limit: fields.number_or("swiglu_limit", 7.0)?,
        alpha: fields.number_or("swiglu_alpha", 1.702)?,
    };
    // Softmax over the chosen logits is softmax over all, scaled to sum to one over the chosen.
    let gate = GateConfig { bias: true, ..PLAIN_GATE };
    let mixture = MixtureConfig { storage, gate, ..mixture(fields, &sizes, experts, sizes.intermediate)? };
    Ok(sizes.decoder(&FAMILY, |index| {
        let attention = attention.with_window(window.filter(|_| sliding[index]));
        (AttentionConfig::Grouped(attention), FeedForwardConfig::Mixture(mixture))
    }))
}
