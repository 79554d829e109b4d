#!/usr/bin/env python3
"""Reading torch profiler traces: CPU time and memory at three sizes. Needs

    cargo build --release -p llm-perf-ingest --example torch_read

and makes the traces with `make_kineto.py` in the folder it is given, where they are not there yet (1.4 GB).
"""

import os
import subprocess
import sys
from pathlib import Path

from benchmark import ROOT, provenance, spread, table, watch, write_section

SIZES = [100, 300, 1000]
ROUNDS = 5


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: ingest.py FOLDER")
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    reader = target / "release" / "examples" / "torch_read"
    if not reader.is_file():
        sys.exit("error: there is no release build\nhint: cargo build --release -p llm-perf-ingest --example torch_read")
    rows = []
    for size in SIZES:
        trace = Path(sys.argv[1]) / f"kineto-{size}.json"
        if not trace.is_file():
            make = [sys.executable, ROOT / "benches" / "make_kineto.py", trace, "--megabytes", str(size)]
            subprocess.run(make, check=True)
        trace.read_bytes()
        told = subprocess.run([reader, trace], check=True, capture_output=True, text=True).stdout
        counts = dict(line.split() for line in told.splitlines())
        megabytes = trace.stat().st_size / 1e6
        for threads in (1, 2):
            samples = [watch([str(reader), str(trace), str(threads)]) for _ in range(ROUNDS)]
            processor = sorted(sample.cpu_seconds for sample in samples)[ROUNDS // 2]
            rows.append([
                f"{megabytes:.0f} MB",
                *(f"{int(counts[key]):,}" for key in ("events", "kernels")),
                str(threads),
                spread([sample.cpu_seconds for sample in samples], 1, 2),
                f"{megabytes / processor:.0f}",
                spread([sample.wall_seconds for sample in samples], 1, 2),
                f"{max(sample.peak_bytes for sample in samples) / 1e6:.0f} MB",
            ])
    header = ["trace", "events", "kernels", "threads", "CPU time, s", "MB per CPU second", "wall time, s", "anonymous memory"]
    text = f"{provenance()}\n{ROUNDS} runs each, file in the page cache. `benches/ingest.py FOLDER`\n"
    write_section("torch", f"{text}\n{table(header, rows)}")


if __name__ == "__main__":
    main()
