//! Latent attention and the choice of groups of experts, as DeepSeek-V2 and V3 have them.

use types::{RotaryForm, RotaryLayout, RotaryScaling};

use super::sizes::{Sizes, WIDEST_HEAD, rotary};
use crate::config::ConfigProblem;
use crate::config::decoder::{AttentionConfig, DecoderConfig, GroupLimit, IndexerConfig, LatentConfig, RotaryConfig};
use crate::config::fields::Fields;

/// Adds an indexer to every layer, or to those `indexer_types` calls `full`; the others use what an earlier one chose.
pub(super) fn with_indexer(
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

/// V2's groups, where `topk_method` says that there are any.
pub(super) fn method_groups(fields: &Fields<'_>, experts: (&str, u64)) -> Result<Option<GroupLimit>, ConfigProblem> {
    match fields.optional_text("topk_method")?.as_deref() {
        None | Some("greedy") => Ok(None),
        Some("group_limited_greedy") => groups(fields, 1, experts).map(Some),
        Some(other) => {
            let expected = "\"greedy\" or \"group_limited_greedy\"";
            Err(fields.wrong("topk_method", format!("\"{other}\""), expected))
        }
    }
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
