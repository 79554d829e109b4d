#!/usr/bin/env python3
"""What ranks cost: traces into tables, and tables into a fleet, from 8 ranks to 64.

Usage: benches/fleet.py [--kernels N] [--ranks 8,16,32,64] [--large N] [--work DIR]

The traces come from `make-fleet`, which knows what is wrong with the job: rank 5 has a third more kernels, the pair of ranks 2 and 3
transfers at half the rate, the last rank is missing, clocks are off by up to a second and drift. The fleet must say all of it. Build first:
cargo build --release -p llm-perf -p llm-perf-testkit
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RELEASE = os.path.join(ROOT, "target", "release")
STEPS = 100


def run(*command):
    """CPU seconds and peak memory in MB of one command."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit("%s failed: %s" % (" ".join(command), said.decode()))
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def size(folder, name=None):
    total = 0
    for place, _, files in os.walk(folder):
        total += sum(os.path.getsize(os.path.join(place, file)) for file in files if name in (None, file))
    return total


def make(folder, ranks, kernels, *troubles):
    run(os.path.join(RELEASE, "make-fleet"), folder, str(ranks), str(STEPS), str(kernels // STEPS), *troubles)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", type=int, default=20_000, help="of each rank, in the job of many ranks")
    parser.add_argument("--ranks", default="8,16,32,64")
    parser.add_argument("--large", type=int, default=1_000_000, help="kernels of the one large rank")
    parser.add_argument("--work", help="folder for traces and tables; temporary unless given")
    arguments = parser.parse_args()
    program = os.path.join(RELEASE, "llm-perf")
    work = arguments.work or tempfile.mkdtemp(prefix="fleet-")
    os.makedirs(work, exist_ok=True)
    os.environ["LLM_PERF_DATA_DIR"] = os.path.join(work, "data")

    large = os.path.join(work, "large")
    make(large, 2, arguments.large)
    trace = os.path.join(large, "rank0.json")
    cpu, memory = run(program, "import", trace, "--tables", os.path.join(work, "one"), "--out", os.path.join(work, "run"))
    plain, plain_memory = run(program, "import", trace, "--out", os.path.join(work, "plain"))
    tables = size(os.path.join(work, "one"))
    kernels = size(os.path.join(work, "one"), "kernels.parquet")
    print("one rank, %d kernels, %.0f MB of JSON" % (arguments.large, os.path.getsize(trace) / 1e6))
    print("  import          %6.1f CPU-s  %6.0f MB" % (plain, plain_memory))
    print("  import --tables %6.1f CPU-s  %6.0f MB; tables %.1f MB, of which kernels %.1f bytes each"
          % (cpu, memory, tables / 1e6, kernels / arguments.large))
    shutil.rmtree(large)

    print("ranks  import CPU-s  each    fleet CPU-s  each     fleet MB  found")
    for ranks in map(int, arguments.ranks.split(",")):
        traces, out = os.path.join(work, "traces%d" % ranks), os.path.join(work, "tables%d" % ranks)
        make(traces, ranks, arguments.kernels, "straggler=5", "slow-pair=2", "missing=%d" % (ranks - 1))
        spent = 0.0
        for rank in range(ranks - 1):
            cpu, _ = run(program, "import", os.path.join(traces, "rank%d.json" % rank), "--tables", out, "--job", "job",
                         "--out", os.path.join(work, "runs%d" % ranks, str(rank)))
            spent += cpu
        folder = os.path.join(work, "fleet%d" % ranks)
        cpu, memory = run(program, "fleet", out, "--out", folder)
        with open(os.path.join(folder, "fleet.json")) as file:
            job = json.load(file)["jobs"][0]
        found = ["%s %s" % (one["rule"], one["ranks"]) for one in job["findings"]]
        found.append("missing %s" % job["missing_ranks"])
        print("%5d  %12.1f  %5.2f  %11.2f  %7.4f  %8.0f  %s; clocks to %d ns"
              % (ranks, spent, spent / (ranks - 1), cpu, cpu / (ranks - 1), memory, "; ".join(found), job["clock"]["uncertainty_ns"]))
        for folder in (traces, os.path.join(work, "runs%d" % ranks)):
            shutil.rmtree(folder)
    if not arguments.work:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
