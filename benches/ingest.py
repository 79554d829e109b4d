#!/usr/bin/env python3
"""Reading torch profiler traces at three sizes; and whole imports in turns with the programs that only parse the same files.

    benches/ingest.py FOLDER                      # the reader
    benches/ingest.py FOLDER --peers PYTHON       # imports, orjson of that Python, the `sqlite3` on PATH

Needs `cargo build --release` and, for the reader, `cargo build --release -p llm-perf-ingest --example torch_read`. Inputs are made by
`make_kineto.py` and `make_nsys.py` in the folder, where they are not there yet (5 GB with those of the peers).
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

from benchmark import ROOT, program, provenance, spread, table, watch, write_section

SIZES = [100, 300, 1000]
ROUNDS = 5
RUNS = 2000


def made(path: Path, script: str, *options: str) -> Path:
    """A generated input, in the page cache."""
    if not path.is_file():
        subprocess.run([sys.executable, ROOT / "benches" / script, path, *options], check=True)
    with path.open("rb") as file:
        while file.read(1 << 24):
            pass
    return path


def reader(folder: Path) -> None:
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    program = target / "release" / "examples" / "torch_read"
    if not program.is_file():
        sys.exit("error: there is no release build\nhint: cargo build --release -p llm-perf-ingest --example torch_read")
    rows = []
    for size in SIZES:
        trace = made(folder / f"kineto-{size}.json", "make_kineto.py", "--megabytes", str(size))
        told = subprocess.run([program, trace], check=True, capture_output=True, text=True).stdout
        counts = dict(line.split() for line in told.splitlines())
        megabytes = trace.stat().st_size / 1e6
        for threads in (1, 2):
            samples = [watch([str(program), str(trace), str(threads)]) for _ in range(ROUNDS)]
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


def runs(folder: Path, trace: Path) -> Path:
    """Many copies of one small run under names of their own."""
    root = folder / "runs"
    if not root.is_dir():
        first = root / "run-0000"
        subprocess.run([program(), "import", trace, "--out", first], check=True, stdout=subprocess.DEVNULL)
        text = json.loads((first / "manifest.json").read_text())
        for number in range(1, RUNS):
            copy = root / f"run-{number:04}"
            shutil.copytree(first, copy)
            text["run_id"] = copy.name
            (copy / "manifest.json").write_text(json.dumps(text))
    return root


def peers(folder: Path, python: str) -> None:
    kineto = made(folder / "kineto-1000.json", "make_kineto.py", "--megabytes", "1000")
    nsys = made(folder / "export-830.sqlite", "make_nsys.py", "--megabytes", "830")
    bare = made(folder / "bare-800.sqlite", "make_nsys.py", "--megabytes", "800", "--bare")
    small = ROOT / "crates/ingest/tests/fixtures/torch/small.json"
    out = folder / "out"
    ours = [program(), "import"]
    parse = "import orjson, sys; orjson.loads(open(sys.argv[1], 'rb').read())"
    cases = [
        ("1 GB of Kineto", [("`llm-perf import`", [*ours, str(kineto), "--out", str(out)]), ("`orjson.loads`", [python, "-c", parse, str(kineto)])]),
        ("845 MB of nsys", [("`llm-perf import`", [*ours, str(nsys), "--out", str(out)]), ("`sqlite3 FILE .dump`", ["sqlite3", str(nsys), ".dump"])]),
        ("5 million kernels of nsys", [("`llm-perf import`", [*ours, str(bare), "--out", str(out)])]),
        (f"{RUNS:,} runs", [("`llm-perf fleet --runs`", [program(), "fleet", "--runs", str(runs(folder, small)), "--out", str(out)])]),
    ]
    rows = []
    for case, commands in cases:
        samples = {name: [] for name, _ in commands}
        for _ in range(ROUNDS):
            for name, command in commands:
                shutil.rmtree(out, ignore_errors=True)
                samples[name].append(watch(command))
        # One ratio for each turn: both took it in the same minute.
        turns = [[sample.cpu_seconds for sample in found] for found in samples.values()]
        ratios = [one / other for one, other in zip(*turns)] if len(turns) > 1 else []
        for name, found in samples.items():
            rows.append([
                case,
                name,
                spread([sample.cpu_seconds for sample in found], 1, 2),
                spread([sample.wall_seconds for sample in found], 1, 2),
                f"{max(sample.peak_bytes for sample in found) / 1e6:.0f} MB",
                f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})" if ratios else "",
            ])
            case, ratios = "", []
    shutil.rmtree(out, ignore_errors=True)
    header = ["input", "program", "CPU time, s", "wall time, s", "anonymous memory", "ratio of CPU times"]
    load = " ".join(f"{load:.1f}" for load in os.getloadavg())
    text = f"{provenance()}\n{ROUNDS} turns, files in the page cache; load averages at the end: {load}. `benches/ingest.py FOLDER --peers PYTHON`\n"
    write_section("import", f"{text}\n{table(header, rows)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--peers", metavar="PYTHON", help="an interpreter that has orjson")
    options = parser.parse_args()
    if options.peers:
        peers(options.folder.resolve(), options.peers)
    else:
        reader(options.folder.resolve())


if __name__ == "__main__":
    main()
