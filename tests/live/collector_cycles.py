"""Records a program that waits again and again, while its device is busy, and sees it end well.

    python3 collector_cycles.py --library LIB --cycles N --ms MS [--profile | --windows LIST] -- ARGUMENT...

ARGUMENT... are those of collector_program.py. Each cycle asks for MS milliseconds, by a request file and the signal, as `llm-perf attach`
does. With --profile the library waits for the CUDA profiler instead, which the arguments start
and stop, with --windows for such ranges or times. Printed is one JSON line: how
the program ended, cycles that recorded kernels, the fewest kernels of one, kernels of nodes, and what files say went wrong.
"""

import argparse
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import wire_counts

SIGNAL = 47
HERE = os.path.dirname(os.path.abspath(__file__))


def threads(process):
    try:
        return os.listdir(f"/proc/{process}/task")
    except OSError:
        return []


def mask(process, thread):
    """Signals that a thread blocks; all of them where it is gone."""
    try:
        with open(f"/proc/{process}/task/{thread}/status") as status:
            return next(line.split()[1] for line in status if line.startswith("SigBlk"))
    except (OSError, StopIteration):
        return "ffffffffffffffff"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--cycles", type=int, default=10)
    parser.add_argument("--ms", type=int, default=300)
    parser.add_argument("--profile", action="store_const", const="cudaProfilerApi", dest="windows")
    parser.add_argument("--windows")
    parser.add_argument("--start", type=float, default=15, help="seconds until the program is at work")
    parser.add_argument("arguments", nargs="*")
    options = parser.parse_args()
    library = os.path.abspath(options.library)
    environment = dict(os.environ, CUDA_INJECTION64_PATH=library, NVTX_INJECTION64_PATH=library)
    environment.pop("LLM_PERF_INJECT_FOLDER", None)
    folder = tempfile.mkdtemp()
    if options.windows:
        environment.update(LLM_PERF_INJECT_FOLDER=folder, LLM_PERF_INJECT_WINDOW=options.windows)
    log = tempfile.TemporaryFile()
    program = subprocess.Popen([sys.executable, os.path.join(HERE, "collector_program.py"), *options.arguments], env=environment,
                               stdout=log, stderr=log)
    begun, late = 0, []
    if not options.windows:
        shutil.rmtree(folder)
        folder = f"/tmp/llm-perf-attach-{program.pid}"
        time.sleep(options.start)
        for _ in range(options.cycles):
            if program.poll() is not None:
                break
            os.makedirs(folder, 0o700, exist_ok=True)
            request, before = os.path.join(folder, "request"), len(glob.glob(folder + "/*.wire"))
            with open(request, "w") as file:
                file.write(str(options.ms))
            asked = time.monotonic()
            while len(glob.glob(folder + "/*.wire")) == before and time.monotonic() - asked < 5 and program.poll() is None:
                for thread in threads(program.pid):
                    blocked = mask(program.pid, thread)
                    if not int(blocked, 16) >> (SIGNAL - 1) & 1:
                        subprocess.run(["kill", f"-{SIGNAL}", thread], check=False)
                        time.sleep(0.02)
                        if len(glob.glob(folder + "/*.wire")) > before:
                            break
            late.append(round(time.monotonic() - asked, 3))
            while os.path.exists(request) and program.poll() is None and time.monotonic() - asked < options.ms / 1e3 + 10:
                time.sleep(0.02)
            begun += len(glob.glob(folder + "/*.wire")) > before
            time.sleep(0.2)
    try:
        code = program.wait(120)
    except subprocess.TimeoutExpired:
        program.kill()
        code = "stuck"
    log.seek(0)
    said = log.read().decode("utf-8", "replace").strip().splitlines()
    counts = [wire_counts.count(path) for path in glob.glob(folder + "/*.wire")]
    shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps({
        "exit": code, "said": said[-1][:300] if said else "", "cycles_begun": begun, "slowest_start_s": max(late, default=0),
        "files": len(counts), "kernels": [one.get("kernels", 0) for one in counts], "graphs": [one.get("graphs", 0) for one in counts],
        "graphs_of_nodes": counts[0]["graphs_of_nodes"] if counts else [], "calls": [one.get("calls", 0) for one in counts], "windows": [one["windows"] for one in counts],
        "problems": [one["problems"] for one in counts if one["problems"]], "counters": [one["counters"] for one in counts][:3],
        "unfinished_files": sum(not one.get("finished") for one in counts)}))


main()
