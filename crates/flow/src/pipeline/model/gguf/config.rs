//! The header of a GGUF file in the fields of a `config.json`, so that one reader of each family is enough.
//!
//! Keys: <https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>, and `class Keys` of the package `gguf`.

use ingest::gguf::{GgufHeader, GgufValue};
use serde_json::{Map, Value};
use types::UserError;

use super::wrong_model;

type Fields = Map<String, Value>;

/// An architecture of llama.cpp.
struct Architecture {
    /// `general.architecture`.
    name: &'static str,
    /// The family it is read as, which puts in what that has beyond what all have.
    read: fn(&mut Keys<'_>) -> Result<&'static str, UserError>,
}

const ARCHITECTURES: &[Architecture] = &[
    Architecture { name: "llama", read: llama },
    Architecture { name: "qwen2", read: |_| Ok("qwen2") },
    Architecture { name: "qwen2moe", read: |keys| qwen_moe(keys, "qwen2_moe") },
    Architecture { name: "qwen3", read: |_| Ok("qwen3") },
    Architecture { name: "qwen3moe", read: |keys| qwen_moe(keys, "qwen3_moe") },
    Architecture { name: "gemma", read: |keys| gelu(keys, "gemma") },
    Architecture { name: "gemma2", read: |keys| gemma(keys, "gemma2") },
    Architecture { name: "gemma3", read: |keys| gemma(keys, "gemma3_text") },
    Architecture { name: "phi3", read: phi3 },
    Architecture { name: "deepseek2", read: deepseek },
    Architecture { name: "gpt-oss", read: gpt_oss },
    Architecture { name: "olmo2", read: |_| Ok("olmo2") },
    Architecture { name: "seed_oss", read: |_| Ok("seed_oss") },
    Architecture { name: "smollm3", read: |_| Ok("smollm3") },
    Architecture { name: "granite", read: |_| Ok("granite") },
    Architecture { name: "ernie4_5", read: |_| Ok("ernie4_5") },
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
    let mut keys = Keys { header, file, architecture: architecture.name, fields: Fields::new() };
    common(&mut keys)?;
    let family = (architecture.read)(&mut keys)?;
    keys.put("model_type", family);
    Ok(Value::Object(keys.fields).to_string())
}

/// Values of one architecture, and the fields that they become.
struct Keys<'a> {
    header: &'a GgufHeader,
    file: &'a str,
    architecture: &'static str,
    fields: Fields,
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

    fn put(&mut self, field: &str, value: impl Into<Value>) {
        self.fields.insert(field.to_owned(), value.into());
    }

    /// Fields that are sizes under other names, all of which have to be there.
    fn put_sizes(&mut self, sizes: &[(&str, &str)]) -> Result<(), UserError> {
        sizes.iter().try_for_each(|(field, name)| {
            self.put(field, self.size(name)?);
            Ok(())
        })
    }

    /// A field where there is a value for it.
    fn put_known(&mut self, field: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.put(field, value);
        }
    }
}

/// What all architectures have.
fn common(keys: &mut Keys<'_>) -> Result<(), UserError> {
    let heads = keys.size("attention.head_count")?;
    // Layers behind the last one predict further tokens, and are left out as llama.cpp leaves them out.
    let layers = keys.size("block_count")?.saturating_sub(keys.optional("nextn_predict_layers")?.unwrap_or(0));
    let table = keys.header.tensor("token_embd.weight").ok_or_else(|| {
        wrong_model(keys.file, "tensor `token_embd.weight` not found", "pass the first part of the complete model")
    })?;
    keys.put_sizes(&[("hidden_size", "embedding_length")])?;
    keys.put("num_hidden_layers", layers);
    keys.put("num_attention_heads", heads);
    keys.put("num_key_value_heads", keys.optional("attention.head_count_kv")?.unwrap_or(heads));
    keys.put_sizes(&[("intermediate_size", "feed_forward_length")])?;
    keys.put("vocab_size", table.dimensions.get(1).copied().unwrap_or(0));
    keys.put("tie_word_embeddings", !keys.has("output.weight"));
    // llama.cpp keeps keys and values in half precision unless it is told otherwise.
    keys.put("torch_dtype", "float16");
    keys.put_known("head_dim", keys.optional("attention.key_length")?);
    keys.put_known("max_position_embeddings", keys.optional("context_length")?);
    keys.put_known("rope_theta", keys.number("rope.freq_base"));
    let epsilon = keys.number("attention.layer_norm_rms_epsilon").or(keys.number("attention.layer_norm_epsilon"));
    keys.put_known("rms_norm_eps", epsilon);
    Ok(())
}

