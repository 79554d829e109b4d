"""A decoder built from a configuration of transformers with random weights: prefill and decode, with ranges.

usage: deep_family.py FAMILY [--prompt 512] [--tokens 16] [--rounds 1]
Prints one line of JSON with the times of the stages for each round. Nothing is downloaded.
"""

import argparse
import json
import time

import torch
import transformers

COMMON = dict(vocab_size=32000, hidden_size=2048, num_hidden_layers=16, num_attention_heads=16, num_key_value_heads=8)
FAMILIES = {
    "llama": ("LlamaConfig", "LlamaForCausalLM", dict(COMMON, intermediate_size=8192)),
    "qwen3": ("Qwen3Config", "Qwen3ForCausalLM", dict(COMMON, intermediate_size=6144, head_dim=128)),
    "mistral": ("MistralConfig", "MistralForCausalLM", dict(COMMON, intermediate_size=7168)),
}


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("family", choices=FAMILIES)
    arguments.add_argument("--prompt", type=int, default=512)
    arguments.add_argument("--tokens", type=int, default=16)
    arguments.add_argument("--rounds", type=int, default=1)
    options = arguments.parse_args()
    config, network, settings = FAMILIES[options.family]
    settings = getattr(transformers, config)(**settings)
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = getattr(transformers, network)(settings).eval()
    ids = torch.randint(3, settings.vocab_size, (1, options.prompt), device="cuda")
    generate(model, ids, 3, lambda name: None, lambda: None)
    for _ in range(options.rounds):
        times = generate(model, ids, options.tokens, torch.cuda.nvtx.range_push, torch.cuda.nvtx.range_pop)
        print(json.dumps(times), flush=True)


@torch.inference_mode()
def generate(model, ids, tokens, push, pop):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    push("prefill")
    out = model(input_ids=ids, use_cache=True)
    following = out.logits[:, -1].argmax(-1, keepdim=True)
    torch.cuda.synchronize()
    pop()
    middle = time.perf_counter()
    push("decode")
    for _ in range(tokens - 1):
        push("decode_step")
        out = model(input_ids=following, past_key_values=out.past_key_values, use_cache=True)
        following = out.logits[:, -1].argmax(-1, keepdim=True)
        torch.cuda.synchronize()
        pop()
    pop()
    end = time.perf_counter()
    return {"prefill_ms": (middle - begin) * 1e3, "decode_ms": (end - middle) * 1e3}


if __name__ == "__main__":
    main()
