#!/usr/bin/env python3
"""Makes a large torch profiler trace out of the real one that tests use.

    python3 benches/make_kineto.py OUT.json [--megabytes 1000]

The decode steps of `dsocr-h200.json.gz` are repeated with times, ids and the length of the cache moved on, as a longer
generation would have been recorded: operators with shapes, runtime and driver calls, kernels, copies, fills and flows in
the layout the profiler writes. Between them stand the Python functions and allocations that `with_stack` and
`profile_memory` would add, so that 1,000 MB hold 3.6 million events. The same size gives the same bytes.
"""
import argparse
import gzip
import json
import re
from decimal import Decimal
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "crates/ingest/tests/fixtures/torch/dsocr-h200.json.gz"
# Python functions and allocations per operator, so that a thousand megabytes hold 3.6 million events.
PYTHON_PER_OPERATOR = 3.5
MEMORY_PER_OPERATOR = 0.05
# Not every version of the profiler writes the values of scalar arguments, and nothing reads them.
SCALARS = re.compile(r'"Concrete Inputs": \[.*?\], (?="Input type")')
FIELD = re.compile(r'("ts": |"External id": |"correlation": |"id": |"Ev Idx": )(\d+(?:\.\d+)?)')
DIMS = re.compile(r'"Input (?:Dims|Strides)": \[.*?\](?=, "|\n)')
# Lengths of the cache in the recorded steps.
CACHE = re.compile(r"(?<![\d.])(28[6-9]|290)(?![\d.])")


def raw_events(text):
    """The text of every event, as the profiler laid it out."""
    body = text[text.index('"traceEvents": [') + 16:]
    pieces = re.split(r"\n  \},\n  (?=\{)", body[:body.rindex("]")].strip())
    return [piece + "\n  }" for piece in pieces[:-1]] + pieces[-1:]


class Template:
    """An event with holes for what moves from step to step."""

    def __init__(self, text, origin):
        self.parts, self.holes = [], []
        last = 0
        spans = [(match.start(2), match.end(2), match.group(1), match.group(2)) for match in FIELD.finditer(text)]
        for dims in DIMS.finditer(text):
            for match in CACHE.finditer(dims.group(0)):
                start = dims.start() + match.start()
                spans.append((start, start + len(match.group(0)), "cache", match.group(0)))
        for start, end, kind, value in sorted(spans):
            if start < last:
                continue
            self.parts.append(text[last:start])
            if kind == '"ts": ':
                self.holes.append((0, int(Decimal(value) * 1000) - origin))
            elif kind == '"External id": ':
                self.holes.append((1, int(value)))
            elif kind in ('"correlation": ', '"id": '):
                self.holes.append((2, int(value)))
            elif kind == "cache":
                self.holes.append((3, int(value)))
            else:
                self.holes.append((4, int(value)))
            last = end
        self.tail = text[last:]

    def fill(self, moved):
        pieces = []
        for part, (kind, value) in zip(self.parts, self.holes):
            pieces.append(part)
            value += moved[kind]
            pieces.append(f"{value // 1000}.{value % 1000:03d}" if kind == 0 else str(value))
        pieces.append(self.tail)
        return "".join(pieces)


def python_functions():
    files = ["modeling_deepseekv2.py", "module.py", "linear.py", "functional.py", "cache_utils.py", "_tensor.py"]
    names = [f"{file}({line}): {function}" for file in files for line in (117, 528, 1553, 1884)
             for function in ("forward", "_call_impl", "_wrapped_call_impl", "update")]
    return names + [f"nn.Module: DeepseekV2MLP_{number}" for number in range(64)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--megabytes", type=int, default=1000)
    arguments = parser.parse_args()
    text = gzip.open(SOURCE, "rt", encoding="utf-8").read()
    events = [(json.loads(raw), raw) for raw in raw_events(text)]
    time = lambda event: int(Decimal(str(event["ts"])) * 1000)
    steps = [event for event, _ in events if event.get("cat") == "user_annotation" and event["name"] == "decode_step"]
    first, last = time(steps[0]), time(steps[-1]) + int(steps[-1]["dur"] * 1000)
    kept = [(event, raw) for event, raw in events
            if event.get("ph") in "Xsf" and event.get("cat") != "Trace" and first <= time(event) <= last]
    templates = [Template(SCALARS.sub("", raw), first) for _, raw in kept]
    header = text[:text.index('"traceEvents": [') + 16]
    length = last - first + 1_000_000
    ids = [max(event["args"]["External id"] for event, _ in kept if "External id" in event.get("args", {})),
           max(event["args"]["correlation"] for event, _ in kept if "correlation" in event.get("args", {}))]
    functions = python_functions()
    size, count, repeat, number = 0, 0, 0, 0
    limit = arguments.megabytes * 1_000_000
    with open(arguments.out, "w", encoding="utf-8") as out:
        size += out.write(header)
        separator = "\n  "
        while size < limit:
            origin = first + repeat * length
            moved = (origin, repeat * ids[0], repeat * ids[1], repeat * len(steps), repeat * len(kept))
            python, memory = 0.0, 0.0
            for (event, _), template in zip(kept, templates):
                pieces = [template.fill(moved)]
                if event.get("cat") == "cpu_op":
                    at = time(event) - first + origin
                    stamp = f"{at // 1000}.{at % 1000:03d}"
                    python += PYTHON_PER_OPERATOR
                    memory += MEMORY_PER_OPERATOR
                    while python >= 1:
                        python -= 1
                        number += 1
                        pieces.append(
                            f'{{\n    "ph": "X", "cat": "python_function", "name": "{functions[number * 7 % len(functions)]}", '
                            f'"pid": 487, "tid": 487,\n    "ts": {stamp}, "dur": {event["dur"]},\n    "args": {{\n      '
                            f'"Python parent id": {number - 1}, "Python id": {number}, "Ev Idx": {number}\n    }}\n  }}')
                    if memory >= 1:
                        memory -= 1
                        pieces.append(
                            f'{{\n    "ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 487, '
                            f'"tid": 487,\n    "ts": {stamp},\n    "args": {{\n      "Total Reserved": 2629828608, '
                            f'"Total Allocated": 1003059712, "Bytes": {512 * (number % 64 - 32)}, "Addr": 137877174353920, '
                            f'"Device Id": 0, "Device Type": 1, "Ev Idx": {number}\n    }}\n  }}')
                for piece in pieces:
                    size += out.write(separator) + out.write(piece)
                    separator = ",\n  "
                count += len(pieces)
                if size >= limit:
                    break
            repeat += 1
        out.write('\n  ],\n  "traceName": "synthetic.json"\n}\n')
    print(f"{arguments.out}: {size / 1e6:.0f} MB, {count} events, {repeat} repeats of {len(steps)} steps")


if __name__ == "__main__":
    main()
