"""Writes what configuration classes of transformers take where a `config.json` does not say, or checks the file.

    python tools/class_defaults.py            rewrites crates/network/src/config/class_defaults.json
    python tools/class_defaults.py --check    exits 1 and names what differs

Only fields that a reader in `crates/network/src/config` names are kept, and of those only fixed values: what a class
computes from other fields is the readers' business. Needs transformers, not torch.
"""

import dataclasses
import json
import pathlib
import re
import sys

import transformers
from transformers import CONFIG_MAPPING, PreTrainedConfig
from transformers.models.auto import modeling_auto

CONFIG = pathlib.Path(__file__).parent.parent / "crates/network/src/config"
FILE = CONFIG / "class_defaults.json"
TASKS = ["CAUSAL_LM", "IMAGE_TEXT_TO_TEXT", "MULTIMODAL_LM", "SEQ_TO_SEQ_CAUSAL_LM", "SPEECH_SEQ_2_SEQ", "MASKED_LM"]
PARTS = {"text_config", "vision_config", "audio_config", "thinker_config", "language_config", "llm_config"}
# What says how a model is used or stored, not how large it is.
LEFT_OUT = {"dtype", "torch_dtype", "architectures", "id2label", "quantization_config", "is_encoder_decoder", "is_decoder"}
# Older names that a class takes without listing them in its `attribute_map`.
OLDER_NAMES = {
    "bloom": {"hidden_size": "n_embed"},
    "falcon": {"hidden_size": "n_embed"},
    "nomic_bert": {
        "hidden_act": "activation_function",
        "hidden_size": "n_embd",
        "intermediate_size": "n_inner",
        "layer_norm_eps": "layer_norm_epsilon",
        "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
    },
}
# Fields that published files state and a class takes without declaring them.
UNDECLARED = {
    "deberta-v2": ["conv_kernel_size", "norm_rel_ebd", "position_buckets", "share_att_key"],
    "deepseek_v4": ["compress_ratios"],
    "falcon_h1": ["head_dim"],
    "gemma4_text": ["num_global_key_value_heads"],
    "mimo_v2_flash": ["sliding_window_size"],
    "qwen3_moe": ["head_dim"],
}


def language_classes() -> set[str]:
    """Every `model_type` that has a head for text, and the parts those are made of."""
    found = set()
    for task in TASKS:
        found |= set(getattr(modeling_auto, f"MODEL_FOR_{task}_MAPPING_NAMES"))
    return {kind for kind in found if kind in CONFIG_MAPPING}


def read_fields() -> set[str]:
    names = set()
    for file in CONFIG.rglob("*.rs"):
        names |= set(re.findall(r'"([a-z][A-Za-z0-9_]*)"', file.read_text()))
    return names - LEFT_OUT


def plain(value) -> bool:
    """Whether a default can be kept; `None` is that a class computes it, or that there is none."""
    if isinstance(value, (list, tuple)):
        return len(value) <= 64 and all(isinstance(entry, (int, str)) for entry in value)
    return value is None or isinstance(value, (bool, int, float, str))


def described(cls: type[PreTrainedConfig], wanted: set[str]) -> tuple[dict, dict]:
    """One class, and the classes of its parts."""
    names = {name: other for name, other in cls.attribute_map.items() if name in wanted and name != other}
    names |= OLDER_NAMES.get(cls.model_type, {})
    wanted = wanted | set(names.values())
    nothing = dict.fromkeys(UNDECLARED.get(cls.model_type, []))
    nothing |= {field.name: None for field in dataclasses.fields(cls) if field.default is None}
    defaults = nothing | cls.default_config_fields()
    own = {name: value for name, value in defaults.items() if name in wanted - PARTS and plain(value)}
    parts, classes = {}, {}
    for name, part in (getattr(cls, "sub_configs_defaults", None) or {}).items():
        # Either a class, or what names one. Its `init_kwargs` count only where a file has no such part at all.
        config, kind = getattr(part, "config_class", part), part.model_type
        if not kind or name not in PARTS:
            continue
        if not issubclass(config, PreTrainedConfig):
            config = CONFIG_MAPPING[kind]
        parts[name] = kind
        classes[kind] = config
    row = {"values": own, "names": names, "parts": parts}
    return {key: value for key, value in row.items() if value}, classes


def table() -> dict:
    wanted, rows = read_fields(), {}
    waiting = {kind: CONFIG_MAPPING[kind] for kind in language_classes()}
    while waiting:
        kind, cls = waiting.popitem()
        if kind not in rows:
            rows[kind], parts = described(cls, wanted)
            waiting |= {name: part for name, part in parts.items() if name not in rows}
    return dict(sorted(rows.items()))


def written(rows: dict) -> str:
    lines = [f"    {json.dumps(kind)}: {json.dumps(row, sort_keys=True)}" for kind, row in rows.items()]
    head = f'{{\n  "transformers": "{transformers.__version__}",\n  "classes": {{\n'
    return head + ",\n".join(lines) + "\n  }\n}\n"


def main() -> int:
    text = written(table())
    if "--check" not in sys.argv:
        FILE.write_text(text)
        return 0
    rows, kept = json.loads(text)["classes"], json.loads(FILE.read_text())["classes"]
    wrong = sorted(kind for kind in rows.keys() | kept.keys() if rows.get(kind) != kept.get(kind))
    for kind in wrong:
        print(f"{kind}: {kept.get(kind)} here, {rows.get(kind)} in transformers {transformers.__version__}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
