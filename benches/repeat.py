#!/usr/bin/env python3
"""How far two runs of `llm-perf profile` are apart: the median of every stage, run after run.

Wants a quiet machine. The load before the first run is part of the result.
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path

from benchmark import program, provenance, table, write_section

RUNS = 4
STAGES = ["prefill", "vision", "sam", "clip", "projector", "decode"]


def medians(llm_perf: str, folder: Path) -> dict[str, float]:
    """Median of each stage of one default run, in milliseconds."""
    command = [llm_perf, "profile", "--json", "--quiet", "--out", str(folder)]
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    stages = json.loads(finished.stdout)["aggregates"]["stage_ms"]
    return {name: found["median"] for name, found in stages.items()}


def main() -> None:
    llm_perf = program()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as scratch:
        runs = [medians(llm_perf, Path(scratch) / f"run-{index}") for index in range(RUNS)]
    rows = []
    for stage in STAGES:
        times = [run[stage] for run in runs]
        furthest = max(abs(after / before - 1) for before, after in zip(times, times[1:]))
        rows.append([stage, *(f"{time:.1f}" for time in times), f"{furthest:.1%}"])
    header = ["stage", *(f"run {index + 1}, ms" for index in range(RUNS)), "furthest from the run before"]
    text = f"{provenance()}\nLoad before the first run: {load:.2f}. `benches/repeat.py`\n"
    write_section("repeat", f"{text}\n{table(header, rows)}")


if __name__ == "__main__":
    main()
