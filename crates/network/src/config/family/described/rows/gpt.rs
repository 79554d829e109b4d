//! GPT-2, and what is named after it.

use types::ActivationKind;

use super::super::base::{
    CLASSIC, PAIRS, SIDE_BY_SIDE, UNBIASED, gpt, home, llama, plain, side_by_side, with_attention,
};
use super::super::{Described, Positions, Switch};
use crate::config::ConfigProblem;
use crate::config::decoder::{DecoderConfig, FusedOrder, NormKind};
use crate::config::family::{Definitions, Names, names};
use crate::config::fields::Fields;

const FEED_FORWARD_ONLY: [Switch; 3] = [Switch::Never, Switch::Never, Switch::Always];
const POSITIONS: (&str, &str) = ("wpe", "Embedding");

/// GPT-Neo's layers that see a window, as `attention_types` repeats them.
fn local_layers(fields: &Fields<'_>, decoder: DecoderConfig) -> Result<DecoderConfig, ConfigProblem> {
    let local = fields.repeated("attention_types", ["global", "local"], decoder.layers.len())?;
    let window = fields.size_or("window_size", 256)?;
    Ok(with_attention(decoder, |index, attention| attention.detail.window = local[index].then_some(window)))
}

pub(super) static ROWS: &[Described] = &[
    const {
        let names = Names {
            causal: "GPT2LMHeadModel",
            linear: "Conv1D",
            positions: POSITIONS,
            ..gpt("GPT2Block", names!("GPT2"))
        };
        Described {
            fused: Some(FusedOrder::Blocks),
            positions: Positions::Learned(0),
            ..plain(llama("gpt2", home!("gpt2"), names, CLASSIC), ActivationKind::GeluTanh)
        }
    },
    const {
        let names = Names {
            projections: ["q_proj", "k_proj", "v_proj", "out_proj"],
            plain_modules: ["fc_in", "fc_out"],
            ..gpt("GPTJBlock", names!("GPTJ"))
        };
        Described {
            biases: FEED_FORWARD_ONLY,
            ..side_by_side(llama("gptj", home!("gptj"), names, SIDE_BY_SIDE), PAIRS)
        }
    },
    const {
        let names = Names {
            fused_projection: "qkv_proj",
            projections: ["", "", "", "out_proj"],
            plain_modules: ["fc_in", "fc_out"],
            ..gpt("CodeGenBlock", names!("CodeGen"))
        };
        Described {
            biases: FEED_FORWARD_ONLY,
            fused: Some(FusedOrder::Blocks),
            ..side_by_side(llama("codegen", home!("codegen"), names, SIDE_BY_SIDE), PAIRS)
        }
    },
    const {
        let names = Names {
            embedding_module: "word_embeddings",
            embedding_norm: "word_embeddings_layernorm",
            attention_module: "self_attention",
            projections: ["", "", "", "dense"],
            fused_projection: "query_key_value",
            layer_norms: ["input_layernorm", "", "post_attention_layernorm", ""],
            plain_modules: ["dense_h_to_4h", "dense_4h_to_h"],
            plain_activation: "gelu_impl",
            ..gpt("BloomBlock", names!("Bloom"))
        };
        let definitions = Definitions {
            attention: "y = dense(softmax(q k^T / sqrt(d) + slope * distance, causal) v), over all cached keys and values",
            ..CLASSIC
        };
        Described {
            fused: Some(FusedOrder::Groups),
            positions: Positions::Computed,
            ..plain(llama("bloom", home!("bloom"), names, definitions), ActivationKind::GeluTanh)
        }
    },
    const {
        let names = Names {
            layers_module: "blocks",
            final_norm: "norm_f",
            fused_projection: "Wqkv",
            projections: ["", "", "", "out_proj"],
            layer_norms: ["norm_1", "", "norm_2", ""],
            mlp_module: "ffn",
            plain_modules: ["up_proj", "down_proj"],
            ..gpt("MptBlock", names!("Mpt"))
        };
        let definitions = Definitions {
            norm: "y = (x - mean(x)) / sqrt(var(x) + eps) * weight",
            attention: "y = out_proj(softmax(q k^T / sqrt(d) + slope * distance, causal) v), over all cached keys and values",
            ..CLASSIC
        };
        Described {
            norm: NormKind::LayerWithoutBias,
            biases: UNBIASED,
            fused: Some(FusedOrder::Blocks),
            positions: Positions::Computed,
            ..plain(llama("mpt", home!("mpt"), names, definitions), ActivationKind::Gelu)
        }
    },
    const {
        let names = Names { positions: POSITIONS, ..gpt("GPTBigCodeBlock", names!("GPTBigCode")) };
        Described {
            fused: Some(FusedOrder::Blocks),
            positions: Positions::Learned(0),
            one_key_head_if: Some("multi_query"),
            ..plain(llama("gpt_bigcode", home!("gpt_bigcode"), names, CLASSIC), ActivationKind::GeluTanh)
        }
    },
    const {
        let names = Names {
            positions: POSITIONS,
            attention: "GPTNeoSelfAttention",
            attention_module: "attn.attention",
            projections: ["q_proj", "k_proj", "v_proj", "out_proj"],
            ..gpt("GPTNeoBlock", names!("GPTNeo"))
        };
        Described {
            biases: [Switch::Never, Switch::Always, Switch::Always],
            positions: Positions::Learned(0),
            more: local_layers,
            ..plain(llama("gpt_neo", home!("gpt_neo"), names, CLASSIC), ActivationKind::GeluTanh)
        }
    },
];
