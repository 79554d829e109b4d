//! Which tensors of a GGUF file a parameter of the network is, and so how it is stored.
//!
//! Names: `class TensorNameMap` of the package `gguf`. Every parameter has to be found, and every tensor to be used in full.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ingest::gguf::{GgufHeader, GgufTensor};
use network::config::quantisation::Quantisation;
use network::{Blueprint, ParamEntry, Scale, Span, WeightFormat};
use types::UserError;

use super::wrong_model;

/// Modules outside of layers.
const OUTSIDE: [(&str, &str); 3] = [
    ("model.embed_tokens.weight", "token_embd.weight"),
    ("model.norm.weight", "output_norm.weight"),
    ("lm_head.weight", "output.weight"),
];

/// Modules of a layer and the tensors that each is; of several lines the first one of which the file has all.
const INSIDE: &[(&str, &[&str])] = &[
    ("self_attn.q_proj", &["attn_q"]),
    ("self_attn.k_proj", &["attn_k"]),
    ("self_attn.v_proj", &["attn_v"]),
    ("self_attn.qkv_proj", &["attn_qkv"]),
    ("self_attn.o_proj", &["attn_output"]),
    ("self_attn.q_norm", &["attn_q_norm"]),
    ("self_attn.k_norm", &["attn_k_norm"]),
    ("self_attn.sinks", &["attn_sinks.weight"]),
    ("self_attn.q_a_proj", &["attn_q_a"]),
    ("self_attn.q_a_layernorm", &["attn_q_a_norm"]),
    ("self_attn.q_b_proj", &["attn_q_b"]),
    ("self_attn.kv_a_proj_with_mqa", &["attn_kv_a_mqa"]),
    ("self_attn.kv_a_layernorm", &["attn_kv_a_norm"]),
    ("self_attn.kv_b_proj", &["attn_kv_b"]),
    ("self_attn.kv_b_proj", &["attn_k_b", "attn_v_b"]),
    ("input_layernorm", &["attn_norm"]),
    ("post_attention_layernorm", &["post_attention_norm"]),
    ("post_attention_layernorm", &["ffn_norm"]),
    ("pre_feedforward_layernorm", &["ffn_norm"]),
    ("post_feedforward_layernorm", &["post_ffw_norm"]),
    ("mlp.gate_proj", &["ffn_gate"]),
    ("mlp.up_proj", &["ffn_up"]),
    ("mlp.gate_up_proj", &["ffn_up"]),
    ("mlp.down_proj", &["ffn_down"]),
    ("mlp.gate", &["ffn_gate_inp"]),
    ("mlp.router", &["ffn_gate_inp"]),
    ("block_sparse_moe.gate", &["ffn_gate_inp"]),
    ("mlp.gate.e_score_correction_bias", &["exp_probs_b.bias"]),
    ("mlp.experts.gate_proj", &["ffn_gate_exps"]),
    ("mlp.experts.up_proj", &["ffn_up_exps"]),
    ("mlp.experts.down_proj", &["ffn_down_exps"]),
    ("mlp.experts.gate_up_proj", &["ffn_gate_exps.weight", "ffn_up_exps.weight"]),
    ("mlp.experts.gate_up_proj_bias", &["ffn_gate_exps.bias", "ffn_up_exps.bias"]),
    ("mlp.experts.down_proj", &["ffn_down_exps.weight"]),
    ("mlp.experts.down_proj_bias", &["ffn_down_exps.bias"]),
    ("block_sparse_moe.experts.w1", &["ffn_gate_exps"]),
    ("block_sparse_moe.experts.w3", &["ffn_up_exps"]),
    ("block_sparse_moe.experts.w2", &["ffn_down_exps"]),
    ("mlp.shared_expert.gate_proj", &["ffn_gate_shexp"]),
    ("mlp.shared_expert.up_proj", &["ffn_up_shexp"]),
    ("mlp.shared_expert.down_proj", &["ffn_down_shexp"]),
    ("mlp.shared_expert_gate", &["ffn_gate_inp_shexp"]),
    ("mlp.shared_experts.gate_proj", &["ffn_gate_shexp"]),
    ("mlp.shared_experts.up_proj", &["ffn_up_shexp"]),
    ("mlp.shared_experts.down_proj", &["ffn_down_shexp"]),
];

/// Beginnings of tensors that are no parameters: angles that were worked out beforehand.
const ANGLES: [&str; 3] = ["rope_freqs.", "rope_factors_long.", "rope_factors_short."];

