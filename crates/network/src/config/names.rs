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
    /// Projections of one expert: gate, up, down.
    pub(crate) expert_modules: [&'static str; 3],
}

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
            embedding: "Embedding",
            mlp: concat!($prefix, "MLP"),
            mixture: concat!($prefix, "SparseMoeBlock"),
            gate: concat!($prefix, "TopKRouter"),
            expert: concat!($prefix, "MLP"),
            experts: "ModuleList",
            mixture_module: "mlp",
            gate_module: "gate",
            shared_module: "shared_expert",
            expert_modules: ["gate_proj", "up_proj", "down_proj"],
        }
    };
}

pub(crate) use names;
