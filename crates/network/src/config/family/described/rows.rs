//! The rows.

use types::{ActivationKind, RotaryLayout};

use super::super::dense::scaled;
use super::super::mixture::PLAIN_GATE;
use super::super::{Definitions, Family, NORMS_AROUND, Names, names};
use super::{Described, Experts, FeedForward, Positions, Switch, Windows};
use crate::config::ConfigProblem;
use crate::config::decoder::{
    AttentionConfig, Correction, DecoderConfig, FeedForwardConfig, FusedOrder, GateConfig, HeadNorms, NormKind,
    NormPlacement, ScoreKind, SharedConfig,
};
use crate::config::fields::Fields;

/// What a row says where its family does as Llama does.
macro_rules! row {
    ($model_type:literal, $package:literal, $names:expr, $definitions:expr) => {
        Described {
            model_type: $model_type,
            family: Family {
                home: concat!("transformers.models.", $package, ".modeling_", $package),
                names: $names,
                definitions: $definitions,
            },
            norm: NormKind::Rms,
            placement: NormPlacement::Before,
            parallel_if: None,
            biases: [ATTENTION_BIAS, ATTENTION_BIAS, Switch::If("mlp_bias", false)],
            head_bias: false,
            fused: None,
            head_norms: (HeadNorms::EachHead, Switch::Never),
            positions: HALVES,
            one_key_head_if: None,
            feed_forward: FeedForward::Gated,
            activation: ActivationKind::Silu,
            experts: None,
            windows: Windows::None,
            more: |_, decoder| Ok(decoder),
        }
    };
}

const ATTENTION_BIAS: Switch = Switch::If("attention_bias", false);
const BIASED: [Switch; 3] = [Switch::Always; 3];
const UNBIASED: [Switch; 3] = [Switch::Never; 3];
const HALVES: Positions = Positions::Rotary(1.0, RotaryLayout::Halves);
const PAIRS: Positions = Positions::Rotary(1.0, RotaryLayout::Interleaved);
const PARALLEL: NormPlacement = NormPlacement::Parallel { both: false };

