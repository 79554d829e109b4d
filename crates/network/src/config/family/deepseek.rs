//! DeepSeek-V2 and V3: latent attention, and experts chosen from the best groups.

use types::{RotaryForm, RotaryLayout, RotaryScaling};

use super::mixture::{PLAIN_GATE, mixture, shared};
use super::sizes::{Sizes, WIDEST_HEAD, rotary};
use super::{Definitions, Family, Names, names};
use crate::config::ConfigProblem;
use crate::config::decoder::{
    AttentionConfig, Correction, DecoderConfig, FeedForwardConfig, GateConfig, GroupLimit, IndexerConfig, LatentConfig,
    MixtureConfig, RotaryConfig, ScoreKind,
};
use crate::config::fields::Fields;

const LATENT: Definitions = Definitions {
    attention: "y = o_proj(softmax(q k^T * scale, causal) v); k and v are kv_b_proj of cached latent vectors, k with a \
                cached rotated part that all heads share",
    mixture: "y = sum over the chosen experts of score * expert(x), plus shared_experts(x), which every token passes \
              through",
    ..Definitions::COMMON
};

pub(crate) const V2: Family = Family {
    home: "transformers.models.deepseek_v2.modeling_deepseek_v2",
    names: Names {
        mixture: "DeepseekV2Moe",
        gate: "DeepseekV2TopkRouter",
        shared_module: "shared_experts",
        ..names!("DeepseekV2")
    },
    definitions: Definitions {
        gate: "scores = softmax(x W^T) in single precision; the k best experts of each token, from the best groups \
               only if there are groups",
        ..LATENT
    },
};

pub(crate) const V3: Family = Family {
    home: "transformers.models.deepseek_v3.modeling_deepseek_v3",
    names: Names {
        mixture: "DeepseekV3MoE",
        gate: "DeepseekV3TopkRouter",
        shared_module: "shared_experts",
        ..names!("DeepseekV3")
    },
    definitions: Definitions {
        gate: "scores = sigmoid(x W^T) in single precision; the k best experts of each token by score plus correction, \
               from the groups with the largest sum of their two best",
        ..LATENT
    },
};

const SPARSE: Definitions = Definitions {
    attention: "y = o_proj(softmax(q k^T * scale, causal) v) over the positions the indexer chooses; k and v are \
                kv_b_proj of cached latent vectors, k with a cached rotated part that all heads share",
    ..V3.definitions
};

pub(crate) const V32: Family = Family {
    home: "transformers.models.deepseek_v32.modeling_deepseek_v32",
    names: Names {
        mixture: "DeepseekV32MoE",
        gate: "DeepseekV32TopkRouter",
        shared_module: "shared_experts",
        ..names!("DeepseekV32")
    },
    definitions: SPARSE,
};

pub(crate) const GLM: Family = Family {
    home: "transformers.models.glm_moe_dsa.modeling_glm_moe_dsa",
    names: Names {
        mixture: "GlmMoeDsaMoE",
        gate: "GlmMoeDsaTopkRouter",
        shared_module: "shared_experts",
        ..names!("GlmMoeDsa")
    },
    definitions: SPARSE,
};

pub(crate) const MISTRAL4: Family = Family {
    home: "transformers.models.mistral4.modeling_mistral4",
    names: Names {
        mixture: "Mistral4MoE",
        gate: "Mistral4TopkRouter",
        shared_module: "shared_experts",
        ..names!("Mistral4")
    },
    definitions: Definitions {
        gate: "scores = softmax(x W^T); the k best experts of each token, from the groups with the largest sum of their two \
               best",
        ..LATENT
    },
};

pub(crate) const GLM_LITE: Family = Family {
    home: "transformers.models.glm4_moe_lite.modeling_glm4_moe_lite",
    names: Names {
        mixture: "Glm4MoeLiteMoE",
        gate: "Glm4MoeLiteTopkRouter",
        shared_module: "shared_experts",
        ..names!("Glm4MoeLite")
    },
    definitions: V3.definitions,
};

pub(crate) const YOUTU: Family =
    Family { home: "transformers.models.youtu.modeling_youtu", names: names!("Youtu"), definitions: LATENT };

pub(crate) const MINICPM3: Family = Family {
    home: "transformers.models.minicpm3.modeling_minicpm3",
    names: Names { embedding: "MiniCPM3ScaledWordEmbedding", ..names!("MiniCPM3") },
    definitions: LATENT,
};

