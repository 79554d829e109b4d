#!/usr/bin/env python3
"""Cost of ten thousand points of a sweep: few workloads on many devices, and a workload for every point."""

import json
import sys
import tempfile
from pathlib import Path

from benchmark import program, provenance, run, spread, table, write_section

ROUNDS = 5
WARM_UP = 1
POINTS = 10_000

DEVICES = "h200,h100-sxm,h100-pcie,a100-sxm-80gb,a100-pcie-80gb,l40s,l4,rtx-5090,rtx-4090,rtx-3090"


def numbers(first: int, step: int, count: int) -> str:
    """That many numbers as the values of an axis."""
    return ",".join(str(first + step * index) for index in range(count))


CASES = [
    (
        "DeepSeek-OCR: 10 batches x 2 grids x 50 text lengths x 10 devices",
        [
            "--sweep", f"workload.batch={numbers(1, 1, 10)}",
            "--sweep", "workload.crop_grid=[1,1],[2,3]",
            "--sweep", f"workload.text_tokens={numbers(16, 16, 50)}",
            "--hardware", DEVICES,
        ],
    ),
    (
        "DeepSeek-OCR: 100 batches x 100 text lengths, one device",
        ["--sweep", f"workload.batch={numbers(1, 1, 100)}", "--sweep", f"workload.text_tokens={numbers(16, 16, 100)}"],
    ),
    (
        "Llama 3 8B: 100 batches x 100 prompt lengths, one device",
        [
            "--model", "llama-3-8b",
            "--sweep", f"workload.batch={numbers(1, 1, 100)}",
            "--sweep", f"workload.seq_len={numbers(64, 64, 100)}",
        ],
    ),
]


def main() -> None:
    llm_perf = program()
    rows = []
    for name, arguments in CASES:
        samples = []
        for round_number in range(WARM_UP + ROUNDS):
            with tempfile.TemporaryDirectory() as parent:
                folder = Path(parent) / "run"
                sample = run([llm_perf, "--quiet", "analyze", *arguments, "--out", str(folder)])
                found = json.loads((folder / "sweep.json").read_text())["points"]
                if len(found) != POINTS or any(point["figures"] is None for point in found):
                    sys.exit(f"error: {name} has {len(found)} points, or points without figures")
            if round_number >= WARM_UP:
                samples.append(sample)
        rows.append(
            [
                name,
                spread([sample.cpu_seconds for sample in samples], 1, 2),
                spread([sample.wall_seconds for sample in samples], 1, 2),
                f"{max(sample.peak_bytes for sample in samples) / 2**20:.0f}",
                "< 2",
            ]
        )
    header = [f"{POINTS:,} points", "CPU time, s", "wall time, s", "peak memory, MiB", "target CPU, s"]
    text = (
        f"{provenance()}\n{ROUNDS} runs each, after {WARM_UP} that is not counted; JSON, CSV, page and chart written."
        " `benches/sweep.py`\n"
    )
    write_section("sweep", f"{text}\n{table(header, rows)}")


if __name__ == "__main__":
    main()
