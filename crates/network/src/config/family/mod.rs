//! Families of decoders: one reader each. A reader names the classes of the published model and chooses parts.

mod mixture;
mod sizes;

pub(super) mod classic;
pub(super) mod deci;
pub(super) mod deepseek;
pub(crate) mod deepseek_ocr;
pub(super) mod deepseek_v4;
pub(super) mod dense;
pub(super) mod described;
pub(super) mod gemma;
pub(super) mod gemma3n;
pub(super) mod gemma4;
pub(super) mod gpt_oss;
pub(super) mod kimi;
pub(super) mod llama;
pub(super) mod llama4;
pub(crate) mod llava;
pub(super) mod mistral;
pub(super) mod mixer;
pub(super) mod mixtral;
pub(super) mod phi;
pub(super) mod qwen;
pub(super) mod qwen_moe;
pub(super) mod qwen_next;
pub(crate) mod qwen_vl;
pub(super) mod seed_oss;
pub(super) mod sparse;
pub(super) mod state_space;

pub(in crate::config) use sizes::{activation_named, rotary};

pub(crate) use super::names::{Definitions, Family, NORMS_AROUND, Names, names};

/// Every family, for the descriptions of its classes.
pub(crate) fn families() -> impl Iterator<Item = &'static Family> {
    const LATER: &[&Family] =
        &[&llama4::FAMILY, &gemma4::FAMILY, &gemma4::UNIFIED, &gemma3n::FAMILY, &deepseek_v4::FAMILY, &deci::FAMILY];
    const READERS: [&[&Family]; 6] = [
        kimi::FAMILIES,
        dense::FAMILIES,
        sparse::FAMILIES,
        classic::FAMILIES,
        qwen_next::FAMILIES,
        state_space::FAMILIES,
    ];
    let own = [FAMILIES, LATER, mixer::FAMILIES].into_iter().chain(READERS).flatten().copied();
    let own = own.chain(deepseek::LATER.iter().copied());
    own.chain(described::rows().map(|row| &row.family))
}

/// Whether logits of this family, as an engine computes them from what is built here, were compared with transformers.
pub(crate) fn is_computed(family: &Family) -> bool {
    const LATER: &[&Family] = &[
        &state_space::MAMBA2,
        &state_space::BAMBA,
        &mixer::LFM2,
        &mixer::MLLAMA,
        &qwen_next::DENSE,
        &qwen_next::SPARSE,
        &llama4::FAMILY,
    ];
    FAMILIES.iter().chain(LATER).any(|known| known.names.causal == family.names.causal)
}

const FAMILIES: &[&Family] = &[
    &llama::FAMILY,
    &mistral::FAMILY,
    &qwen::QWEN2,
    &qwen::QWEN3,
    &mixtral::FAMILY,
    &qwen_moe::QWEN2,
    &qwen_moe::QWEN3,
    &deepseek::V2,
    &deepseek::V3,
    &deepseek::V32,
    &deepseek::GLM,
    &phi::FAMILY,
    &gemma::GEMMA2,
    &gemma::GEMMA3,
    &gpt_oss::FAMILY,
    &seed_oss::FAMILY,
    &qwen_vl::TEXT_2,
    &qwen_vl::TEXT_2_5,
    &qwen_vl::TEXT_3,
    &qwen_vl::TEXT_3_MOE,
    &deepseek_ocr::FAMILY,
];
