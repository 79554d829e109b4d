"""Makes folders that vLLM can serve with random weights (`--load-format dummy`): a configuration and a tokenizer.

    python3 serving_model.py FOLDER {dense,deeper,experts,pages}

`pages` is DeepSeek-OCR as published but for its tokenizer, whose words are numbers.
"""

import json
import sys
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers

VOCABULARY = 32000

COMMON = {
    "torch_dtype": "bfloat16",
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 16384,
    "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0,
    "hidden_act": "silu",
    "bos_token_id": 1,
    "eos_token_id": 2,
    "tie_word_embeddings": False,
}

MODELS = {
    "dense": {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 16,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 64,
    },
    "deeper": {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "hidden_size": 2560,
        "intermediate_size": 9728,
        "num_hidden_layers": 36,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
    },
    "experts": {
        "architectures": ["MixtralForCausalLM"],
        "model_type": "mixtral",
        "hidden_size": 1024,
        "intermediate_size": 2048,
        "num_hidden_layers": 16,
        "num_attention_heads": 16,
        "num_key_value_heads": 4,
        "head_dim": 64,
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
        "sliding_window": None,
    },
}


LANGUAGE = {
    "first_k_dense_replace": 1,
    "hidden_size": 1280,
    "intermediate_size": 6848,
    "kv_lora_rank": None,
    "lm_head": True,
    "max_position_embeddings": 8192,
    "moe_intermediate_size": 896,
    "n_group": 1,
    "n_routed_experts": 64,
    "n_shared_experts": 2,
    "num_attention_heads": 10,
    "num_experts_per_tok": 6,
    "num_hidden_layers": 12,
    "num_key_value_heads": 10,
    "q_lora_rank": None,
    "qk_nope_head_dim": 0,
    "qk_rope_head_dim": 0,
    "topk_group": 1,
    "topk_method": "greedy",
    "torch_dtype": "bfloat16",
    "use_mla": False,
    "v_head_dim": 0,
    "vocab_size": VOCABULARY,
    "bos_token_id": 1,
    "eos_token_id": 2,
}

PAGES = LANGUAGE | {
    "architectures": ["DeepseekOCRForCausalLM"],
    "model_type": "deepseek_vl_v2",
    "candidate_resolutions": [[1024, 1024]],
    "global_view_pos": "head",
    "tile_tag": "2D",
    "language_config": LANGUAGE | {"architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2"},
    "projector_config": {
        "input_dim": 2048,
        "model_type": "mlp_projector",
        "n_embed": 1280,
        "projector_type": "linear",
    },
    "vision_config": {
        "image_size": 1024,
        "mlp_ratio": 3.7362,
        "model_name": "deeplip_b_l",
        "model_type": "vision",
        "width": {
            "clip-l-14-224": {"heads": 16, "image_size": 224, "layers": 24, "patch_size": 14, "width": 1024},
            "sam_vit_b": {
                "downsample_channels": [512, 1024],
                "global_attn_indexes": [2, 5, 8, 11],
                "heads": 12,
                "layers": 12,
                "width": 768,
            },
        },
    },
}

PROCESSOR = {
    "processor_class": "DeepseekVLV2Processor",
    "candidate_resolutions": [[1024, 1024]],
    "downsample_ratio": 4,
    "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.5, 0.5],
    "image_token": "<image>",
    "patch_size": 16,
}


def main() -> None:
    folder, kind = Path(sys.argv[1]), sys.argv[2]
    folder.mkdir(parents=True, exist_ok=True)
    config = PAGES if kind == "pages" else COMMON | MODELS[kind]
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    names = ["<unk>", "<s>", "</s>"]
    names += [f"w{number}" for number in range(3, VOCABULARY)]
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    special = []
    if kind == "pages":
        special = ["<image>", "<pad>"]
        names[-2:] = special
        settings |= {"pad_token": "<pad>", "chat_template": "{% for m in messages %}{{ m['content'] }}{% endfor %}"}
        (folder / "processor_config.json").write_text(json.dumps(PROCESSOR))
    tokenizer = Tokenizer(models.WordLevel({name: place for place, name in enumerate(names)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(special)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    (folder / "generation_config.json").write_text(json.dumps({"bos_token_id": 1, "eos_token_id": 2}))


main()
