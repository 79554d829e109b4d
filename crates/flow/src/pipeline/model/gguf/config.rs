//! The header of a GGUF file in the fields of a `config.json`, so that one reader of each family is enough.
//!
//! Keys: <https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>, and `class Keys` of the package `gguf`.

use ingest::gguf::{GgufHeader, GgufValue};
use serde_json::{Map, Value, json};
use types::UserError;

use super::wrong_model;

type Fields = Map<String, Value>;

/// An architecture of llama.cpp.
struct Architecture {
    /// `general.architecture`.
    name: &'static str,
    /// The family it is read as, and what that has beyond what all have.
    read: fn(&Keys<'_>, &mut Fields) -> Result<&'static str, UserError>,
}

const ARCHITECTURES: &[Architecture] = &[
    Architecture { name: "llama", read: llama },
    Architecture { name: "qwen2", read: |_, _| Ok("qwen2") },
    Architecture { name: "qwen2moe", read: |keys, fields| qwen_moe(keys, fields, "qwen2_moe") },
    Architecture { name: "qwen3", read: |_, _| Ok("qwen3") },
    Architecture { name: "qwen3moe", read: |keys, fields| qwen_moe(keys, fields, "qwen3_moe") },
    Architecture { name: "gemma", read: |_, fields| gelu(fields, "gemma") },
    Architecture { name: "gemma2", read: |keys, fields| gemma(keys, fields, "gemma2") },
    Architecture { name: "gemma3", read: |keys, fields| gemma(keys, fields, "gemma3_text") },
    Architecture { name: "phi3", read: phi3 },
    Architecture { name: "deepseek2", read: deepseek },
    Architecture { name: "gpt-oss", read: gpt_oss },
    Architecture { name: "olmo2", read: |_, _| Ok("olmo2") },
    Architecture { name: "seed_oss", read: |_, _| Ok("seed_oss") },
    Architecture { name: "smollm3", read: |_, _| Ok("smollm3") },
    Architecture { name: "granite", read: |_, _| Ok("granite") },
    Architecture { name: "ernie4_5", read: |_, _| Ok("ernie4_5") },
];

/// The text of a `config.json` for the model of this header.
pub(super) fn json(header: &GgufHeader, file: &str) -> Result<String, UserError> {
    let Some(name) = header.text("general.architecture") else {
        return Err(wrong_model(
            file,
            "the metadata has no `general.architecture`",
            "this is part of a model, such as an adapter or a vision projector; pass the file of the language model",
        ));
    };
    let Some(architecture) = ARCHITECTURES.iter().find(|known| known.name == name) else {
        let known = ARCHITECTURES.iter().map(|known| known.name).collect::<Vec<_>>().join(", ");
        return Err(wrong_model(
            file,
            &format!("architecture `{}` is not supported; expected one of {known}", name.escape_debug()),
            "pass the config.json of the model instead, if `llm-perf models` lists its family",
        ));
    };
    let keys = Keys { header, file, architecture: architecture.name };
    let mut fields = common(&keys)?;
    let family = (architecture.read)(&keys, &mut fields)?;
    fields.insert("model_type".to_owned(), family.into());
    Ok(Value::Object(fields).to_string())
}

/// Values of one architecture.
struct Keys<'a> {
    header: &'a GgufHeader,
    file: &'a str,
    architecture: &'static str,
}

impl Keys<'_> {
    fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.architecture)
    }

    fn value(&self, name: &str) -> Option<&GgufValue> {
        self.header.values.get(&self.key(name))
    }

    /// A size that may be absent; a list with one for each layer has to be of equal ones.
    fn optional(&self, name: &str) -> Result<Option<u64>, UserError> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let one = match value {
            GgufValue::List(list) => list.first().filter(|first| list.iter().all(|other| other == *first)),
            value => Some(value),
        };
        one.and_then(GgufValue::as_u64).map(Some).ok_or_else(|| {
            let problem = format!("`{}` is not a number, or not the same for all layers", self.key(name));
            wrong_model(self.file, &problem, "pass the config.json of the model instead")
        })
    }

    fn size(&self, name: &str) -> Result<u64, UserError> {
        self.optional(name)?.ok_or_else(|| {
            let problem = format!("the metadata has no `{}`", self.key(name));
            wrong_model(self.file, &problem, "convert the model again with a current llama.cpp")
        })
    }

    fn number(&self, name: &str) -> Option<f64> {
        match self.value(name)? {
            GgufValue::Float(number) => Some(*number),
            GgufValue::Integer(number) => Some(*number as f64),
            _ => None,
        }
    }

    fn flag(&self, name: &str) -> Option<bool> {
        match self.value(name)? {
            GgufValue::Bool(flag) => Some(*flag),
            _ => None,
        }
    }

    fn has(&self, tensor: &str) -> bool {
        self.header.tensor(tensor).is_some()
    }
}

