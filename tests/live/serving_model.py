"""Makes folders that vLLM can serve with random weights (`--load-format dummy`): a configuration and a tokenizer.

    python3 serving_model.py FOLDER {dense,deeper,experts,pages,images}

`pages` is DeepSeek-OCR, `images` Qwen2.5-VL-3B, both as published but for their tokenizers, whose words are numbers.
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

IMAGES = COMMON | {
    "architectures": ["Qwen2_5_VLForConditionalGeneration"],
    "model_type": "qwen2_5_vl",
    "hidden_size": 2048,
    "intermediate_size": 11008,
    "num_attention_heads": 16,
    "num_hidden_layers": 36,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1000000.0,
    "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]},
    "tie_word_embeddings": True,
    "use_sliding_window": False,
    "vision_start_token_id": VOCABULARY - 4,
    "vision_end_token_id": VOCABULARY - 3,
    "image_token_id": VOCABULARY - 2,
    "video_token_id": VOCABULARY - 1,
    "vision_config": {
        "depth": 32,
        "fullatt_block_indexes": [7, 15, 23, 31],
        "hidden_act": "silu",
        "hidden_size": 1280,
        "in_chans": 3,
        "intermediate_size": 3420,
        "model_type": "qwen2_5_vl",
        "num_heads": 16,
        "out_hidden_size": 2048,
        "patch_size": 14,
        "spatial_merge_size": 2,
        "spatial_patch_size": 14,
        "temporal_patch_size": 2,
        "tokens_per_second": 2,
        "window_size": 112,
    },
}

IMAGES_PROCESSOR = {
    "image_processor_type": "Qwen2VLImageProcessor",
    "processor_class": "Qwen2_5_VLProcessor",
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
    "max_pixels": 1280 * 28 * 28,
    "merge_size": 2,
    "min_pixels": 4 * 28 * 28,
    "patch_size": 14,
    "temporal_patch_size": 2,
}

# What a picture becomes in a prompt; the processor repeats the token in the middle as often as the picture has patches.
PICTURE = "<|vision_start|><|image_pad|><|vision_end|>"
PARTS = (
    "{% for m in messages %}{% if m['content'] is string %}{{ m['content'] }}{% else %}{% for c in m['content'] %}"
    "{% if c['type'] == 'text' %}{{ c['text'] }}{% else %}" + PICTURE + "{% endif %}{% endfor %}{% endif %}{% endfor %}"
)


def main() -> None:
    folder, kind = Path(sys.argv[1]), sys.argv[2]
    folder.mkdir(parents=True, exist_ok=True)
    config = {"pages": PAGES, "images": IMAGES}.get(kind) or COMMON | MODELS[kind]
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
    if kind == "images":
        special = ["<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]
        names[-4:] = special
        settings |= {"pad_token": "<unk>"}
        (folder / "chat_template.jinja").write_text(PARTS)
        (folder / "preprocessor_config.json").write_text(json.dumps(IMAGES_PROCESSOR))
        video = IMAGES_PROCESSOR | {"video_processor_type": "Qwen2VLVideoProcessor"}
        (folder / "video_preprocessor_config.json").write_text(json.dumps(video))
    tokenizer = Tokenizer(models.WordLevel({name: place for place, name in enumerate(names)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(special)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    (folder / "generation_config.json").write_text(json.dumps({"bos_token_id": 1, "eos_token_id": 2}))


main()
