#!/usr/bin/env python3
"""Forecasts of stages against times measured on a GPU: prefill and one decode step of decoder models with random weights.

Usage: forecast_stages.py measure OUT.json [SECONDS] [MODEL...]
       forecast_stages.py check PROGRAM OUT.json [MODEL...]
`measure` needs a GPU, PyTorch and transformers; `check` only an llm-perf whose data folder (LLM_PERF_DATA_DIR) holds a calibration
of that GPU, so that what was measured once can be held against any program. Device time is the sum of the kernels as torch.profiler
records them, listed by operator and shape; wall time is measured without it. Both are compared with the forecast of eager mode.
`measure` stops after SECONDS (300) and says what it left out.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

PRESETS = Path(__file__).resolve().parents[2] / "crates/network/presets"
HARDWARE = os.environ.get("NAME", "h200")
MODELS = ["llama-3-8b", "qwen3-8b", "gemma-3-1b"]
GRID = [(batch, prompt) for prompt in (128, 1024, 8192) for batch in (1, 8, 64) if batch * prompt <= 65536]
DEVICE = "cuda"


def build(name):
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

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


def device(work):
    """Milliseconds of all kernels, and the kernels by the outermost operator that launched them and its shapes."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True) as recorded:
        work()
        torch.cuda.synchronize()
    whole = sum(event.device_time_total for event in recorded.key_averages() if event.device_type.name == "CUDA") / 1e3
    sums = {}
    for event in recorded.events():
        for kernel in getattr(event, "kernels", None) or []:
            outer = event
            while outer.cpu_parent is not None and outer.cpu_parent.name.startswith("aten::"):
                outer = outer.cpu_parent
            key = (outer.name, json.dumps(outer.input_shapes), kernel.name[:160])
            count, time_us = sums.get(key, (0, 0.0))
            sums[key] = (count + 1, time_us + kernel.duration)
    rows = [[*key, count, round(time_us, 3)] for key, (count, time_us) in sums.items()]
    return whole, sorted(rows, key=lambda row: -row[-1])


def wall_ms(work, rounds):
    import torch

    times = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begun) * 1e3)
    return statistics.median(times)


#: Passes of each stage that are timed.
ROUNDS = {"prefill": 5, "decode": 7}


def stages(model, batch, prompt):
    """A prefill and a decode step. The steps were done before at the same lengths: cuDNN plans attention for every length it has not
    seen, which takes the host tens of milliseconds and is nothing that repeats."""
    import torch

    ids = torch.randint(0, model.config.get_text_config().vocab_size, (batch, prompt), device=DEVICE)
    kept = {}

    def prefill():
        kept["cache"] = model(input_ids=ids, use_cache=True, logits_to_keep=1).past_key_values

    def step():
        model(input_ids=ids[:, -1:], past_key_values=kept["cache"], use_cache=True)

    prefill()
    yield "prefill", prefill
    for _ in range(ROUNDS["decode"]):
        step()
    prefill()
    yield "decode", step


def walls(model, batch, prompt):
    few = {"prefill": 2} if batch * prompt > 8192 else {}
    return {stage: {"wall_ms": wall_ms(work, {**ROUNDS, **few}[stage])} for stage, work in stages(model, batch, prompt)}


def kernels(model, batch, prompt):
    return {stage: dict(zip(("device_ms", "kernels"), device(work))) for stage, work in stages(model, batch, prompt)}


