#!/usr/bin/env python3
"""Forecasts of stages against times measured on a GPU: prefill and one decode step of decoder models with random weights.

Usage: forecast_stages.py PROGRAM OUT.json [SECONDS] [MODEL...]
PROGRAM is an llm-perf whose data folder (LLM_PERF_DATA_DIR) holds a calibration of this device. Device time is the sum of the
kernels as torch.profiler records them, and wall time is measured without it; both are compared with the forecast of eager mode. Models: llama-3-8b qwen3-8b gemma-3-1b unless told. Stops after SECONDS (240) and says so.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile
from transformers import AutoConfig, AutoModelForCausalLM

PRESETS = Path(__file__).resolve().parents[2] / "crates/network/presets"
HARDWARE = os.environ.get("NAME", "h200")
GRID = [(batch, prompt) for prompt in (128, 1024, 8192) for batch in (1, 8, 64) if batch * prompt <= 65536]
DEVICE = "cuda"


def build(name):
    config = AutoConfig.from_pretrained(PRESETS / ("%s.json" % name))
    config._attn_implementation = "sdpa"
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    model.to_empty(device=DEVICE)
    for tensor in [*model.parameters(), *model.buffers()]:
        if tensor.is_floating_point():
            torch.nn.init.normal_(tensor, std=0.02)
    return model.eval()


def device_ms(work):
    with profile(activities=[ProfilerActivity.CUDA]) as recorded:
        work()
        torch.cuda.synchronize()
    return sum(event.device_time_total for event in recorded.key_averages() if event.device_type.name == "CUDA") / 1e3


def wall_ms(work, rounds):
    times = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begun) * 1e3)
    return statistics.median(times)


def measure(model, batch, prompt):
    """Milliseconds of prefill and of a decode step: device and wall."""
    ids = torch.randint(0, model.config.get_text_config().vocab_size, (batch, prompt), device=DEVICE)
    kept = {}

    def prefill():
        kept["out"] = model(input_ids=ids, use_cache=True, logits_to_keep=1)

    prefill()
    rounds = 3 if batch * prompt > 8192 else 5
    found = {"prefill": [device_ms(prefill), wall_ms(prefill, rounds)]}
    cache = kept["out"].past_key_values
    token = ids[:, -1:]
    # Each step makes the cache one longer: a handful does not change the time.
    step = lambda: model(input_ids=token, past_key_values=cache, use_cache=True)
    step()
    found["decode"] = [device_ms(step), wall_ms(step, 7)]
    return found


def forecast(program, name, batch, prompt):
    command = [program, "analyze", "--model", name, "--hardware", HARDWARE, "--json", "workload.batch=%d" % batch,
               "workload.text_tokens=%d" % prompt, "workload.decode_steps=8", "workload.max_new_tokens=9"]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    eager = next(mode for mode in report["forecast"]["modes"] if mode["mode"] == "eager")
    keys = {"prefill": ("prefill_device_ms", "ttft_ms"), "decode": ("decode_device_ms", "time_per_output_token_ms")}
    return {stage: [eager[key] for key in pair] for stage, pair in keys.items()}, report


def main():
    program, out = sys.argv[1], sys.argv[2]
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 240
    names = sys.argv[4:] or ["llama-3-8b", "qwen3-8b", "gemma-3-1b"]
    begun, rows = time.monotonic(), []
    for name in names:
        with torch.no_grad():
            model = build(name)
            for batch, prompt in GRID:
                if time.monotonic() - begun > seconds:
                    print("stopped after %.0f s: %s at batch %d, prompt %d and what follows is left out" % (seconds, name, batch, prompt))
                    break
                try:
                    measured = measure(model, batch, prompt)
                except torch.OutOfMemoryError as error:
                    print("%s, batch %d, prompt %d: %s" % (name, batch, prompt, str(error)[:120]))
                    torch.cuda.empty_cache()
                    continue
                predicted, report = forecast(program, name, batch, prompt)
                for stage in measured:
                    for what, real, guess in zip(("device", "wall"), measured[stage], predicted[stage]):
                        rows.append({"model": name, "batch": batch, "prompt": prompt, "stage": stage, "what": what,
                                     "measured_ms": real, **guess})
                for row in rows[-4:]:
                    row["roofline_ms"] = report["stages"][row["stage"]]["time_ms"] / report["stages"][row["stage"]]["passes"]
            del model
            torch.cuda.empty_cache()
    with open(out, "w") as file:
        json.dump(rows, file, indent=1)
    for row in rows:
        print("%-12s batch %2d prompt %4d %-7s %-6s measured %9.3f ms, forecast %9.3f (%9.3f to %9.3f)  %+6.1f%%" % (
            row["model"], row["batch"], row["prompt"], row["stage"], row["what"], row["measured_ms"], row["value"], row["low"],
            row["high"], 100 * (row["value"] / row["measured_ms"] - 1)))
    for what in ("device", "wall"):
        for stage in ("prefill", "decode"):
            some = [row for row in rows if row["what"] == what and row["stage"] == stage]
            if some:
                errors = sorted(abs(row["value"] / row["measured_ms"] - 1) for row in some)
                inside = sum(row["low"] <= row["measured_ms"] <= row["high"] for row in some)
                bare = statistics.median(row["measured_ms"] / row["roofline_ms"] for row in some)
                print("%s, %s: %d points, median error %.1f%%, p90 %.1f%%, interval holds %d; measured %.2f times the roofline" % (
                    stage, what, len(errors), 100 * statistics.median(errors), 100 * errors[int(0.9 * (len(errors) - 1))],
                    inside, bare))


main()
