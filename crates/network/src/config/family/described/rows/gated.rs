//! Dense decoders with a gated feed-forward.

use types::{ActivationKind, RotaryLayout};

use super::super::base::{
    ATTENTION_BIAS, COMMON, LAYER_NORM, MLP_BIAS, PAIRS, home, llama, refused_if, with_attention, with_sinks,
};
use super::super::{Described, Positions, Switch, Windows};
use crate::config::ConfigProblem;
use crate::config::decoder::{DecoderConfig, HeadNorms, NormKind, NormPlacement};
use crate::config::family::dense::{AFTER, GLM4, GRANITE, scaled};
use crate::config::family::qwen::QWEN3;
use crate::config::family::{Definitions, NORMS_AROUND, Names, names};
use crate::config::fields::Fields;

const GEMMA: Definitions = Definitions {
    norm: "y = x / sqrt(mean(x^2) + eps) * (1 + weight)",
    mlp: "y = down_proj(gelu(gate_proj(x)) * up_proj(x))",
    ..COMMON
};

/// Norms behind attention and feed-forward unless the file says no, and Granite's factors.
fn hyperclovax(fields: &Fields<'_>, mut decoder: DecoderConfig) -> Result<DecoderConfig, ConfigProblem> {
    if !fields.flag_or("use_post_norm", true)? {
        decoder.norm.placement = NormPlacement::Before;
    }
    scaled(fields, decoder)
}

/// Gemma 2's factors.
fn vaultgemma(fields: &Fields<'_>, mut decoder: DecoderConfig) -> Result<DecoderConfig, ConfigProblem> {
    let scale = 1.0 / fields.number_or("query_pre_attn_scalar", 256.0)?.sqrt();
    let softcap = fields.optional_number("attn_logit_softcapping")?;
    decoder.embedding_scale = Some((decoder.width as f64).sqrt());
    Ok(with_attention(decoder, |_, attention| {
        attention.scale = scale;
        attention.detail.softcap = softcap;
    }))
}

pub(super) static ROWS: &[Described] = &[
    const { Described { more: scaled, ..llama("granite", home!("granite"), names!("Granite"), GRANITE) } },
    const {
        let names = Names { layer_norms: NORMS_AROUND, ..names!("Olmo2") };
        Described {
            placement: NormPlacement::After,
            head_norms: (HeadNorms::AllHeads, Switch::Always),
            ..llama("olmo2", home!("olmo2"), names, AFTER)
        }
    },
    const {
        let names = names!("HunYuanDenseV1");
        Described {
            head_norms: (HeadNorms::EachHeadTurned, Switch::Always),
            ..llama("hunyuan_v1_dense", home!("hunyuan_v1_dense"), names, QWEN3.definitions)
        }
    },
    const {
        Described {
            norm: NormKind::RmsUnitOffset,
            more: |_, decoder| Ok(DecoderConfig { embedding_scale: Some((decoder.width as f64).sqrt()), ..decoder }),
            ..llama("gemma", home!("gemma"), names!("Gemma"), GEMMA)
        }
    },
    const {
        let names = Names { norm: "OlmoLayerNorm", ..names!("Olmo") };
        let definitions = Definitions { norm: "y = (x - mean(x)) / sqrt(var(x) + eps)", ..COMMON };
        Described { norm: NormKind::BareLayer, ..llama("olmo", home!("olmo"), names, definitions) }
    },
    const {
        let names = Names { norm: "LayerNorm", ..names!("StableLm") };
        let definitions = Definitions {
            layer: "h = x + self_attn(norm(x)); y = h + mlp(norm(h)), or the two side by side",
            norm: LAYER_NORM,
            ..COMMON
        };
        Described {
            norm: NormKind::Layer,
            parallel_if: Some("use_parallel_residual"),
            biases: [Switch::If("use_qkv_bias", false), Switch::Never, Switch::Never],
            positions: Positions::Rotary(0.25, RotaryLayout::Halves),
            more: |fields, decoder| {
                refused_if(fields, decoder, ("qk_layernorm", true), "a norm for each head is not modelled")
            },
            ..llama("stablelm", home!("stablelm"), names, definitions)
        }
    },
    const {
        let definitions = Definitions {
            attention: "y = o_proj(attn_sub_norm(softmax(q k^T / sqrt(d), causal) v)) with rotated q and k, over all cached \
                        keys and values",
            mlp: "y = down_proj(ffn_sub_norm(relu(gate_proj(x))^2 * up_proj(x)))",
            ..COMMON
        };
        Described {
            placement: NormPlacement::Inside,
            biases: [ATTENTION_BIAS, ATTENTION_BIAS, Switch::Never],
            activation: ActivationKind::SquaredRelu,
            ..llama("bitnet", home!("bitnet"), names!("BitNet"), definitions)
        }
    },
    const {
        Described {
            biases: [ATTENTION_BIAS, Switch::Never, MLP_BIAS],
            positions: PAIRS,
            ..llama("helium", home!("helium"), names!("Helium"), COMMON)
        }
    },
    const {
        let names = Names {
            layer_norms: ["input_layernorm", "post_norm1", "post_attention_layernorm", "post_norm2"],
            ..names!("HyperCLOVAX")
        };
        let definitions = Definitions { layer: GLM4.definitions.layer, ..COMMON };
        Described {
            placement: NormPlacement::Around,
            more: hyperclovax,
            ..llama("hyperclovax", home!("hyperclovax"), names, definitions)
        }
    },
    const {
        Described {
            windows: Windows::Listed,
            more: |fields, decoder| scaled(fields, with_sinks(decoder)),
            ..llama("granite_swa", home!("granite_swa"), names!("GraniteSWA"), GRANITE)
        }
    },
    const {
        let names = Names {
            embedding: "VaultGemmaTextScaledWordEmbedding",
            layer_norms: ["input_layernorm", "", "pre_feedforward_layernorm", ""],
            ..names!("VaultGemma")
        };
        Described {
            norm: NormKind::RmsUnitOffset,
            activation: ActivationKind::GeluTanh,
            windows: Windows::Listed,
            more: vaultgemma,
            ..llama("vaultgemma", home!("vaultgemma"), names, GEMMA)
        }
    },
];
