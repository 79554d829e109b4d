"""Whether queries over the tables of a run answer what its metrics.json says.

Usage: python query_metrics.py PROGRAM TABLES METRICS.json [--engine ENGINE]...
PROGRAM is llm-perf; TABLES and METRICS.json are of the same import. Every figure must be equal, to the nanosecond. The interpreter
that runs this has the engines.
"""

import argparse
import collections
import json
import subprocess
import sys

PARTS = ["span_ns", "busy_ns", "idle_ns", "compute_ns", "communication_exposed_ns", "copies_exposed_ns"]


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("program")
    arguments.add_argument("tables")
    arguments.add_argument("metrics")
    arguments.add_argument("--engine", action="append")
    asked = arguments.parse_args()
    with open(asked.metrics) as text:
        metrics = json.load(text)
    wrong = 0
    for engine in asked.engine or ["duckdb", "datafusion"]:
        def ask(sql):
            done = subprocess.run([asked.program, "query", asked.tables, sql, "--engine", engine, "--format", "json", "--python",
                                   sys.executable], capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit("%s: %s" % (engine, done.stderr))
            return json.loads(done.stdout)

        for what, found, known in comparisons(ask, metrics):
            same = found == known
            wrong += not same
            print("%-10s %-36s %5d rows  %s" % (engine, what, len(known), "equal" if same else "DIFFERS"))
            if not same:
                for row in sorted(set(known) ^ set(found), key=str)[:6]:
                    print("    only in %s: %s" % ("metrics.json" if row in set(known) else "the query", row))
    sys.exit(1 if wrong else 0)


def comparisons(ask, metrics):
    """What is compared: its name, rows of the query, rows of metrics.json, both sorted."""
    times = metrics.get("device_time") or []
    known = sorted((rank(one), *[one[part] for part in PARTS]) for one in times)
    found = sorted((rank(one), *[one[part] for part in PARTS]) for one in ask("device-time"))
    yield "device time from intervals", found, known
    found = sorted((rank(one), *[one[part] for part in PARTS]) for one in ask("SELECT * FROM device_time"))
    yield "device time as it was written", found, known

    causes = collections.Counter()
    for one in times:
        for idle in one["idle"]:
            causes[idle["cause"]] += idle["ns"]
    yield "idle by cause", sorted((one["cause"], one["total_ns"]) for one in ask("idle-causes")), sorted(causes.items())

    names = collections.defaultdict(lambda: [0, 0])
    for one in metrics.get("kernels") or []:
        names[one["name"]][0] += one["calls"]
        names[one["name"]][1] += one["total_ns"]
    known = sorted((name, *sums) for name, sums in names.items())
    sums = "SELECT name, COUNT(*) AS calls, SUM(duration_ns) AS total_ns FROM kernels WHERE NOT set_aside GROUP BY name"
    yield "kernels by name", sorted((one["name"], one["calls"], one["total_ns"]) for one in ask(sums)), known
    sums = "SELECT name, SUM(calls) AS calls, SUM(total_ns) AS total_ns FROM kernel_sums GROUP BY name"
    yield "kernel sums by name", sorted((one["name"], one["calls"], one["total_ns"]) for one in ask(sums)), known

    keys = ["name", "bytes", "group_size", "total_ns"]
    known = sorted((tuple(one[key] for key in keys) for one in metrics.get("collectives") or []), key=str)
    found = sorted((tuple(one[key] for key in keys) for one in ask("collective-bandwidth")), key=str)
    yield "collectives by message and group", found, known


def rank(row):
    return -1 if row["rank"] is None else row["rank"]


if __name__ == "__main__":
    main()
