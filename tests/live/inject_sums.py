"""Sums of Nsight Systems exports, to hold captures of our collector against: `NAME.sqlite` becomes `NAME-nsys.json`.

    python3 inject_sums.py FILE.sqlite...

Counts by kernel name and by the ranges around the launch, total kernel time, copies, fills, ranges. Nothing else of an
export is looked at: it also holds the environment and paths of the machine.
"""

import collections
import json
import sqlite3
import sys


def sums(file):
    database = sqlite3.connect(file)
    names = dict(database.execute("select id, value from StringIds"))
    calls = {}
    for start, thread, number in database.execute(
            "select start, globalTid, correlationId from CUPTI_ACTIVITY_KIND_RUNTIME order by start"):
        calls.setdefault(number, (start, thread))
    domains = {domain: text if text is not None else names.get(number) for domain, text, number in database.execute(
        "select domainId, text, textId from NVTX_EVENTS where eventType = 75")}
    pushed, ranges = collections.defaultdict(list), collections.Counter()
    for start, end, kind, text, thread, number, domain in database.execute(
            "select start, end, eventType, text, globalTid, textId, domainId from NVTX_EVENTS where eventType in (59, 60)"):
        name = text if text is not None else names.get(number)
        ranges[f"{domains[domain]}@{name}" if domain else name] += 1
        if kind == 59:
            pushed[thread].append((start, 1 << 62 if end is None else end, name))
    for of_thread in pushed.values():
        of_thread.sort()
    kernels, under, total = collections.Counter(), collections.Counter(), 0
    for start, end, number, name in database.execute(
            "select start, end, correlationId, demangledName from CUPTI_ACTIVITY_KIND_KERNEL"):
        kernels[names[name]] += 1
        total += end - start
        launch, thread = calls[number]
        under["/".join(name for start, end, name in pushed[thread] if start <= launch < end)] += 1

    def rows(table):
        there = database.execute("select count(*) from sqlite_master where name = ?", (table,)).fetchone()[0]
        return database.execute(f"select count(*) from {table}").fetchone()[0] if there else 0

    return {"kernels": dict(sorted(kernels.items())), "kernel_ns": total, "copies": rows("CUPTI_ACTIVITY_KIND_MEMCPY"),
            "fills": rows("CUPTI_ACTIVITY_KIND_MEMSET"), "ranges": dict(sorted(ranges.items())),
            "kernels_under": dict(sorted(under.items()))}


for path in sys.argv[1:]:
    with open(path.replace(".sqlite", "-nsys.json"), "w") as out:
        json.dump(sums(path), out, indent=1)