const LAYER_NORM: &str = "y = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias";
const BESIDE: &str = "y = x + attention(norm(x)) + mlp(norm(x))";
const COMMON: Definitions = Definitions::COMMON;
const CLASSIC: Definitions = Definitions {
    norm: LAYER_NORM,
    mlp: "y = second(activation(first(x)))",
    attention: "y = output(softmax(q k^T / sqrt(d), causal) v), over all cached keys and values",
    ..COMMON
};
const SIDE_BY_SIDE: Definitions = Definitions { layer: BESIDE, ..CLASSIC };
const SHARED: Definitions = Definitions {
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

/// Experts in every layer.
const EVERYWHERE: Experts = Experts {
    count: &["num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"],
    inner: &["moe_intermediate_size", "intermediate_size"],
    shared: &[],
    gate: PLAIN_GATE,
    normalised: true,
    dense: (&[], 0),
};

/// Experts as DeepSeek-V2 has them, behind a dense layer.
const WIDE_SHARED: Experts = Experts {
    count: &["n_routed_experts"],
    shared: &["n_shared_experts"],
    normalised: false,
    dense: (&["first_k_dense_replace"], 1),
    ..EVERYWHERE
};

/// Sinks in every layer.
fn with_sinks(mut decoder: DecoderConfig) -> DecoderConfig {
    for layer in &mut decoder.layers {
        if let AttentionConfig::Grouped(attention) = &mut layer.attention {
            attention.detail.sinks = true;
        }
    }
    decoder
}

/// An expert of a width of its own that every token passes through, and Granite's factors.
fn granite_shared(fields: &Fields<'_>, mut decoder: DecoderConfig) -> Result<DecoderConfig, ConfigProblem> {
    let inner = fields.count_or("shared_intermediate_size", 0)?;
    for layer in &mut decoder.layers {
        if let FeedForwardConfig::Mixture(mixture) = &mut layer.feed_forward {
            mixture.shared = (inner > 0).then_some(SharedConfig { count: None, inner, gated: false });
        }
    }
    scaled(fields, decoder)
}

/// GPT-Neo's layers that see a window, as `attention_types` repeats them.
fn local_layers(fields: &Fields<'_>, mut decoder: DecoderConfig) -> Result<DecoderConfig, ConfigProblem> {
    let local = fields.repeated("attention_types", ["global", "local"], decoder.layers.len())?;
    let window = fields.size_or("window_size", 256)?;
    for (layer, local) in decoder.layers.iter_mut().zip(local) {
        if let AttentionConfig::Grouped(attention) = &mut layer.attention {
            attention.detail.window = local.then_some(window);
        }
    }
    Ok(decoder)
}

/// ChatGLM2 and later. The first generation, which goes by the same names, has biases, positions in two dimensions and a
/// feed-forward without a gate.
fn chatglm(fields: &Fields<'_>, decoder: DecoderConfig) -> Result<DecoderConfig, ConfigProblem> {
    if let Some(field) = ["position_encoding_2d", "inner_hidden_size"].into_iter().find(|field| fields.states(field)) {
        return Err(fields.wrong(
            field,
            "stated",
            "no such field: the first ChatGLM-6B is not modelled, ChatGLM2 and later are",
        ));
    }
    if !fields.flag_or("multi_query_attention", true)? {
        return Err(fields.wrong("multi_query_attention", false, "true"));
    }
    Ok(decoder)
}

/// Baichuan's two published widths: positions are rotary at 4,096, and biases on scores, which nothing keeps, at 5,120.
fn baichuan(fields: &Fields<'_>, mut decoder: DecoderConfig) -> Result<DecoderConfig, ConfigProblem> {
    match decoder.width {
        4096 => Ok(decoder),
        5120 => {
            for layer in &mut decoder.layers {
                if let AttentionConfig::Grouped(attention) = &mut layer.attention {
                    attention.rotary = None;
                }
            }
            Ok(decoder)
        }
        other => Err(fields.wrong("hidden_size", other, "4096 (7B, rotary positions) or 5120 (13B, ALiBi)")),
    }
}

/// Names of GPT-2's parts.
macro_rules! gpt {
    ($prefix:literal) => {
        Names {
            model_module: "transformer",
            embedding_module: "wte",
            layers_module: "h",
            final_norm: "ln_f",
            norm: "LayerNorm",
            layer: concat!($prefix, "Block"),
            attention_module: "attn",
            layer_norms: ["ln_1", "", "ln_2", ""],
            plain_activation: "act",
            ..names!($prefix)
        }
    };
}

/// Every row, each a constant of its own: as one, they take rustc six gigabytes.
pub(in crate::config) static ROWS: &[Described] = &[
    const {
        Described {
            norm: NormKind::Layer,
            placement: PARALLEL,
            biases: BIASED,
            head_bias: true,
            head_norms: (HeadNorms::EachHead, Switch::If("qk_layernorm", false)),
            positions: Positions::Rotary(0.5, RotaryLayout::Halves),
            feed_forward: FeedForward::Plain,
            activation: ActivationKind::GeluTanh,
            ..row!(
                "phi",
                "phi",
                Names {
                    norm: "LayerNorm",
                    projections: ["q_proj", "k_proj", "v_proj", "dense"],
                    head_norms: ["q_layernorm", "k_layernorm"],
                    final_norm: "final_layernorm",
                    plain_modules: ["fc1", "fc2"],
                    plain_activation: "activation_fn",
                    ..names!("Phi")
                },
                SIDE_BY_SIDE
            )
        }
    },
    const {
        Described {
            norm: NormKind::Layer,
            placement: PARALLEL,
            biases: [Switch::Never, Switch::Never, Switch::Always],
            head_bias: true,
            positions: PAIRS,
            feed_forward: FeedForward::Plain,
            activation: ActivationKind::GeluTanh,
            ..row!(
                "gptj",
                "gptj",
                Names {
                    projections: ["q_proj", "k_proj", "v_proj", "out_proj"],
                    plain_modules: ["fc_in", "fc_out"],
                    ..gpt!("GPTJ")
                },
                SIDE_BY_SIDE
            )
        }
    },
    const {
        Described {
            norm: NormKind::Layer,
            placement: PARALLEL,
            biases: [Switch::Never, Switch::Never, Switch::Always],
            head_bias: true,
            fused: Some(FusedOrder::Blocks),
            positions: PAIRS,
            feed_forward: FeedForward::Plain,
            activation: ActivationKind::GeluTanh,
            ..row!(
                "codegen",
                "codegen",
                Names { projections: ["", "", "", "out_proj"], plain_modules: ["fc_in", "fc_out"], ..gpt!("CodeGen") },
                SIDE_BY_SIDE
            )
        }
    },
    const {
        Described {
            norm: NormKind::Layer,
            biases: BIASED,
            fused: Some(FusedOrder::Groups),
            positions: Positions::Computed,
            feed_forward: FeedForward::Plain,
            activation: ActivationKind::GeluTanh,
            ..row!(
                "bloom",
                "bloom",
                Names {
                    embedding_module: "word_embeddings",
                    embedding_norm: "word_embeddings_layernorm",
                    attention_module: "self_attention",
                    projections: ["", "", "", "dense"],
                    fused_projection: "query_key_value",
                    layer_norms: ["input_layernorm", "", "post_attention_layernorm", ""],
                    plain_modules: ["dense_h_to_4h", "dense_4h_to_h"],
                    plain_activation: "gelu_impl",
                    ..gpt!("Bloom")
                },
                Definitions {
                    attention: "y = dense(softmax(q k^T / sqrt(d) + slope * distance, causal) v), over all cached keys and values",
                    ..CLASSIC
                }
            )
        }
    },
    const {
        Described {
            norm: NormKind::LayerWithoutBias,
            biases: UNBIASED,
            fused: Some(FusedOrder::Blocks),
            positions: Positions::Computed,
            feed_forward: FeedForward::Plain,
            activation: ActivationKind::Gelu,
            ..row!(
                "mpt",
                "mpt",
                Names {
                    layers_module: "blocks",
                    final_norm: "norm_f",
                    fused_projection: "Wqkv",
                    projections: ["", "", "", "out_proj"],
                    layer_norms: ["norm_1", "", "norm_2", ""],
                    mlp_module: "ffn",
                    plain_modules: ["up_proj", "down_proj"],
                    ..gpt!("Mpt")
                },
                Definitions {
                    norm: "y = (x - mean(x)) / sqrt(var(x) + eps) * weight",
                    attention: "y = out_proj(softmax(q k^T / sqrt(d) + slope * distance, causal) v), over all cached keys and values",
                    ..CLASSIC
                }
            )
        }
    },
    const {
        Described {
            norm: NormKind::Layer,
            biases: BIASED,
            fused: Some(FusedOrder::Blocks),
            positions: Positions::Learned(0),
            one_key_head_if: Some("multi_query"),
            feed_forward: FeedForward::Plain,
            activation: ActivationKind::GeluTanh,
            ..row!(
                "gpt_bigcode",
                "gpt_bigcode",
                Names {
                    positions: ("wpe", "Embedding"),
                    projections: ["", "", "", "c_proj"],
                    fused_projection: "c_attn",
                    plain_modules: ["c_fc", "c_proj"],
                    ..gpt!("GPTBigCode")
                },
                CLASSIC
            )
        }
    },
    const {
        Described {
            norm: NormKind::Layer,
            biases: [Switch::Never, Switch::Always, Switch::Always],
            positions: Positions::Learned(0),
            feed_forward: FeedForward::Plain,
            activation: ActivationKind::GeluTanh,
            more: local_layers,
            ..row!(
                "gpt_neo",
                "gpt_neo",
                Names {
                    positions: ("wpe", "Embedding"),
                    attention: "GPTNeoSelfAttention",
                    attention_module: "attn.attention",
                    projections: ["q_proj", "k_proj", "v_proj", "out_proj"],
                    plain_modules: ["c_fc", "c_proj"],
                    ..gpt!("GPTNeo")
                },
                CLASSIC
            )
        }
    },
    const {
        Described {
            norm: NormKind::Layer,
            biases: BIASED,
            fused: Some(FusedOrder::Groups),
            head_norms: (HeadNorms::EachHead, Switch::If("qk_layernorm", true)),
            positions: Positions::Rotary(0.5, RotaryLayout::Halves),
            feed_forward: FeedForward::Plain,
            activation: ActivationKind::SquaredRelu,
            ..row!(
                "persimmon",
                "persimmon",
                Names {
                    norm: "LayerNorm",
                    fused_projection: "query_key_value",
                    projections: ["", "", "", "dense"],
                    head_norms: ["q_layernorm", "k_layernorm"],
                    final_norm: "final_layernorm",
                    plain_modules: ["dense_h_to_4h", "dense_4h_to_h"],
                    plain_activation: "act",
                    ..names!("Persimmon")
                },
                CLASSIC
            )
        }
    },
    const {
        Described {
            norm: NormKind::Layer,
            biases: BIASED,
            positions: Positions::Computed,
            feed_forward: FeedForward::Plain,
            activation: ActivationKind::Gelu,
            ..row!(
                "xglm",
                "xglm",
                Names {
                    norm: "LayerNorm",
                    embedding: "XGLMScaledWordEmbedding",
                    final_norm: "layer_norm",
                    projections: ["q_proj", "k_proj", "v_proj", "out_proj"],
                    layer_norms: ["self_attn_layer_norm", "", "final_layer_norm", ""],
                    mlp_module: "",
                    plain_modules: ["fc1", "fc2"],
                    plain_activation: "activation_fn",
                    ..names!("XGLM")
                },
                CLASSIC
            )
        }
    },
    const {
        Described {
            norm: NormKind::Layer,
            biases: BIASED,
            positions: Positions::Learned(2),
            feed_forward: FeedForward::Plain,
            activation: ActivationKind::Gelu,
            ..row!(
                "biogpt",
                "biogpt",
                Names {
                    norm: "LayerNorm",
                    model_module: "biogpt",
                    embedding: "BioGptScaledWordEmbedding",
                    positions: ("embed_positions", "BioGptLearnedPositionalEmbedding"),
                    final_norm: "layer_norm",
                    projections: ["q_proj", "k_proj", "v_proj", "out_proj"],
                    layer_norms: ["self_attn_layer_norm", "", "final_layer_norm", ""],
                    mlp_module: "",
                    plain_modules: ["fc1", "fc2"],
                    plain_activation: "activation_fn",
                    ..names!("BioGpt")
                },
                CLASSIC
            )
        }
    },
    const {
        Described {
            norm: NormKind::BareLayer,
            ..row!(
                "olmo",
                "olmo",
                Names { norm: "OlmoLayerNorm", ..names!("Olmo") },
                Definitions { norm: "y = (x - mean(x)) / sqrt(var(x) + eps)", ..COMMON }
            )
        }
    },
    const {
        Described {
            norm: NormKind::Layer,
            parallel_if: Some("use_parallel_residual"),
            biases: [Switch::If("use_qkv_bias", false), Switch::Never, Switch::Never],
            positions: Positions::Rotary(0.25, RotaryLayout::Halves),
            more: |fields, decoder| {
                let own = fields.flag_or("qk_layernorm", false)?;
                let wrong = || fields.wrong("qk_layernorm", true, "false: a norm for each head is not modelled");
                if own { Err(wrong()) } else { Ok(decoder) }
            },
            ..row!(
                "stablelm",
                "stablelm",
                Names { norm: "LayerNorm", ..names!("StableLm") },
                Definitions {
                    layer: "h = x + self_attn(norm(x)); y = h + mlp(norm(h)), or the two side by side",
                    norm: LAYER_NORM,
                    ..COMMON
                }
            )
        }
    },
    const {
        Described {
            biases: [ATTENTION_BIAS, Switch::Never, Switch::If("mlp_bias", false)],
            positions: PAIRS,
            ..row!("helium", "helium", names!("Helium"), COMMON)
        }
    },
    const {
        Described {
            norm: NormKind::BareRms,
            head_norms: (HeadNorms::Bare, Switch::Always),
            feed_forward: FeedForward::Plain,
            activation: ActivationKind::SquaredRelu,
            biases: [ATTENTION_BIAS, ATTENTION_BIAS, Switch::Never],
            ..row!(
                "nanochat",
                "nanochat",
                Names { plain_modules: ["fc1", "fc2"], plain_activation: "activation_fn", ..names!("NanoChat") },
                Definitions { norm: "y = x / sqrt(mean(x^2) + eps)", mlp: CLASSIC.mlp, ..COMMON }
            )
        }
    },
    const {
        Described {
            norm: NormKind::Layer,
            biases: [
                Switch::If("attention_bias", true),
                Switch::If("attention_bias", true),
                Switch::If("mlp_bias", true),
            ],
            feed_forward: FeedForward::Plain,
            activation: ActivationKind::SquaredRelu,
            ..row!(
                "jais2",
                "jais2",
                Names { norm: "LayerNorm", ..names!("Jais2") },
                Definitions { norm: LAYER_NORM, mlp: CLASSIC.mlp, ..COMMON }
            )
        }
    },
    const {
        Described {
            placement: NormPlacement::Around,
            more: |fields, mut decoder| {
                if !fields.flag_or("use_post_norm", true)? {
                    decoder.norm.placement = NormPlacement::Before;
                }
                scaled(fields, decoder)
            },
            ..row!(
                "hyperclovax",
                "hyperclovax",
                Names {
                    layer_norms: ["input_layernorm", "post_norm1", "post_attention_layernorm", "post_norm2"],
                    ..names!("HyperCLOVAX")
                },
                Definitions { layer: super::super::dense::GLM4.definitions.layer, ..COMMON }
            )
        }
    },
    const {
        Described {
            windows: Windows::Listed,
            more: |fields, decoder| scaled(fields, with_sinks(decoder)),
            ..row!("granite_swa", "granite_swa", names!("GraniteSWA"), super::super::dense::GRANITE.definitions)
        }
    },
    const {
        Described {
            norm: NormKind::RmsUnitOffset,
            activation: ActivationKind::GeluTanh,
            windows: Windows::Listed,
            more: |fields, mut decoder| {
                let scale = 1.0 / fields.number_or("query_pre_attn_scalar", 256.0)?.sqrt();
                let softcap = fields.optional_number("attn_logit_softcapping")?;
                decoder.embedding_scale = Some((decoder.width as f64).sqrt());
                for layer in &mut decoder.layers {
                    if let AttentionConfig::Grouped(attention) = &mut layer.attention {
                        attention.scale = scale;
                        attention.detail.softcap = softcap;
                    }
                }
                Ok(decoder)
            },
            ..row!(
                "vaultgemma",
                "vaultgemma",
                Names {
                    embedding: "VaultGemmaTextScaledWordEmbedding",
                    layer_norms: ["input_layernorm", "", "pre_feedforward_layernorm", ""],
                    ..names!("VaultGemma")
                },
                super::super::dense::GEMMA.definitions
            )
        }
    },
    const {
        Described {
            biases: [ATTENTION_BIAS, Switch::Never, Switch::Never],
            experts: Some(Experts { shared: &["n_shared_experts"], gate: CORRECTED, ..EVERYWHERE }),
            ..row!(
                "solar_open",
                "solar_open",
                Names {
                    mixture: "SolarOpenMoE",
                    gate: "SolarOpenTopkRouter",
                    shared_module: "shared_experts",
                    ..names!("SolarOpen")
                },
                SHARED
            )
        }
    },
    const {
        Described {
            biases: UNBIASED,
            head_norms: (HeadNorms::EachHead, Switch::Always),
            experts: Some(Experts {
                shared: &["num_shared_experts"],
                gate: CORRECTED,
                dense: (&["first_k_dense_replace"], 1),
                ..EVERYWHERE
            }),
            windows: Windows::AllBut { every: "sliding_window_pattern", default: 4, bare: true },
            ..row!(
                "exaone_moe",
                "exaone_moe",
                Names {
                    mixture: "ExaoneMoeSparseMoEBlock",
                    gate: "ExaoneMoeTopkRouter",
                    shared_module: "shared_experts",
                    ..names!("ExaoneMoe")
                },
                SHARED
            )
        }
    },
    const {
        Described {
            head_norms: (HeadNorms::EachHead, Switch::Always),
            experts: Some(Experts {
                shared: &["num_shared_experts"],
                gate: CORRECTED,
                dense: (&["first_k_dense_replace"], 1),
                ..EVERYWHERE
            }),
            ..row!(
                "hy_v3",
                "hy_v3",
                Names { mixture: "HYV3MoE", shared_module: "shared_experts", ..names!("HYV3") },
                SHARED
            )
        }
    },
    const {
        Described {
            head_norms: (HeadNorms::EachHead, Switch::Always),
            experts: Some(EVERYWHERE),
            windows: Windows::Listed,
            ..row!("mellum", "mellum", names!("Mellum"), COMMON)
        }
    },
    const {
        Described {
            placement: NormPlacement::After,
            head_norms: (HeadNorms::AllHeads, Switch::Always),
            experts: Some(Experts { normalised: false, ..EVERYWHERE }),
            ..row!(
                "flex_olmo",
                "flex_olmo",
                Names { layer_norms: NORMS_AROUND, ..names!("FlexOlmo") },
                Definitions {
                    layer: "h = x + post_attention_layernorm(self_attn(x)); y = h + post_feedforward_layernorm(mlp(h))",
                    ..COMMON
                }
            )
        }
    },
    const {
        Described {
            experts: Some(Experts { shared: &["moe_num_shared_experts"], inner: &["intermediate_size"], ..EVERYWHERE }),
            ..row!(
                "aria_text",
                "aria",
                Names {
                    mixture: "AriaTextMoELayer",
                    gate_module: "router",
                    shared_module: "shared_experts",
                    ..names!("AriaText")
                },
                SHARED
            )
        }
    },
    const {
        Described {
            biases: UNBIASED,
            fused: Some(FusedOrder::Blocks),
            more: baichuan,
            ..row!(
                "baichuan",
                "baichuan",
                Names {
                    fused_projection: "W_pack",
                    projections: ["", "", "", "o_proj"],
                    norm: "RMSNorm",
                    layer: "DecoderLayer",
                    attention: "Attention",
                    mlp: "MLP",
                    ..names!("Baichuan")
                },
                Definitions {
                    attention: "y = o_proj(softmax(q k^T / sqrt(d), causal) v), with rotated q and k (7B) or slope * distance \
                                added to scores (13B), over all cached keys and values",
                    ..COMMON
                }
            )
        }
    },
    Described { ..row!("minicpm", "minicpm", names!("MiniCPM"), COMMON) },
    const {
        Described {
            biases: [Switch::If("bias", true), Switch::If("bias", true), Switch::Never],
            fused: Some(FusedOrder::Groups),
            ..row!(
                "internlm2",
                "internlm2",
                Names {
                    embedding_module: "tok_embeddings",
                    attention_module: "attention",
                    fused_projection: "wqkv",
                    projections: ["", "", "", "wo"],
                    mlp_module: "feed_forward",
                    mlp_modules: ["w1", "w3", "w2"],
                    layer_norms: ["attention_norm", "", "ffn_norm", ""],
                    ..names!("InternLM2")
                },
                COMMON
            )
        }
    },
    const {
        Described {
            biases: [Switch::If("add_qkv_bias", false), Switch::Never, Switch::If("add_bias_linear", false)],
            fused: Some(FusedOrder::Blocks),
            positions: Positions::Rotary(0.5, RotaryLayout::Interleaved),
            feed_forward: FeedForward::Fused,
            more: chatglm,
            ..row!(
                "chatglm",
                "chatglm",
                Names {
                    causal: "ChatGLMModel",
                    norm: "RMSNorm",
                    layer: "GLMBlock",
                    attention: "SelfAttention",
                    mlp: "MLP",
                    model_module: "transformer",
                    embedding_module: "embedding.word_embeddings",
                    layers_module: "encoder.layers",
                    final_norm: "encoder.final_layernorm",
                    attention_module: "self_attention",
                    fused_projection: "query_key_value",
                    projections: ["", "", "", "dense"],
                    mlp_modules: ["", "", "dense_4h_to_h"],
                    fused_mlp: "dense_h_to_4h",
                    ..names!("ChatGLM")
                },
                COMMON
            )
        }
    },
    const {
        Described {
            experts: Some(Experts {
                count: &["n_routed_experts"],
                shared: &["n_shared_experts"],
                normalised: false,
                dense: (&["first_k_dense_replace"], 0),
                ..EVERYWHERE
            }),
            ..row!(
                "deepseek",
                "deepseek",
                Names {
                    mixture: "DeepseekMoE",
                    gate: "MoEGate",
                    shared_module: "shared_experts",
                    ..names!("Deepseek")
                },
                SHARED
            )
        }
    },
    const {
        Described {
            experts: Some(Experts { inner: &["intermediate_size"], ..EVERYWHERE }),
            more: granite_shared,
            ..row!(
                "granitemoeshared",
                "granitemoeshared",
                Names {
                    mixture: "GraniteMoeSharedMoE",
                    mixture_module: "block_sparse_moe",
                    gate_module: "router",
                    shared_module: "shared_mlp",
                    ..names!("GraniteMoeShared")
                },
                SHARED
            )
        }
    },
    const {
        Described {
            experts: Some(Experts { inner: &["intermediate_size"], ..EVERYWHERE }),
            windows: Windows::Listed,
            more: |fields, decoder| granite_shared(fields, with_sinks(decoder)),
            ..row!(
                "granitemoe_swa",
                "granitemoe_swa",
                Names {
                    mixture: "GraniteMoeSWAMoE",
                    mixture_module: "block_sparse_moe",
                    gate_module: "router",
                    shared_module: "shared_mlp",
                    ..names!("GraniteMoeSWA")
                },
                SHARED
            )
        }
    },
    const {
        Described {
            experts: Some(WIDE_SHARED),
            ..row!(
                "deepseek_ocr2_text",
                "deepseek_ocr2",
                Names { mixture: "DeepseekOcr2TextMoe", shared_module: "shared_experts", ..names!("DeepseekOcr2Text") },
                SHARED
            )
        }
    },
    const {
        Described {
            experts: Some(WIDE_SHARED),
            ..row!(
                "unlimited_ocr_text",
                "unlimited_ocr",
                Names { mixture: "UnlimitedOcrTextMoe", shared_module: "shared_experts", ..names!("UnlimitedOcrText") },
                SHARED
            )
        }
    },
];
