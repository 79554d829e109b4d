"""What the collector costs vLLM's decode steps, in turns: a table of modes for each batch.

    python3 collector_table.py --library LIB --model FOLDER --out FILE [--modes LIST] [--rounds 7] [--steps 120] [--libdw DIR]

Modes are those of inject_overhead.py, and of a library that waits while the engine starts and captures its graphs: attached, which records
from then on; graphs, which times launches of graphs from then on, without CUPTI; and afterwards, which did so for a second and waits
again. cupti-STEP has a step of attaching CUPTI done in the engine, see collector_engine.py. All run side by side and take turns, one works while the others wait. Printed for each batch and mode: the median step, the cost over plain (medians of each round's own ratio, with the middle half), and tokens a second; then PASS
or FAIL for the goals.
"""

import argparse
import glob
import json
import os
import shutil
import statistics
import sys
import tempfile
import time

import inject_overhead
import wire_counts
from inject_overhead import Worker, calm_cores, quartiles, share

BATCHES = (1, 8, 64)
MODES = "plain,again,idle,standby,attached,inject-whole,inject-sampled,profiler"
# Most that a mode may cost, by mode.
GOALS = {"idle": 0.005, "afterwards": 0.005, "graphs": 0.02, "inject-whole": 0.02, "inject-sampled": 0.05, "attached": 0.15}
# A library that waits is asked for longer than the table takes.
ASKED, SIGNAL = {"attached": "900000", "graphs": "900000 graphs", "afterwards": "1000 graphs"}, 47
# Modes whose launches of graphs are compared, and the share of the time that a duty cycle records.
COMPARED, DUTY = ("graphs", "inject-whole"), 0.03
# A second plain process shows what two processes differ by that differ in nothing.
SAME = "again"
PATIENCE = 300


class Engine(Worker):
    def turn(self, steps, batch):
        os.write(self.go, f"{steps} {batch}\n".encode())
        line = self.line()
        return None if line is None else json.loads(line)


def attach(worker):
    """Has the library record, as `llm-perf attach` does; whether it does."""
    folder = f"/tmp/llm-perf-attach-{worker.process.pid}"
    os.makedirs(folder, 0o700, exist_ok=True)
    with open(os.path.join(folder, "request"), "w") as file:
        file.write(ASKED[worker.mode])
    for _ in range(100):
        os.kill(worker.process.pid, SIGNAL)
        time.sleep(0.05)
        if glob.glob(os.path.join(folder, "*.wire")):
            return True
    print(f"FAIL {worker.mode}: the library does not begin", flush=True)
    return False


def started(mode, options, folder):
    """The engine, starting."""
    return Engine(mode, options, folder)


def ready(worker):
    line = worker.line()
    if line is None:
        print(f"{worker.mode} did not start: {open(worker.log.name).read()[-1500:]}", flush=True)
        return None
    return json.loads(line)["engine"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--modes", default=MODES)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--libdw", default="")
    options = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)
    inject_overhead.PATIENCE = PATIENCE
    options.library = os.path.abspath(options.library)
    here = os.path.dirname(os.path.abspath(__file__))
    options.program = f"{sys.executable} {here}/collector_engine.py --model {os.path.abspath(options.model)} --turns FOLDER"
    options.core, options.cores = calm_cores()[0], sorted(os.sched_getaffinity(0))
    modes, workers, launches = options.modes.split(","), {}, {}
    with tempfile.TemporaryDirectory() as folder:
        try:
            # The first one compiles for all.
            workers[modes[0]] = started(modes[0], options, folder)
            engine = ready(workers[modes[0]])
            if engine is None:
                raise SystemExit(1)
            print("engine:", engine)
            for mode in modes[1:]:
                workers[mode] = started(mode, options, folder)
            for mode in modes[1:]:
                if ready(workers[mode]) is None:
                    workers.pop(mode).end()
            for mode in ASKED:
                if mode in workers and not attach(workers[mode]):
                    workers.pop(mode).end()
            time.sleep(2)
            results = {batch: {mode: [] for mode in workers} for batch in BATCHES}
            order, ended = list(workers), set()
            for batch in BATCHES:
                for number in range(options.rounds):
                    order.append(order.pop(0))
                    for mode in order:
                        answer = workers[mode].turn(options.steps, batch) if mode not in ended else None
                        if answer is None:
                            if mode not in ended:
                                print(f"FAIL {mode} has ended at batch {batch}: {open(workers[mode].log.name).read()[-600:]}")
                            ended.add(mode)
                            continue
                        # The first round is a warm-up: a profiler's first records are not like the others.
                        if number:
                            results[batch][mode].append(answer)
        finally:
            sizes = {mode: worker.end() for mode, worker in workers.items()}
            for worker in workers.values():
                folder = f"/tmp/llm-perf-attach-{worker.process.pid}"
                for path in glob.glob(os.path.join(folder, "*.wire")) + glob.glob(os.path.join(worker.folder, "*.wire")):
                    print(worker.mode, json.dumps(wire_counts.count(path)))
                    if worker.mode in COMPARED:
                        launches[worker.mode] = sorted(duration / 1e3 for _, duration in wire_counts.graphs(path))
                shutil.rmtree(folder, ignore_errors=True)
    if len(launches) == len(COMPARED):
        by_events, whole = (launches[mode] for mode in COMPARED)
        print(f"launches of graphs: {len(by_events)} by events, {len(whole)} by CUPTI; microseconds at tenths: "
              + ", ".join(f"{by_events[len(by_events) * tenth // 10]:.1f} ({whole[len(whole) * tenth // 10]:.1f})" for tenth in range(1, 10)))
    failed = False
    for batch, of_batch in results.items():
        plain = [statistics.median(answer["step_ms"]) for answer in of_batch[modes[0]]]
        noise, costs = None, {}
        for mode, answers in of_batch.items():
            if len(answers) < options.rounds - 1:
                failed = True
                continue
            medians = [statistics.median(answer["step_ms"]) for answer in answers]
            over = [one / other - 1 for one, other in zip(medians, plain)]
            cost, (low, high) = statistics.median(over), quartiles(over)
            rate = batch * sum(len(answer["step_ms"]) for answer in answers) / sum(sum(answer["step_ms"]) for answer in answers) * 1e3
            cpu = statistics.median(answer["cpu_ms"] / len(answer["step_ms"]) for answer in answers)
            print(f"batch {batch:3}  {mode:15} {statistics.median(medians):7.3f} ms/step  {share(cost)} ({share(low)} to {share(high)})  "
                  f"{rate:9.0f} tokens/s  processor {cpu:.3f} ms/step")
            costs[mode] = cost
            if mode == SAME:
                noise = abs(cost)
            if mode in GOALS:
                holds = cost <= GOALS[mode]
                failed |= not holds
                print(f"{'PASS' if holds else 'FAIL'} batch {batch} {mode}: {share(cost)}, goal {share(GOALS[mode])}"
                      + (f"; two plain processes differ by {noise:.1%}" if noise is not None else ""))
        if {"graphs", "afterwards"} <= costs.keys():
            print(f"batch {batch:3}  launches of graphs {DUTY:.0%} of the time: {share(DUTY * costs['graphs'] + (1 - DUTY) * costs['afterwards'])}")
    print("bytes of records:", {mode: size for mode, size in sizes.items() if size})
    with open(options.out, "w") as file:
        json.dump({"engine": engine, "results": results, "bytes": sizes}, file)
    return failed


if __name__ == "__main__":
    sys.exit(main())
