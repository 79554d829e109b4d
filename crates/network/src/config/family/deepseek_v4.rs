//! DeepSeek-V4: a window of keys and compressed entries of all positions before it, streams with hyper-connections.

use super::described::Described;
use super::mixture::{PLAIN_GATE, mixture, shared};
use super::sizes::{Sizes, WIDEST_HEAD, rotary};
use crate::config::ConfigProblem;
use crate::config::decoder::{
    AttentionConfig, CompressedConfig, Compression, Correction, DecoderConfig, EntryIndexerConfig, FeedForwardConfig,
    GateConfig, HyperConfig, MixtureConfig, ScoreKind,
};
use crate::config::fields::Fields;

/// Most streams that are taken seriously.
const MOST_STREAMS: u64 = 64;

pub(in crate::config) fn read(fields: &Fields<'_>, row: &'static Described) -> Result<DecoderConfig, ConfigProblem> {
    let inner = fields.size_or("moe_intermediate_size", 2048)?;
    let mut sizes = Sizes::read_inner(fields, 10_000.0, inner)?;
    let head_width = bounded(fields, "head_dim", 512)?;
    sizes = sizes.head_width(head_width);
    let turned = fields.at_most("qk_rope_head_dim", bounded(fields, "qk_rope_head_dim", 64)?, head_width)?;
    let mut near = sizes.rotary;
    near.width = turned;
    let mut far = rotary(fields, fields.number_or("compress_rope_theta", 160_000.0)?, head_width)?;
    far.width = turned;
    let kinds = kinds(fields, &sizes)?;
    let [heads, groups] = [sizes.heads, fields.size_or("o_groups", 8)?];
    fields.divides(("num_attention_heads", heads), ("o_groups", groups))?;
    let attention = CompressedConfig {
        heads,
        head_width,
        query_rank: fields.size_or("q_lora_rank", 1024)?,
        groups,
        group_rank: fields.size_or("o_lora_rank", 1024)?,
        window: fields.size_or("sliding_window", 128)?,
        rotary: near,
        scale: 1.0 / (head_width as f64).sqrt(),
        compression: None,
    };
    let experts = ("n_routed_experts", fields.size_or("n_routed_experts", 256)?);
    let gate = GateConfig { scores: ScoreKind::SqrtSoftplus, correction: Some(Correction::Buffer), ..PLAIN_GATE };
    let always = shared(fields.count_or("n_shared_experts", 1)?, inner);
    let mut chosen = MixtureConfig { gate, shared: always, ..mixture(fields, &sizes, experts, inner)? };
    chosen.routing.scale = fields.number_or("routed_scaling_factor", 1.5)?;
    // The first layers look the experts of a token up; what the gate scores is the same.
    let looked_up = MixtureConfig { gate: GateConfig { correction: None, ..gate }, ..chosen };
    let hashed = fields.count_or("num_hash_layers", 3)? as usize;
    let mut decoder = sizes.decoder(&row.family, |index| {
        let rotary = if kinds[index].is_some() { far } else { near };
        let attention = CompressedConfig { compression: kinds[index], rotary, ..attention };
        let mixture = if index < hashed { looked_up } else { chosen };
        (AttentionConfig::Compressed(attention), FeedForwardConfig::Mixture(mixture))
    });
    let streams = fields.at_most("hc_mult", fields.size_or("hc_mult", 4)?, MOST_STREAMS)?;
    decoder.hyper = Some(HyperConfig { streams, iterations: fields.size_or("hc_sinkhorn_iters", 20)? });
    Ok(decoder)
}

fn bounded(fields: &Fields<'_>, name: &str, default: u64) -> Result<u64, ConfigProblem> {
    fields.at_most(name, fields.size_or(name, default)?, WIDEST_HEAD)
}

/// How each layer compresses: by `compress_ratios` or `layer_types`, or as the class has it.
fn kinds(fields: &Fields<'_>, sizes: &Sizes) -> Result<Vec<Option<Compression>>, ConfigProblem> {
    let indexer = EntryIndexerConfig {
        heads: bounded(fields, "index_n_heads", 64)?,
        width: bounded(fields, "index_head_dim", 128)?,
        keep: fields.size_or("index_topk", 512)?,
    };
    let rates = fields.optional_object("compress_rates")?;
    let rate = |name: &str, default: u64| rates.as_ref().map_or(Ok(default), |rates| rates.size_or(name, default));
    let sparse = Compression { every: rate("compressed_sparse_attention", 4)?, indexer: Some(indexer) };
    let heavy = Compression { every: rate("heavily_compressed_attention", 128)?, indexer: None };
    for (part, width) in [(sparse, indexer.width), (sparse, sizes.head_width), (heavy, sizes.head_width)] {
        fields.divides(("head_dim", width), ("compress_rates", part.every))?;
    }
    let layers = usize::try_from(sizes.layers).unwrap_or(usize::MAX);
    let types = fields.text_list("layer_types")?;
    let listed: Vec<Option<Compression>> = if !types.is_empty() {
        let kind = |text: &String| match text.as_str() {
            "sliding_attention" => Ok(None),
            "compressed_sparse_attention" => Ok(Some(sparse)),
            "heavily_compressed_attention" => Ok(Some(heavy)),
            _ => {
                let expected = "sliding_attention, compressed_sparse_attention or heavily_compressed_attention";
                Err(fields.wrong("layer_types", format!("\"{text}\""), expected))
            }
        };
        types.iter().map(kind).collect::<Result<_, _>>()?
    } else if let Some(ratios) = fields.optional_counts("compress_ratios")? {
        let kind = |ratio: &u64| match *ratio {
            0 => Ok(None),
            every if every == sparse.every => Ok(Some(sparse)),
            every if every == heavy.every => Ok(Some(heavy)),
            other => {
                let expected = format!("0, {} or {}", sparse.every, heavy.every);
                Err(fields.wrong("compress_ratios", other, expected))
            }
        };
        ratios.iter().map(kind).collect::<Result<_, _>>()?
    } else {
        (0..layers).map(|index| Some(if index < 2 || index.is_multiple_of(2) { heavy } else { sparse })).collect()
    };
    // Files list the layers that predict further tokens too.
    if listed.len() < layers {
        let expected = format!("{layers} entries, one for each layer");
        Err(fields.wrong("compress_ratios", format!("a list of {}", listed.len()), expected))
    } else {
        Ok(listed.into_iter().take(layers).collect())
    }
}
