#!/usr/bin/env python3
"""Cost of one whole analytic report: the default model and workload, every page written."""

import tempfile
from pathlib import Path

from benchmark import program, provenance, run, spread, table, write_section

ROUNDS = 50
WARM_UP = 2


def main() -> None:
    llm_perf = program()
    whole, printed, files = [], [], 0
    for round_number in range(WARM_UP + ROUNDS):
        with tempfile.TemporaryDirectory() as parent:
            folder = Path(parent) / "run"
            sample = run([llm_perf, "--quiet", "analyze", "--out", str(folder)])
            left = [path for path in folder.rglob("*") if path.is_file()]
        json_sample = run([llm_perf, "--quiet", "analyze", "--json"])
        if round_number >= WARM_UP:
            whole.append(sample)
            printed.append(json_sample)
        files = len(left)

    floor = max(run(["true"]).peak_bytes for _ in range(WARM_UP))
    rows = [
        [
            name,
            spread([sample.cpu_seconds for sample in samples], 1e3, 1),
            spread([sample.wall_seconds for sample in samples], 1e3, 1),
            f"{max(sample.peak_bytes for sample in samples) / 2**20:.1f}",
            target,
        ]
        for name, samples, target in [
            (f"`llm-perf analyze --out DIR` ({files} files)", whole, "< 100"),
            ("`llm-perf analyze --json`", printed, ""),
        ]
    ]
    header = ["command", "CPU time, ms", "wall time, ms", "peak memory, MiB", "target CPU, ms"]
    text = (
        f"{provenance()}\n{ROUNDS} runs each, taking turns, after {WARM_UP} that are not counted; memory is the most of all"
        f" runs, and less than {floor / 2**20:.0f} MiB cannot be told apart this way. `benches/analyze.py`\n"
    )
    write_section("analyze", f"{text}\n{table(header, rows)}")


if __name__ == "__main__":
    main()
