"""Times shapes a calibration has not seen: the program's own meter, other sizes and another seed.

Usage: python calibrate_held.py CALIBRATE.PY DEVICE OUT.csv SECONDS CALIBRATION.json
Groups that the calibration lacks are left out; its points as CSV will do in its place.
"""

import csv
import importlib.util
import json
import random
import sys
import time

spec = importlib.util.spec_from_file_location("calibrate", sys.argv[1])
calibrate = importlib.util.module_from_spec(spec)
spec.loader.exec_module(calibrate)

import torch  # noqa: E402

device, out, seconds = sys.argv[2], sys.argv[3], float(sys.argv[4])
torch.cuda.set_device(int(device.partition(":")[2] or 0))
torch.set_grad_enabled(False)
meter = calibrate.Meter(torch, device)
groups = csv.DictReader(open(sys.argv[5])) if sys.argv[5].endswith(".csv") else json.load(open(sys.argv[5]))["groups"]
known = {(group["op"], group["dtype"]) for group in groups}


class KnownPoints(calibrate.Points):
    def add(self, microseconds, **cells):
        if (cells["op"], cells["dtype"]) in known:
            super().add(microseconds, **cells)


points = KnownPoints(out)
# Widths of models that the calibration's list does not have.
calibrate.WIDTHS = [320, 640, 896, 1152, 1408, 1792, 2304, 2816, 3456, 4608, 5376, 6656, 8960, 9728, 13824, 15360, 24576, 29568]


class Reseeded(random.Random):
    def __init__(self, seed):
        super().__init__(seed + 1000)


calibrate.random.Random = Reseeded
begun = time.monotonic()
calibrate.warm(torch, device, 2.0)
calibrate.gemms(torch, meter, points, device, begun + 0.5 * seconds, 400)
calibrate.attention(torch, meter, points, device, begun + 0.8 * seconds, 300)
calibrate.masked_attention(torch, meter, points, device, begun + 0.9 * seconds, 32)
calibrate.grouped_gemms(torch, meter, points, device, begun + seconds, 60)
points.file.close()
print("%d held-out points; skipped: %s" % (points.count, points.skipped))