/// What all architectures have.
fn common(keys: &Keys<'_>) -> Result<Fields, UserError> {
    let heads = keys.size("attention.head_count")?;
    // Layers behind the last one predict further tokens, and are left out as llama.cpp leaves them out.
    let layers = keys.size("block_count")?.saturating_sub(keys.optional("nextn_predict_layers")?.unwrap_or(0));
    let table = keys.header.tensor("token_embd.weight").ok_or_else(|| {
        wrong_model(keys.file, "tensor `token_embd.weight` not found", "pass the first part of the complete model")
    })?;
    let mut fields = Fields::new();
    let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    put("hidden_size", keys.size("embedding_length")?.into());
    put("num_hidden_layers", layers.into());
    put("num_attention_heads", heads.into());
    put("num_key_value_heads", keys.optional("attention.head_count_kv")?.unwrap_or(heads).into());
    put("intermediate_size", keys.size("feed_forward_length")?.into());
    put("vocab_size", table.dimensions.get(1).copied().unwrap_or(0).into());
    put("tie_word_embeddings", (!keys.has("output.weight")).into());
    // llama.cpp keeps keys and values in half precision unless it is told otherwise.
    put("torch_dtype", "float16".into());
    let head = keys.optional("attention.key_length")?;
    if let Some(head) = head {
        put("head_dim", head.into());
    }
    if let Some(positions) = keys.optional("context_length")? {
        put("max_position_embeddings", positions.into());
    }
    if let Some(theta) = keys.number("rope.freq_base") {
        put("rope_theta", json!(theta));
    }
    let epsilon = keys.number("attention.layer_norm_rms_epsilon").or(keys.number("attention.layer_norm_epsilon"));
    if let Some(epsilon) = epsilon {
        put("rms_norm_eps", json!(epsilon));
    }
    Ok(fields)
}

fn llama(keys: &Keys<'_>, fields: &mut Fields) -> Result<&'static str, UserError> {
    let Some(experts) = keys.optional("expert_count")?.filter(|experts| *experts > 0) else {
        fields.insert("attention_bias".to_owned(), keys.has("blk.0.attn_q.bias").into());
        fields.insert("mlp_bias".to_owned(), keys.has("blk.0.ffn_up.bias").into());
        return Ok("llama");
    };
    fields.insert("num_local_experts".to_owned(), experts.into());
    fields.insert("num_experts_per_tok".to_owned(), keys.size("expert_used_count")?.into());
    Ok("mixtral")
}

fn qwen_moe(keys: &Keys<'_>, fields: &mut Fields, family: &'static str) -> Result<&'static str, UserError> {
    fields.insert("num_experts".to_owned(), keys.size("expert_count")?.into());
    fields.insert("num_experts_per_tok".to_owned(), keys.size("expert_used_count")?.into());
    fields.insert("moe_intermediate_size".to_owned(), keys.size("expert_feed_forward_length")?.into());
    if let Some(shared) = keys.optional("expert_shared_feed_forward_length")? {
        fields.insert("shared_expert_intermediate_size".to_owned(), shared.into());
    }
    fields.insert("norm_topk_prob".to_owned(), (family == "qwen3_moe").into());
    Ok(family)
}