/// How every parameter is stored; refuses a file that is not exactly this network.
pub(super) fn stored(blueprint: &Blueprint, header: &GgufHeader, file: &str) -> Result<Quantisation, UserError> {
    let by_name: HashMap<&str, &GgufTensor> =
        header.tensors.iter().map(|tensor| (tensor.name.as_str(), tensor)).collect();
    let mut used: HashMap<&str, u64> = HashMap::new();
    let mut formats = HashMap::new();
    for (_, param) in blueprint.params() {
        let tensors = find(&by_name, &param.path).ok_or_else(|| {
            let problem = format!("no tensor found for the parameter `{}` of this architecture", param.path);
            wrong_model(file, &problem, DIFFERENT)
        })?;
        formats.insert(param.path.clone(), Arc::new(format(&tensors, param)));
        let (all, own) =
            (tensors.iter().map(|tensor| u128::from(tensor.elements)).sum::<u128>(), param.shape.elements());
        for tensor in tensors {
            // Its part of the parameter, where several tensors are one.
            let part = u128::from(own) * u128::from(tensor.elements) / all.max(1);
            let sum = used.entry(&tensor.name).or_default();
            *sum = sum.saturating_add(u64::try_from(part).unwrap_or(u64::MAX));
        }
    }
    let further = last_layer(blueprint);
    for tensor in &header.tensors {
        let elements = used.get(tensor.name.as_str()).copied().unwrap_or(0);
        let left_out =
            ANGLES.iter().any(|angles| tensor.name.starts_with(angles) || tensor.name.contains(&format!(".{angles}")));
        if elements == tensor.elements || left_out || layer_of(&tensor.name).is_some_and(|layer| layer >= further) {
            continue;
        }
        let problem = format!(
            "tensor `{}` has {} elements {:?}; this architecture has {elements} for it",
            tensor.name.escape_debug(),
            tensor.elements,
            tensor.dimensions
        );
        return Err(wrong_model(file, &problem, DIFFERENT));
    }
    Ok(Quantisation::of_tensors("gguf", summary(header), formats))
}

const DIFFERENT: &str = "the file does not match its metadata; pass the config.json of the model instead";

/// Tensors of the parameter at `path`.
fn find<'a>(tensors: &HashMap<&str, &'a GgufTensor>, path: &str) -> Option<Vec<&'a GgufTensor>> {
    if let Some((_, name)) = OUTSIDE.iter().find(|(known, _)| *known == path) {
        return tensors.get(name).map(|tensor| vec![*tensor]);
    }
    let (layer, inside) = path.strip_prefix("model.layers.")?.split_once('.')?;
    let inside = without_expert(inside);
    let (module, kind) = match inside.rsplit_once('.') {
        Some((module, kind @ ("weight" | "bias"))) => (module, Some(kind)),
        _ => (inside.as_str(), None),
    };
    INSIDE.iter().filter(|(known, _)| *known == module).find_map(|(_, names)| {
        let found = names.iter().map(|name| {
            let whole = match (kind, name.contains('.')) {
                (Some(kind), false) => format!("blk.{layer}.{name}.{kind}"),
                (None, true) => format!("blk.{layer}.{name}"),
                _ => return None,
            };
            tensors.get(whole.as_str()).copied()
        });
        found.collect()
    })
}

/// The path inside a layer without the number of an expert: a file has all experts in one tensor.
fn without_expert(inside: &str) -> String {
    let Some((before, behind)) = inside.split_once(".experts.") else { return inside.to_owned() };
    match behind.split_once('.') {
        Some((number, rest)) if number.bytes().all(|byte| byte.is_ascii_digit()) => format!("{before}.experts.{rest}"),
        _ => inside.to_owned(),
    }
}

/// How the tensors of one parameter are stored, so that its bytes are theirs.
fn format(tensors: &[&GgufTensor], param: &ParamEntry) -> WeightFormat {
    let kind = tensors[0].kind;
    if tensors.iter().all(|tensor| tensor.kind == kind) {
        let scale = Scale { span: Span::Run(kind.block), bits: kind.beside_bits() };
        let scales = Some(scale).filter(|scale| scale.bits > 0).into_iter().collect();
        return WeightFormat { dtype: kind.element, scales, activations: None };
    }
    // Of two kinds: the bits of the narrower one, and all others beside them.
    let narrow = tensors.iter().map(|tensor| tensor.kind.element).min_by_key(|dtype| dtype.bits());
    let dtype = narrow.unwrap_or(kind.element);
    let bits = tensors.iter().map(|tensor| u128::from(tensor.bytes) * 8).sum::<u128>();
    let own = u128::from(param.shape.elements()) * u128::from(dtype.bits());
    let matrices = if param.shape.rank() == 3 { param.shape.dims()[0] } else { 1 };
    let each = bits.saturating_sub(own) / u128::from(matrices.max(1));
    WeightFormat { dtype, scales: vec![Scale::matrix(u64::try_from(each).unwrap_or(u64::MAX))], activations: None }
}

/// The number of layers.
fn last_layer(blueprint: &Blueprint) -> u64 {
    let layer = |path: &str| path.strip_prefix("model.layers.")?.split('.').next()?.parse::<u64>().ok();
    blueprint.params().filter_map(|(_, param)| layer(&param.path)).max().map_or(0, |last| last + 1)
}

fn layer_of(tensor: &str) -> Option<u64> {
    tensor.strip_prefix("blk.")?.split('.').next()?.parse().ok()
}

/// Tensors and bytes of each type, the largest first.
fn summary(header: &GgufHeader) -> String {
    let mut types: BTreeMap<&str, (u64, u128)> = BTreeMap::new();
    for tensor in &header.tensors {
        let entry = types.entry(tensor.kind.name).or_default();
        *entry = (entry.0 + 1, entry.1 + u128::from(tensor.bytes));
    }
    let mut types: Vec<_> = types.into_iter().collect();
    types.sort_by_key(|(_, (_, bytes))| std::cmp::Reverse(*bytes));
    let named = types.iter().map(|(name, (count, _))| format!("{count} tensors in {name}"));
    named.collect::<Vec<_>>().join(", ")
}
