//! What an unknown family would need: parts that its fields point to and no family here has.

use super::fields::Fields;

/// Beginnings of field names, and the part each points to.
const PARTS: &[(&str, &str)] = &[
    ("mamba", "state-space layers"),
    ("ssm", "state-space layers"),
    ("linear_", "linear attention"),
    ("index_topk", "sparse attention with an indexer"),
    ("attention_chunk_size", "chunked attention"),
    ("no_rope_layers", "layers without rotary embeddings"),
    ("alibi", "position biases instead of rotary embeddings"),
    ("parallel_attn", "parallel attention and MLP blocks"),
    ("use_parallel_residual", "parallel attention and MLP blocks"),
    ("n_embd", "learned positions and GPT-2 field names"),
    ("layer_norm_eps", "decoder layers with LayerNorm"),
    ("layer_norm_epsilon", "decoder layers with LayerNorm"),
    ("is_encoder_decoder", "a text encoder"),
    ("audio_config", "an audio encoder"),
    ("num_kv_shared_layers", "layers that share a KV cache"),
];

/// What is missing, in words. `sees` says whether the nearest known one has a vision encoder.
pub(super) fn parts(fields: &Fields<'_>, sees: bool) -> String {
    let mut found: Vec<String> = Vec::new();
    for name in fields.stated() {
        if let Some((_, part)) = PARTS.iter().find(|(start, _)| name.starts_with(start))
            && !found.iter().any(|known| known.starts_with(part))
        {
            found.push(format!("{part} (`{name}`)"));
        }
        if name == "vision_config" && !sees {
            found.push("its vision encoder (`vision_config`)".to_owned());
        }
    }
    match found.is_empty() {
        true => "a reader of its fields".to_owned(),
        false => format!("a reader of its fields, and {}", found.join(", ")),
    }
}
