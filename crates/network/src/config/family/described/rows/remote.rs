//! Families whose classes are published beside their weights, in a file that is named as their package.

use types::RotaryLayout;

use super::super::base::{BEHIND_ONE, COMMON, SHARED, UNBIASED, llama, refused_if, with_attention};
use super::super::{Described, Experts, FeedForward, Positions, Switch};
use crate::config::ConfigProblem;
use crate::config::decoder::{DecoderConfig, FusedOrder};
use crate::config::family::{Definitions, Names, names};
use crate::config::fields::Fields;

/// ChatGLM2 and later. The first generation, which goes by the same names, has biases, positions in two dimensions and a
/// feed-forward without a gate.
fn chatglm(fields: &Fields<'_>, decoder: DecoderConfig) -> Result<DecoderConfig, ConfigProblem> {
    if let Some(field) = ["position_encoding_2d", "inner_hidden_size"].into_iter().find(|field| fields.states(field)) {
        let expected = "no such field: the first ChatGLM-6B is not modelled, ChatGLM2 and later are";
        return Err(fields.wrong(field, "stated", expected));
    }
    refused_if(fields, decoder, ("multi_query_attention", false), "a key and value for each head is not modelled")
}

/// Baichuan's two published widths: positions are rotary at 4,096, and biases on scores, which nothing keeps, at 5,120.
fn baichuan(fields: &Fields<'_>, decoder: DecoderConfig) -> Result<DecoderConfig, ConfigProblem> {
    match decoder.width {
        4096 => Ok(decoder),
        5120 => Ok(with_attention(decoder, |_, attention| attention.rotary = None)),
        other => Err(fields.wrong("hidden_size", other, "4096 (7B, rotary positions) or 5120 (13B, ALiBi)")),
    }
}

pub(super) static ROWS: &[Described] = &[
    const {
        let names = Names {
            fused_projection: "W_pack",
            projections: ["", "", "", "o_proj"],
            norm: "RMSNorm",
            layer: "DecoderLayer",
            attention: "Attention",
            mlp: "MLP",
            ..names!("Baichuan")
        };
        let definitions = Definitions {
            attention: "y = o_proj(softmax(q k^T / sqrt(d), causal) v), with rotated q and k (7B) or slope * distance \
                        added to scores (13B), over all cached keys and values",
            ..COMMON
        };
        Described {
            biases: UNBIASED,
            fused: Some(FusedOrder::Blocks),
            more: baichuan,
            ..llama("baichuan", "modeling_baichuan", names, definitions)
        }
    },
    llama("minicpm", "modeling_minicpm", names!("MiniCPM"), COMMON),
    const {
        let names = Names {
            embedding_module: "tok_embeddings",
            attention_module: "attention",
            fused_projection: "wqkv",
            projections: ["", "", "", "wo"],
            mlp_module: "feed_forward",
            mlp_modules: ["w1", "w3", "w2"],
            layer_norms: ["attention_norm", "", "ffn_norm", ""],
            ..names!("InternLM2")
        };
        Described {
            biases: [Switch::If("bias", true), Switch::If("bias", true), Switch::Never],
            fused: Some(FusedOrder::Groups),
            ..llama("internlm2", "modeling_internlm2", names, COMMON)
        }
    },
    const {
        let names = Names {
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
        };
        Described {
            biases: [Switch::If("add_qkv_bias", false), Switch::Never, Switch::If("add_bias_linear", false)],
            fused: Some(FusedOrder::Blocks),
            positions: Positions::Rotary(0.5, RotaryLayout::Interleaved),
            feed_forward: FeedForward::Fused,
            more: chatglm,
            ..llama("chatglm", "modeling_chatglm", names, COMMON)
        }
    },
    const {
        let names =
            Names { mixture: "DeepseekMoE", gate: "MoEGate", shared_module: "shared_experts", ..names!("Deepseek") };
        Described {
            experts: Some(Experts { dense: (&["first_k_dense_replace"], 0), ..BEHIND_ONE }),
            ..llama("deepseek", "modeling_deepseek", names, SHARED)
        }
    },
];
