//! What rows have in common: the row of a family that does as Llama does, older kinds of it, and names and parts that several
//! rows share.

use types::{ActivationKind, RotaryLayout};

use super::{Described, Experts, FeedForward, Positions, Switch, Windows};
use crate::config::ConfigProblem;
use crate::config::decoder::{
    AttentionConfig, Correction, DecoderConfig, GateConfig, GroupedConfig, HeadNorms, NormKind, NormPlacement,
    ScoreKind,
};
use crate::config::family::mixture::PLAIN_GATE;
use crate::config::family::{Definitions, Family, Names};
use crate::config::fields::Fields;

/// The package of transformers that defines a family.
macro_rules! home {
    ($package:literal) => {
        concat!("transformers.models.", $package, ".modeling_", $package)
    };
}

pub(super) use home;

pub(super) const ATTENTION_BIAS: Switch = Switch::If("attention_bias", false);
pub(super) const MLP_BIAS: Switch = Switch::If("mlp_bias", false);
pub(super) const BIASED: [Switch; 3] = [Switch::Always; 3];
pub(super) const UNBIASED: [Switch; 3] = [Switch::Never; 3];
pub(super) const EACH_HEAD: (HeadNorms, Switch) = (HeadNorms::EachHead, Switch::Always);
pub(super) const HALVES: Positions = Positions::Rotary(1.0, RotaryLayout::Halves);
pub(super) const PAIRS: Positions = Positions::Rotary(1.0, RotaryLayout::Interleaved);

/// A family that does as Llama does.
pub(super) const fn llama(
    model_type: &'static str,
    home: &'static str,
    names: Names,
    definitions: Definitions,
) -> Described {
    Described {
        model_type,
        family: Family { home, names, definitions },
        norm: NormKind::Rms,
        placement: NormPlacement::Before,
        parallel_if: None,
        biases: [ATTENTION_BIAS, ATTENTION_BIAS, MLP_BIAS],
        head_bias: false,
        fused: None,
        head_norms: (HeadNorms::EachHead, Switch::Never),
        positions: HALVES,
        one_key_head_if: None,
        gate: None,
        feed_forward: FeedForward::Gated,
        activation: ActivationKind::Silu,
        experts: None,
        windows: Windows::None,
        more: |_, decoder| Ok(decoder),
    }
}

/// LayerNorm, biases everywhere, and a feed-forward without a gate.
pub(super) const fn plain(row: Described, activation: ActivationKind) -> Described {
    Described { norm: NormKind::Layer, biases: BIASED, feed_forward: FeedForward::Plain, activation, ..row }
}

/// The same with attention and feed-forward side by side, and a bias of the head.
pub(super) const fn side_by_side(row: Described, positions: Positions) -> Described {
    let placement = NormPlacement::Parallel { both: false };
    Described { placement, head_bias: true, positions, ..plain(row, ActivationKind::GeluTanh) }
}

/// Names of GPT-2's parts, with the class of a layer.
pub(super) const fn gpt(layer: &'static str, own: Names) -> Names {
    Names {
        model_module: "transformer",
        embedding_module: "wte",
        layers_module: "h",
        final_norm: "ln_f",
        norm: "LayerNorm",
        layer,
        attention_module: "attn",
        projections: ["", "", "", "c_proj"],
        fused_projection: "c_attn",
        layer_norms: ["ln_1", "", "ln_2", ""],
        plain_modules: ["c_fc", "c_proj"],
        plain_activation: "act",
        ..own
    }
}

/// Names of the parts of decoders that came out of fairseq.
pub(super) const fn fairseq(own: Names) -> Names {
    Names {
        norm: "LayerNorm",
        final_norm: "layer_norm",
        projections: ["q_proj", "k_proj", "v_proj", "out_proj"],
        layer_norms: ["self_attn_layer_norm", "", "final_layer_norm", ""],
        mlp_module: "",
        plain_modules: ["fc1", "fc2"],
        plain_activation: "activation_fn",
        ..own
    }
}

pub(super) const LAYER_NORM: &str = "y = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias";
pub(super) const COMMON: Definitions = Definitions::COMMON;
pub(super) const CLASSIC: Definitions = Definitions {
    norm: LAYER_NORM,
    mlp: "y = second(activation(first(x)))",
    attention: "y = output(softmax(q k^T / sqrt(d), causal) v), over all cached keys and values",
    ..COMMON
};
pub(super) const SIDE_BY_SIDE: Definitions =
    Definitions { layer: "y = x + attention(norm(x)) + mlp(norm(x))", ..CLASSIC };
pub(super) const SHARED: Definitions = Definitions {
    mixture: "y = sum over the chosen experts of score * expert(x), plus shared_experts(x), which every token passes \
              through",
    ..COMMON
};

/// Scores of each expert on its own, with a correction for the choice, as DeepSeek-V3 has them.
const CORRECTED: GateConfig = GateConfig {
    scores: ScoreKind::Sigmoid,
    single_precision: true,
    correction: Some(Correction::Buffer),
    ..PLAIN_GATE
};

/// The same correction kept as a parameter, in front of a shared expert of a width of its own.
pub(super) const LEARNED: Experts = Experts {
    gate: GateConfig { correction: Some(Correction::Parameter), ..CORRECTED },
    shared_inner: &["shared_expert_intermediate_size"],
    ..EVERYWHERE
};

/// Experts in every layer.
pub(super) const EVERYWHERE: Experts = Experts {
    count: &["num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"],
    inner: &["moe_intermediate_size", "intermediate_size"],
    shared: &[],
    shared_inner: &[],
    gate: PLAIN_GATE,
    normalised: true,
    dense: (&[], 0),
    dense_listed: None,
};

/// The same, each as wide as the feed-forward of a dense layer.
pub(super) const WIDE: Experts = Experts { inner: &["intermediate_size"], ..EVERYWHERE };

/// Experts that are chosen as DeepSeek-V3 does, behind a dense layer.
pub(super) const CHOSEN: Experts =
    Experts { shared: &["num_shared_experts"], gate: CORRECTED, dense: (&["first_k_dense_replace"], 1), ..EVERYWHERE };

/// Experts as DeepSeek-V2 has them, behind a dense layer.
pub(super) const BEHIND_ONE: Experts = Experts {
    count: &["n_routed_experts"],
    shared: &["n_shared_experts"],
    normalised: false,
    dense: (&["first_k_dense_replace"], 1),
    ..EVERYWHERE
};

/// Every layer's attention changed.
pub(super) fn with_attention(mut decoder: DecoderConfig, change: impl Fn(usize, &mut GroupedConfig)) -> DecoderConfig {
    for (index, layer) in decoder.layers.iter_mut().enumerate() {
        if let AttentionConfig::Grouped(attention) = &mut layer.attention {
            change(index, attention);
        }
    }
    decoder
}

/// Sinks in every layer.
pub(super) fn with_sinks(decoder: DecoderConfig) -> DecoderConfig {
    with_attention(decoder, |_, attention| attention.detail.sinks = true)
}

/// The family as it is, unless the file sets a flag to what is not modelled.
pub(super) fn refused_if(
    fields: &Fields<'_>,
    decoder: DecoderConfig,
    (name, refused): (&str, bool),
    why: &str,
) -> Result<DecoderConfig, ConfigProblem> {
    if fields.flag_or(name, !refused)? == refused {
        return Err(fields.wrong(name, refused, format!("{}: {why}", !refused)));
    }
    Ok(decoder)
}
