"""A plain loop, timed by hand, to hold `llm-perf profile --engine torch` against.

usage: python hand_timed.py CONFIG.json PROMPT_TOKENS NEW_TOKENS ROUNDS [DEVICE]
Builds the model of the config with random weights, runs one round to warm up and prints median and shortest of the others as JSON.
"""

import json
import statistics
import sys
import time

import torch
import transformers


def main(config, prompt, new, rounds, device="cuda:0"):
    config = transformers.AutoConfig.from_pretrained(config)
    dtype = torch.bfloat16 if device != "cpu" else torch.float32
    torch.set_default_dtype(dtype)
    with torch.device(device):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=dtype).eval()
    torch.set_default_dtype(torch.float32)
    sync = torch.cuda.synchronize if device != "cpu" else lambda: None
    ids = torch.randint(0, config.vocab_size, (1, int(prompt)), device=device)
    prefills, decodes = [], []
    with torch.inference_mode():
        for number in range(int(rounds) + 1):
            sync()
            begin = time.perf_counter()
            output = model(input_ids=ids, use_cache=True)
            sync()
            first = time.perf_counter()
            token = output.logits[:, -1:].argmax(-1)
            answer = [int(token)]
            while len(answer) < int(new):
                output = model(input_ids=token, past_key_values=output.past_key_values, use_cache=True)
                token = output.logits[:, -1:].argmax(-1)
                answer.append(int(token))
            sync()
            end = time.perf_counter()
            if number > 0:
                prefills.append((first - begin) * 1e3)
                decodes.append((end - first) * 1e3)
    print(json.dumps({
        "prefill_ms": statistics.median(prefills),
        "prefill_min_ms": min(prefills),
        "decode_ms": statistics.median(decodes),
        "decode_min_ms": min(decodes),
    }))


main(*sys.argv[1:])
