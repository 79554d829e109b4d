//! What an unknown family would need: parts that its fields point to and no family here has.

use super::fields::Fields;

/// Beginnings of field names, and the part each points to.
const PARTS: &[(&str, &str)] = &[
    ("mamba", "state-space layers"),
    ("ssm", "state-space layers"),
    ("linear_", "linear attention"),
    ("index_topk", "attention to positions that an indexer chooses"),
    ("attention_chunk_size", "attention in chunks"),
    ("no_rope_layers", "layers without rotary positions"),
    ("alibi", "position biases instead of rotary positions"),
    ("parallel_attn", "attention and feed-forward side by side"),
    ("use_parallel_residual", "attention and feed-forward side by side"),
    ("n_embd", "learned positions and the field names of GPT-2"),
    ("layer_norm_eps", "decoder layers with LayerNorm"),
    ("layer_norm_epsilon", "decoder layers with LayerNorm"),
    ("is_encoder_decoder", "an encoder for text"),
    ("audio_config", "an encoder for sound"),
    ("num_kv_shared_layers", "layers that share a cache"),
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
