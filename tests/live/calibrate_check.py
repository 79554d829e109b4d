"""Errors and coverage of predicted times by operation and element type.

Usage: python calibrate_check.py HELD.csv PREDICTED.csv
"""

import csv
import statistics
import sys

held, predicted = (list(csv.DictReader(open(path))) for path in sys.argv[1:3])
assert len(held) == len(predicted) > 0, "as many predictions as points"
groups = {}
for true, guess in zip(held, predicted):
    assert all(true[column] == guess[column] for column in ("op", "dtype", "m", "n", "k", "batch", "heads"))
    time, value = float(true["microseconds"]), float(guess["microseconds"])
    inside = float(guess["low"]) <= time <= float(guess["high"])
    groups.setdefault((true["op"], true["dtype"]), []).append((abs(value / time - 1), inside))
bad = False
for (op, dtype), rows in sorted(groups.items()):
    errors = sorted(error for error, _ in rows)
    median, p90 = statistics.median(errors), errors[int(0.9 * (len(errors) - 1))]
    coverage = sum(inside for _, inside in rows) / len(rows)
    limit = 0.15 if "attention" in op else 0.10
    wrong = len(rows) >= 20 and (median > limit or not 0.75 <= coverage <= 0.995)
    bad |= wrong
    print("%s %s: %d points, median %.1f%%, p90 %.1f%%, 90%% interval holds %.1f%%%s"
          % (op, dtype, len(rows), 100 * median, 100 * p90, 100 * coverage, "  OUT OF BOUNDS" if wrong else ""))
sys.exit(bad)
