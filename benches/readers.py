#!/usr/bin/env python3
"""Our readers of nsys exports and torch profiler traces against the crates that would replace them: CPU time and memory.

    python3 benches/readers.py FOLDER

Builds the program in `benches/readers` and makes the files in the folder where they are not there yet (400 MB).
"""

import os
import subprocess
import sys
from pathlib import Path

from benchmark import ROOT, provenance, spread, table, watch, write_section

MEGABYTES = 200
ROUNDS = 5
FORMATS = [
    ("nsys export", "make_nsys.py", "export.sqlite", {"ours": "nsys", "rusqlite": "rusqlite"}),
    ("torch trace", "make_kineto.py", "trace.json", {"ours": "kineto", "serde_json": "serde_json", "sonic-rs": "sonic_rs"}),
]


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: readers.py FOLDER")
    crate = ROOT / "benches" / "readers"
    target = Path(os.environ.get("CARGO_TARGET_DIR", crate / "target"))
    build = ["cargo", "build", "--release", "--locked", "--manifest-path", crate / "Cargo.toml", "--target-dir", target]
    subprocess.run(build, check=True)
    program = str(target / "release" / "llm-perf-readers")
    rows = []
    for name, script, file, readers in FORMATS:
        path = Path(sys.argv[1]) / file
        if not path.is_file():
            make = [sys.executable, ROOT / "benches" / script, path, "--megabytes", str(MEGABYTES)]
            subprocess.run(make, check=True)
        path.read_bytes()
        totals = {reader: subprocess.run([program, verb, path], check=True, capture_output=True).stdout
                  for reader, verb in readers.items()}
        if len(set(totals.values())) != 1:
            sys.exit(f"error: the readers of {path} disagree: {totals}")
        megabytes = path.stat().st_size / 1e6
        # Taking turns, so that a slow moment of the machine is not one reader's alone.
        rounds = [[watch([program, verb, str(path)]) for verb in readers.values()] for _ in range(ROUNDS)]
        for reader, samples in zip(readers, zip(*rounds)):
            processor = sorted(sample.cpu_seconds for sample in samples)[ROUNDS // 2]
            rows.append([
                f"{name}, {megabytes:.0f} MB",
                reader,
                spread([sample.cpu_seconds for sample in samples], 1, 2),
                f"{megabytes / processor:.0f}",
                f"{max(sample.peak_bytes for sample in samples) / 1e6:.0f} MB",
            ])
    header = ["file", "reader", "CPU time, s", "MB per CPU second", "anonymous memory"]
    text = f"{provenance()}\n{ROUNDS} runs each, taking turns, one thread, file in the page cache. `benches/readers.py FOLDER`\n"
    write_section("readers", f"{text}\n{table(header, rows)}")


if __name__ == "__main__":
    main()
