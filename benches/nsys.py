#!/usr/bin/env python3
"""Reading SQLite exports of nsys: CPU time and memory at three sizes. Needs

    cargo build --release -p llm-perf-ingest --example nsys_read

and makes the exports with `make_nsys.py` in the folder it is given, where they are not there yet (1.3 GB).
"""

import os
import subprocess
import sys
from pathlib import Path

from benchmark import ROOT, provenance, spread, table, watch, write_section

SIZES = [100, 300, 830]
ROUNDS = 5


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: nsys.py FOLDER")
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    reader = target / "release" / "examples" / "nsys_read"
    if not reader.is_file():
        sys.exit("error: there is no release build\nhint: cargo build --release -p llm-perf-ingest --example nsys_read")
    rows = []
    for size in SIZES:
        export = Path(sys.argv[1]) / f"export-{size}.sqlite"
        if not export.is_file():
            make = [sys.executable, ROOT / "benches" / "make_nsys.py", export, "--megabytes", str(size)]
            subprocess.run(make, check=True)
        export.read_bytes()
        told = subprocess.run([reader, export], check=True, capture_output=True, text=True).stdout
        counts = dict(line.split() for line in told.splitlines())
        samples = [watch([str(reader), str(export)]) for _ in range(ROUNDS)]
        megabytes = export.stat().st_size / 1e6
        processor = sorted(sample.cpu_seconds for sample in samples)[ROUNDS // 2]
        rows.append([
            f"{megabytes:.0f} MB",
            *(f"{int(counts[key]):,}" for key in ("kernels", "calls", "ranges")),
            spread([sample.cpu_seconds for sample in samples], 1, 2),
            f"{megabytes / processor:.0f}",
            spread([sample.wall_seconds for sample in samples], 1, 2),
            f"{max(sample.peak_bytes for sample in samples) / 1e6:.0f} MB",
        ])
    header = ["export", "kernels", "calls", "ranges", "CPU time, s", "MB per CPU second", "wall time, s", "anonymous memory"]
    text = f"{provenance()}\n{ROUNDS} runs each, file in the page cache. `benches/nsys.py FOLDER`\n"
    write_section("nsys", f"{text}\n{table(header, rows)}")


if __name__ == "__main__":
    main()
