//! State-space models and hybrids of them with attention: Mamba-2, Nemotron-H and Nemotron 3, Granite 4, Bamba, Jamba.

use super::described::{Described, scaled};
use super::mixture::{PLAIN_GATE, mixture};
use super::sizes::{Sizes, WIDEST_HEAD, activation_named, rotary};
use crate::config::ConfigProblem;
use crate::config::decoder::{
    AttentionConfig, DecoderConfig, FeedForwardConfig, GatedConfig, GroupedConfig, MixtureConfig, PlainConfig,
    SelectionNorms, SharedBlockConfig, SharedBlocksConfig, SharedConfig, StateSpaceConfig, StateSpaceKind,
};
use crate::config::fields::Fields;

/// What a layer is made of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    StateSpace,
    Attention,
    Mlp,
    Mixture,
}

pub(in crate::config) fn read_nemotron(
    fields: &Fields<'_>,
    row: &'static Described,
) -> Result<DecoderConfig, ConfigProblem> {
    let kinds = nemotron_kinds(fields)?;
    let width = fields.size("hidden_size")?;
    let heads = fields.size("num_attention_heads")?;
    let shape = [width, heads, fields.size_or("num_key_value_heads", 8)?, kinds.len() as u64];
    let intermediate = fields.size_or("intermediate_size", 21504)?;
    let epsilon = fields.number_or("layer_norm_epsilon", 1e-5)?;
    let [width, heads, key_value_heads, layers] = shape;
    let mut sizes = Sizes::stated(fields, [width, heads, key_value_heads, layers, intermediate], epsilon)?;
    sizes = sizes.head_width(head_width(fields, "head_dim", 128)?);
    sizes.mlp_bias = fields.flag_or("mlp_bias", false)?;
    let activation = fields.optional_text("mlp_hidden_act")?.unwrap_or_else(|| "relu2".to_owned());
    let known = activation_named(&activation);
    sizes.activation = known.ok_or_else(|| fields.wrong("mlp_hidden_act", &activation, "relu2, silu or gelu"))?;
    // The published class has no tied head, whatever the file says.
    sizes.tied_embeddings = false;
    let part = mamba2(fields, &NEMOTRON_FIELDS)?;
    let attention = GroupedConfig { rotary: None, ..sizes.grouped() };
    let experts = if kinds.contains(&Kind::Mixture) {
        let inner = fields.size_or("moe_shared_expert_intermediate_size", 7688)?;
        let shared = Some(SharedConfig { count: None, inner, gated: false });
        let latent = fields.size_or_none("moe_latent_size")?;
        let mixture = row.mixture(fields, &sizes)?;
        mixture.map_or(FeedForwardConfig::Absent, |mixture| {
            FeedForwardConfig::Mixture(MixtureConfig { shared, latent, gated: false, ..mixture })
        })
    } else {
        FeedForwardConfig::Absent
    };
    let plain = PlainConfig { inner: sizes.intermediate, activation: sizes.activation, bias: sizes.mlp_bias };
    Ok(sizes.decoder(&row.family, |index| match kinds[index] {
        Kind::StateSpace => (AttentionConfig::StateSpace(part), FeedForwardConfig::Absent),
        Kind::Attention => (AttentionConfig::Grouped(attention), FeedForwardConfig::Absent),
        Kind::Mlp => (AttentionConfig::Absent, FeedForwardConfig::Plain(plain)),
        Kind::Mixture => (AttentionConfig::Absent, experts),
    }))
}

/// Layers of a Nemotron, listed by newer files and written as a pattern by older ones.
fn nemotron_kinds(fields: &Fields<'_>) -> Result<Vec<Kind>, ConfigProblem> {
    if let Some(kinds) = listed(fields, &["layers_block_type", "layer_types"])? {
        return Ok(kinds);
    }
    let pattern = fields.optional_text("hybrid_override_pattern")?.unwrap_or_default();
    if pattern.is_empty() {
        return Err(fields.wrong("layers_block_type", "absent", "a list of the kinds of all layers"));
    }
    let kind = |letter: char| match letter {
        'M' => Ok(Kind::StateSpace),
        '*' => Ok(Kind::Attention),
        '-' => Ok(Kind::Mlp),
        'E' => Ok(Kind::Mixture),
        _ => Err(fields.wrong("hybrid_override_pattern", format!("`{letter}`"), "only M, *, - and E")),
    };
    pattern.chars().map(kind).collect()
}