fn gelu(fields: &mut Fields, family: &'static str) -> Result<&'static str, UserError> {
    fields.insert("hidden_act".to_owned(), "gelu_pytorch_tanh".into());
    Ok(family)
}

fn gemma(keys: &Keys<'_>, fields: &mut Fields, family: &'static str) -> Result<&'static str, UserError> {
    if let Some(window) = keys.optional("attention.sliding_window")? {
        fields.insert("sliding_window".to_owned(), window.into());
    }
    for name in ["attn_logit_softcapping", "final_logit_softcapping"] {
        if let Some(limit) = keys.number(name) {
            fields.insert(name.to_owned(), json!(limit));
        }
    }
    gelu(fields, family)
}

fn phi3(keys: &Keys<'_>, fields: &mut Fields) -> Result<&'static str, UserError> {
    if let Some(window) = keys.optional("attention.sliding_window")?.filter(|window| *window > 0) {
        fields.insert("sliding_window".to_owned(), window.into());
    }
    if let (Some(turned), Some(head)) = (keys.optional("rope.dimension_count")?, head_width(fields))
        && turned < head
    {
        fields.insert("partial_rotary_factor".to_owned(), json!(turned as f64 / head as f64));
    }
    Ok("phi3")
}

fn head_width(fields: &Fields) -> Option<u64> {
    let of = |name: &str| fields.get(name).and_then(Value::as_u64);
    of("head_dim").or_else(|| of("hidden_size")?.checked_div(of("num_attention_heads")?))
}

/// DeepSeek-V2 and V3, Kimi-K2. Files of today keep keys and values of one head, and state the widths of all under names of
/// their own; older ones state them as other models do.
fn deepseek(keys: &Keys<'_>, fields: &mut Fields) -> Result<&'static str, UserError> {
    let rotary = keys.size("rope.dimension_count")?;
    let of = |new: &str, old: &str| keys.optional(new).and_then(|found| found.map_or_else(|| keys.size(old), Ok));
    let key = of("attention.key_length_mla", "attention.key_length")?;
    let value = of("attention.value_length_mla", "attention.value_length")?;
    let heads = keys.size("attention.head_count")?;
    let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    put("num_key_value_heads", heads.into());
    put("head_dim", rotary.into());
    put("qk_rope_head_dim", rotary.into());
    put("qk_nope_head_dim", key.saturating_sub(rotary).into());
    put("v_head_dim", value.into());
    put("kv_lora_rank", keys.size("attention.kv_lora_rank")?.into());
    put("q_lora_rank", keys.optional("attention.q_lora_rank")?.into());
    put("n_routed_experts", keys.size("expert_count")?.into());
    put("num_experts_per_tok", keys.size("expert_used_count")?.into());
    put("n_shared_experts", keys.optional("expert_shared_count")?.unwrap_or(0).into());
    put("moe_intermediate_size", keys.size("expert_feed_forward_length")?.into());
    put("first_k_dense_replace", keys.optional("leading_dense_block_count")?.unwrap_or(0).into());
    put("norm_topk_prob", keys.flag("expert_weights_norm").unwrap_or(false).into());
    if let Some(scale) = keys.number("expert_weights_scale").filter(|scale| *scale > 0.0) {
        put("routed_scaling_factor", json!(scale));
    }
    let groups = [keys.optional("expert_group_count")?, keys.optional("expert_group_used_count")?];
    put("n_group", groups[0].unwrap_or(1).into());
    put("topk_group", groups[1].unwrap_or(1).into());
    let corrected = keys.header.tensors.iter().any(|tensor| tensor.name.ends_with(".exp_probs_b.bias"));
    Ok(if corrected { "deepseek_v3" } else { "deepseek_v2" })
}

fn gpt_oss(keys: &Keys<'_>, fields: &mut Fields) -> Result<&'static str, UserError> {
    fields.insert("intermediate_size".to_owned(), keys.size("expert_feed_forward_length")?.into());
    fields.insert("num_local_experts".to_owned(), keys.size("expert_count")?.into());
    fields.insert("num_experts_per_tok".to_owned(), keys.size("expert_used_count")?.into());
    if let Some(window) = keys.optional("attention.sliding_window")? {
        fields.insert("sliding_window".to_owned(), window.into());
    }
    Ok("gpt_oss")
}
