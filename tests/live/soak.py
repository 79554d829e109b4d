"""A program that works at an even pace for minutes, and what a recording of it must show.

    python3 soak.py run MINUTES ROWS.jsonl       runs it; a row of memory and file size every few seconds, the last with its kernels
    python3 soak.py check ROWS.jsonl PLAIN.jsonl METRICS.json
                                                 compares them with the rows of the same program without a collector and with what was
                                                 recorded; exit code 1 where a claim fails

Every round does the same, so that memory may not grow and the file must grow by the same number of bytes for each kernel: bursts at
full speed, ranges with names never used before (more in eight minutes than the collector's table of texts holds), threads
that end (more than it has logs for), a CUDA graph captured anew and replayed, copies, and a pause. Each operation is one kernel, so that the
number recorded is known exactly. WITHOUT in the environment leaves a part out, to find whose memory grows: threads, names, bursts or
graphs, several with commas between.
"""

import glob
import json
import os
import sys
import threading
import time

ROUND = 0.25  # seconds
WITHOUT = os.environ.get("WITHOUT", "").split(",")
RANGES, BURST, THREADS, IN_THREAD, IN_GRAPH, REPLAYS = 30, 1200, 2, 20, 10, 3
if "bursts" in WITHOUT:
    BURST = RANGES
if "threads" in WITHOUT:
    THREADS = 0
ROW = 5.0  # seconds between rows
# Until the first quarter is over, libraries load and pools fill; memory is compared from there. The collector's own memory is bounded
# by 48 MiB for records and half a mebibyte a thread, all of it touched within seconds at this pace.
SETTLED, MEMORY_BYTES, GROWTH_SHARE, MOST_KEPT = 0.25, 32 << 20, 0.10, 64
# Kernels PyTorch launches by itself around a captured graph: its random state is filled at capture and at each replay.
AROUND_GRAPH, AROUND_START = 20, 10
# Every counter that says something of the recording was lost.
LOSSES = ("device_records_dropped", "host_records_dropped", "threads_not_collected", "nvtx_names_dropped", "collector_bytes_unwritten",
          "collector_bytes_torn", "collector_bytes_damaged", "collector_files_unfinished", "collector_records_unknown",
          "collector_names_cut", "collector_names_missing", "collector_times_impossible", "collector_problem",
          "device_records_unfinished", "device_times_invalid", "device_times_outside")


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def written():
    folder = os.environ.get("LLM_PERF_INJECT_FOLDER", "")
    return sum(os.path.getsize(path) for path in glob.glob(os.path.join(folder, "*.wire")))


