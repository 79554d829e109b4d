"""A plain loop, timed by hand, beside the driver of `llm-perf profile --engine torch` on the same model in one process.

usage: python hand_timed.py CONFIG.json PROMPT_TOKENS NEW_TOKENS ROUNDS [DEVICE]
Builds the model of the config with random weights and takes turns: a round of the loop, a round of the driver. Other work
on the host then hits both alike, which two runs one after the other do not ensure. Prints the medians as JSON.
"""

import importlib.util
import json
import os
import statistics
import sys
import time

import torch
import transformers

HERE = os.path.dirname(os.path.abspath(__file__))
DRIVER = os.environ.get("DRIVER", os.path.join(HERE, "../../crates/collect/src/tool/torch/driver.py"))


def by_hand(model, ids, new, sync):
    sync()
    begin = time.perf_counter()
    output = model(input_ids=ids, use_cache=True)
    sync()
    first = time.perf_counter()
    token = output.logits[:, -1:].argmax(-1)
    answer = [int(token)]
    while len(answer) < new:
        output = model(input_ids=token, past_key_values=output.past_key_values, use_cache=True)
        token = output.logits[:, -1:].argmax(-1)
        answer.append(int(token))
    sync()
    return {"prefill": (first - begin) * 1e3, "decode": (time.perf_counter() - first) * 1e3}


def main(config, prompt, new, rounds, device="cuda:0"):
    config = transformers.AutoConfig.from_pretrained(config)
    dtype = torch.bfloat16 if device != "cpu" else torch.float32
    torch.set_default_dtype(dtype)
    with torch.device(device):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=dtype).eval()
    torch.set_default_dtype(torch.float32)
    sync = torch.cuda.synchronize if device != "cpu" else lambda: None
    ids = torch.randint(0, config.vocab_size, (1, int(prompt)), device=device)

    spec = importlib.util.spec_from_file_location("driver", DRIVER)
    driver = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(driver)
    decoding = {"max_new_tokens": int(new), "end_tokens": []}
    request = {"nvtx": False, "module_ranges": 0, "decoding": decoding, "last_logits_only": False}
    runner = driver.Runner(torch, model, device, request, None)
    item = driver.Input("prompt", kwargs={"input_ids": ids})

    hand, ours = [], []
    for number in range(int(rounds) + 2):
        with torch.inference_mode():
            plain = by_hand(model, ids, int(new), sync)
        stages = {stage: wall / 1e6 for stage, wall in runner.infer(item)[0].items()}
        if number > 1:
            hand.append(plain)
            ours.append(stages)
    found = {}
    for name, all in (("hand", hand), ("driver", ours)):
        for stage in ("prefill", "decode"):
            found["%s_%s_ms" % (name, stage)] = statistics.median(one[stage] for one in all)
    print(json.dumps(found))


main(*sys.argv[1:])
