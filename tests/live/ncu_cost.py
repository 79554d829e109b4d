"""What reading counters costs: seconds of a launch that Nsight Compute replays, and of one it passes over.

    python3 ncu_cost.py [VARIANT...]

Runs itself under ncu with the counters of ncu.default, three launches of each kernel, grid and block, and prints for each
variant the first launch of a kernel (which is loaded then), the others that are replayed, and those passed over. Variants:
started    the process that ncu starts launches       child  a process launches that the one started by ncu has started
large      as `started`, with 16 GB on the device     pinned  as `started`, with 1 GB of the host's memory pinned
time       as `started`, with the time as the only counter
"""

import json
import os
import re
import statistics
import subprocess
import sys
import time

HERE = os.path.abspath(__file__)
PRESET = os.path.join(os.path.dirname(HERE), "../../conf/profiling/ncu/ncu.default.yaml")
VARIANTS = ["started", "child", "large", "pinned", "time"]
# Launches of each kernel: the first three are replayed.
LAUNCHES = 60


def program(variant):
    import torch

    hold = torch.empty((16 if variant == "large" else 1) << 30, dtype=torch.uint8, device="cuda")
    pinned = torch.empty(1 << 30, dtype=torch.uint8, pin_memory=True) if variant == "pinned" else None
    a, b = (torch.randn(size, 4096, device="cuda", dtype=torch.bfloat16) for size in (512, 4096))
    wide = torch.randn(512, 4096, device="cuda")
    kinds = {"product": lambda: a @ b, "mean": lambda: wide.mean(-1), "add": lambda: wide + 1}
    times = {}
    torch.cuda.nvtx.range_push("prefill")
    for _ in range(LAUNCHES):
        for name, work in kinds.items():
            began = time.perf_counter()
            work()
            torch.cuda.synchronize()
            times.setdefault(name, []).append(time.perf_counter() - began)
    torch.cuda.nvtx.range_pop()
    del hold, pinned
    print("TIMES " + json.dumps(times), flush=True)


def counters():
    with open(PRESET) as file:
        names = re.findall(r"^\s+- ([a-z]\w+__\S+)$", file.read(), re.M)
    queried = subprocess.run(["ncu", "--config-file", "off", "--query-metrics"], capture_output=True, text=True).stdout
    known = set(re.findall(r"^(\w+__\w+)", queried, re.M))
    return [name for name in names if name.split(".")[0] in known]


def main():
    chosen = sys.argv[1:] or VARIANTS
    metrics = counters()
    for variant in chosen:
        command = ["ncu", "--config-file", "off", "--target-processes", "all", "--clock-control", "none", "--nvtx",
                   "--nvtx-include", "prefill/", "--launch-count", "3", "--filter-mode", "per-launch-config"]
        sections = [] if variant == "time" else ["SpeedOfLight", "Occupancy", "LaunchStats"]
        command += [word for name in sections for word in ("--section", name)]
        command += ["--metrics", "gpu__time_duration.sum" if variant == "time" else ",".join(metrics)]
        command += [sys.executable, HERE, "--child" if variant == "child" else "--program", variant]
        said = subprocess.run(command, capture_output=True, text=True).stdout
        found = re.search(r"^TIMES (.*)$", said, re.M)
        passes = re.findall(r"(\d+) pass", said)
        if not found:
            print(variant, "failed:", said[-1000:])
            continue
        times = json.loads(found[1])
        median = lambda part: statistics.median(value for all in times.values() for value in part(all))
        print(f"{variant:8} {passes[0] if passes else '?'} passes: first {max(all[0] for all in times.values()):.3f} s, replayed "
              f"{median(lambda all: all[1:3]):.3f} s, passed over {median(lambda all: all[3:]) * 1e3:.3f} ms", flush=True)


if sys.argv[1:2] == ["--program"]:
    program(sys.argv[2])
elif sys.argv[1:2] == ["--child"]:
    sys.exit(subprocess.run([sys.executable, HERE, "--program", sys.argv[2]]).returncode)
else:
    main()
