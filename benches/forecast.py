#!/usr/bin/env python3
"""Errors of estimated operation times on shapes that were left out, on public timings of an H200.

Usage: forecast.py [FOLDER]
FOLDER holds gemm.csv.gz, context-attention.csv.gz and generation-attention.csv.gz (from ai-dynamo/aiconfigurator, Apache-2.0);
third-party/h200-op-timings in LLM_PERF_REFERENCE unless told.
"""

import csv
import gzip
import io
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmark import program, provenance, table, write_section

SEEDS = 5
HELD = 0.3
TABLES = [
    ("GEMM, bf16", "gemm.csv.gz", 300, ["n", "k"], {"dtype": "bfloat16"}),
    ("GEMM, fp8", "gemm.csv.gz", 300, ["n", "k"], {"dtype": "fp8"}),
    ("attention, prompt", "context-attention.csv.gz", 500, ["heads", "kv_heads", "head_dim"], {}),
    ("attention, cache", "generation-attention.csv.gz", 500, ["heads", "kv_heads", "head_dim"], {}),
]


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[int(share * (len(values) - 1))]


def write(path: Path, rows: list[dict], columns: list[str]) -> None:
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def trial(rows: list[dict], count: int, site: list[str], seed: int) -> tuple[list[float], list[bool], float]:
    """Relative errors, whether the interval held, and seconds to calibrate."""
    rng = random.Random(seed)
    columns = list(rows[0])
    sites = sorted({tuple(row[name] for name in site) for row in rows})
    rng.shuffle(sites)
    held_sites = set(sites[: int(HELD * len(sites))])
    inside = [tuple(row[name] for name in site) in held_sites for row in rows]
    kept = [row for row, is_held in zip(rows, inside) if not is_held]
    held = [row for row, is_held in zip(rows, inside) if is_held]
    with tempfile.TemporaryDirectory() as folder:
        points, shapes = Path(folder) / "points.csv", Path(folder) / "shapes.csv"
        write(points, rng.sample(kept, count), columns)
        write(shapes, held, [name for name in columns if name != "microseconds"])
        environment = {**os.environ, "LLM_PERF_DATA_DIR": folder}
        began = time.perf_counter()
        subprocess.run([program(), "--quiet", "doctor", "--calibrate", "--device", "h200", "--points", points],
                       env=environment, check=True, stdout=subprocess.DEVNULL)
        took = time.perf_counter() - began
        answer = subprocess.run([program(), "hardware", "h200", "--predict", shapes], env=environment, check=True,
                                capture_output=True, text=True).stdout
    errors, holds = [], []
    for truth, guess in zip(held, csv.DictReader(io.StringIO(answer)), strict=True):
        measured = float(truth["microseconds"])
        errors.append(abs(float(guess["microseconds"]) / measured - 1))
        holds.append(float(guess["low"]) <= measured <= float(guess["high"]))
    return errors, holds, took


def main() -> None:
    reference = os.environ.get("LLM_PERF_REFERENCE", "")
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(reference) / "third-party/h200-op-timings"
    lines = []
    for name, file, count, site, wanted in TABLES:
        with gzip.open(folder / file, "rt") as text:
            rows = [row for row in csv.DictReader(text) if all(row[key] == value for key, value in wanted.items())]
        errors, holds, times = [], [], []
        for seed in range(SEEDS):
            some, inside, took = trial(rows, count, site, seed)
            errors += some
            holds += inside
            times.append(took)
        lines.append([
            name, str(count), f"{len(errors):,}", f"{quantile(errors, 0.5):.1%}", f"{quantile(errors, 0.9):.1%}",
            f"{sum(holds) / len(holds):.1%}", f"{max(times):.1f}",
        ])
        print(lines[-1], file=sys.stderr)
    header = ["operation", "points fitted", "shapes left out", "median error", "p90 error", "90% interval holds", "fit, s"]
    about = (
        f"{provenance()}\nPublic timings of an H200 (ai-dynamo/aiconfigurator, Apache-2.0). {HELD:.0%} of the weights, or head"
        f" layouts, are left out whole; points are drawn from the rest; {SEEDS} draws. `benches/forecast.py`\n"
    )
    write_section("forecast", f"{about}\n{table(header, lines)}")


if __name__ == "__main__":
    main()
