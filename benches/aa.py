#!/usr/bin/env python3
"""A/A: how often `llm-perf compare` sees a change where nothing changed, and how often it sees a real one of 5%.

Each pair is two runs of one command, with and without a load generator beside them; a third run does 5% more work.
"""

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmark import program, provenance, table, write_section

#: A loop whose time is proportional to its argument.
WORK = "import sys\ntotal = 0\nfor number in range(int(sys.argv[1])):\n    total += number * number\n"
STEPS = 400_000
RUNS = 10


def burn(stop) -> None:
    while not stop.is_set():
        sum(number * number for number in range(10_000))


def profile(llm_perf: str, folder: Path, name: str, steps: int) -> Path:
    out = folder / name
    command = [sys.executable, "-c", WORK, str(steps)]
    options = ["-q", "profile", "--collector", "none", "--runs", str(RUNS), "--warmup", "1", "--out", str(out)]
    subprocess.run([llm_perf, *options, "--", *command], check=True, stdout=subprocess.DEVNULL)
    return out


def compare(llm_perf: str, base: Path, other: Path) -> tuple[dict, int]:
    done = subprocess.run(
        [llm_perf, "-q", "compare", str(base), str(other), "--fail-over", "command=3%", "--json"],
        stdout=subprocess.PIPE,
    )
    document = json.loads(done.stdout)
    return next(row for row in document["commands"] if row["name"] == "command"), done.returncode


def measure(llm_perf: str, pairs: int, workers: int) -> list[str]:
    stop = multiprocessing.Event()
    load = [multiprocessing.Process(target=burn, args=(stop,), daemon=True) for _ in range(workers)]
    for process in load:
        process.start()
    false, undecided, failed, seen, missed_undecided, disturbed = 0, 0, 0, 0, 0, 0
    try:
        for _ in range(pairs):
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                base = profile(llm_perf, folder, "a", STEPS)
                same = profile(llm_perf, folder, "b", STEPS)
                more = profile(llm_perf, folder, "c", STEPS * 105 // 100)
                row, code = compare(llm_perf, base, same)
                false += row["verdict"] != "no-evidence"
                undecided += code == 3
                failed += code == 4
                disturbed += "busy" in (row["untested"] or "")
                row, code = compare(llm_perf, base, more)
                seen += row["verdict"] == "slower"
                missed_undecided += code == 3
    finally:
        stop.set()
        for process in load:
            process.join()
    beside = f"{workers} busy processes" if workers else "nothing of ours"
    figures = [false, failed, undecided, disturbed, seen, missed_undecided]
    return [beside, str(pairs), *[f"{figure} ({figure / pairs:.0%})" for figure in figures]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--beside", choices=["nothing", "load"], help="only one of the two rows, printed and not written")
    arguments = parser.parse_args()
    pairs, llm_perf, load = arguments.pairs, program(), os.getloadavg()[0]
    processors = len(os.sched_getaffinity(0))
    workers = {"nothing": [0], "load": [processors]}.get(arguments.beside, [0, processors])
    rows = [measure(llm_perf, pairs, count) for count in workers]
    header = [
        "beside it", "pairs", "A/A: false verdicts", "A/A: gate failed", "A/A: gate undecided", "of which for a busy machine",
        "+5%: seen", "+5%: gate undecided",
    ]
    text = (
        f"{provenance()}\nLoad average before the first run: {load:.2f}. Each run is {RUNS} runs of a Python loop; the gate is "
        f"`--fail-over command=3%`. `benches/aa.py --pairs {pairs}`\n"
    )
    if arguments.beside:
        print(f"{text}\n{table(header, rows)}")
    else:
        write_section("aa", f"{text}\n{table(header, rows)}")


if __name__ == "__main__":
    main()
