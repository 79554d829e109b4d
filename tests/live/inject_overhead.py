"""What collecting costs: the same decode loop plain, with our collector, with Nsight Systems and with torch.profiler.

    python3 inject_overhead.py --library LIB --out FILE [--repeats 10] [--rounds 6] [--steps 9] [--libdw DIR]
    python3 inject_overhead.py --library LIB --out FILE --light 2 --processes 3

All four run side by side and take turns of a few steps: one works while the others wait, so that a host that slows down slows
all of them. Turns begin with a step that is not counted. A repeat is several rounds of turns, and of each mode the median
of its steps in them: short turns so that what slows for seconds meets every mode, several so that what strikes one does not
decide. Printed are medians over repeats, the middle half of them, the cost over plain in each repeat, and in how many ours
costs less. The thread that launches works on one core, the same in all modes; other threads of the programs on others.

--light N measures a window of 8 steps in a run of 256 instead: N runs of each set of processes, each in 16 turns of 16 steps,
beside plain and plain once more (`again`), which shows what two processes differ by that differ in nothing. Printed are the
cost turn by turn (each turn over plain's of the same round: the median outside of the window and the median of the window's
turn, weighed as 15 to 1), the sums of 256 steps, what they would be had nobody disturbed them, and steps before, in and after
the window, which tells what of the cost is the window's.
--program COMMAND times another program; FOLDER in it stands for the pipes (see turns.py), and `--profiler` is added for one mode.
Modes: plain, again (plain as well), loaded (the library inside, never switched on), idle (it waits for `attach`), standby (it waits for
cudaProfilerStart), inject,
nsys and nsys-nodes, profiler, light; light-ranges, loaded-ranges and loaded-driver, where ranges or the driver alone load it; inject-whole and
inject-sampled, which record graphs as a whole and one launch in 16 by its nodes.
"""

import argparse
import glob
import json
import os
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
WINDOWS = {"light": "light_window", "loaded": "no such range", "standby": "cudaProfilerApi"}
# Modes in which the library waits to be asked.
ASKED = ("idle", "attached", "graphs", "afterwards")
# How graphs are recorded: LLM_PERF_INJECT_GRAPHS.
GRAPHS = {"inject-whole": "whole", "inject-sampled": "1/16"}
# How Nsight Systems records them: whole unless asked.
NSYS = {"nsys": "graph", "nsys-nodes": "node"}
# What loads the library: ranges, or the driver; both unless a mode ends so.
LOADERS = {"-ranges": "NVTX_INJECTION64_PATH", "-driver": "CUDA_INJECTION64_PATH"}
# Turns of a run of --light, steps of each, which turn has the window, and which of its steps the program opens it around.
LIGHT_TURNS, LIGHT_STEPS, WINDOW_TURN, WINDOW = 16, 16, 6, slice(4, 12)
# Longest a program may take to load, and a turn to end.
PATIENCE = 120


class Worker:
    """One program in one mode."""

    def __init__(self, mode, options, folder):
        self.mode, self.folder = mode, os.path.join(folder, mode)
        os.makedirs(self.folder)
        for pipe in ("go", "done"):
            os.mkfifo(os.path.join(self.folder, pipe))
        # Open for both, so that nothing here waits for a program that never comes.
        self.go = os.open(os.path.join(self.folder, "go"), os.O_RDWR)
        self.done = os.open(os.path.join(self.folder, "done"), os.O_RDWR)
        self.rest = b""
        program, environment = self.command(options)
        self.log = open(os.path.join(self.folder, "log"), "wb")
        self.process = subprocess.Popen(program, env=environment, stdout=self.log, stderr=self.log, start_new_session=True,
                                        preexec_fn=lambda: os.sched_setaffinity(0, options.cores))

    def command(self, options):
        environment = dict(os.environ, TURNS_CORE=str(options.core))
        program = options.program or (f"{sys.executable} {HERE}/inject_program.py --layers {options.layers} --tokens "
                                      f"{max(options.steps, 32)} --turns FOLDER")
        program = program.replace("FOLDER", self.folder).split()
        if self.mode == "profiler":
            program.append("--profiler")
        if self.mode.startswith("cupti-"):
            program += ["--cupti", self.mode.removeprefix("cupti-")]
        if self.ours():
            loaders = [variable for ending, variable in LOADERS.items() if self.mode.endswith(ending)] or LOADERS.values()
            environment.update({variable: options.library for variable in loaders})
            if not self.mode.startswith(ASKED):
                environment["LLM_PERF_INJECT_FOLDER"] = self.folder
        if self.mode in GRAPHS:
            environment["LLM_PERF_INJECT_GRAPHS"] = GRAPHS[self.mode]
        kind = self.mode.split("-")[0]
        if kind in WINDOWS:
            environment["LLM_PERF_INJECT_WINDOW"] = WINDOWS[kind]
        if self.mode in NSYS:
            nsys = shutil.which("nsys") or sorted(glob.glob("/opt/nvidia/nsight-compute/*/host/target-linux-x64/nsys"))[-1]
            environment["LD_LIBRARY_PATH"] = ":".join(filter(None, [options.libdw, environment.get("LD_LIBRARY_PATH")]))
            program = [nsys, "profile", "-t", "cuda,nvtx", f"--cuda-graph-trace={NSYS[self.mode]}", "-s", "none", "--cpuctxsw=none", "-f", "true", "-o",
                       os.path.join(self.folder, "report"), *program]
        return program, environment

    def ours(self):
        """Whether our library is in it."""
        return self.mode.startswith(("inject", *ASKED, *WINDOWS))

    def line(self):
        """What the program says next; None where it has ended or is stuck."""
        until = time.monotonic() + PATIENCE
        while b"\n" not in self.rest:
            if not select.select([self.done], [], [], 1)[0]:
                if self.process.poll() is not None or time.monotonic() > until:
                    return None
                continue
            self.rest += os.read(self.done, 1 << 16)
        line, self.rest = self.rest.split(b"\n", 1)
        return line

    def turn(self, steps, window=False):
        os.write(self.go, f"{steps} {int(window)}\n".encode())
        line = self.line()
        if line is None:
            raise SystemExit(f"{self.mode} has ended: {open(self.log.name).read()[-2000:]}")
        return json.loads(line)

    def end(self):
        os.write(self.go, b"0 0\n")
        try:
            # What a profiler makes of its records afterwards is not measured here.
            self.process.wait(20 if self.ours() else 0.2)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        return sum(os.path.getsize(path) for path in glob.glob(os.path.join(self.folder, "*.wire")))


