//! Embeddings of tokens that each layer has of its own, as Gemma 3n and Gemma 4 have them.

use types::{ActivationKind, Op};

use super::{Embedding, Linear, Norm};
use crate::config::Names;
use crate::config::decoder::{NormConfig, PerLayerConfig};
use crate::{Backend, Builder, NetworkError, Ops};

/// What makes the embeddings of all layers.
#[derive(Clone, Debug)]
pub(crate) struct PerLayerEmbeddings {
    table: Embedding,
    projection: Linear,
    norm: Norm,
    layers: u64,
    config: PerLayerConfig,
}

/// What one layer does with its own.
#[derive(Clone, Debug)]
pub(crate) struct PerLayerInput {
    gate: Linear,
    projection: Linear,
    norm: Norm,
    activation: ActivationKind,
}

impl PerLayerEmbeddings {
    /// Adds its parts to the decoder under construction.
    pub(crate) fn new(
        builder: &mut Builder,
        names: &Names,
        [width, layers]: [u64; 2],
        config: PerLayerConfig,
        norm: NormConfig,
    ) -> Self {
        let all = layers * config.width;
        let scale = Some((config.width as f64).sqrt());
        let sizes = [config.vocabulary, all];
        Self {
            table: Embedding::scaled(builder, "embed_tokens_per_layer", names.embedding, sizes, scale),
            projection: Linear::new(builder, "per_layer_model_projection", width, all, false),
            norm: Norm::new(builder, "per_layer_projection_norm", names.norm, config.width, norm),
            layers,
            config,
        }
    }

    /// `[B, S, layers, width]` of token ids `[B, S]` and of the hidden states `[B, S, O]` that the first layer is given.
    pub(crate) fn forward<B: Backend>(
        &self,
        b: &mut B,
        ids: &B::Tensor,
        embedded: &B::Tensor,
    ) -> Result<B::Tensor, NetworkError> {
        let [batch, length, width] = [0, 1, 2].map(|dim| b.shape(embedded).dims()[dim]);
        let shape = [batch, length, self.layers, self.config.width];
        let looked_up = self.table.forward(b, ids)?;
        let looked_up = b.reshape(&looked_up, shape)?;
        let projected = self.projection.forward(b, embedded)?;
        let projected = b.apply(Op::Scale { factor: 1.0 / (width as f64).sqrt() }, &[&projected])?;
        let projected = b.reshape(&projected, shape)?;
        let projected = self.norm.forward(b, &projected)?;
        let both = b.add(&projected, &looked_up)?;
        b.apply(Op::Scale { factor: std::f64::consts::FRAC_1_SQRT_2 }, &[&both])
    }
}

impl PerLayerInput {
    /// Adds its parts to the layer under construction.
    pub(crate) fn new(
        builder: &mut Builder,
        names: &Names,
        width: u64,
        config: PerLayerConfig,
        norm: NormConfig,
        activation: ActivationKind,
    ) -> Self {
        Self {
            gate: Linear::new(builder, "per_layer_input_gate", width, config.width, false),
            projection: Linear::new(builder, "per_layer_projection", config.width, width, false),
            norm: Norm::new(builder, "post_per_layer_input_norm", names.norm, width, norm),
            activation,
        }
    }

    /// `x [B, S, O]` with what is added for the layer's own embeddings.
    pub(crate) fn forward<B: Backend>(
        &self,
        b: &mut B,
        x: &B::Tensor,
        own: &B::Tensor,
    ) -> Result<B::Tensor, NetworkError> {
        let addition = self.addition(b, x, own)?;
        b.add(x, &addition)
    }

    /// What is added to `x [B, S, O]` for the embeddings `own [B, S, 1, width]` of this layer.
    pub(crate) fn addition<B: Backend>(
        &self,
        b: &mut B,
        x: &B::Tensor,
        own: &B::Tensor,
    ) -> Result<B::Tensor, NetworkError> {
        let shape = b.shape(own);
        let own = b.reshape(own, [shape.dims()[0], shape.dims()[1], shape.last()])?;
        let gate = self.gate.forward(b, x)?;
        let gate = b.activation(self.activation, &gate)?;
        let mixed = b.multiply(&gate, &own)?;
        let mixed = self.projection.forward(b, &mixed)?;
        self.norm.forward(b, &mixed)
    }
}
