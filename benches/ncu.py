#!/usr/bin/env python3
"""Cost of reading pages of Nsight Compute into records.

Needs the reader's example: `cargo build --release -p llm-perf-ingest --example ncu_read`. Another build folder is named with
CARGO_TARGET_DIR.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmark import ROOT, provenance, run, spread, table, write_section

ROUNDS = 10
WARM_UP = 1
CASES = [("raw", 10, []), ("raw", 50, []), ("raw", 200, []), ("raw", 50, ["gpu__time_duration.sum"]), ("details", 50, [])]


def main() -> None:
    reader = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "examples" / "ncu_read"
    if not reader.is_file():
        sys.exit("error: the reader is not built\nhint: cargo build --release -p llm-perf-ingest --example ncu_read")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for kind, megabytes, counters in CASES:
            page = Path(folder) / f"{kind}-{megabytes}.csv"
            if not page.is_file():
                make = [sys.executable, ROOT / "benches" / "make_ncu.py", kind, page, "--megabytes", str(megabytes)]
                subprocess.run(make, check=True)
            command = [str(reader), str(page), *counters]
            samples = [run(command) for _ in range(WARM_UP + ROUNDS)][WARM_UP:]
            facts = dict(line.split() for line in subprocess.run(command, capture_output=True, text=True).stdout.splitlines())
            size = page.stat().st_size
            unit = "counters" if kind == "raw" else "metrics"
            kept = "1 counter kept" if counters else f"{int(facts[unit]):,} {unit}"
            rows.append(
                [
                    f"{kind} page, {int(facts['works']):,} kernels, {kept}",
                    f"{size / 1e6:.1f}",
                    spread([sample.cpu_seconds for sample in samples], 1e3, 0),
                    spread([size / sample.cpu_seconds for sample in samples], 1e-6, 0),
                    f"{max(sample.peak_bytes for sample in samples) / 2**20:.0f}",
                ]
            )
    header = ["page", "size, MB", "CPU time, ms", "MB per CPU second", "peak memory, MiB"]
    text = f"{provenance()}\n{ROUNDS} runs each after {WARM_UP} that is not counted; memory is the most of all runs. `benches/ncu.py`\n"
    write_section("ncu", f"{text}\n{table(header, rows)}")


if __name__ == "__main__":
    main()