/// Families with latent attention that need no more than their names.
pub(crate) const LATER: &[&Family] = &[&GLM_LITE, &YOUTU, &MINICPM3, &MISTRAL4];

pub(in crate::config) fn read_glm_lite(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    read(fields, &GLM_LITE, v3_gate(fields)?, [1, 1])
}

pub(in crate::config) fn read_youtu(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    dense(fields, &YOUTU, 128)
}

/// Values are as wide as a head of plain attention would be.
pub(in crate::config) fn read_minicpm3(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let each = fields.size("hidden_size")? / fields.size("num_attention_heads")?;
    dense(fields, &MINICPM3, each)
}

fn dense(fields: &Fields<'_>, family: &'static Family, values: u64) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = Sizes::read(fields)?;
    let mut attention = latent(fields, &sizes)?;
    attention.value_width = fields.at_most("v_head_dim", fields.size_or("v_head_dim", values)?, WIDEST_HEAD)?;
    Ok(sizes.uniform(family, AttentionConfig::Latent(attention)))
}

pub(in crate::config) fn read_v32(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let decoder = read(fields, &V32, v3_gate(fields)?, [3, 1])?;
    sparse(fields, decoder, [64, 128], false)
}

pub(in crate::config) fn read_glm(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let decoder = read(fields, &GLM, v3_gate(fields)?, [3, 1])?;
    let interleaved = fields.flag_or("indexer_rope_interleave", true)?;
    sparse(fields, decoder, [32, 128], interleaved)
}

/// Adds an indexer to every layer, or to those `indexer_types` calls `full`; the others use what an earlier one chose.
fn sparse(
    fields: &Fields<'_>,
    mut decoder: DecoderConfig,
    defaults: [u64; 2],
    interleaved: bool,
) -> Result<DecoderConfig, ConfigProblem> {
    let bounded = |name: &str, default: u64| fields.at_most(name, fields.size_or(name, default)?, WIDEST_HEAD);
    let [heads, width] = [bounded("index_n_heads", defaults[0])?, bounded("index_head_dim", defaults[1])?];
    let keep = fields.size_or("index_topk", 2048)?;
    let types = fields.text_list("indexer_types")?;
    if !types.is_empty() && types.len() != decoder.layers.len() {
        let expected = format!("{} entries, one for each layer", decoder.layers.len());
        return Err(fields.wrong("indexer_types", format!("a list of {}", types.len()), expected));
    }
    if types.is_empty() && fields.states("index_topk_freq") && fields.size_or("index_topk_freq", 1)? > 1 {
        return Err(fields.wrong("indexer_types", "absent", "a list that says which layers have an indexer"));
    }
    for (index, layer) in decoder.layers.iter_mut().enumerate() {
        let own = types.get(index).is_none_or(|kind| kind == "full");
        if let AttentionConfig::Latent(latent) = &mut layer.attention {
            latent.keep = Some(keep);
            latent.indexer = own.then_some(IndexerConfig { heads, width, interleaved });
        }
    }
    Ok(decoder)
}

pub(in crate::config) fn read_v2(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let method = fields.optional_text("topk_method")?.unwrap_or_else(|| "greedy".to_owned());
    let groups = match method.as_str() {
        "greedy" => None,
        "group_limited_greedy" => Some(groups(fields, 1, ("n_routed_experts", fields.size("n_routed_experts")?))?),
        other => {
            let expected = "\"greedy\" or \"group_limited_greedy\"";
            return Err(fields.wrong("topk_method", format!("\"{other}\""), expected));
        }
    };
    let gate = GateConfig { single_precision: true, groups, ..PLAIN_GATE };
    read(fields, &V2, gate, [0, 2])
}

pub(in crate::config) fn read_mistral4(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let gate = GateConfig {
        groups: Some(groups(fields, 2, ("n_routed_experts", fields.size("n_routed_experts")?))?),
        ..PLAIN_GATE
    };
    let mut decoder = read(fields, &MISTRAL4, gate, [0, 1])?;
    let normalise = fields.flag_or("norm_topk_prob", true)?;
    for layer in &mut decoder.layers {
        if let FeedForwardConfig::Mixture(mixture) = &mut layer.feed_forward {
            mixture.routing.normalise = normalise;
        }
    }
    Ok(decoder)
}

