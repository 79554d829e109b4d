#!/usr/bin/env python3
"""Makes a large page of Nsight Compute: `make_ncu.py raw|details OUT.csv [--megabytes 50]`.

Rows of the captures in `crates/ingest/tests/fixtures/ncu` are repeated with new numbers: every round has its own IDs and
its own last digits, so that no two rounds are alike. The same size gives the same bytes.
"""

import argparse
import gzip
import re
from pathlib import Path

FIXTURES = Path(__file__).resolve().parent.parent / "crates" / "ingest" / "tests" / "fixtures" / "ncu"
CAPTURES = {"raw": ("ncu-kernel-replay-raw.csv.gz", 2), "details": ("ncu-dsocr-roofline-details.csv.gz", 1)}
ID = re.compile(r'^"(\d+)"')
LAST_DIGIT = re.compile(r'(\.\d{5})\d"')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=CAPTURES)
    parser.add_argument("out", type=Path)
    parser.add_argument("--megabytes", type=int, default=50)
    options = parser.parse_args()

    name, header_lines = CAPTURES[options.kind]
    lines = gzip.decompress((FIXTURES / name).read_bytes()).decode().splitlines(keepends=True)
    header, rows = lines[:header_lines], lines[header_lines:]
    works = 1 + max(int(ID.match(row)[1]) for row in rows)
    with options.out.open("w") as out:
        out.writelines(header)
        written, turn = sum(map(len, header)), 0
        while written < options.megabytes * 1_000_000:
            first, digit = turn * works, turn % 10
            for row in rows:
                row = ID.sub(lambda found: f'"{first + int(found[1])}"', row)
                row = LAST_DIGIT.sub(rf'\g<1>{digit}"', row)
                out.write(row)
                written += len(row)
            turn += 1


if __name__ == "__main__":
    main()
