//! Building blocks shared by networks: each is a handful of handles and a forward pass.

mod attention;
mod conv;
mod embedding;
mod linear;
mod mlp;
mod moe;
mod norm;

pub(crate) use attention::{DecoderAttention, DecoderAttentionSettings};
pub(crate) use conv::{Conv2d, Conv2dSettings};
pub(crate) use embedding::Embedding;
pub(crate) use linear::Linear;
pub(crate) use mlp::{ActivationLayer, GatedMlp, PlainMlp, PlainMlpNames};
pub(crate) use moe::{MixtureOfExperts, MixtureSettings};
pub(crate) use norm::{BatchNorm2d, LayerNorm, LayerNorm2d, RmsNorm};
