//! Llama 2, 3, 3.1, 3.2 and what follows their form.

use super::sizes::Sizes;
use super::{Definitions, Family, names};
use crate::config::ConfigProblem;
use crate::config::decoder::{AttentionConfig, DecoderConfig, GroupedConfig};
use crate::config::fields::Fields;

pub(crate) const FAMILY: Family = Family {
    home: "transformers.models.llama.modeling_llama",
    names: names!("Llama"),
    definitions: Definitions::COMMON,
};

pub(in crate::config) fn read(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = Sizes::read(fields)?;
    let bias = fields.flag_or("attention_bias", false)?;
    let attention = GroupedConfig { input_bias: bias, output_bias: bias, ..sizes.grouped() };
    Ok(sizes.uniform(&FAMILY, AttentionConfig::Grouped(attention)))
}