def run(minutes, path):
    import torch

    nvtx = torch.cuda.nvtx
    x, kernels = torch.zeros(1024, device="cuda"), 0
    host = torch.zeros(1024).pin_memory()
    torch.cuda.synchronize()
    began, next_row, number, graphs = time.monotonic(), 0.0, 0, 0

    def in_thread(name):
        y = torch.empty(1024, device="cuda")
        nvtx.range_push(name)
        for _ in range(IN_THREAD):
            y.fill_(1.0)
        nvtx.range_pop()
        torch.cuda.current_stream().synchronize()

    with open(path, "w") as rows:
        def row(**more):
            torch.cuda.synchronize()
            time.sleep(0.4)  # longer than a flush: what the file lacks is nothing
            values = {"seconds": time.monotonic() - began, "rounds": number, "kernels": kernels, "graphs": graphs,
                      "resident": resident(), "written": written(), **more}
            rows.write(json.dumps(values) + "\n")
            rows.flush()

        nvtx.range_push("soak")
        while time.monotonic() - began < minutes * 60:
            start = time.monotonic()
            for place in range(RANGES):
                nvtx.range_push("request" if "names" in WITHOUT else f"request {number * RANGES + place}")
                for _ in range(BURST // RANGES):
                    x.add_(1.0)
                nvtx.range_pop()
            threads = [threading.Thread(target=in_thread, args=(f"thread {number} {place}",)) for place in range(THREADS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            host.copy_(x, non_blocking=True)
            kernels += BURST + THREADS * IN_THREAD
            if number % 20 == 0 and "graphs" not in WITHOUT:
                torch.cuda.synchronize()
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    for _ in range(IN_GRAPH):
                        x.mul_(0.5)
                for _ in range(REPLAYS):
                    graph.replay()
                kernels += IN_GRAPH * REPLAYS
                graphs += 1
                torch.cuda.synchronize()
                del graph
            number += 1
            if time.monotonic() - began >= next_row:
                row()
                next_row += ROW
            time.sleep(max(0.0, ROUND - (time.monotonic() - start)))
        torch.cuda.synchronize()
        nvtx.range_pop()
        row(end=True)


def grown(rows):
    """Memory after the first quarter, and the most afterwards."""
    settled = [row["resident"] for row in rows if row["seconds"] >= SETTLED * rows[-1]["seconds"]]
    return settled[0], max(settled)


def check(rows, plain, metrics):
    with open(rows) as file:
        rows = [json.loads(line) for line in file]
    with open(plain) as file:
        plain = [json.loads(line) for line in file]
    with open(metrics) as file:
        metrics = json.load(file)
    failed = False

    def claim(what, holds):
        nonlocal failed
        failed |= not holds
        print(f"{'PASS' if holds else 'FAIL'} {what}")

    last = rows[-1]
    minutes = last["seconds"] / 60
    claim(f"the program ran to its end: {minutes:.1f} minutes, {last['rounds']} rounds, {last['kernels']} kernels", last.get("end", False))
    print("minute  kernels  resident MiB  file MiB  bytes a kernel")
    marks = [next(row for row in rows if row["seconds"] >= min(minute * 60, last["seconds"])) for minute in range(int(minutes) + 2)]
    for before, after in zip(marks, marks[1:]):
        if after["kernels"] > before["kernels"]:
            made = after["kernels"] - before["kernels"]
            print(f"{after['seconds'] / 60:6.1f}  {made:7}  {after['resident'] / 2**20:12.1f}  {after['written'] / 2**20:8.1f}  "
                  f"{(after['written'] - before['written']) / made:14.2f}")
    (first, most), (plain_first, plain_most) = grown(rows), grown(plain)
    # CUPTI was seen to keep 36 bytes for every kernel of a program that captures graphs.
    kept = MOST_KEPT * (last["kernels"] - next(row for row in rows if row["resident"] == first)["kernels"])
    claim(f"memory grows by at most {MOST_KEPT} bytes a kernel: {first / 2**20:.1f} MiB after a quarter of the time, {most / 2**20:.1f} MiB at most afterwards; "
          f"without a collector {plain_first / 2**20:.1f} and {plain_most / 2**20:.1f} MiB",
          most - first <= plain_most - plain_first + MEMORY_BYTES + kept)
    settled = [row for row in rows if row["seconds"] >= SETTLED * last["seconds"]]
    rounds = settled[-1]["rounds"] - settled[0]["rounds"]
    print(f"     {(settled[-1]['resident'] - settled[0]['resident']) / 1024 / max(rounds, 1):.1f} KiB a round of {BURST} kernels in {RANGES} "
          f"ranges and {THREADS} threads, without {','.join(WITHOUT) or 'nothing'}")

    def cost(part):
        return (part[-1]["written"] - part[0]["written"]) / (part[-1]["kernels"] - part[0]["kernels"])

    middle = len(settled) // 2
    early, late = cost(settled[:middle + 1]), cost(settled[middle:])
    claim(f"the file grows evenly: {early:.2f} bytes a kernel, then {late:.2f}", late <= early * (1 + GROWTH_SHARE))
    lost = {one["counter"]: one["value"] for one in metrics["quality"] if one["counter"] in LOSSES and one["value"]}
    claim(f"nothing was dropped: {lost or 'no counter of losses'}", not lost)
    for one in metrics["quality"]:
        print(f"     {one['counter']}: {one['value']}")
    found, most = metrics["totals"]["kernel_count"], last["kernels"] + AROUND_GRAPH * last["graphs"] + AROUND_START
    claim(f"every kernel is there: {found} recorded, {last['kernels']} launched, and at most {most} with PyTorch's own",
          last["kernels"] <= found <= most)
    return failed


if __name__ == "__main__":
    if sys.argv[1:2] == ["run"] and len(sys.argv) == 4:
        run(float(sys.argv[2]), sys.argv[3])
    elif sys.argv[1:2] == ["check"] and len(sys.argv) == 5:
        sys.exit(check(*sys.argv[2:]))
    else:
        sys.exit(__doc__)
