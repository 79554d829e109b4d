//! Families of decoders: one reader each. A reader names the classes of the published model and chooses parts.

mod names;
mod sizes;

pub(crate) mod deepseek_ocr;
pub(super) mod llama;
pub(super) mod mistral;
pub(super) mod qwen;

pub(crate) use names::{Definitions, Family, Names};

/// Every family, for the descriptions of its classes.
pub(crate) const FAMILIES: &[&Family] =
    &[&llama::FAMILY, &mistral::FAMILY, &qwen::QWEN2, &qwen::QWEN3, &deepseek_ocr::FAMILY];
