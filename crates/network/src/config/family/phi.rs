//! Phi-3, Phi-3.5 and Phi-4: one projection for queries, keys and values, one for gate and up.

use super::sizes::Sizes;
use super::{Definitions, Family, names};
use crate::config::ConfigProblem;
use crate::config::decoder::{
    AttentionConfig, DecoderConfig, FeedForwardConfig, FusedOrder, GatedConfig, GroupedConfig,
};
use crate::config::fields::Fields;

pub(crate) const FAMILY: Family = Family {
    home: "transformers.models.phi3.modeling_phi3",
    names: names!("Phi3"),
    definitions: Definitions {
        mlp: "gate, up = gate_up_proj(x); y = down_proj(silu(gate) * up)",
        ..Definitions::COMMON
    },
};

pub(in crate::config) fn read(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = Sizes::read(fields)?;
    let window = fields.size_or_none("sliding_window")?;
    let attention = GroupedConfig { fused: Some(FusedOrder::Blocks), ..sizes.grouped() }.with_window(window);
    let gated = GatedConfig { fused: true, ..sizes.gated_of(sizes.intermediate) };
    Ok(sizes.decoder(&FAMILY, |_| (AttentionConfig::Grouped(attention), FeedForwardConfig::Gated(gated))))
}
