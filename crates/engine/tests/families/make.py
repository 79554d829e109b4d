"""Small-width models of several families with random weights, and what transformers computes with them.

    python make.py [NAME ...]

Needs torch, transformers and safetensors. Writes, for every model, `NAME/config.json`, `NAME/model.safetensors` under the
names published checkpoints have, and `NAME/expected.safetensors`: token ids, logits of the whole prompt, and logits of
decode steps fed with the following ids. A model with an encoder has `source` beside them, the tokens or features that its
encoder is given; its ids are those of the decoder, the first being the one it starts from. A model that attends to a picture
has its features there.
"""

import json
import sys
from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM

PROMPT, STEPS = 14, 4
BASE = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 96,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-05,
    "torch_dtype": "float32",
    "tie_word_embeddings": False,
}
DELTA = {
    "head_dim": 16,
    "layer_types": ["linear_attention", "full_attention"],
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 10,
    "linear_conv_kernel_dim": 4,
}
T5 = {
    "d_model": 32,
    "d_kv": 6,
    "d_ff": 48,
    "num_layers": 2,
    "num_decoder_layers": 3,
    "num_heads": 4,
    "vocab_size": 96,
    # So few rows that distances in the prompt share some, and so short that the last are out of reach.
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 11,
    "layer_norm_epsilon": 1e-06,
    "is_encoder_decoder": True,
    "decoder_start_token_id": 3,
    "torch_dtype": "float32",
}
LATENT = {
    "num_key_value_heads": 4,
    "q_lora_rank": 16,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 8,
    "v_head_dim": 6,
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "n_shared_experts": 1,
    "moe_intermediate_size": 20,
    "n_group": 4,
    "topk_group": 2,
    "routed_scaling_factor": 2.5,
    "norm_topk_prob": True,
    "index_n_heads": 8,
    "index_head_dim": 12,
    # Less than the prompt, so that positions are left out.
    "index_topk": 5,
}
MODELS = {
    "t5": {
        "architectures": ["T5ForConditionalGeneration"],
        "model_type": "t5",
        **T5,
        "feed_forward_proj": "relu",
        "tie_word_embeddings": True,
    },
    "flan-t5": {
        "architectures": ["T5ForConditionalGeneration"],
        "model_type": "t5",
        **T5,
        "feed_forward_proj": "gated-gelu",
        "tie_word_embeddings": False,
    },
    "mt5": {
        "architectures": ["MT5ForConditionalGeneration"],
        "model_type": "mt5",
        **T5,
        "feed_forward_proj": "gated-gelu",
        "tie_word_embeddings": False,
    },
    "umt5": {
        "architectures": ["UMT5ForConditionalGeneration"],
        "model_type": "umt5",
        **T5,
        "feed_forward_proj": "gated-gelu",
        "tie_word_embeddings": False,
    },
    "whisper": {
        "architectures": ["WhisperForConditionalGeneration"],
        "model_type": "whisper",
        "d_model": 32,
        "encoder_layers": 2,
        "decoder_layers": 3,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 48,
        "decoder_ffn_dim": 40,
        "num_mel_bins": 10,
        "max_source_positions": 14,
        "max_target_positions": 8,
        "vocab_size": 96,
        "activation_function": "gelu",
        "is_encoder_decoder": True,
        "decoder_start_token_id": 3,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "torch_dtype": "float32",
        "tie_word_embeddings": True,
    },
    "llama4": {
        "architectures": ["Llama4ForCausalLM"],
        "model_type": "llama4_text",
        **BASE,
        "num_hidden_layers": 4,
        "head_dim": 8,
        "intermediate_size": 20,
        "intermediate_size_mlp": 48,
        "num_local_experts": 4,
        "num_experts_per_tok": 1,
        "interleave_moe_layer_step": 2,
        "attention_chunk_size": 5,
        "use_qk_norm": True,
        "attn_temperature_tuning": False,
        "rope_theta": 10000.0,
    },
    "deepseek-v3.2": {
        "architectures": ["DeepseekV32ForCausalLM"],
        "model_type": "deepseek_v32",
        **BASE,
        **LATENT,
        "first_k_dense_replace": 1,
    },
    "glm-dsa": {
        "architectures": ["GlmMoeDsaForCausalLM"],
        "model_type": "glm_moe_dsa",
        **BASE,
        **LATENT,
        "mlp_layer_types": ["dense", "sparse"],
    },
    "mllama": {
        "architectures": ["MllamaForCausalLM"],
        "model_type": "mllama_text_model",
        **BASE,
        "num_hidden_layers": 3,
        "cross_attention_layers": [1],
        "hidden_act": "silu",
        "rope_theta": 10000.0,
        "pad_token_id": 0,
    },
    "llama": {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        **BASE,
        "rope_theta": 10000.0,
        "rope_scaling": {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 64,
        },
    },
    "qwen2": {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", **BASE, "tie_word_embeddings": True},
    "qwen3-moe": {
        "architectures": ["Qwen3MoeForCausalLM"],
        "model_type": "qwen3_moe",
        **BASE,
        "head_dim": 12,
        "num_experts": 6,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 20,
        "norm_topk_prob": True,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
    },
    "deepseek-v2": {
        "architectures": ["DeepseekV2ForCausalLM"],
        "model_type": "deepseek_v2",
        **BASE,
        "num_key_value_heads": 4,
        "q_lora_rank": None,
        "kv_lora_rank": 16,
        "qk_nope_head_dim": 8,
        "qk_rope_head_dim": 8,
        "v_head_dim": 6,
        "n_routed_experts": 8,
        "num_experts_per_tok": 2,
        "n_shared_experts": 2,
        "moe_intermediate_size": 20,
        "first_k_dense_replace": 1,
        "topk_method": "group_limited_greedy",
        "n_group": 4,
        "topk_group": 2,
        "routed_scaling_factor": 1.5,
        "norm_topk_prob": False,
        "rope_scaling": {
            "type": "yarn",
            "factor": 4.0,
            "beta_fast": 32,
            "beta_slow": 1,
            "mscale": 0.707,
            "mscale_all_dim": 0.707,
            "original_max_position_embeddings": 64,
        },
    },
    "deepseek-v3": {
        "architectures": ["DeepseekV3ForCausalLM"],
        "model_type": "deepseek_v3",
        **BASE,
        "num_key_value_heads": 4,
        "q_lora_rank": 16,
        "kv_lora_rank": 16,
        "qk_nope_head_dim": 8,
        "qk_rope_head_dim": 8,
        "v_head_dim": 6,
        "n_routed_experts": 8,
        "num_experts_per_tok": 2,
        "n_shared_experts": 1,
        "moe_intermediate_size": 20,
        "first_k_dense_replace": 1,
        "n_group": 4,
        "topk_group": 2,
        "routed_scaling_factor": 2.5,
        "norm_topk_prob": True,
    },
    "mixtral": {
        "architectures": ["MixtralForCausalLM"],
        "model_type": "mixtral",
        **BASE,
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
        "sliding_window": None,
    },
    "phi3": {"architectures": ["Phi3ForCausalLM"], "model_type": "phi3", **BASE, "pad_token_id": 0, "eos_token_id": 1},
    "gemma2": {
        "architectures": ["Gemma2ForCausalLM"],
        "model_type": "gemma2",
        **BASE,
        "head_dim": 12,
        "sliding_window": 5,
        "query_pre_attn_scalar": 16,
        "attn_logit_softcapping": 5.0,
        "final_logit_softcapping": 3.0,
        "tie_word_embeddings": True,
    },
    "gemma3": {
        "architectures": ["Gemma3ForCausalLM"],
        "model_type": "gemma3_text",
        **BASE,
        "head_dim": 12,
        "sliding_window": 5,
        "sliding_window_pattern": 2,
        "query_pre_attn_scalar": 16,
        "tie_word_embeddings": True,
    },
    "mamba2": {
        "architectures": ["Mamba2ForCausalLM"],
        "model_type": "mamba2",
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_heads": 8,
        "head_dim": 8,
        "state_size": 16,
        "n_groups": 2,
        "conv_kernel": 4,
        "expand": 2,
        # Less than the prompt, so that states pass from one chunk to the next.
        "chunk_size": 4,
        "vocab_size": 96,
        "layer_norm_epsilon": 1e-05,
        "torch_dtype": "float32",
        "tie_word_embeddings": False,
    },
    "bamba": {
        "architectures": ["BambaForCausalLM"],
        "model_type": "bamba",
        **BASE,
        "mamba_n_heads": 8,
        "mamba_d_head": 8,
        "mamba_d_state": 16,
        "mamba_n_groups": 1,
        "mamba_d_conv": 4,
        "mamba_expand": 2,
        "mamba_chunk_size": 4,
        "attn_layer_indices": [1],
    },
    "qwen3.5": {"architectures": ["Qwen3_5ForCausalLM"], "model_type": "qwen3_5_text", **BASE, **DELTA},
    "qwen3.5-moe": {
        "architectures": ["Qwen3_5MoeForCausalLM"],
        "model_type": "qwen3_5_moe_text",
        **BASE,
        **DELTA,
        "num_experts": 6,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 20,
        "shared_expert_intermediate_size": 24,
    },
    "lfm2": {
        "architectures": ["Lfm2ForCausalLM"],
        "model_type": "lfm2",
        **{key: value for key, value in BASE.items() if key != "rms_norm_eps"},
        "norm_eps": 1e-05,
        "num_hidden_layers": 3,
        "block_auto_adjust_ff_dim": False,
        "conv_L_cache": 3,
        "layer_types": ["conv", "full_attention", "conv"],
    },
    "gpt-oss": {
        "architectures": ["GptOssForCausalLM"],
        "model_type": "gpt_oss",
        **BASE,
        "head_dim": 12,
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
        "sliding_window": 5,
    },
}

# Those with an encoder and a decoder, and those that no automatic class knows by their own configuration.
WITH_BOTH = {"t5", "mt5", "umt5", "whisper"}
WITHOUT_AUTO = {"mllama_text_model"}
# Features of a picture that cross-attention sees.
FEATURES = {"mllama_text_model": 9}

# Checkpoints that keep experts in one tensor themselves.
STACKED = {"gpt_oss", "llama4_text"}
EXPERTS = {"mixtral": ("block_sparse_moe", "w1", "w3", "w2")}


def published(kind: str, state: dict) -> dict:
    """Experts of one tensor each, as checkpoints keep them; transformers joins them while loading."""
    block, gate, up, down = EXPERTS.get(kind, ("mlp", "gate_proj", "up_proj", "down_proj"))
    tensors = {}
    for name, value in state.items():
        if kind in STACKED or ".experts." not in name:
            tensors[name.replace(".mlp.gate.", f".{block}.gate.")] = value
            continue
        layer = name.split(".mlp.experts.")[0]
        for index, expert in enumerate(value):
            path = f"{layer}.{block}.experts.{index}"
            if name.endswith("gate_up_proj"):
                half = expert.shape[0] // 2
                tensors[f"{path}.{gate}.weight"] = expert[:half]
                tensors[f"{path}.{up}.weight"] = expert[half:]
            else:
                tensors[f"{path}.{down}.weight"] = expert
    return {name: value.detach().clone().contiguous() for name, value in tensors.items()}


def expect_both(model, config: dict) -> dict:
    """A prompt for the encoder, the token that the decoder starts from, and steps."""
    ids = torch.randint(0, config["vocab_size"], (1, 1 + STEPS))
    ids[0, 0] = config["decoder_start_token_id"]
    if config["model_type"] == "whisper":
        source = torch.randn(1, config["num_mel_bins"], 2 * config["max_source_positions"])
        given = {"input_features": source}
    else:
        source = torch.randint(0, config["vocab_size"], (1, PROMPT))
        given = {"input_ids": source}
    result = model(**given, decoder_input_ids=ids[:, :1], use_cache=True)
    expected = {"ids": ids, "source": source, "prefill_logits": result.logits}
    encoded, cache, rows = (result.encoder_last_hidden_state,), result.past_key_values, []
    for step in range(STEPS):
        token = ids[:, 1 + step : 2 + step]
        result = model(encoder_outputs=encoded, decoder_input_ids=token, past_key_values=cache, use_cache=True)
        rows.append(result.logits[0, 0])
    return {**expected, "decode_logits": torch.stack(rows)}


def expect(model, config: dict) -> dict:
    """A prompt and steps."""
    kind = config["model_type"]
    ids = torch.randint(0, config["vocab_size"], (1, PROMPT + STEPS))
    expected, given = {"ids": ids}, {}
    if kind in FEATURES:
        expected["source"] = torch.randn(1, FEATURES[kind], config["hidden_size"])
        given = {"cross_attention_states": expected["source"]}
    result = model(ids[:, :PROMPT], use_cache=True, **given)
    expected["prefill_logits"] = result.logits
    # A model without attention has a name of its own for its cache.
    held = "cache_params" if "cache_params" in result else "past_key_values"
    rows, cache = [], result[held]
    for step in range(STEPS):
        # Bamba of transformers 5.22 starts at zero again where it is not told the position.
        at = {"position_ids": torch.tensor([[PROMPT + step]])} if kind == "bamba" else {}
        result = model(ids[:, PROMPT + step : PROMPT + step + 1], **{held: cache}, **at, use_cache=True)
        rows.append(result.logits[0, 0])
    return {**expected, "decode_logits": torch.stack(rows)}


def main(names: list[str]) -> None:
    for name, config in MODELS.items():
        if names and name not in names:
            continue
        torch.manual_seed(7)
        settings = dict(config)
        kind = settings.pop("model_type")
        settings.pop("architectures")
        settings = AutoConfig.for_model(kind, **settings)
        if kind in WITH_BOTH | WITHOUT_AUTO:
            model = getattr(transformers, config["architectures"][0])._from_config(settings, attn_implementation="eager")
        else:
            model = AutoModelForCausalLM.from_config(settings, attn_implementation="eager")
        model = model.eval().to(torch.float32)
        if kind in WITH_BOTH and not config["tie_word_embeddings"]:
            # T5's classes tie the head until they load a checkpoint that says otherwise.
            model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
        for key, tensor in model.state_dict().items():
            # Published initial values are so small that wrong angles or a wrong window would hardly show.
            tensor.copy_(torch.randn_like(tensor) * (0.3 if tensor.dim() > 1 else 0.2) + (1.0 if "norm" in key else 0.0))
        with torch.no_grad():
            expected = expect_both(model, config) if kind in WITH_BOTH else expect(model, config)
        state = dict(model.state_dict())
        if config["tie_word_embeddings"]:
            state.pop("lm_head.weight", None)
            state.pop("proj_out.weight", None)
        if kind in WITH_BOTH:
            # Both halves read the one table.
            state = {key: value for key, value in state.items() if not key.endswith("coder.embed_tokens.weight") or kind == "whisper"}
        folder = Path(name)
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
        save_file(published(kind, state), folder / "model.safetensors")
        save_file({key: value.contiguous() for key, value in expected.items()}, folder / "expected.safetensors")
        size = sum(file.stat().st_size for file in folder.iterdir())
        print(f"{name}: {size // 1024} KiB, logits up to {expected['prefill_logits'].abs().max():.2f}")


main(sys.argv[1:])
