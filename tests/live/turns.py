"""Lets a program take turns with others: it works when it is told to and waits in between.

    turns.serve(folder, work)

`folder` holds two pipes. Each line of `go` says how many steps to do and whether the range `light_window` is to be opened
around some of them; `work(steps, window)` does them and gives back milliseconds of each, which go as one line into `done`
together with the processor time of the turn. A line with 0 steps ends it. TURNS_CORE in the environment is the core to work on.
"""

import json
import os
import time


def serve(folder, work):
    if "TURNS_CORE" in os.environ:
        # This thread alone; those that are there already stay where they may be.
        os.sched_setaffinity(0, {int(os.environ["TURNS_CORE"])})
    with open(os.path.join(folder, "done"), "w") as done, open(os.path.join(folder, "go")) as go:
        done.write("ready\n")
        done.flush()
        for line in go:
            steps, window = (int(word) for word in line.split())
            if steps == 0:
                return
            before = time.process_time()
            times = work(steps, bool(window))
            answer = {"step_ms": times, "cpu_ms": (time.process_time() - before) * 1e3}
            done.write(json.dumps(answer) + "\n")
            done.flush()
