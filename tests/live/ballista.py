"""The ready questions on DuckDB, on DataFusion and on a Ballista cluster of this machine, row for row; then with an executor killed.

Usage: python ballista.py PROGRAM DIR [--kills N]
PROGRAM is llm-perf, DIR has tables (make_tables.py makes some). The interpreter that runs this has ballista 54.1, datafusion 54 and
duckdb, and runs the scheduler, the executors and the queries. A query whose executor is killed must end with the right rows, or
fail and say so.
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

SCHEDULER = "from ballista import BallistaScheduler as S; s = S(bind_host=%r, bind_port=%d); s.start(); s.wait_for_termination()"
EXECUTOR = (
    "from ballista import BallistaExecutor as E; "
    "e = E(bind_host=%r, bind_port=%d, scheduler_host=%r, scheduler_port=%d, concurrent_tasks=2); e.start(); e.wait_for_termination()"
)
HOST, PORT = "127.0.0.1", 50050
# Where the scheduler calls an executor: this port of the address that the executor called from.
TASKS = 50052
# Seconds that a query gets; one that takes longer than this and a little does not keep to it.
LIMIT = 60


def own_address():
    """An address of this machine that is not the loopback's: each executor needs one of its own. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return probe.getsockname()[0]
        except OSError:
            sys.exit("this machine has no address but the loopback's, so two executors cannot be told apart")


class Cluster:
    def __init__(self, logs):
        self.logs, self.scheduler = logs, None
        self.executors, self.places = [], [(HOST, 50061), (own_address(), 50062)]

    def launch(self):
        self.scheduler = self.start("scheduler", SCHEDULER % ("0.0.0.0", PORT), HOST, PORT)
        for place in range(len(self.places)):
            self.executors.append(self.executor(place))

    def start(self, name, code, host, port):
        out = open(os.path.join(self.logs, name + ".log"), "ab")
        process = subprocess.Popen([sys.executable, "-c", code], stdout=out, stderr=out)
        deadline = time.monotonic() + 60
        while True:
            with socket.socket() as probe:
                if probe.connect_ex((host, port)) == 0:
                    return process
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                with open(out.name, errors="replace") as said:
                    sys.exit("%s did not start: %s" % (name, said.read()[-2000:]))
            time.sleep(0.1)

    def executor(self, place):
        # It reaches the scheduler at its own address, and so from it.
        host, port = self.places[place]
        return self.start("executor-%d" % place, EXECUTOR % (host, port, host, PORT), host, TASKS)

    def kill(self, place):
        self.executors[place].send_signal(signal.SIGKILL)
        self.executors[place].wait()

    def stop(self):
        for process in self.executors + [self.scheduler] * (self.scheduler is not None):
            process.kill()
            process.wait()


def command(asked, engine, question):
    return [asked.program, "query", asked.folder, question, "--engine", engine, "--format", "json", "--timeout", str(LIMIT),
            "--python", sys.executable]


def rows(asked, engine, question):
    begin = time.monotonic()
    done = subprocess.run(command(asked, engine, question), capture_output=True, text=True, timeout=2 * LIMIT)
    if done.returncode != 0:
        sys.exit("%s on %s: %s" % (question, engine, done.stderr))
    return json.loads(done.stdout), time.monotonic() - begin


def alike(left, right):
    """The same rows in the same order; fractions to the last digits, which depend on the order of sums."""
    def same(one, other):
        if isinstance(one, float) and isinstance(other, float):
            return abs(one - other) <= 1e-12 * max(abs(one), abs(other))
        return one == other

    return len(left) == len(right) and all(
        list(one) == list(other) and all(same(one[key], other[key]) for key in one) for one, other in zip(left, right)
    )


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("program")
    arguments.add_argument("folder")
    arguments.add_argument("--kills", type=int, default=4)
    asked = arguments.parse_args()
    listed = subprocess.run([asked.program, "query", "--list"], capture_output=True, text=True, check=True).stdout
    questions = [line.split()[0] for line in listed.split("\n\n")[0].splitlines()[1:]]
    with tempfile.TemporaryDirectory() as logs:
        cluster = Cluster(logs)
        try:
            cluster.launch()
            compare(asked, questions)
            kill(asked, cluster)
        finally:
            cluster.stop()


def compare(asked, questions):
    engines = ["duckdb", "datafusion", "ballista://%s:%d" % (HOST, PORT)]
    differing = []
    print("%-28s %6s  %8s  %10s  %8s" % ("question", "rows", "duckdb", "datafusion", "ballista"))
    for question in questions:
        answers = [rows(asked, engine, question) for engine in engines]
        if not all(alike(answers[0][0], other) for other, _ in answers[1:]):
            differing.append(question)
        print("%-28s %6d  %7.2fs  %9.2fs  %7.2fs" % (question, len(answers[0][0]), *[seconds for _, seconds in answers]))
    if differing:
        sys.exit("engines differ on: %s" % ", ".join(differing))
    print("%d questions, the same rows on all engines" % len(questions))


def kill(asked, cluster):
    """One executor dies while `device-time` runs, earlier and later in its course."""
    expected = rows(asked, "duckdb", "device-time")[0]
    took = min(rows(asked, "ballista://%s:%d" % (HOST, PORT), "device-time")[1] for _ in range(3))
    outcomes, in_time = {"right": 0, "failed": 0}, 0
    for turn in range(asked.kills):
        victim, delay = turn % len(cluster.places), took * (0.4 + 0.45 * turn / max(asked.kills - 1, 1))
        begin = time.monotonic()
        running = subprocess.Popen(command(asked, "ballista://%s:%d" % (HOST, PORT), "device-time"), stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        time.sleep(delay)
        is_running = running.poll() is None
        in_time += is_running
        cluster.kill(victim)
        try:
            out, error = running.communicate(timeout=2 * LIMIT)
        except subprocess.TimeoutExpired:
            running.kill()
            sys.exit("a query whose executor was killed neither ended nor failed in %d s" % (2 * LIMIT))
        if running.returncode == 0:
            if not alike(expected, json.loads(out)):
                sys.exit("a query whose executor was killed answered wrong: %s" % out)
            outcomes["right"] += 1
        else:
            if not error.startswith("error: "):
                sys.exit("a query whose executor was killed failed without a word: %s" % error)
            outcomes["failed"] += 1
        print("killed executor %d after %.2f s (%s): %s in %.1f s%s" % (
            victim, delay, "running" if is_running else "already answered", "right" if running.returncode == 0 else "failed",
            time.monotonic() - begin, "" if running.returncode == 0 else ": " + " ".join(error.split())[:300]))
        cluster.executors[victim] = cluster.executor(victim)
    if in_time == 0:
        sys.exit("no executor was killed while a query ran: the tables are too small")
    print("executors killed: %d queries right, %d failed clearly" % (outcomes["right"], outcomes["failed"]))


if __name__ == "__main__":
    main()