def calm_cores(count=4):
    """The cores that do most just now, no two of one physical core: where a process lands decides more than what records it."""
    def siblings(core):
        try:
            with open(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list") as file:
                return file.read()
        except OSError:
            return core

    allowed, done = os.sched_getaffinity(0), {}
    for core in [core for _ in range(3) for core in sorted(allowed)]:
        os.sched_setaffinity(0, {core})
        until, rounds = time.perf_counter() + 0.02, 0
        while time.perf_counter() < until:
            rounds += 1
        done.setdefault(core, []).append(rounds)
    os.sched_setaffinity(0, allowed)
    chosen = {}
    for core in sorted(done, key=lambda core: -statistics.median(done[core])):
        chosen.setdefault(siblings(core), core)
    return list(chosen.values())[:count]


def quartiles(values):
    values = sorted(values)
    return values[len(values) // 4], values[len(values) * 3 // 4 - (len(values) % 4 == 0)]


def share(value):
    return f"{value:+.1%}"


def take_turns(workers, options):
    results = {mode: [] for mode in workers}
    modes = list(workers)
    for _ in range(options.repeats):
        steps, cpu = {mode: [] for mode in modes}, dict.fromkeys(modes, 0.0)
        for _ in range(options.rounds):
            # Another order each round, so that no mode always follows the same one.
            modes.append(modes.pop(0))
            for mode in modes:
                answer = workers[mode].turn(options.steps)
                steps[mode] += answer["step_ms"][1:]
                cpu[mode] += answer["cpu_ms"]
        for mode in modes:
            results[mode].append({"median_ms": statistics.median(steps[mode]),
                                  "cpu_ms": cpu[mode] / options.rounds / options.steps,
                                  "steps_ms": [round(step, 4) for step in steps[mode]]})
    return results


def print_turns(results):
    base = next(iter(results))
    over = {mode: [one["median_ms"] / plain["median_ms"] - 1 for one, plain in zip(repeats, results[base])]
            for mode, repeats in results.items()}

    def calm(mode):
        """The fastest twentieth of all steps ends here: steps that nothing else on the host disturbed."""
        steps = sorted(step for repeat in results[mode] for step in repeat["steps_ms"])
        return steps[len(steps) // 20]

    for mode, repeats in results.items():
        medians = [repeat["median_ms"] for repeat in repeats]
        low, high = quartiles(medians)
        print(f"{mode:20} {statistics.median(medians):8.3f} ms/step, middle half {low:.3f} to {high:.3f}; over {base} "
              f"{share(statistics.median(over[mode]))}, middle half {' to '.join(share(one) for one in quartiles(over[mode]))}, "
              f"all {share(min(over[mode]))} to {share(max(over[mode]))}; undisturbed {calm(mode):.3f} "
              f"({share(calm(mode) / calm(base) - 1)}); processor {statistics.median([repeat['cpu_ms'] for repeat in repeats]):.3f} ms/step")
    for other in ("nsys", "profiler"):
        if other in over and "inject" in over:
            less = sum(ours < theirs for ours, theirs in zip(over["inject"], over[other]))
            cost = statistics.median(over["inject"]) / statistics.median(over[other])
            undisturbed = (calm("inject") / calm(base) - 1) / (calm(other) / calm(base) - 1)
            print(f"inject below {other} in {less} of {len(over[other])} repeats; its cost is {cost:.2f} of {other}'s by "
                  f"medians, {undisturbed:.2f} in undisturbed steps")


def run_light(workers, options):
    runs = {mode: [] for mode in workers}
    modes = list(workers)
    for _ in range(options.light):
        for all in runs.values():
            all.append([])
        for number in range(LIGHT_TURNS):
            modes.append(modes.pop(0))
            for mode in modes:
                runs[mode][-1].append(workers[mode].turn(LIGHT_STEPS, window=number == WINDOW_TURN)["step_ms"])
    return runs


def print_light(runs):
    def flat(turns):
        return [step for turn in turns for step in turn]

    def undisturbed(all):
        """Milliseconds of a run that nobody disturbed: the window's turn at its fastest, other steps as the fastest tenth ends."""
        outside = sorted(flat(flat(turns[:WINDOW_TURN] + turns[WINDOW_TURN + 1:] for turns in all)))
        return min(sum(turns[WINDOW_TURN]) for turns in all) + outside[len(outside) // 10] * len(outside) / len(all)

    def by_turns(all, plain):
        """Cost of a turn outside of the window and of the window's turn, each a median of pairs that ran side by side."""
        pairs = [(number == WINDOW_TURN, sum(one) / sum(other) - 1)
                 for turns, others in zip(all, plain) for number, (one, other) in enumerate(zip(turns, others))]
        return [statistics.median(cost for is_window, cost in pairs if is_window == wanted) for wanted in (False, True)]

    base = next(iter(runs))
    for mode, all in runs.items():
        outside, window = by_turns(all, runs[base])
        cost = (outside * (LIGHT_TURNS - 1) + window) / LIGHT_TURNS
        over = [sum(flat(turns)) / sum(flat(plain)) - 1 for turns, plain in zip(all, runs[base])]
        parts = {"before": [flat(turns[:WINDOW_TURN]) for turns in all], "in": [turns[WINDOW_TURN][WINDOW] for turns in all],
                 "after": [flat(turns[WINDOW_TURN + 1:]) for turns in all]}
        medians = ", ".join(f"{name} {statistics.median(flat(part)):.3f}" for name, part in parts.items())
        print(f"{mode:14} over {base}: turn by turn {share(cost)} (outside {share(outside)}, the window's turn {share(window)}); "
              f"sums {share(statistics.median(over))} ({' '.join(share(one) for one in over)}); undisturbed "
              f"{share(undisturbed(all) / undisturbed(runs[base]) - 1)}; steps {medians} ms")


def one_set(modes, options):
    """A process of each mode, from its start to its end."""
    with tempfile.TemporaryDirectory() as folder:
        workers = {mode: Worker(mode, options, folder) for mode in modes}
        try:
            for worker in workers.values():
                if worker.line() is None:
                    raise SystemExit(f"{worker.mode} did not start: {open(worker.log.name).read()[-2000:]}")
            for worker in workers.values():
                worker.turn(options.steps)
            results = (run_light if options.light else take_turns)(workers, options)
        finally:
            sizes = {mode: worker.end() for mode, worker in workers.items()}
    return results, sizes


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=6, help="turns of a mode in a repeat")
    parser.add_argument("--steps", type=int, default=9)
    parser.add_argument("--light", type=int, default=0, help="runs of 256 steps with a window of 8")
    parser.add_argument("--processes", type=int, default=1, help="sets of processes, one after the other")
    parser.add_argument("--modes")
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--program", help="another program to time; FOLDER in it stands for its pipes")
    parser.add_argument("--cores", help="cores to run on, such as 2,3,4,5, the launching thread on the first; else calm ones")
    parser.add_argument("--libdw", default="")
    options = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)
    options.library = os.path.abspath(options.library)
    options.core, *options.cores = [int(core) for core in options.cores.split(",")] if options.cores else calm_cores()
    print("launching on core", options.core, "beside", *options.cores)
    modes = (options.modes or ("plain,light,again" if options.light else "plain,inject,nsys,profiler")).split(",")
    results, sizes = {mode: [] for mode in modes}, {}
    for number in range(options.processes):
        found, sizes = one_set(modes, options)
        for mode in modes:
            results[mode] += found[mode]
        if options.processes > 1:
            print(f"after {number + 1} of {options.processes} sets of processes")
        (print_light if options.light else print_turns)(results)
    print("bytes of records:", {mode: size for mode, size in sizes.items() if size})
    with open(options.out, "w") as file:
        json.dump({"results": results, "bytes": sizes}, file)


if __name__ == "__main__":
    main()
