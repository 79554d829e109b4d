//! Mistral 7B and its successors: Llama with a window on every layer where one is set.

use super::sizes::Sizes;
use super::{Definitions, Family, names};
use crate::config::ConfigProblem;
use crate::config::decoder::{AttentionConfig, DecoderConfig};
use crate::config::fields::Fields;

pub(crate) const FAMILY: Family = Family {
    home: "transformers.models.mistral.modeling_mistral",
    names: names!("Mistral"),
    definitions: Definitions::COMMON,
};

pub(in crate::config) fn read(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = Sizes::read(fields)?;
    // The class takes 4096 where a file says nothing; later models say `null`.
    let window = fields.optional_size("sliding_window")?;
    Ok(sizes.uniform(&FAMILY, AttentionConfig::Grouped(sizes.grouped().with_window(window))))
}
