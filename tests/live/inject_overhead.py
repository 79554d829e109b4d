"""What collecting costs: the same decode loop plain, with our collector, with Nsight Systems and with torch.profiler.

    python3 inject_overhead.py --library LIB --out FILE [--repeats 3] [--modes plain,inject,nsys,profiler] [--libdw DIR]

Processes of all modes take turns, so that a machine that slows down slows all of them. Each gives the median time of its
decode steps; what is printed per mode is the median over processes, their spread, and the cost over plain in every turn.
Modes: plain, inject, nsys, profiler; light (a window), inject-off (loaded, never switched on); and for the choice of what ties
kernels to launches inject-none, inject-records, inject-all-records.
"""

import argparse
import glob
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
# Ways to tie work to ranges, for the choice among them: LLM_PERF_INJECT_TIES.
TIES = {"inject-none": "none", "inject-records": "records", "inject-all-records": "all-records"}


def command(mode, options, folder):
    environment = dict(os.environ)
    program = [sys.executable, os.path.join(HERE, "inject_program.py"), "--layers", str(options.layers), "--tokens",
               str(options.tokens), "--rounds", str(options.rounds), "--json", os.path.join(folder, "result.json")]
    if options.program:
        program = options.program.replace("JSON", os.path.join(folder, "result.json")).split()
    if mode == "profiler":
        program.append("--profiler")
    if mode.startswith("inject") or mode.startswith("light"):
        environment.update(CUDA_INJECTION64_PATH=options.library, NVTX_INJECTION64_PATH=options.library,
                           LLM_PERF_INJECT_FOLDER=folder)
        if TIES.get(mode):
            environment["LLM_PERF_INJECT_TIES"] = TIES[mode]
        if mode == "light":
            environment["LLM_PERF_INJECT_WINDOW"] = options.window
        if mode == "inject-off":
            environment["LLM_PERF_INJECT_WINDOW"] = "no such range"
    if mode == "nsys":
        nsys = shutil.which("nsys") or sorted(glob.glob("/opt/nvidia/nsight-compute/*/host/target-linux-x64/nsys"))[-1]
        environment["LD_LIBRARY_PATH"] = ":".join(filter(None, [options.libdw, environment.get("LD_LIBRARY_PATH")]))
        program = [nsys, "profile", "-t", "cuda,nvtx", "-s", "none", "--cpuctxsw=none", "-f", "true", "-o",
                   os.path.join(folder, "report"), *program]
    return program, environment


def run(mode, options):
    with tempfile.TemporaryDirectory() as folder:
        program, environment = command(mode, options, folder)
        # The same cores for every mode: where a process lands decides more than what records it.
        cores = {int(core) for core in options.cores.split(",")} if options.cores else os.sched_getaffinity(0)
        done = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=170,
                              preexec_fn=lambda: os.sched_setaffinity(0, cores))
        try:
            with open(os.path.join(folder, "result.json")) as file:
                steps = json.load(file)["step_ms"]
        except OSError:
            print(mode, done.returncode, done.stdout[-800:], done.stderr[-1500:], file=sys.stderr)
            return None
        wire = sum(os.path.getsize(path) for path in glob.glob(os.path.join(folder, "*.wire")))
        flat = [step for one in steps for step in one]
        return {"median_ms": statistics.median(flat), "mean_ms": statistics.fmean(flat), "wire_bytes": wire,
                "steps_ms": [round(step, 4) for step in flat]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--modes", default="plain,inject,nsys,profiler")
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--window", default="decode_step:20..28")
    parser.add_argument("--program", help="another program to time; JSON in it stands for the file it writes")
    parser.add_argument("--cores", help="cores to run on, such as 2,3,4,5")
    parser.add_argument("--libdw", default="")
    options = parser.parse_args()
    options.library = os.path.abspath(options.library)
    modes = options.modes.split(",")
    results = {mode: [] for mode in modes}
    for turn in range(options.repeats):
        # Another order each turn, so that no mode always follows the same one.
        for mode in modes[turn % len(modes):] + modes[:turn % len(modes)]:
            results[mode].append(run(mode, options))
            with open(options.out, "w") as file:
                json.dump(results, file)
    for mode in modes:
        kept = [one for one in results[mode] if one]
        if not kept:
            print(f"{mode:20} failed")
            continue
        medians = [one["median_ms"] for one in kept]
        over = [one["median_ms"] / base["median_ms"] - 1
                for one, base in zip(results[mode], results[modes[0]]) if one and base]
        means = [one["mean_ms"] / base["mean_ms"] - 1 for one, base in zip(results[mode], results[modes[0]]) if one and base]
        print(f"{mode:20} {statistics.median(medians):8.3f} ms/step  spread {min(medians):.3f}..{max(medians):.3f}"
              f"  over {modes[0]}: {' '.join(f'{share:+.1%}' for share in over)}"
              f"  of means: {' '.join(f'{share:+.1%}' for share in means)}  wire {kept[0]['wire_bytes']} B")


main()
