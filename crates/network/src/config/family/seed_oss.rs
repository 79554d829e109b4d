//! Seed-OSS: Llama with biases on queries, keys and values.

use super::sizes::Sizes;
use super::{Definitions, Family, names};
use crate::config::ConfigProblem;
use crate::config::decoder::{AttentionConfig, DecoderConfig, GroupedConfig};
use crate::config::fields::Fields;

pub(crate) const FAMILY: Family = Family {
    home: "transformers.models.seed_oss.modeling_seed_oss",
    names: names!("SeedOss"),
    definitions: Definitions::COMMON,
};

pub(in crate::config) fn read(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = Sizes::read(fields)?;
    let attention = GroupedConfig {
        input_bias: fields.flag_or("attention_bias", true)?,
        output_bias: fields.flag_or("attention_out_bias", false)?,
        ..sizes.grouped()
    };
    Ok(sizes.uniform(&FAMILY, AttentionConfig::Grouped(attention)))
}
