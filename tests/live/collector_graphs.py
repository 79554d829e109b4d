"""Launches of a CUDA graph timed by the collector's events, beside the kernels that torch.profiler records of them in the same process.

    CUDA_INJECTION64_PATH=LIB NVTX_INJECTION64_PATH=LIB python3 collector_graphs.py [--kernels 200] [--json FILE]

The collector waits, and is asked for launches of graphs alone, which needs no CUPTI, so that torch.profiler has it. Half of the
launches follow one another on a busy stream, half come to an idle one. Printed are the sums and the differences launch by launch;
PASS or FAIL for what has to hold: every launch is there, launches on a busy stream take as long as their kernels, and both ends are
where torch.profiler sees them.
"""

import argparse
import glob
import json
import os
import shutil
import signal
import statistics
import tempfile
import time

import torch
from torch.cuda import nvtx

import wire_counts

SIGNAL, PATIENCE = 47, 20
# Launches in a row on a busy stream, and rounds of those and of as many on an idle one.
BLOCK, ROUNDS = 10, 15
# Most that may differ: sums on a busy stream, and ends in microseconds beyond what the collector says of its clock.
MOST_SUM, MOST_END = 0.02, 30.0


def recorded(work):
    """What the collector records of the launches of graphs while `work` runs: start and duration of each, and how far its clock may be off."""
    folder = f"/tmp/llm-perf-attach-{os.getpid()}"
    os.makedirs(folder, 0o700)
    request = os.path.join(folder, "request")
    with open(request, "w") as file:
        file.write("600000 graphs")
    until = time.monotonic() + PATIENCE
    while not glob.glob(os.path.join(folder, "*.wire")):
        os.kill(os.getpid(), SIGNAL)
        # The next range starts the recording where the signal could not.
        nvtx.range_push("asked")
        nvtx.range_pop()
        time.sleep(0.05)
        if time.monotonic() > until:
            raise SystemExit("FAIL the library does not begin to record")
    time.sleep(0.3)
    work()
    time.sleep(0.2)
    # An empty request ends the recording.
    open(request, "w").close()
    while os.path.exists(request) and time.monotonic() < until:
        time.sleep(0.05)
    path = glob.glob(os.path.join(folder, "*.wire"))[0]
    found = wire_counts.graphs(path), wire_counts.count(path)
    shutil.rmtree(folder)
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kernels", type=int, default=200)
    parser.add_argument("--json")
    options = parser.parse_args()
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    x = torch.zeros(1 << 20, device="cuda")
    graph = torch.cuda.CUDAGraph()
    x.add_(1.0)
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        for _ in range(options.kernels):
            x.add_(1.0)

    def replays(block):
        for _ in range(block):
            graph.replay()
        torch.cuda.synchronize()

    replays(BLOCK)

    def work():
        for _ in range(3):
            replays(1)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]) as profiler:
            for _ in range(3):
                replays(1)
            for _ in range(ROUNDS):
                replays(BLOCK)
                for _ in range(BLOCK):
                    replays(1)
        with tempfile.TemporaryDirectory() as place:
            path = os.path.join(place, "trace.json")
            profiler.export_chrome_trace(path)
            with open(path) as file:
                traces.append(json.load(file))

    traces = []
    events, counted = recorded(work)
    trace = traces[0]
    zero = trace.get("baseTimeNanoseconds", 0)
    kernels = {}
    for event in trace["traceEvents"]:
        if event.get("cat") == "kernel":
            start, end = event["ts"] * 1e3 + zero, (event["ts"] + event["dur"]) * 1e3 + zero
            before = kernels.get(event["args"]["correlation"], (start, end))
            kernels[event["args"]["correlation"]] = min(before[0], start), max(before[1], end)
    truth = sorted(kernels.values())
    # Launches before torch.profiler has started are seen by events alone.
    events = sorted(events)[-len(truth):]
    apart = counted["counters"].get("apart", 0) / 1e3
    print(f"launches: {len(events)} by events, {len(truth)} by torch.profiler; untimed {counted['counters'].get('untimed', 0)}; "
          f"clock within {apart:.1f} us; problems {counted['problems']}")
    holds = len(events) == len(truth) == 3 + 2 * ROUNDS * BLOCK
    print("PASS" if holds else "FAIL", "every launch is there")
    if not holds:
        raise SystemExit(1)
    result = {"apart_us": apart}
    for name, is_busy in (("busy", True), ("idle", False)):
        # The first of a block comes to an idle stream.
        places = [place for place in range(3, len(events))
                  if ((place - 3) % (2 * BLOCK) < BLOCK) == is_busy and (not is_busy or (place - 3) % BLOCK)]
        pairs = [(events[place], truth[place]) for place in places]
        more = [(duration - (end - start)) / 1e3 for (_, duration), (start, end) in pairs]
        ends = [(begin + duration - end) / 1e3 for (begin, duration), (_, end) in pairs]
        sums = sum(duration for (_, duration), _ in pairs) / sum(end - start for _, (start, end) in pairs) - 1
        result[name] = {"sums": sums, "longer_us": more, "ends_us": ends}
        print(f"{name:5} stream: {len(pairs)} launches of {statistics.median((end - start) / 1e3 for _, (start, end) in pairs):.1f} us; sums {sums:+.2%}; longer by "
              f"{statistics.median(more):+.2f} us (median), {min(more):+.2f} to {max(more):+.2f}; ends {statistics.median(ends):+.2f} us "
              f"(median), {min(ends):+.2f} to {max(ends):+.2f}")
    print("PASS" if abs(result["busy"]["sums"]) <= MOST_SUM else "FAIL", f"sums on a busy stream within {MOST_SUM:.0%}")
    off = abs(statistics.median(result["busy"]["ends_us"] + result["idle"]["ends_us"]))
    print("PASS" if off <= apart + MOST_END else "FAIL", f"ends agree to {off:.1f} us")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(result, file)


main()
