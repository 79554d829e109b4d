#!/usr/bin/env python3
"""Fuzzes every reader: a million inputs in an hour on two cores, from seeds that are new every time and a corpus that grows.

    benches/fuzz.py                                       # writes its table into docs/benchmarks.md
    benches/fuzz.py --inputs 100000 --minutes 5 --dry     # prints it

Inputs that fail stay in target/tmp, and those that nobody came back from in CORPUS/READER.PROCESS.now; either ends this with exit
code 1. Copy such an input to the tests of its reader.
"""

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path

from benchmark import ROOT, provenance, table, write_section

# Rows of the harness: inputs, MB, share that was read, failed, corpus, CPU seconds, peak MiB.
ROW = re.compile(r"\| `(\w+)` \| (\d+) \| ([\d.]+) \| (\d+)% \| (\d+) \| (\d+) \| ([\d.]+) \| ([\d.]+) \|")
# What a process may have: the largest bound of a reader several times over.
ADDRESS_SPACE = 8 << 30


def built() -> str:
    command = ["cargo", "test", "-p", "llm-perf-testkit", "--test", "fuzz", "--no-run", "--message-format", "json"]
    lines = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    found = (one for one in map(json.loads, lines) if one.get("executable"))
    return next(one["executable"] for one in found if one["target"]["name"] == "fuzz")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--minutes", type=float, default=60, help="no round starts later than this")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=int(time.time()) % (1 << 20))
    parser.add_argument("--corpus", default="fuzz/corpus")
    parser.add_argument("--round", type=int, default=2, help="times the inputs of the tests that a process makes")
    parser.add_argument("--dry", action="store_true", help="print the table only")
    options = parser.parse_args()

    program, corpus = built(), (ROOT / options.corpus).resolve()
    corpus.mkdir(parents=True, exist_ok=True)
    began, sums, lock, rounds = time.monotonic(), {}, threading.Lock(), iter(range(1 << 30))
    problems = []

    def work() -> None:
        while True:
            with lock:
                total = sum(row["inputs"] for row in sums.values())
                if problems or total >= options.inputs or time.monotonic() - began > options.minutes * 60:
                    return
                seed = options.seed + next(rounds)
            environment = {
                **os.environ,
                "LLM_PERF_FUZZ": str(options.round),
                "LLM_PERF_FUZZ_SEED": str(seed),
                "LLM_PERF_FUZZ_CORPUS": str(corpus),
            }
            process = subprocess.Popen(
                [program, "--nocapture", "--test-threads", "1"],
                cwd=ROOT / "crates" / "testkit",
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE)),
            )
            # Ten times what a round takes: a reader that does not come back.
            watch = threading.Timer(600 * options.round, process.kill)
            watch.start()
            said, _ = process.communicate()
            watch.cancel()
            with lock:
                for name, inputs, megabytes, read, failed, _, seconds, peak in ROW.findall(said):
                    row = sums.setdefault(name, dict.fromkeys(["inputs", "megabytes", "read", "failed", "seconds", "peak"], 0))
                    row["inputs"] += int(inputs)
                    row["megabytes"] += float(megabytes)
                    row["read"] += int(inputs) * int(read) / 100
                    row["failed"] += int(failed)
                    row["seconds"] += float(seconds)
                    row["peak"] = max(row["peak"], float(peak))
                if process.returncode != 0:
                    left = [str(path) for path in corpus.glob(f"*.{process.pid}.now")]
                    kept = re.findall(r"^\d+ bytes .*", said, re.MULTILINE)
                    problems.extend(kept + left or [f"seed {seed} ended with {process.returncode}:\n{said[-2000:]}"])

    workers = [threading.Thread(target=work) for _ in range(options.jobs)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    rows = [
        [
            f"`{name}`",
            f"{row['inputs']:,}",
            f"{row['megabytes']:,.0f}",
            f"{row['read'] * 100 / row['inputs']:.0f}%",
            f"{100 - row['read'] * 100 / row['inputs']:.0f}%",
            f"{row['failed']}",
            f"{len(list((corpus / name).glob('*')))}",
            f"{row['seconds']:.0f}",
            f"{row['peak']:.1f}",
        ]
        for name, row in sorted(sums.items())
    ]
    header = ["reader", "inputs", "MB", "read", "refused", "failed", "corpus", "CPU time, s", "peak memory, MiB"]
    total, minutes = sum(row["inputs"] for row in sums.values()), (time.monotonic() - began) / 60
    text = f"{provenance()}\n{total:,} inputs in {minutes:.0f} minutes, {options.jobs} at a time, debug build, seeds from {options.seed}. `benches/fuzz.py`\n\n{table(header, rows)}"
    print(text) if options.dry else write_section("fuzz", text)
    if problems:
        sys.exit("\n".join(["error: some inputs failed", *problems]))


if __name__ == "__main__":
    main()
