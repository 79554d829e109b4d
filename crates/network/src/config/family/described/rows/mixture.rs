//! Mixtures of experts.

use super::super::base::{
    ATTENTION_BIAS, BEHIND_ONE, CHOSEN, COMMON, EACH_HEAD, EVERYWHERE, LEARNED, PAIRS, SHARED, UNBIASED, WIDE, home,
    llama, with_attention, with_sinks,
};
use super::super::{Described, Experts, Positions, Switch, Windows};
use crate::config::ConfigProblem;
use crate::config::decoder::{
    BlockIndexerConfig, DecoderConfig, FeedForwardConfig, HeadNorms, NormKind, NormPlacement, OutputGate, SharedConfig,
};
use crate::config::family::dense::{AFTER, scaled};
use crate::config::family::{NORMS_AROUND, Names, names};
use crate::config::fields::Fields;
use types::RotaryLayout;

/// Names of Granite's experts.
const fn granite(mixture: &'static str, own: Names) -> Names {
    Names { mixture, mixture_module: "block_sparse_moe", gate_module: "router", shared_module: "shared_mlp", ..own }
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

/// Trinity's factor on embeddings.
fn afmoe(fields: &Fields<'_>, mut decoder: DecoderConfig) -> Result<DecoderConfig, ConfigProblem> {
    let scaled = fields.flag_or("mup_enabled", false)?;
    decoder.embedding_scale = scaled.then(|| (decoder.width as f64).sqrt());
    Ok(decoder)
}

/// Laguna's layers may differ in heads, and its gates may have an element for each of the output.
fn laguna(fields: &Fields<'_>, decoder: DecoderConfig) -> Result<DecoderConfig, ConfigProblem> {
    let gating = if fields.is_text("gating") { fields.optional_text("gating")? } else { None };
    let gate = match gating.as_deref() {
        None | Some("per-head") if !fields.is_text("gating") && !fields.flag_or("gating", true)? => {
            OutputGate::Elements
        }
        None | Some("per-head") => OutputGate::Heads,
        Some(_) => OutputGate::Elements,
    };
    let heads = fields.optional_counts("num_attention_heads_per_layer")?.unwrap_or_default();
    let each = heads_of(fields, "num_attention_heads_per_layer", &decoder, &heads)?;
    Ok(with_attention(decoder, |index, attention| {
        attention.gate = Some(gate);
        attention.heads = each.get(index).copied().unwrap_or(attention.heads);
    }))
}

/// That a list has query heads for every layer, if it has any, and that key-value heads divide them.
fn heads_of(
    fields: &Fields<'_>,
    name: &str,
    decoder: &DecoderConfig,
    heads: &[u64],
) -> Result<Vec<u64>, ConfigProblem> {
    let shared = fields.size_or("num_key_value_heads", decoder.heads)?;
    if !heads.is_empty() && heads.len() != decoder.layers.len() {
        let expected = format!("{} entries, one for each layer", decoder.layers.len());
        return Err(fields.wrong(name, format!("a list of {}", heads.len()), expected));
    }
    for each in heads {
        fields.divides((name, *each), ("num_key_value_heads", shared))?;
    }
    Ok(heads.to_vec())
}

/// Step 3.5's layers with a window have query heads of their own, and a list says which layers mix.
fn step(fields: &Fields<'_>, mut decoder: DecoderConfig) -> Result<DecoderConfig, ConfigProblem> {
    if let Some(listed) = fields.optional_text("moe_layers_enum").ok().flatten()
        && !fields.states("mlp_layer_types")
    {
        let first = listed.split(',').filter_map(|index| index.trim().parse::<usize>().ok()).min();
        let count = listed.split(',').count();
        if first != Some(3) || count + 3 != decoder.layers.len() {
            let expected = "every layer from the fourth on, or `mlp_layer_types` in its place";
            return Err(fields.wrong("moe_layers_enum", format!("\"{listed}\""), expected));
        }
    }
    let other = fields.optional_object("attention_other_setting")?;
    let stated = other.map(|other| other.optional_size("num_attention_heads")).transpose()?.flatten();
    let near = match fields.optional_size("num_sliding_attention_heads")? {
        Some(heads) => heads,
        None => stated.unwrap_or(decoder.heads),
    };
    heads_of(fields, "num_sliding_attention_heads", &decoder, &vec![near; decoder.layers.len()])?;
    decoder.norm.kind = NormKind::RmsUnitOffset;
    Ok(with_attention(decoder, |_, attention| {
        if attention.detail.window.is_some() {
            attention.heads = near;
        }
    }))
}

/// Command A's mixtures norm by the mean square where the file says how far, and have dense layers of another width.
fn cohere(fields: &Fields<'_>, mut decoder: DecoderConfig) -> Result<DecoderConfig, ConfigProblem> {
    if fields.optional_number("rms_norm_eps")?.is_some() {
        decoder.norm.kind = NormKind::Rms;
    }
    if let Some(inner) = fields.optional_size("prefix_dense_intermediate_size")? {
        for layer in &mut decoder.layers {
            if let FeedForwardConfig::Gated(dense) = &mut layer.feed_forward {
                dense.inner = inner;
            }
        }
    }
    decoder.logit_scale = fields.optional_number("logit_scale")?;
    Ok(decoder)
}

/// MiniMax-M3's dense layers have another width, and most of its layers see chosen blocks of positions.
fn minimax(fields: &Fields<'_>, mut decoder: DecoderConfig) -> Result<DecoderConfig, ConfigProblem> {
    let older = fields.optional_object("sparse_attention_config")?;
    let size = |name: &str, old: &str, default: u64| match &older {
        Some(older) if older.states(old) => older.size(old),
        _ => fields.size_or(name, default),
    };
    let blocks = BlockIndexerConfig {
        heads: size("index_n_heads", "sparse_num_index_heads", 4)?,
        width: size("index_head_dim", "sparse_index_dim", 128)?,
        keep: size("index_block_size", "sparse_block_size", 128)?.saturating_mul(size(
            "index_topk_blocks",
            "sparse_topk_blocks",
            16,
        )?),
    };
    let frequency = older.map(|older| older.optional_counts("sparse_attention_freq")).transpose()?.flatten();
    let kinds = fields.text_list("layer_types")?;
    let is_sparse = |index: usize| match (kinds.get(index), &frequency) {
        (Some(kind), _) => kind == "minimax_m3_sparse",
        (None, Some(listed)) => listed.get(index).is_some_and(|flag| *flag != 0),
        (None, None) => false,
    };
    if let Some(kind) = kinds.iter().find(|kind| !matches!(kind.as_str(), "minimax_m3_sparse" | "full_attention")) {
        return Err(fields.wrong("layer_types", format!("\"{kind}\""), "`full_attention` or `minimax_m3_sparse`"));
    }
    fields.left_open("layer_types", "as its class has them");
    let inner = fields.size_or("dense_intermediate_size", 12_288)?;
    let frequency = fields.optional_counts("moe_layer_freq")?;
    if frequency.is_none() {
        fields.left_open("mlp_layer_types", "experts in every layer");
    }
    let mixes = |index: usize| frequency.as_ref().is_none_or(|listed| listed.get(index).is_none_or(|flag| *flag != 0));
    let dense = crate::config::decoder::GatedConfig {
        inner,
        activation: types::ActivationKind::Silu,
        bias: false,
        fused: true,
    };
    for (index, layer) in decoder.layers.iter_mut().enumerate() {
        let is_dense = matches!(layer.feed_forward, FeedForwardConfig::Gated(_));
        if is_dense || (!fields.states("mlp_layer_types") && !mixes(index)) {
            layer.feed_forward = FeedForwardConfig::Gated(dense);
        }
    }
    Ok(with_attention(decoder, |index, attention| attention.blocks = is_sparse(index).then_some(blocks)))
}

pub(super) static ROWS: &[Described] = &[
    const {
        let names = Names {
            mixture: "SolarOpenMoE",
            gate: "SolarOpenTopkRouter",
            shared_module: "shared_experts",
            ..names!("SolarOpen")
        };
        Described {
            biases: [ATTENTION_BIAS, Switch::Never, Switch::Never],
            experts: Some(Experts { shared: &["n_shared_experts"], dense: (&[], 0), ..CHOSEN }),
            ..llama("solar_open", home!("solar_open"), names, SHARED)
        }
    },
    const {
        let names = Names {
            mixture: "ExaoneMoeSparseMoEBlock",
            gate: "ExaoneMoeTopkRouter",
            shared_module: "shared_experts",
            ..names!("ExaoneMoe")
        };
        Described {
            biases: UNBIASED,
            head_norms: EACH_HEAD,
            experts: Some(CHOSEN),
            windows: Windows::AllBut { every: "sliding_window_pattern", default: 4, bare: true },
            ..llama("exaone_moe", home!("exaone_moe"), names, SHARED)
        }
    },
    const {
        let names = Names { mixture: "HYV3MoE", shared_module: "shared_experts", ..names!("HYV3") };
        Described { head_norms: EACH_HEAD, experts: Some(CHOSEN), ..llama("hy_v3", home!("hy_v3"), names, SHARED) }
    },
    const {
        Described {
            head_norms: EACH_HEAD,
            experts: Some(EVERYWHERE),
            windows: Windows::Listed,
            ..llama("mellum", home!("mellum"), names!("Mellum"), COMMON)
        }
    },
    const {
        let names = Names { layer_norms: NORMS_AROUND, ..names!("FlexOlmo") };
        Described {
            placement: NormPlacement::After,
            head_norms: (HeadNorms::AllHeads, Switch::Always),
            experts: Some(Experts { normalised: false, ..EVERYWHERE }),
            ..llama("flex_olmo", home!("flex_olmo"), names, AFTER)
        }
    },
    const {
        let names = Names {
            mixture: "AriaTextMoELayer",
            gate_module: "router",
            shared_module: "shared_experts",
            ..names!("AriaText")
        };
        Described {
            experts: Some(Experts { shared: &["moe_num_shared_experts"], ..WIDE }),
            ..llama("aria_text", home!("aria"), names, SHARED)
        }
    },
    const {
        let names = granite("GraniteMoeSharedMoE", names!("GraniteMoeShared"));
        Described {
            experts: Some(WIDE),
            more: granite_shared,
            ..llama("granitemoeshared", home!("granitemoeshared"), names, SHARED)
        }
    },
    const {
        let names = granite("GraniteMoeSWAMoE", names!("GraniteMoeSWA"));
        Described {
            experts: Some(WIDE),
            windows: Windows::Listed,
            more: |fields, decoder| granite_shared(fields, with_sinks(decoder)),
            ..llama("granitemoe_swa", home!("granitemoe_swa"), names, SHARED)
        }
    },
    const {
        let names =
            Names { mixture: "DeepseekOcr2TextMoe", shared_module: "shared_experts", ..names!("DeepseekOcr2Text") };
        Described { experts: Some(BEHIND_ONE), ..llama("deepseek_ocr2_text", home!("deepseek_ocr2"), names, SHARED) }
    },
    const {
        let names =
            Names { mixture: "UnlimitedOcrTextMoe", shared_module: "shared_experts", ..names!("UnlimitedOcrText") };
        Described { experts: Some(BEHIND_ONE), ..llama("unlimited_ocr_text", home!("unlimited_ocr"), names, SHARED) }
    },
    const {
        let names = Names {
            mixture: "AfmoeSparseMoeBlock",
            gate: "AfmoeTokenChoiceRouter",
            gate_module: "router",
            shared_module: "shared_experts",
            layer_norms: ["input_layernorm", "post_attention_layernorm", "pre_mlp_layernorm", "post_mlp_layernorm"],
            ..names!("Afmoe")
        };
        Described {
            placement: NormPlacement::Around,
            biases: UNBIASED,
            head_norms: EACH_HEAD,
            gate: Some(OutputGate::Elements),
            experts: Some(Experts {
                shared: &["num_shared_experts"],
                shared_inner: &[],
                dense: (&["num_dense_layers"], 1),
                ..LEARNED
            }),
            windows: Windows::AllBut { every: "global_attn_every_n_layers", default: 4, bare: true },
            more: afmoe,
            ..llama("afmoe", home!("afmoe"), names, SHARED)
        }
    },
    const {
        let names = Names {
            mixture: "LagunaSparseMoeBlock",
            shared_module: "shared_experts",
            output_gate: "g_proj",
            ..names!("Laguna")
        };
        Described {
            head_norms: EACH_HEAD,
            experts: Some(Experts { dense: (&[], 1), ..LEARNED }),
            windows: Windows::Listed,
            more: laguna,
            ..llama("laguna", home!("laguna"), names, SHARED)
        }
    },
    const {
        let names = Names {
            shared_module: "shared_experts",
            layer_norms: [
                "input_layernorm",
                "post_self_attn_layernorm",
                "post_attention_layernorm",
                "post_mlp_layernorm",
            ],
            ..names!("Kolibri1")
        };
        Described {
            placement: NormPlacement::Around,
            biases: UNBIASED,
            head_norms: EACH_HEAD,
            experts: Some(Experts {
                shared_inner: &["shared_expert_intermediate_size"],
                normalised: false,
                ..EVERYWHERE
            }),
            windows: Windows::Listed,
            ..llama("kolibri1", home!("kolibri1"), names, SHARED)
        }
    },
    const {
        Described {
            head_norms: EACH_HEAD,
            experts: Some(Experts {
                shared_inner: &["shared_expert_intermediate_size"],
                dense_listed: Some(&[0, 1]),
                ..EVERYWHERE
            }),
            windows: Windows::Listed,
            more: |_, decoder| Ok(with_sinks(decoder)),
            ..llama("flint", home!("flint"), names!("Flint"), SHARED)
        }
    },
    const {
        let names = Names { shared_module: "shared_experts", ..names!("Cohere2Moe") };
        Described {
            norm: NormKind::LayerWithoutBias,
            placement: NormPlacement::Parallel { both: false },
            positions: PAIRS,
            experts: Some(Experts { shared: &["num_shared_experts"], dense: (&["first_k_dense_replace"], 0), ..WIDE }),
            windows: Windows::AllBut { every: "sliding_window_pattern", default: 4, bare: true },
            more: cohere,
            ..llama("cohere2_moe", home!("cohere2_moe"), names, SHARED)
        }
    },
    const {
        let names = Names {
            causal: "Step3p5ForCausalLM",
            model: "Step3p7TextModel",
            shared_module: "shared_experts",
            output_gate: "g_proj",
            ..names!("Step3p7")
        };
        Described {
            head_norms: EACH_HEAD,
            gate: Some(OutputGate::Heads),
            experts: Some(Experts {
                count: &["n_routed_experts"],
                inner: &["moe_intermediate_size"],
                shared_inner: &["share_expert_dim"],
                dense: (&[], 3),
                ..CHOSEN
            }),
            windows: Windows::Listed,
            more: step,
            ..llama("step3p5", home!("step3p7"), names, SHARED)
        }
    },
    const {
        let names = Names { shared_module: "shared_experts", ..names!("MiniMaxM3VL") };
        Described {
            norm: NormKind::RmsUnitOffset,
            head_norms: EACH_HEAD,
            positions: Positions::Rotary(0.5, RotaryLayout::Halves),
            experts: Some(Experts {
                count: &["num_local_experts"],
                inner: &["intermediate_size"],
                shared_inner: &["shared_intermediate_size"],
                dense: (&[], 0),
                ..CHOSEN
            }),
            more: minimax,
            ..llama("minimax_m3_vl_text", home!("minimax_m3_vl"), names, SHARED)
        }
    },
];
