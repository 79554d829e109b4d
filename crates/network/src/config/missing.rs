//! What an unknown family is most like, and what it would need: parts that its fields point to and no family here has.

use super::fields::Fields;

/// Beginnings of field names, and the part each points to.
const PARTS: &[(&str, &str)] = &[
    ("sparse_attention_config", "attention over blocks that an indexer chooses"),
    ("linear_attn_config", "Kimi delta attention"),
    ("activation_situ", "the SiTU activation"),
    ("block_configs", "layers of different sizes"),
    ("attention_other_setting", "layers with another number of heads"),
    ("cross_attention_layers", "cross-attention layers"),
    ("alibi", "position biases instead of rotary embeddings"),
    ("is_encoder_decoder", "a text encoder"),
    ("audio_config", "an audio encoder"),
];

/// Fields that only some families have, and the one that has them; the first that is stated decides.
const SIGNS: &[(&str, &str)] = &[
    ("linear_num_key_heads", "qwen3_next"),
    ("ssm_state_size", "nemotron_h"),
    ("mamba_dt_rank", "jamba"),
    ("mamba_d_state", "bamba"),
    ("altup_num_inputs", "gemma3n_text"),
    ("compress_ratios", "deepseek_v4"),
    ("index_topk", "deepseek_v32"),
    ("kv_lora_rank", "deepseek_v3"),
    ("n_routed_experts", "deepseek_v3"),
    ("num_local_experts", "mixtral"),
    ("num_experts", "qwen3_moe"),
    ("vision_config", "qwen2_5_vl"),
    ("n_embd", "gpt2"),
    ("sliding_window", "mistral"),
];

/// Parts of a file whose fields count as the model's own.
const NESTED: &[&str] = &["text_config", "llm_config", "language_config", "thinker_config"];

/// The family with the same kind of layers, by `model_type`; `None` where no field tells.
pub(super) fn alike(fields: &Fields<'_>) -> Option<&'static str> {
    let names = stated(fields);
    SIGNS.iter().find(|(sign, _)| names.contains(sign)).map(|(_, family)| *family)
}

/// What is missing, in words. `sees` says whether the nearest known one has a vision encoder.
pub(super) fn parts(fields: &Fields<'_>, sees: bool) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for name in stated(fields) {
        if let Some((_, part)) = PARTS.iter().find(|(start, _)| name.starts_with(start))
            && !found.iter().any(|known| known.starts_with(part))
        {
            found.push(format!("{part} (`{name}`)"));
        }
        if name == "vision_config" && !sees {
            found.push("its vision encoder (`vision_config`)".to_owned());
        }
    }
    found
}

/// Names of the fields of the file and of its language model.
fn stated<'a>(fields: &Fields<'a>) -> Vec<&'a str> {
    let inner = NESTED.iter().filter_map(|name| fields.optional_object(name).ok().flatten());
    fields.stated().chain(inner.flat_map(|part| part.stated().collect::<Vec<_>>())).collect()
}
