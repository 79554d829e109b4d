#!/usr/bin/env python3
"""Commands timed by llm-perf and by hyperfine: whether they agree, and what each adds to a run.

    apt-get install hyperfine     (or cargo install hyperfine)
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmark import program, provenance, table, write_section

RUNS = 30  # of each command and tool, twice; `--runs` changes it
WARM_UP = 3

#: What is run. The last starts 200 processes and waits for them.
COMMANDS = {
    "`true`": "true",
    "`sleep 0.01`": "sleep 0.01",
    "a Python script": f"{sys.executable} -c 'import json; json.dumps(list(range(100000)))'",
    "200 children": "i=0; while [ $i -lt 200 ]; do true & i=$((i+1)); done; wait",
}


def median(values: list[float]) -> float:
    values = sorted(values)
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


def deviation(values: list[float]) -> float:
    mean = sum(values) / len(values)
    return (sum((value - mean) ** 2 for value in values) / (len(values) - 1)) ** 0.5


def by_hyperfine(hyperfine: str, line: str, folder: Path) -> tuple[list[float], float]:
    """Wall times of the runs, and the wall time of the whole call."""
    result = folder / "hyperfine.json"
    # `-N` with a shell of our own: what is started is then the same for both.
    command = ["-N", "--runs", str(RUNS), "--warmup", str(WARM_UP), "--export-json", str(result), "--style", "none"]
    start = time.monotonic()
    subprocess.run([hyperfine, *command, f"/bin/sh -c {quoted(line)}"], check=True, stdout=subprocess.DEVNULL)
    return json.loads(result.read_text())["results"][0]["times"], time.monotonic() - start


def by_llm_perf(llm_perf: str, line: str, folder: Path) -> tuple[list[float], float, float]:
    """The same, and what starting a process costs by its own account."""
    out = folder / "run"
    options = ["-q", "profile", "--json", "--collector", "none", "--runs", str(RUNS), "--warmup", str(WARM_UP)]
    start = time.monotonic()
    done = subprocess.run([llm_perf, *options, "--out", str(out), "--command", line], check=True, stdout=subprocess.PIPE)
    took = time.monotonic() - start
    facts = json.loads(done.stdout)["command"]
    times = [run["wall_ns"] / 1e9 for run in facts["runs"] if not run["warmup"]]
    return times, took, (facts["start_cost_ns"] or 0) / 1e9


def quoted(line: str) -> str:
    return "'" + line.replace("'", "'\\''") + "'"


def main() -> None:
    global RUNS
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    RUNS = parser.parse_args().runs
    load = os.getloadavg()[0]
    hyperfine = shutil.which("hyperfine")
    if hyperfine is None:
        sys.exit("hyperfine is not installed: apt-get install hyperfine, or cargo install hyperfine")
    llm_perf = program()
    rows, cost = [], 0.0
    for name, line in COMMANDS.items():
        theirs, ours, whole = [], [], [0.0, 0.0]
        # Twice, in turns, so that a busy moment meets both.
        for _ in range(2):
            with tempfile.TemporaryDirectory() as folder:
                times, took = by_hyperfine(hyperfine, line, Path(folder))
                theirs += times
                whole[0] += took - sum(times)
                times, took, cost = by_llm_perf(llm_perf, line, Path(folder))
                ours += times
                whole[1] += took - sum(times)
        apart = median(ours) - median(theirs)
        spread = deviation(theirs)
        rows.append([
            name,
            f"{median(theirs) * 1e3:.2f} ± {spread * 1e3:.2f}",
            f"{median(ours) * 1e3:.2f} ± {deviation(ours) * 1e3:.2f}",
            f"{apart * 1e3:+.2f}",
            "yes" if abs(apart) <= spread else "no",
            f"{whole[0] / 2 / (RUNS + WARM_UP) * 1e3:.1f}",
            f"{whole[1] / 2 / (RUNS + WARM_UP) * 1e3:.1f}",
        ])
    version = subprocess.run([hyperfine, "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    header = [
        "command", "hyperfine, ms", "llm-perf, ms", "apart, ms", "within hyperfine's spread",
        "outside the runs, hyperfine, ms", "llm-perf, ms",
    ]
    text = (
        f"{provenance()}\n{version}. Medians of {2 * RUNS} runs ± standard deviation, taking turns. Starting a "
        f"process takes {cost * 1e3:.2f} ms by llm-perf's own account, which is in its times. The last two columns are the time of the whole "
        f"call beyond its timed runs, warm-up included, for each run. Load average before the first run: {load:.2f} on "
        f"{os.cpu_count()} processors. `benches/commands.py --runs {RUNS}`\n"
    )
    write_section("commands", f"{text}\n{table(header, rows)}")


if __name__ == "__main__":
    main()
