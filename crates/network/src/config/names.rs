//! What the classes and modules of a family are called.

use super::table::{Columns, Row, columns};

/// A family of decoders.
#[derive(Debug)]
pub(crate) struct Family {
    pub(crate) names: Names,
    /// Whether logits, as an engine computes them from what is built here, were compared with transformers.
    pub(crate) is_computed: bool,
}

columns! {
    /// Names of classes, and of the modules families disagree on.
    Names in "" {
        /// The whole, with its head.
        causal: &'static str,
        model: &'static str,
        layer: &'static str,
        attention: &'static str,
        /// Rotary submodule of attention; absent where the model computes angles once for all layers.
        rotary: Option<&'static str>,
        norm: &'static str,
        /// Norms without a weight.
        bare_norm: &'static str,
        embedding: &'static str,
        mlp: &'static str,
        mixture: &'static str,
        gate: &'static str,
        expert: &'static str,
        /// The list of experts, where they are stacked and it has parameters of its own.
        experts: &'static str,
        /// Module that mixes experts.
        mixture_module: &'static str,
        gate_module: &'static str,
        shared_module: &'static str,
        /// Whether shared experts belong to the layer, not to the module that mixes experts.
        shared_beside: bool,
        /// Projections of one expert: gate, up, down.
        expert_modules: [&'static str; 3],
        /// Everything but the head, and its parts: table, learned positions, layers, last norm.
        model_module: &'static str,
        embedding_module: &'static str,
        /// The norm behind the table, where there is one.
        embedding_norm: &'static str,
        positions: (&'static str, &'static str),
        layers_module: &'static str,
        final_norm: &'static str,
        /// Attention, its projections to queries, keys, values and from all heads, and the one that makes all three.
        attention_module: &'static str,
        projections: [&'static str; 4],
        /// Norms of queries and of keys.
        head_norms: [&'static str; 2],
        fused_projection: &'static str,
        /// The projection to the gate of its output.
        output_gate: &'static str,
        /// Norms of a layer: in front of attention, behind it, in front of the feed-forward, behind it.
        layer_norms: [&'static str; 4],
        /// The feed-forward; empty where its projections belong to the layer itself. Projections of one without a gate.
        mlp_module: &'static str,
        /// Projections of a dense or shared feed-forward: gate, up, down, and the one that makes gate and up.
        mlp_modules: [&'static str; 3],
        fused_mlp: &'static str,
        plain_modules: [&'static str; 2],
        plain_activation: &'static str,
        /// Indexer of sparse attention.
        indexer: &'static str,
        /// Linear attention, and its norm that is gated.
        delta: &'static str,
        delta_module: &'static str,
        /// What makes decays for each channel.
        forget_gate: &'static str,
        gated_norm: &'static str,
        /// State-space layer: its module and class; its norm is `gated_norm`.
        state_space_module: &'static str,
        state_space: &'static str,
        /// Class of a layer with one, where that is another than `layer`.
        state_space_layer: Option<&'static str>,
        /// A layer that attends to a picture, and its attention.
        cross: [&'static str; 2],
        /// A block that layers share.
        shared_block: &'static str,
        /// Gated convolution.
        short_conv: &'static str,
        /// Parts of a layer that computes one of several streams.
        altup: &'static str,
        laurel: &'static str,
        /// Hyper-connections of a part of a layer, and behind all layers.
        hyper: [&'static str; 2],
        /// Compressors, with an indexer and without one; what scores entries; the projection of groups of heads.
        compressors: [&'static str; 2],
        scorer: &'static str,
        grouped_linear: &'static str,
        /// Class of projections; `Conv1D` keeps matrices transposed.
        linear: &'static str,
    }
}

impl Family {
    /// `None` where a value of the row is missing or wrong.
    pub(crate) fn of(row: &Row) -> Option<Self> {
        Some(Self { names: Names::of(row)?, is_computed: row.get("computed")? })
    }
}