pub(in crate::config) fn read_v3(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    read(fields, &V3, v3_gate(fields)?, [3, 1])
}

fn v3_gate(fields: &Fields<'_>) -> Result<GateConfig, ConfigProblem> {
    Ok(GateConfig {
        scores: ScoreKind::Sigmoid,
        single_precision: true,
        correction: Some(Correction::Buffer),
        groups: Some(groups(fields, 2, ("n_routed_experts", fields.size("n_routed_experts")?))?),
        ..PLAIN_GATE
    })
}

/// `best` experts of a group speak for it, of as many experts as that field says.
pub(super) fn groups(
    fields: &Fields<'_>,
    best: u64,
    (name, experts): (&str, u64),
) -> Result<GroupLimit, ConfigProblem> {
    let (groups, keep) = (fields.size("n_group")?, fields.size("topk_group")?);
    if keep > groups {
        return Err(fields.wrong("topk_group", keep, format!("at most `n_group` ({groups})")));
    }
    fields.divides((name, experts), ("n_group", groups))?;
    if best > experts / groups {
        return Err(fields.wrong(
            "n_group",
            groups,
            format!("a number of groups that leaves at least {best} of the {experts} experts in each"),
        ));
    }
    Ok(GroupLimit { groups, keep, best })
}

/// `defaults`: dense layers at the front and shared experts, where the file does not say.
fn read(
    fields: &Fields<'_>,
    family: &'static Family,
    gate: GateConfig,
    defaults: [u64; 2],
) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = Sizes::read(fields)?;
    let first = fields.count_or("first_k_dense_replace", defaults[0])?;
    let mixes = sizes.listed(fields, "mlp_layer_types", ["dense", "sparse"], |index| index >= first)?;
    let inner = fields.size("moe_intermediate_size")?;
    let experts = ("n_routed_experts", fields.size("n_routed_experts")?);
    let mut mixture = MixtureConfig {
        gate,
        shared: shared(fields.count_or("n_shared_experts", defaults[1])?, inner),
        ..mixture(fields, &sizes, experts, inner)?
    };
    // V2's code leaves the scores as they are; V3's scales them to sum to one.
    mixture.routing.normalise = gate.scores == ScoreKind::Sigmoid && fields.flag_or("norm_topk_prob", true)?;
    mixture.routing.scale = fields.number_or("routed_scaling_factor", 1.0)?;
    let attention = AttentionConfig::Latent(latent(fields, &sizes)?);
    Ok(sizes.decoder(family, |index| {
        (attention, if mixes[index] { FeedForwardConfig::Mixture(mixture) } else { sizes.gated() })
    }))
}

pub(super) fn latent(fields: &Fields<'_>, sizes: &Sizes) -> Result<LatentConfig, ConfigProblem> {
    let width = |name: &str, default: u64| fields.at_most(name, fields.size_or(name, default)?, WIDEST_HEAD);
    let [plain_width, rotary_width] = [width("qk_nope_head_dim", 128)?, width("qk_rope_head_dim", 64)?];
    let stated = rotary(fields, 10_000.0, rotary_width)?;
    let form = RotaryForm { layout: RotaryLayout::Interleaved, ..stated.form };
    // Stretched angles come with sharper scores: the published code multiplies the scale by this squared.
    let stretch = match (form.scaling, stated_mscale(fields)?) {
        (RotaryScaling::Yarn { factor, .. }, Some(all)) if factor > 1.0 => 0.1 * all * factor.ln() + 1.0,
        _ => 1.0,
    };
    let query_rank = fields.size_or_none("q_lora_rank")?;
    Ok(LatentConfig {
        heads: sizes.heads,
        query_rank,
        latent: fields.size_or("kv_lora_rank", 512)?,
        plain_width,
        rotary_width,
        value_width: width("v_head_dim", 128)?,
        bias: fields.flag_or("attention_bias", false)?,
        rotary: Some(RotaryConfig { form, ..stated }),
        scale: stretch * stretch / ((plain_width + rotary_width) as f64).sqrt(),
        keep: None,
        indexer: None,
        gated: false,
    })
}

fn stated_mscale(fields: &Fields<'_>) -> Result<Option<f64>, ConfigProblem> {
    for name in ["rope_parameters", "rope_scaling"] {
        if let Some(stated) = fields.optional_object(name)? {
            return stated.optional_number("mscale_all_dim");
        }
    }
    Ok(None)
}