/// Kinds of layers under the first of these names that is there.
fn listed(fields: &Fields<'_>, names: &[&str]) -> Result<Option<Vec<Kind>>, ConfigProblem> {
    for name in names {
        let types = fields.text_list(name)?;
        if types.is_empty() {
            continue;
        }
        let kind = |text: &String| match text.as_str() {
            "mamba" | "linear_attention" => Ok(Kind::StateSpace),
            "attention" | "full_attention" => Ok(Kind::Attention),
            "mlp" => Ok(Kind::Mlp),
            "moe" => Ok(Kind::Mixture),
            _ => Err(fields.wrong(name, format!("\"{text}\""), "mamba, attention, mlp or moe")),
        };
        return types.iter().map(kind).collect::<Result<Vec<_>, _>>().map(Some);
    }
    Ok(None)
}

/// Names and defaults of the fields of a Mamba-2 layer.
pub(super) struct Mamba2Fields {
    heads: (&'static str, u64),
    /// Without a default it is the width inside over the heads.
    head_width: (&'static str, Option<u64>),
    groups: (&'static str, u64),
    state: (&'static str, u64),
    kernel: (&'static str, u64),
    chunk: (&'static str, u64),
    bias: &'static str,
    conv_bias: &'static str,
}

const NEMOTRON_FIELDS: Mamba2Fields = Mamba2Fields {
    heads: ("mamba_num_heads", 128),
    head_width: ("mamba_head_dim", Some(64)),
    groups: ("n_groups", 8),
    state: ("ssm_state_size", 128),
    kernel: ("conv_kernel", 4),
    chunk: ("chunk_size", 128),
    bias: "use_bias",
    conv_bias: "use_conv_bias",
};

const MAMBA2_FIELDS: Mamba2Fields = Mamba2Fields {
    heads: ("num_heads", 128),
    head_width: ("head_dim", Some(64)),
    state: ("state_size", 128),
    chunk: ("chunk_size", 256),
    ..NEMOTRON_FIELDS
};

pub(super) const HYBRID_FIELDS: Mamba2Fields = Mamba2Fields {
    heads: ("mamba_n_heads", 128),
    head_width: ("mamba_d_head", None),
    groups: ("mamba_n_groups", 1),
    state: ("mamba_d_state", 256),
    kernel: ("mamba_d_conv", 4),
    chunk: ("mamba_chunk_size", 256),
    bias: "mamba_proj_bias",
    conv_bias: "mamba_conv_bias",
};

fn head_width(fields: &Fields<'_>, name: &str, default: u64) -> Result<u64, ConfigProblem> {
    fields.at_most(name, fields.size_or(name, default)?, WIDEST_HEAD)
}

pub(super) fn mamba2(fields: &Fields<'_>, named: &Mamba2Fields) -> Result<StateSpaceConfig, ConfigProblem> {
    let bounded = |(name, default): (&str, u64)| head_width(fields, name, default);
    let heads = bounded(named.heads)?;
    let (name, default) = named.head_width;
    let stated = if fields.is_text(name) { None } else { fields.optional_size(name)?.or(default) };
    let each = match stated {
        Some(width) => width,
        None => fields.size_or("mamba_expand", 2)?.saturating_mul(fields.size("hidden_size")?) / heads,
    };
    let groups = bounded(named.groups)?;
    fields.divides((named.heads.0, heads), (named.groups.0, groups))?;
    Ok(StateSpaceConfig {
        inner: heads.saturating_mul(fields.at_most(name, each, WIDEST_HEAD)?),
        state: bounded(named.state)?,
        kernel: fields.at_most(named.kernel.0, fields.size_or(named.kernel.0, named.kernel.1)?, 1 << 10)?,
        bias: fields.flag_or(named.bias, false)?,
        output_bias: fields.flag_or(named.bias, false)?,
        conv_bias: fields.flag_or(named.conv_bias, true)?,
        kind: StateSpaceKind::Heads { heads, groups, chunk: bounded(named.chunk)?, normed: true },
    })
}

pub(in crate::config) fn read_mamba2(
    fields: &Fields<'_>,
    row: &'static Described,
) -> Result<DecoderConfig, ConfigProblem> {
    let part = mamba2(fields, &MAMBA2_FIELDS)?;
    let (width, layers) = (fields.size("hidden_size")?, fields.layers("num_hidden_layers")?);
    let epsilon = fields.number_or("layer_norm_epsilon", 1e-5)?;
    let sizes = Sizes::stated(fields, [width, 1, 1, layers, part.inner], epsilon)?;
    let mut decoder = sizes.decoder(&row.family, |_| (AttentionConfig::StateSpace(part), FeedForwardConfig::Absent));
    decoder.intermediate = None;
    if let StateSpaceKind::Heads { heads, .. } = part.kind {
        decoder.heads = heads;
    }
    Ok(decoder)
}

/// Mamba of the first generation; Falcon's norms what steers the scan.
pub(in crate::config) fn read_mamba(
    fields: &Fields<'_>,
    row: &'static Described,
    norms: SelectionNorms,
) -> Result<DecoderConfig, ConfigProblem> {
    let (width, layers) = (fields.size("hidden_size")?, fields.layers("num_hidden_layers")?);
    let bounded = |name: &str, default: u64| head_width(fields, name, default);
    let stated = fields.states("time_step_rank") && !fields.is_text("time_step_rank");
    let rank = if stated { bounded("time_step_rank", 1)? } else { width.div_ceil(16) };
    let expanded = bounded("expand", 2)?.saturating_mul(width);
    let inner = fields.size_or("intermediate_size", expanded)?;
    let bias = fields.flag_or("use_bias", false)?;
    let part = StateSpaceConfig {
        inner,
        state: bounded("state_size", 16)?,
        kernel: fields.at_most("conv_kernel", fields.size_or("conv_kernel", 4)?, 1 << 10)?,
        bias,
        output_bias: bias,
        conv_bias: fields.flag_or("use_conv_bias", true)?,
        kind: StateSpaceKind::Channels { rank, norms },
    };
    let epsilon = fields.number_or("layer_norm_epsilon", 1e-5)?;
    let sizes = Sizes::stated(fields, [width, 1, 1, layers, inner], epsilon)?;
    let mut decoder = sizes.decoder(&row.family, |_| (AttentionConfig::StateSpace(part), FeedForwardConfig::Absent));
    decoder.intermediate = None;
    Ok(decoder)
}

pub(in crate::config) fn read_granite(
    fields: &Fields<'_>,
    row: &'static Described,
) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = row.sizes(fields)?;
    let part = mamba2(fields, &HYBRID_FIELDS)?;
    let turned = fields.optional_text("position_embedding_type")?.is_some_and(|kind| kind == "rope");
    let rotary = Some(sizes.rotary).filter(|_| turned);
    let attention = GroupedConfig { rotary, ..row.attention(fields, &sizes)? };
    let kinds = hybrid_kinds(fields, &sizes, |_| Kind::StateSpace)?;
    let always = fields.size_or("shared_intermediate_size", 1024)?;
    let fused = |inner| GatedConfig { fused: true, bias: false, ..sizes.gated_of(inner) };
    let feed_forward = match fields.count_or("num_local_experts", 8)? {
        0 => FeedForwardConfig::Gated(fused(always)),
        experts => FeedForwardConfig::Mixture(MixtureConfig {
            expert: fused(sizes.intermediate),
            shared: Some(SharedConfig { count: None, inner: always, gated: false }),
            ..mixture(fields, &sizes, ("num_local_experts", experts), sizes.intermediate)?
        }),
    };
    let mut decoder = hybrid(&sizes, row, &kinds, (attention, part), |_| feed_forward);
    decoder.intermediate = Some(always);
    scaled(fields, decoder)
}

pub(in crate::config) fn read_bamba(
    fields: &Fields<'_>,
    row: &'static Described,
) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = row.sizes(fields)?;
    let part = mamba2(fields, &HYBRID_FIELDS)?;
    let attention = row.attention(fields, &sizes)?;
    let attends = fields.optional_counts("attn_layer_indices")?.unwrap_or_default();
    let rule = |index| if attends.contains(&index) { Kind::Attention } else { Kind::StateSpace };
    let kinds: Vec<_> = (0..sizes.layers).map(rule).collect();
    Ok(hybrid(&sizes, row, &kinds, (attention, part), |_| sizes.gated()))
}

/// State-space layers, some with a block in front that they share.
pub(in crate::config) fn read_zamba2(
    fields: &Fields<'_>,
    row: &'static Described,
) -> Result<DecoderConfig, ConfigProblem> {
    let width = fields.size("hidden_size")?;
    let inner = fields.size_or("intermediate_size", width.saturating_mul(4))?;
    let heads = fields.size("num_attention_heads")?;
    fields.divides(("hidden_size", width.saturating_mul(2)), ("num_attention_heads", heads))?;
    let mut sizes = Sizes::stated(fields, [width, 1, 1, fields.layers("num_hidden_layers")?, inner], 1e-5)?;
    sizes.epsilon = fields.number_or("rms_norm_eps", 1e-5)?;
    sizes.heads = fields.at_most("num_attention_heads", heads, 1 << 20)?;
    sizes.key_value_heads = fields.size_or("num_key_value_heads", heads)?;
    fields.divides(("num_attention_heads", heads), ("num_key_value_heads", sizes.key_value_heads))?;
    sizes.tied_embeddings = fields.ties(true)?;
    let sizes = Sizes { head_width: 2 * width / heads, ..sizes };
    let part = mamba2(fields, &ZAMBA_FIELDS)?;
    let text = fields.optional_text("hidden_act")?.unwrap_or_else(|| "gelu".to_owned());
    let activation = activation_named(&text).ok_or_else(|| fields.wrong("hidden_act", &text, "gelu, relu or silu"))?;
    let kinds = fields.text_list("layers_block_type")?;
    let shared: Vec<bool> = if kinds.is_empty() {
        fields.left_open("layers_block_type", "as its class has them");
        let rule = |index| (index < 43 && index > 0 && index % 6 == 0) || index == 47 || index == 51;
        (0..sizes.layers).map(rule).collect()
    } else {
        kinds.iter().map(|kind| kind == "hybrid").collect()
    };
    if shared.len() as u64 != sizes.layers {
        let expected = format!("{} entries, one for each layer", sizes.layers);
        return Err(fields.wrong("layers_block_type", format!("a list of {}", shared.len()), expected));
    }
    let other = |kind: &&String| !matches!(kind.as_str(), "hybrid" | "mamba" | "linear_attention");
    if let Some(kind) = kinds.iter().find(other) {
        return Err(fields.wrong("layers_block_type", format!("\"{kind}\""), "`hybrid` or `linear_attention`"));
    }
    let turned = fields.flag_or("use_mem_rope", false)?;
    let turned = turned.then(|| rotary(fields, 10_000.0, sizes.head_width)).transpose()?;
    let scale = 1.0 / ((sizes.head_width as f64) / 2.0).sqrt();
    let block = SharedBlockConfig {
        blocks: fields.size_or("num_mem_blocks", 1)?,
        attention: GroupedConfig { rotary: turned, scale, ..sizes.grouped() },
        inner,
        activation,
        bias: fields.flag_or("add_bias_linear", false)?,
        rank: fields.size_or("adapter_rank", 128)?,
        adapts_attention: fields.flag_or("use_shared_attention_adapter", false)?,
    };
    let mut decoder = sizes.decoder(&row.family, |_| (AttentionConfig::StateSpace(part), FeedForwardConfig::Absent));
    decoder.shared = Some(SharedBlocksConfig { layers: shared, block });
    Ok(decoder)
}

const ZAMBA_FIELDS: Mamba2Fields = Mamba2Fields {
    heads: ("n_mamba_heads", 8),
    head_width: ("mamba_headdim", None),
    groups: ("mamba_ngroups", 1),
    state: ("mamba_d_state", 64),
    kernel: ("mamba_d_conv", 4),
    chunk: ("chunk_size", 256),
    bias: "add_bias_linear",
    conv_bias: "use_conv_bias",
};

pub(in crate::config) fn read_jamba(
    fields: &Fields<'_>,
    row: &'static Described,
) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = row.sizes(fields)?;
    let bounded = |name: &str, default: u64| head_width(fields, name, default);
    let rank = if fields.is_text("mamba_dt_rank") || !fields.states("mamba_dt_rank") {
        sizes.width.div_ceil(16)
    } else {
        bounded("mamba_dt_rank", 256)?
    };
    let part = StateSpaceConfig {
        inner: bounded("mamba_expand", 2)?.saturating_mul(sizes.width),
        state: bounded("mamba_d_state", 16)?,
        kernel: fields.at_most("mamba_d_conv", fields.size_or("mamba_d_conv", 4)?, 1 << 10)?,
        bias: fields.flag_or("mamba_proj_bias", false)?,
        output_bias: fields.flag_or("mamba_proj_bias", false)?,
        conv_bias: fields.flag_or("mamba_conv_bias", true)?,
        kind: StateSpaceKind::Channels { rank, norms: SelectionNorms::Weighted },
    };
    let attention = GroupedConfig { rotary: None, ..sizes.grouped() };
    let every = |kind: &str, [period, offset]: [u64; 2]| {
        let named = (format!("{kind}_layer_period"), format!("{kind}_layer_offset"));
        Ok([fields.size_or(&named.0, period)?, fields.count_or(&named.1, offset)?])
    };
    let [period, offset] = every("attn", [8, 4])?;
    let rule = |index: u64| if index % period == offset { Kind::Attention } else { Kind::StateSpace };
    let kinds: Vec<_> = (0..sizes.layers).map(rule).collect();
    let experts = fields.size_or("num_experts", 16)?;
    let mut gate = mixture(fields, &sizes, ("num_experts", experts), sizes.intermediate)?;
    gate.gate = PLAIN_GATE;
    gate.routing.normalise = false;
    let [period, offset] = every("expert", [2, 1])?;
    Ok(hybrid(&sizes, row, &kinds, (attention, part), |index| {
        if index % period == offset && experts > 1 { FeedForwardConfig::Mixture(gate) } else { sizes.gated() }
    }))
}

/// Kinds of the layers of a hybrid, or the family's rule where the file lists none.
fn hybrid_kinds(fields: &Fields<'_>, sizes: &Sizes, rule: impl Fn(u64) -> Kind) -> Result<Vec<Kind>, ConfigProblem> {
    let names = ["layer_types", "layers_block_type"];
    let kinds = match listed(fields, &names)? {
        Some(kinds) => kinds,
        None => {
            fields.left_open(names[0], "as its class has them");
            return Ok((0..sizes.layers).map(rule).collect());
        }
    };
    if kinds.len() as u64 != sizes.layers {
        let expected = format!("{} entries, one for each layer", sizes.layers);
        return Err(fields.wrong(names[0], format!("a list of {}", kinds.len()), expected));
    }
    if kinds.iter().any(|kind| matches!(kind, Kind::Mlp | Kind::Mixture)) {
        Err(fields.wrong(names[0], "a layer without attention or state", "mamba or attention"))
    } else {
        Ok(kinds)
    }
}

fn hybrid(
    sizes: &Sizes,
    row: &'static Described,
    kinds: &[Kind],
    (attention, part): (GroupedConfig, StateSpaceConfig),
    feed_forward: impl Fn(u64) -> FeedForwardConfig,
) -> DecoderConfig {
    sizes.decoder(&row.family, |index| {
        let attention = match kinds[index] {
            Kind::Attention => AttentionConfig::Grouped(attention),
            _ => AttentionConfig::StateSpace(part),
        };
        (attention, feed_forward(index as u64))
    })
}
