"""Holds the reports that h200_regions.sh made to what regions_abc.py is known to do."""

import json
import pathlib
import sys

work = pathlib.Path(sys.argv[1])
ROUNDS = 2
KERNELS = {"A": 5 * ROUNDS, "A::A1": 2 * ROUNDS, "B": 4 * ROUNDS}
OWN = {"A": 3 * ROUNDS, "A::A1": 2 * ROUNDS, "B": 4 * ROUNDS}
BYTES = "dram__bytes.sum"
# Each kernel reads two vectors of 256 MiB and writes one.
EXPECTED = {name: count * 3 * (256 << 20) for name, count in KERNELS.items()}


def say(is_right, text):
    print("PASS" if is_right else "FAIL", text)


def report(name):
    return json.loads((work / name / "ncu/regions/report.json").read_text())


def regions(name):
    return {region["path"]: region for region in report(name)["regions"]}


def near(one, two, share):
    if one is None or two is None:
        return False
    return abs(one - two) <= share * max(abs(one), abs(two))


for mode in ["kernel", "range", "app-range"]:
    found = regions(mode)
    say(sorted(found) == sorted(KERNELS), f"{mode}: one section for each of A, A::A1 and B: {sorted(found)}")
    for path, region in found.items():
        totals = region["aggregate"]
        counted = (totals["kernels_inclusive"], totals["kernels_exclusive"])
        say(counted == (KERNELS[path], OWN[path]), f"{mode} {path}: kernels {counted} as NVTX says {KERNELS[path], OWN[path]}")
        value = totals["metrics"][BYTES]["inclusive"]
        say(near(value, EXPECTED[path], 0.10), f"{mode} {path}: {value} bytes, tensors have {EXPECTED[path]:.4g}")
    if "A" in found and "A::A1" in found:
        a, a1 = (found[path]["aggregate"] for path in ["A", "A::A1"])
        parts = (a["metrics"][BYTES]["exclusive"] or 0.0) + (a1["metrics"][BYTES]["inclusive"] or 0.0)
        say(near(parts, a["metrics"][BYTES]["inclusive"], 0.01), f"{mode}: A is its own part and A1")
        print(f"INFO {mode}: A entered {a['instances']} times, exact {a['instances_exact']}, {a['instance_ns']}")
    outside = report(mode)["outside"]
    say(outside is not None and outside["kernels"] > 0, f"{mode}: outside of regions {outside}")

kernel = regions("kernel")
for mode in ["range", "app-range", "application"]:
    for path, region in regions(mode).items():
        value = region["aggregate"]["metrics"][BYTES]["inclusive"]
        held = kernel[path]["aggregate"]["metrics"][BYTES]["inclusive"]
        say(near(value, held, 0.10), f"{mode} {path}: bytes {value and value / held} of the sum over kernels")
        time, sum_ns = region["aggregate"]["total_ns_inclusive"], kernel[path]["aggregate"]["total_ns_inclusive"]
        print(f"INFO {mode} {path}: time {time and time / sum_ns} of the sum over kernels")

include = report("include")
say(sorted(region["path"] for region in include["regions"]) == ["A::A1", "B"], "include: A::A1 and B and nothing else")
titles = {section["id"] for region in include["regions"] for section in region["aggregate"]["sections"]}
say(titles == {"SpeedOfLight", "Occupancy"}, f"include: sections {sorted(map(str, titles))}")
say(include["metrics"] == [], "include: no metric by name")

exclude = report("exclude")
names = [kernel["name"] for region in exclude["regions"] for kernel in region["aggregate"]["kernels"]]
say(bool(names) and all("elementwise" in name and "Mul" not in name for name in names), f"exclude: {len(names)} kernel names")
say(exclude["selection"]["kernels_left_out"] > 0, f"exclude: left out {exclude['selection']['kernels_left_out']}")
titles = {section["id"] for region in exclude["regions"] for section in region["aggregate"]["sections"]}
say(titles == {"LaunchStats"}, f"exclude: sections {sorted(map(str, titles))}")
chosen = [metric["name"] for metric in exclude["metrics"]]
say(chosen == ["dram__bytes_read.sum", "dram__bytes_write.sum"], f"exclude: metrics {chosen}")

counted = regions("roofline").get("B", {}).get("roofline")
say(counted is not None and counted["flops_vector"] is not None, f"roofline: {counted}")
for name in ["no-match", "no-region", "no-kernel-name"]:
    found = report(name)
    empty = all(not region["aggregate"]["kernels_inclusive"] for region in found["regions"])
    say(empty and found["notes"], f"{name}: {found['notes']}")
