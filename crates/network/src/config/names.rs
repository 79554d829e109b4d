//! What the classes and modules of a family are called, and what its classes compute.

/// A family of decoders.
#[derive(Debug)]
pub(crate) struct Family {
    /// Package that defines its classes.
    pub(crate) home: &'static str,
    pub(crate) names: Names,
    pub(crate) definitions: Definitions,
}

/// Names of classes, and of the modules families disagree on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names {
    /// The whole, with its head.
    pub(crate) causal: &'static str,
    pub(crate) model: &'static str,
    pub(crate) layer: &'static str,
    pub(crate) attention: &'static str,
    /// Rotary submodule of attention; absent where the model computes angles once for all layers.
    pub(crate) rotary: Option<&'static str>,
    pub(crate) norm: &'static str,
    /// Norms without a weight.
    pub(crate) bare_norm: &'static str,
    pub(crate) embedding: &'static str,
    pub(crate) mlp: &'static str,
    pub(crate) mixture: &'static str,
    pub(crate) gate: &'static str,
    pub(crate) expert: &'static str,
    /// The list of experts, where they are stacked and it has parameters of its own.
    pub(crate) experts: &'static str,
    /// Module that mixes experts.
    pub(crate) mixture_module: &'static str,
    pub(crate) gate_module: &'static str,
    pub(crate) shared_module: &'static str,
    /// Whether shared experts belong to the layer, not to the module that mixes experts.
    pub(crate) shared_beside: bool,
    /// Projections of one expert: gate, up, down.
    pub(crate) expert_modules: [&'static str; 3],
    /// Everything but the head, and its parts: table, learned positions, layers, last norm.
    pub(crate) model_module: &'static str,
    pub(crate) embedding_module: &'static str,
    /// The norm behind the table, where there is one.
    pub(crate) embedding_norm: &'static str,
    pub(crate) positions: (&'static str, &'static str),
    pub(crate) layers_module: &'static str,
    pub(crate) final_norm: &'static str,
    /// Attention, its projections to queries, keys, values and from all heads, and the one that makes all three.
    pub(crate) attention_module: &'static str,
    pub(crate) projections: [&'static str; 4],
    /// Norms of queries and of keys.
    pub(crate) head_norms: [&'static str; 2],
    pub(crate) fused_projection: &'static str,
    /// The projection to the gate of its output.
    pub(crate) output_gate: &'static str,
    /// Norms of a layer: in front of attention, behind it, in front of the feed-forward, behind it.
    pub(crate) layer_norms: [&'static str; 4],
    /// The feed-forward; empty where its projections belong to the layer itself. Projections of one without a gate.
    pub(crate) mlp_module: &'static str,
    /// Projections of a dense or shared feed-forward: gate, up, down, and the one that makes gate and up.
    pub(crate) mlp_modules: [&'static str; 3],
    pub(crate) fused_mlp: &'static str,
    pub(crate) plain_modules: [&'static str; 2],
    pub(crate) plain_activation: &'static str,
    /// Indexer of sparse attention.
    pub(crate) indexer: &'static str,
    /// Linear attention, and its norm that is gated.
    pub(crate) delta: &'static str,
    pub(crate) delta_module: &'static str,
    /// What makes decays for each channel.
    pub(crate) forget_gate: &'static str,
    pub(crate) gated_norm: &'static str,
    /// State-space layer: its module and class; its norm is `gated_norm`.
    pub(crate) state_space_module: &'static str,
    pub(crate) state_space: &'static str,
    /// Class of a layer with one, where that is another than `layer`.
    pub(crate) state_space_layer: Option<&'static str>,
    /// A layer that attends to a picture, and its attention.
    pub(crate) cross: [&'static str; 2],
    /// A block that layers share.
    pub(crate) shared_block: &'static str,
    /// Gated convolution.
    pub(crate) short_conv: &'static str,
    /// Parts of a layer that computes one of several streams.
    pub(crate) altup: &'static str,
    pub(crate) laurel: &'static str,
    /// Hyper-connections of a part of a layer, and behind all layers.
    pub(crate) hyper: [&'static str; 2],
    /// Compressors, with an indexer and without one; what scores entries; the projection of groups of heads.
    pub(crate) compressors: [&'static str; 2],
    pub(crate) scorer: &'static str,
    pub(crate) grouped_linear: &'static str,
    /// Class of projections; `Conv1D` keeps matrices transposed.
    pub(crate) linear: &'static str,
}

/// Norms of a layer where none is behind attention and feed-forward.
pub(crate) const NORMS_BEFORE: [&str; 4] = ["input_layernorm", "", "post_attention_layernorm", ""];

/// Norms of a layer where both are normed in front and behind.
pub(crate) const NORMS_AROUND: [&str; 4] =
    ["input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"];

/// What the classes compute.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Definitions {
    pub(crate) layer: &'static str,
    pub(crate) attention: &'static str,
    pub(crate) norm: &'static str,
    pub(crate) embedding: &'static str,
    pub(crate) mlp: &'static str,
    pub(crate) mixture: &'static str,
    pub(crate) gate: &'static str,
}

impl Definitions {
    /// What most families have in common.
    pub(crate) const COMMON: Self = Self {
        layer: "h = x + self_attn(input_layernorm(x)); y = h + mlp(post_attention_layernorm(h))",
        attention: "y = o_proj(softmax(q k^T / sqrt(d), causal) v) with rotated q and k, over all cached keys and values",
        norm: "y = x / sqrt(mean(x^2) + eps) * weight",
        embedding: "y = table[ids]",
        mlp: "y = down_proj(silu(gate_proj(x)) * up_proj(x))",
        mixture: "y = sum over the chosen experts of score * expert(x)",
        gate: "scores = softmax(x W^T); the k best experts of each token",
    };
}

/// Names that start with that of the family, as transformers forms them.
macro_rules! names {
    ($prefix:literal) => {
        $crate::config::names::Names {
            causal: concat!($prefix, "ForCausalLM"),
            model: concat!($prefix, "Model"),
            layer: concat!($prefix, "DecoderLayer"),
            attention: concat!($prefix, "Attention"),
            rotary: None,
            norm: concat!($prefix, "RMSNorm"),
            bare_norm: concat!($prefix, "RMSNorm"),
            embedding: "Embedding",
            mlp: concat!($prefix, "MLP"),
            mixture: concat!($prefix, "SparseMoeBlock"),
            gate: concat!($prefix, "TopKRouter"),
            expert: concat!($prefix, "MLP"),
            experts: "ModuleList",
            mixture_module: "mlp",
            gate_module: "gate",
            shared_module: "shared_expert",
            shared_beside: false,
            expert_modules: ["gate_proj", "up_proj", "down_proj"],
            model_module: "model",
            embedding_module: "embed_tokens",
            embedding_norm: "",
            positions: ("", ""),
            layers_module: "layers",
            final_norm: "norm",
            attention_module: "self_attn",
            projections: ["q_proj", "k_proj", "v_proj", "o_proj"],
            head_norms: ["q_norm", "k_norm"],
            fused_projection: "qkv_proj",
            output_gate: "gate_proj",
            layer_norms: $crate::config::names::NORMS_BEFORE,
            mlp_module: "mlp",
            mlp_modules: ["gate_proj", "up_proj", "down_proj"],
            fused_mlp: "gate_up_proj",
            plain_modules: ["up_proj", "down_proj"],
            plain_activation: "act_fn",
            indexer: concat!($prefix, "Indexer"),
            delta: "GatedDeltaNet",
            delta_module: "linear_attn",
            forget_gate: concat!($prefix, "ForgetGate"),
            gated_norm: "RMSNormGated",
            state_space_module: "mamba",
            state_space: concat!($prefix, "Mixer"),
            state_space_layer: None,
            cross: [concat!($prefix, "CrossAttentionDecoderLayer"), concat!($prefix, "CrossAttention")],
            shared_block: concat!($prefix, "AttentionDecoderLayer"),
            short_conv: concat!($prefix, "ShortConv"),
            altup: concat!($prefix, "AltUp"),
            laurel: concat!($prefix, "LaurelBlock"),
            hyper: [concat!($prefix, "HyperConnection"), concat!($prefix, "HyperHead")],
            compressors: [concat!($prefix, "CSACompressor"), concat!($prefix, "HCACompressor")],
            scorer: concat!($prefix, "IndexerScorer"),
            grouped_linear: concat!($prefix, "GroupedLinear"),
            linear: "Linear",
        }
    };
}

pub(crate) use names;
