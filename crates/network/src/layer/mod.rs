//! Building blocks shared by networks: each is a handful of handles and a forward pass.

mod altup;
mod attention;
mod beside;
mod conv;
mod delta;
mod embedding;
mod indexer;
mod latent;
mod linear;
mod mlp;
mod moe;
mod norm;
mod per_layer;
mod rotary;
mod stacked;
mod state_space;
mod vision_attention;

pub(crate) use altup::{AltUp, Streams};
pub(crate) use attention::GroupedAttention;
pub(crate) use beside::DenseBesideExperts;
pub(crate) use conv::{Conv2d, Conv2dSettings};
pub(crate) use delta::GatedDelta;
pub(crate) use embedding::Embedding;
pub(crate) use indexer::Indexer;
pub(crate) use latent::LatentAttention;
pub(crate) use linear::Linear;
pub(crate) use mlp::{ActivationLayer, GatedMlp, GatedMlpNames, PlainMlp, PlainMlpNames};
pub(crate) use moe::MixtureOfExperts;
pub(crate) use norm::{BatchNorm2d, LayerNorm, LayerNorm2d, Norm};
pub(crate) use per_layer::{PerLayerEmbeddings, PerLayerInput};
pub(crate) use rotary::Rotary;
pub(crate) use state_space::StateSpace;
pub(crate) use vision_attention::{Spans, VisionAttention};
