"""Kernel time of two recordings of one program, held against each other: medians over the instances of a range.

    python3 inject_agree.py RANGE OURS.sqlite[,...] NSYS.sqlite[,...]

Ours are made by `llm-perf export --format sqlite`, theirs by `nsys export`; both have the same tables. Kernels belong to the
instance of RANGE in which they were launched. Exit code 1 where the medians are more than 3% apart.
"""

import sqlite3
import statistics
import sys


def instances(path, wanted):
    database = sqlite3.connect(path)
    names = dict(database.execute("select id, value from StringIds"))
    launches = {}
    for start, number in database.execute("select start, correlationId from CUPTI_ACTIVITY_KIND_RUNTIME order by start"):
        launches.setdefault(number, start)
    ranges = [[start, end, 0, 0] for start, end, text, number in
              database.execute("select start, end, text, textId from NVTX_EVENTS where eventType in (59, 60) order by start")
              if (text if text is not None else names.get(number)) == wanted]
    for start, end, number in database.execute("select start, end, correlationId from CUPTI_ACTIVITY_KIND_KERNEL"):
        launch = launches.get(number)
        for one in ranges:
            if launch is not None and one[0] <= launch < one[1]:
                one[2] += 1
                one[3] += end - start
    return [(count, time) for _, _, count, time in ranges if count]


wanted, *recordings = sys.argv[1:]
ours, theirs = ([one for path in paths.split(",") for one in instances(path, wanted)] for paths in recordings)


def told(found):
    times = [time / 1e6 for _, time in found]
    counts = sorted({count for count, _ in found})
    return f"{len(found)} of {counts} kernels, median {statistics.median(times):.4f} ms ({min(times):.4f} to {max(times):.4f})"


apart = statistics.median(time for _, time in ours) / statistics.median(time for _, time in theirs) - 1
print(f"{wanted}: ours {told(ours)}; theirs {told(theirs)}: {apart:+.2%}")
sys.exit({count for count, _ in ours} != {count for count, _ in theirs} or abs(apart) > 0.03)
