//! Decoders with LayerNorm or a feed-forward without a gate that are not named after GPT.

use types::{ActivationKind, RotaryLayout};

use super::super::base::{
    ATTENTION_BIAS, CLASSIC, COMMON, EACH_HEAD, LAYER_NORM, SIDE_BY_SIDE, fairseq, home, llama, plain, refused_if,
    side_by_side,
};
use super::super::{Described, FeedForward, Positions, Switch, Windows};
use crate::config::ConfigProblem;
use crate::config::decoder::{DecoderConfig, FusedOrder, HeadNorms, NormKind};
use crate::config::family::{Definitions, Names, names};
use crate::config::fields::Fields;

/// OPT's published sizes but 350M, which norms behind and embeds in another width.
fn opt(fields: &Fields<'_>, mut decoder: DecoderConfig) -> Result<DecoderConfig, ConfigProblem> {
    let projected = fields.size_or("word_embed_proj_dim", decoder.width)?;
    if projected != decoder.width {
        return Err(fields.wrong("word_embed_proj_dim", projected, format!("`hidden_size` ({})", decoder.width)));
    }
    decoder.norm.epsilon = 1e-5;
    let decoder = refused_if(fields, decoder, ("do_layer_norm_before", false), "norms behind are not modelled")?;
    refused_if(fields, decoder, ("layer_norm_elementwise_affine", false), "norms without weights are not modelled")
}

const DOWN: &str = "y = down_proj(activation(up_proj(x)))";
const HALF: Positions = Positions::Rotary(0.5, RotaryLayout::Halves);

pub(super) static ROWS: &[Described] = &[
    const {
        let names = Names {
            norm: "LayerNorm",
            projections: ["q_proj", "k_proj", "v_proj", "dense"],
            head_norms: ["q_layernorm", "k_layernorm"],
            final_norm: "final_layernorm",
            plain_modules: ["fc1", "fc2"],
            plain_activation: "activation_fn",
            ..names!("Phi")
        };
        Described {
            head_norms: (HeadNorms::EachHead, Switch::If("qk_layernorm", false)),
            ..side_by_side(llama("phi", home!("phi"), names, SIDE_BY_SIDE), HALF)
        }
    },
    const {
        let names = Names {
            norm: "LayerNorm",
            fused_projection: "query_key_value",
            projections: ["", "", "", "dense"],
            head_norms: ["q_layernorm", "k_layernorm"],
            final_norm: "final_layernorm",
            plain_modules: ["dense_h_to_4h", "dense_4h_to_h"],
            plain_activation: "act",
            ..names!("Persimmon")
        };
        Described {
            fused: Some(FusedOrder::Groups),
            head_norms: (HeadNorms::EachHead, Switch::If("qk_layernorm", true)),
            positions: HALF,
            ..plain(llama("persimmon", home!("persimmon"), names, CLASSIC), ActivationKind::SquaredRelu)
        }
    },
    const {
        let names = Names { embedding: "XGLMScaledWordEmbedding", ..fairseq(names!("XGLM")) };
        Described {
            positions: Positions::Computed,
            ..plain(llama("xglm", home!("xglm"), names, CLASSIC), ActivationKind::Gelu)
        }
    },
    const {
        let names = Names {
            model_module: "biogpt",
            embedding: "BioGptScaledWordEmbedding",
            positions: ("embed_positions", "BioGptLearnedPositionalEmbedding"),
            ..fairseq(names!("BioGpt"))
        };
        Described {
            positions: Positions::Learned(2),
            ..plain(llama("biogpt", home!("biogpt"), names, CLASSIC), ActivationKind::Gelu)
        }
    },
    const {
        let names = Names {
            model_module: "model.decoder",
            model: "OPTDecoder",
            positions: ("embed_positions", "OPTLearnedPositionalEmbedding"),
            final_norm: "final_layer_norm",
            ..fairseq(names!("OPT"))
        };
        Described {
            biases: [Switch::If("enable_bias", true); 3],
            positions: Positions::Learned(2),
            more: opt,
            ..plain(llama("opt", home!("opt"), names, CLASSIC), ActivationKind::Relu)
        }
    },
    const {
        let names = Names {
            norm: "LayerNorm",
            plain_modules: ["c_fc", "c_proj"],
            plain_activation: "act",
            ..names!("Starcoder2")
        };
        let definitions = Definitions { norm: LAYER_NORM, mlp: "y = c_proj(gelu(c_fc(x)))", ..COMMON };
        Described {
            biases: [Switch::If("use_bias", true); 3],
            windows: Windows::All,
            ..plain(llama("starcoder2", home!("starcoder2"), names, definitions), ActivationKind::GeluTanh)
        }
    },
    const {
        let names = Names { plain_modules: ["fc1", "fc2"], plain_activation: "activation_fn", ..names!("NanoChat") };
        let definitions = Definitions { norm: "y = x / sqrt(mean(x^2) + eps)", mlp: CLASSIC.mlp, ..COMMON };
        Described {
            norm: NormKind::BareRms,
            head_norms: (HeadNorms::Bare, Switch::Always),
            biases: [ATTENTION_BIAS, ATTENTION_BIAS, Switch::Never],
            ..plain(llama("nanochat", home!("nanochat"), names, definitions), ActivationKind::SquaredRelu)
        }
    },
    const {
        let names = Names { norm: "LayerNorm", ..names!("Jais2") };
        let bias = Switch::If("attention_bias", true);
        Described {
            biases: [bias, bias, Switch::If("mlp_bias", true)],
            ..plain(
                llama("jais2", home!("jais2"), names, Definitions { norm: LAYER_NORM, mlp: CLASSIC.mlp, ..COMMON }),
                ActivationKind::SquaredRelu,
            )
        }
    },
    const {
        let names =
            Names { layer_norms: ["attention_layernorm", "", "feedforward_layernorm", ""], ..names!("Apertus") };
        Described {
            biases: [ATTENTION_BIAS, ATTENTION_BIAS, Switch::Never],
            head_norms: EACH_HEAD,
            feed_forward: FeedForward::Plain,
            activation: ActivationKind::Xielu,
            ..llama("apertus", home!("apertus"), names, Definitions { mlp: DOWN, ..COMMON })
        }
    },
    const {
        Described {
            feed_forward: FeedForward::Plain,
            activation: ActivationKind::SquaredRelu,
            ..llama("arcee", home!("arcee"), names!("Arcee"), Definitions { mlp: DOWN, ..COMMON })
        }
    },
    const {
        let norm = "y = (x - mean(x)) / sqrt(var(x) + eps) * (1 + weight) + bias";
        let names = Names { norm: "NemotronLayerNorm1P", ..names!("Nemotron") };
        Described {
            norm: NormKind::Layer,
            positions: HALF,
            feed_forward: FeedForward::Plain,
            activation: ActivationKind::SquaredRelu,
            ..llama("nemotron", home!("nemotron"), names, Definitions { norm, mlp: DOWN, ..COMMON })
        }
    },
];