def measure(out, seconds, names):
    """Wall times of all models first, so that nothing the profiler leaves in the process is in them."""
    import torch
    import transformers

    begun, rows, left = time.monotonic(), {}, []
    for part, share in ((walls, 0.5), (kernels, 1.0)):
        for name in names:
            with torch.no_grad():
                try:
                    model = build(name)
                except Exception as error:
                    left.append("%s: %s" % (name, str(error)[:200]))
                    continue
                for batch, prompt in GRID:
                    place = "%s of %s at batch %d, prompt %d" % (part.__name__, name, batch, prompt)
                    if time.monotonic() - begun > seconds * share:
                        left.append(place)
                        continue
                    try:
                        for stage, values in part(model, batch, prompt).items():
                            rows.setdefault((name, batch, prompt, stage), {}).update(values)
                    except Exception as error:
                        left.append("%s: %s" % (place, str(error)[:200]))
                        torch.cuda.empty_cache()
                del model
                torch.cuda.empty_cache()
            # What is there is kept, whatever comes after.
            keys = ("model", "batch", "prompt", "stage")
            told = {"torch": torch.__version__, "transformers": transformers.__version__, "device": torch.cuda.get_device_name(),
                    "left_out": left, "rows": [{**dict(zip(keys, key)), **row} for key, row in rows.items()]}
            with open(out, "w") as file:
                json.dump(told, file)
            print("%s of %s: %d rows after %.0f s" % (part.__name__, name, len(rows), time.monotonic() - begun), flush=True)
    print("left out: %s" % (left or "nothing"))


def forecast(program, name, batch, prompt):
    command = [program, "analyze", "--model", name, "--hardware", HARDWARE, "--json", "workload.batch=%d" % batch,
               "workload.text_tokens=%d" % prompt, "workload.decode_steps=8", "workload.max_new_tokens=9"]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    eager = next(mode for mode in report["forecast"]["modes"] if mode["mode"] == "eager")
    keys = {"prefill": ("prefill_device_ms", "ttft_ms"), "decode": ("decode_device_ms", "time_per_output_token_ms")}
    return {stage: [eager[key] for key in pair] for stage, pair in keys.items()}, report["stages"]


def told(title, rows):
    errors = sorted(abs(row["value"] / row["measured"] - 1) for row in rows)
    inside = sum(row["low"] <= row["measured"] <= row["high"] for row in rows)
    bare = statistics.median(row["measured"] / row["roofline"] for row in rows)
    print("%s: %d points, median error %.1f%%, p90 %.1f%%, interval holds %d; measured %.2f times the roofline" % (
        title, len(errors), 100 * statistics.median(errors), 100 * errors[int(0.9 * (len(errors) - 1))], inside, bare))


def check(program, path, names):
    with open(path) as file:
        measured = json.load(file)["rows"]
    known, rows = {}, []
    for row in measured:
        if names and row["model"] not in names:
            continue
        key = (row["model"], row["batch"], row["prompt"])
        if key not in known:
            known[key] = forecast(program, *key)
        predicted, stages = known[key]
        stage = stages[row["stage"]]
        for what, guess in zip(("device", "wall"), predicted[row["stage"]]):
            if what + "_ms" not in row:
                continue
            rows.append({**row, "what": what, "measured": row[what + "_ms"], **guess, "roofline": stage["time_ms"] / stage["passes"]})
    for row in rows:
        print("%-18s batch %2d prompt %4d %-7s %-6s measured %9.3f ms, forecast %9.3f (%9.3f to %9.3f)  %+6.1f%%" % (
            row["model"], row["batch"], row["prompt"], row["stage"], row["what"], row["measured"], row["value"], row["low"],
            row["high"], 100 * (row["value"] / row["measured"] - 1)))
    for what in ("device", "wall"):
        for stage in ("prefill", "decode"):
            some = [row for row in rows if row["what"] == what and row["stage"] == stage]
            for name in sorted({row["model"] for row in some}):
                told("%s, %s, %s" % (stage, what, name), [row for row in some if row["model"] == name])
            if some:
                told("%s, %s" % (stage, what), some)


def main():
    if len(sys.argv) > 2 and sys.argv[1] == "measure":
        measure(sys.argv[2], float(sys.argv[3]) if len(sys.argv) > 3 else 300, sys.argv[4:] or MODELS)
    elif len(sys.argv) > 3 and sys.argv[1] == "check":
        check(sys.argv[2], sys.argv[3], sys.argv[4:])
    else:
        sys.exit(__doc__)


main()
