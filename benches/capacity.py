#!/usr/bin/env python3
"""Requests that `capacity` simulates per second of CPU, and a sweep of a thousand layouts by a thousand requests."""

import json
import sys
import tempfile
from pathlib import Path

from benchmark import program, provenance, run, spread, table, write_section

ROUNDS = 3
WARM_UP = 1

LOAD = ["--model", "llama-3-8b", "--rate", "40", "--input", "256..1024", "--output", "16..256", "--requests", "10000"]

CASES = [
    ("vLLM, one server", LOAD),
    ("SGLang, one server", [*LOAD, "--engine", "sglang"]),
    ("vLLM, four servers", [*LOAD, "--data-parallel", "4", "--router", "least-loaded"]),
    ("vLLM, prefill and decode apart", [*LOAD, "--disaggregate", "1p2d", "--kv-link", "50GB/s"]),
    (
        "1,000 layouts by 1,000 requests",
        [
            "--model", "llama-3-8b", "--rate", "20", "--input", "256..1024", "--output", "16..256", "--requests", "1000",
            "--sweep", "hardware=h200,h100-sxm,a100-sxm-80gb,l40s,b200",
            "--sweep", "workload.parallel.tensor=1,2",
            "--sweep", "workload.quantisation.weights=bf16,fp8",
            "--sweep", "max-num-seqs=16,32,64,128,256",
            "--sweep", "max-num-batched-tokens=512,1024,1536,2048,3072,4096,5120,6144,7168,8192",
        ],
    ),
]
LAYOUTS = 1_000
REQUESTS = {1: 10_000, LAYOUTS: 1_000}


def main() -> None:
    llm_perf = program()
    rows = []
    for name, arguments in CASES:
        samples = []
        rounds = range(WARM_UP + ROUNDS) if "--sweep" not in arguments else range(1)
        for number in rounds:
            with tempfile.TemporaryDirectory() as parent:
                folder = Path(parent) / "run"
                sample = run([llm_perf, "--quiet", "capacity", *arguments, "--out", str(folder)])
                document = folder / ("capacity-sweep.json" if "--sweep" in arguments else "capacity.json")
                found = json.loads(document.read_text())
            layouts = [point["figures"] for point in found["points"]] if "points" in found else [found]
            if len(layouts) not in REQUESTS or any(layout is None for layout in layouts):
                sys.exit(f"error: {name} has {len(layouts)} layouts, or layouts without figures")
            if len(rounds) == 1 or number >= WARM_UP:
                samples.append(sample)
        simulated = len(layouts) * REQUESTS[len(layouts)] * found["simulations"]
        rows.append(
            [
                name,
                f"{simulated:,}",
                spread([sample.cpu_seconds for sample in samples], 1, 2),
                spread([sample.wall_seconds for sample in samples], 1, 2),
                f"{simulated / max(sample.cpu_seconds for sample in samples):,.0f}",
                f"{max(sample.peak_bytes for sample in samples) / 2**20:.0f}",
            ]
        )
    header = ["", "simulated requests", "CPU time, s", "wall time, s", "requests per CPU-s (goal 10,000)", "peak memory, MiB"]
    text = (
        f"{provenance()}\n{ROUNDS} runs each, after {WARM_UP} that is not counted, and one of the sweep; the slowest run counts."
        " `benches/capacity.py`\n"
    )
    write_section("capacity", f"{text}\n{table(header, rows)}")


if __name__ == "__main__":
    main()