fn llama(keys: &mut Keys<'_>) -> Result<&'static str, UserError> {
    let Some(experts) = keys.optional("expert_count")?.filter(|experts| *experts > 0) else {
        keys.put("attention_bias", keys.has("blk.0.attn_q.bias"));
        keys.put("mlp_bias", keys.has("blk.0.ffn_up.bias"));
        return Ok("llama");
    };
    keys.put("num_local_experts", experts);
    keys.put_sizes(&[("num_experts_per_tok", "expert_used_count")])?;
    Ok("mixtral")
}

fn qwen_moe(keys: &mut Keys<'_>, family: &'static str) -> Result<&'static str, UserError> {
    keys.put_sizes(&[
        ("num_experts", "expert_count"),
        ("num_experts_per_tok", "expert_used_count"),
        ("moe_intermediate_size", "expert_feed_forward_length"),
    ])?;
    keys.put_known("shared_expert_intermediate_size", keys.optional("expert_shared_feed_forward_length")?);
    keys.put("norm_topk_prob", family == "qwen3_moe");
    Ok(family)
}

fn gelu(keys: &mut Keys<'_>, family: &'static str) -> Result<&'static str, UserError> {
    keys.put("hidden_act", "gelu_pytorch_tanh");
    Ok(family)
}

fn gemma(keys: &mut Keys<'_>, family: &'static str) -> Result<&'static str, UserError> {
    keys.put_known("sliding_window", keys.optional("attention.sliding_window")?);
    for name in ["attn_logit_softcapping", "final_logit_softcapping"] {
        keys.put_known(name, keys.number(name));
    }
    gelu(keys, family)
}

fn phi3(keys: &mut Keys<'_>) -> Result<&'static str, UserError> {
    keys.put_known("sliding_window", keys.optional("attention.sliding_window")?.filter(|window| *window > 0));
    let turned = keys.optional("rope.dimension_count")?.zip(head_width(&keys.fields));
    let part = turned.filter(|(turned, head)| turned < head).map(|(turned, head)| turned as f64 / head as f64);
    keys.put_known("partial_rotary_factor", part);
    Ok("phi3")
}

fn head_width(fields: &Fields) -> Option<u64> {
    let of = |name: &str| fields.get(name).and_then(Value::as_u64);
    of("head_dim").or_else(|| of("hidden_size")?.checked_div(of("num_attention_heads")?))
}

/// DeepSeek-V2 and V3, Kimi-K2. Files of today keep keys and values of one head, and state the widths of all under names of
/// their own; older ones state them as other models do.
fn deepseek(keys: &mut Keys<'_>) -> Result<&'static str, UserError> {
    let rotary = keys.size("rope.dimension_count")?;
    let of = |new: &str, old: &str| keys.optional(new).and_then(|found| found.map_or_else(|| keys.size(old), Ok));
    let key = of("attention.key_length_mla", "attention.key_length")?;
    let value = of("attention.value_length_mla", "attention.value_length")?;
    keys.put("head_dim", rotary);
    keys.put("qk_rope_head_dim", rotary);
    keys.put("qk_nope_head_dim", key.saturating_sub(rotary));
    keys.put("v_head_dim", value);
    keys.put_sizes(&[
        ("num_key_value_heads", "attention.head_count"),
        ("kv_lora_rank", "attention.kv_lora_rank"),
        ("n_routed_experts", "expert_count"),
        ("num_experts_per_tok", "expert_used_count"),
        ("moe_intermediate_size", "expert_feed_forward_length"),
    ])?;
    keys.put("q_lora_rank", keys.optional("attention.q_lora_rank")?);
    keys.put("norm_topk_prob", keys.flag("expert_weights_norm").unwrap_or(false));
    keys.put_known("routed_scaling_factor", keys.number("expert_weights_scale").filter(|scale| *scale > 0.0));
    for (field, name, otherwise) in [
        ("n_shared_experts", "expert_shared_count", 0),
        ("first_k_dense_replace", "leading_dense_block_count", 0),
        ("n_group", "expert_group_count", 1),
        ("topk_group", "expert_group_used_count", 1),
    ] {
        keys.put(field, keys.optional(name)?.unwrap_or(otherwise));
    }
    let corrected = keys.header.tensors.iter().any(|tensor| tensor.name.ends_with(".exp_probs_b.bias"));
    Ok(if corrected { "deepseek_v3" } else { "deepseek_v2" })
}

fn gpt_oss(keys: &mut Keys<'_>) -> Result<&'static str, UserError> {
    keys.put_sizes(&[
        ("intermediate_size", "expert_feed_forward_length"),
        ("num_local_experts", "expert_count"),
        ("num_experts_per_tok", "expert_used_count"),
    ])?;
    keys.put_known("sliding_window", keys.optional("attention.sliding_window")?);
    Ok("gpt_oss")
}
