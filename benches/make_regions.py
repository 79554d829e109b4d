#!/usr/bin/env python3
"""Makes a raw page of Nsight Compute with many regions: `make_regions.py OUT.csv [--regions 20] [--kernels 500]`.

Rows of the kernel replay in `crates/ingest/tests/fixtures/ncu` are repeated with new IDs and other ranges: every second region
is nested in the one before it. The same sizes give the same bytes.
"""

import argparse
import gzip
import re
from pathlib import Path

CAPTURE = (
    Path(__file__).resolve().parent.parent
    / "crates/ingest/tests/fixtures/ncu/ncu-kernel-replay-raw.csv.gz"
)
ID = re.compile(r'^"\d+"')
RANGES = re.compile(r'"\d+  (""<default domain>:[^"]*""\s*)+"')


def ranges(region: int) -> str:
    names = [f"region {region}"] if region % 2 == 0 else [f"region {region - 1}", f"nested {region}"]
    cells = "  ".join(f'""<default domain>:{name}:none:none:none:none:none:none""' for name in names)
    return f'"467  {cells} "'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--regions", type=int, default=20)
    parser.add_argument("--kernels", type=int, default=500)
    options = parser.parse_args()

    lines = gzip.decompress(CAPTURE.read_bytes()).decode().splitlines(keepends=True)
    header, rows = lines[:2], lines[2:]
    with options.out.open("w") as out:
        out.writelines(header)
        for region in range(options.regions):
            stack = ranges(region)
            for kernel in range(options.kernels):
                number = region * options.kernels + kernel
                row, changed = RANGES.subn(stack, rows[number % len(rows)], count=1)
                assert changed == 1, row[:300]
                out.write(ID.sub(f'"{number}"', row))


if __name__ == "__main__":
    main()
