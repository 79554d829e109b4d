"""Counts the records of collector files without llm-perf, one JSON line for each: python3 wire_counts.py FILE...

For files too long to import: kernels, those of graphs, whole graphs, windows, and the file's own counters.
"""

import json
import mmap
import os
import struct
import sys

MARKER = b"\xb1\x0c\x4c\x50"
CALL, NODE, WINDOW, KERNEL, COPY, FILL, GRAPH, COUNT, FINISH, PROBLEM = 14, 15, 16, 17, 18, 19, 20, 21, 22, 3
NAMES = {CALL: "calls", NODE: "nodes", KERNEL: "kernels", COPY: "copies", FILL: "fills", GRAPH: "graphs", FINISH: "finished"}
COUNTERS = ["", "dropped", "host_dropped", "threads", "names", "cut", "unknown", "unfinished", "unwritten", "launches", "invalid",
            "outside", "untimed", "apart"]
# Kernels whose graph is looked at.
LOOKED_AT = 200_000


def number(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at += 1
        if byte < 128:
            return value, at
        shift += 7


def blocks(data):
    """The records of every block that is whole."""
    at, size = 12, len(data)
    while at + 12 <= size and data[at:at + 4] == MARKER:
        end = at + 12 + struct.unpack_from("<I", data, at + 4)[0]
        if end > size:
            return
        yield data[at + 12:end]
        at = end


def graphs(path):
    """Start and duration of every launch of a whole graph, in a file that holds no kernels."""
    def signed(block, at):
        value, at = number(block, at)
        return (value >> 1) ^ -(value & 1), at

    found = []
    with open(path, "rb") as file:
        data = file.read()
    for block in blocks(data):
        place, start = 0, 0
        while place + 3 <= len(block):
            at, fields = place + 3, block[place + 1] | block[place + 2] << 8
            if block[place] == GRAPH:
                for _ in range(4):  # graph, device, context, stream
                    _, at = number(block, at)
                _, at = signed(block, at)  # correlation
                _, at = number(block, at)  # node
                more, at = signed(block, at)
                start = (start + more) % (1 << 64)
                found.append((start, number(block, at)[0]))
            place += 3 + fields
    return found


def count(path):
    tags, counters, windows, problems = [0] * 256, {}, 0, []
    whole, nodes = set(), set()
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for block in blocks(data):
            place, length = 0, len(block)
            while place + 3 <= length:
                tag = block[place]
                fields = block[place + 1] | block[place + 2] << 8
                tags[tag] += 1
                if tag == COUNT:
                    which, after = number(block, place + 3)
                    counters[COUNTERS[which] if which < len(COUNTERS) else str(which)] = number(block, after)[0]
                elif tag == GRAPH:
                    whole.add(number(block, place + 3)[0])
                elif tag == KERNEL and tags[KERNEL] < LOOKED_AT:
                    at_field = place + 3
                    for _ in range(6):  # name, device, context, stream, correlation, node
                        value, at_field = number(block, at_field)
                    nodes.add(value >> 32)
                elif tag == WINDOW:
                    windows += block[place + 3]
                elif tag == PROBLEM:
                    code, after = number(block, place + 3)
                    problems.append([code, block[after:place + 3 + fields].decode("utf-8", "replace")])
                place += 3 + fields
    result = {name: tags[tag] for tag, name in NAMES.items() if tags[tag]}
    return {"file": path, "bytes": os.path.getsize(path), **result, "windows": windows, "counters": counters, "problems": problems,
            "graphs_whole": sorted(whole)[:8], "graphs_of_nodes": sorted(nodes - {0})[:8]}


if __name__ == "__main__":
    for path in sys.argv[1:]:
        print(json.dumps(count(path)))
