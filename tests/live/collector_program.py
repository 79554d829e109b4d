"""A program whose steps replay a CUDA graph of many short kernels, to try windows of the collector and to count what it keeps.

    python3 collector_program.py --steps 600 [--kernels 200] [--layers 8] [--profile 100..200,300..400] [--torch 500..550] [--pace MS]
                                 [--seconds S] [--eager] [--json FILE]

A step is one replay inside the range `decode_step`; each captured layer is a range. Steps of --profile lie between cudaProfilerStart
and cudaProfilerStop, steps of --torch under torch.profiler, whose kernels are counted. It prints one JSON line: the kernels that it launched by graphs, in all and inside --profile, median microseconds
of a step inside and outside, and rows of memory: kernels so far, resident bytes, bytes in use on the device.
"""

import argparse
import contextlib
import json
import os
import statistics
import time

import torch
from torch.cuda import nvtx


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--kernels", type=int, default=200)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--profile", default="")
    parser.add_argument("--torch", default="")
    parser.add_argument("--seconds", type=float, default=0.0, help="end after so long, whatever is left of the steps")
    parser.add_argument("--pace", type=float, default=0.0)
    parser.add_argument("--rows", type=int, default=20)
    parser.add_argument("--eager", action="store_true", help="launch the kernels one by one, without a graph")
    parser.add_argument("--json")
    options = parser.parse_args()
    spans = [tuple(int(end) for end in span.split("..")) for span in options.profile.split(",") if span]
    x = torch.zeros(1024, device="cuda")
    graph = torch.cuda.CUDAGraph()
    x.add_(1.0)
    torch.cuda.synchronize()
    nvtx.range_push("capture")
    with contextlib.nullcontext() if options.eager else torch.cuda.graph(graph):
        for layer in range(options.layers):
            nvtx.range_push(f"layer_{layer}")
            for _ in range(options.kernels // options.layers):
                x.add_(1.0)
            nvtx.range_pop()
    nvtx.range_pop()
    in_graph = options.kernels // options.layers * options.layers
    times, rows, inside = {True: [], False: []}, [], False
    profiled, torch_kernels = 0, None
    torch_from, torch_to = (int(end) for end in (options.torch or "-1..-1").split(".."))
    ends = time.monotonic() + options.seconds if options.seconds else float("inf")
    cudart = torch.cuda.cudart()
    for step in range(options.steps):
        if time.monotonic() > ends:
            break
        if step == torch_from:
            torch.cuda.synchronize()
            profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA])
            profiler.start()
        if step == torch_to:
            torch.cuda.synchronize()
            profiler.stop()
            torch_kernels = sum(event.device_type == torch.autograd.DeviceType.CUDA for event in profiler.events())
        if any(step == start for start, _ in spans):
            torch.cuda.synchronize()
            cudart.cudaProfilerStart()
            inside = True
        if any(step == end for _, end in spans):
            torch.cuda.synchronize()
            cudart.cudaProfilerStop()
            inside = False
        began = time.perf_counter()
        nvtx.range_push("decode_step")
        if options.eager:
            for _ in range(options.kernels):
                x.add_(1.0)
        else:
            graph.replay()
        if step % 4 == 3 or inside:
            torch.cuda.current_stream().synchronize()
        nvtx.range_pop()
        times[inside].append((time.perf_counter() - began) * 1e6)
        profiled += in_graph * inside
        if options.pace:
            time.sleep(options.pace / 1e3)
        if step % max(1, options.steps // options.rows) == 0:
            torch.cuda.synchronize()
            free, total = torch.cuda.mem_get_info()
            rows.append([(step + 1) * in_graph, resident(), total - free])
    torch.cuda.synchronize()
    result = {"kernels": len(times[True] + times[False]) * in_graph, "profiled": profiled, "torch_kernels": torch_kernels, "layers": options.layers, "rows": rows,
              "step_us": {name: round(statistics.median(times[key]), 1) for name, key in (("inside", True), ("outside", False)) if times[key]}}
    text = json.dumps(result)
    print(text, flush=True)
    if options.json:
        with open(options.json, "w") as file:
            file.write(text)


main()
