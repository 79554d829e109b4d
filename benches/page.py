#!/usr/bin/env python3
"""The page of a run with half a million events: its size, the time to make it, and how fast a browser draws it. Exits with 1
where one of the goals is missed. Needs chromedriver and chromium, and

    cargo build --release

and makes the trace with `make_kineto.py` in the folder it is given, where it is not there yet. Another program is measured with
`--program PATH` or `LLM_PERF_PROGRAM=PATH`, and the section says so.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmark import ROOT, program, provenance, run, table, write_section
from browser import Browser

MEGABYTES = 450
FRAMES = 60
# Of the page as it is written with a run: megabytes, milliseconds to the first drawing, and between frames.
GOALS = {"MB": 3.0, "opened to drawn, ms": 500.0, "frame p50, ms": 20.0}
# Moves the view by an eighth to and fro, a step in each frame, and keeps the time between frames.
PAN = """
const done = arguments[arguments.length - 1];
const canvas = document.querySelector('#timeline canvas');
canvas.dispatchEvent(new KeyboardEvent('keydown', { key: '+' }));
const times = [];
let last = performance.now();
const step = () => {
  const now = performance.now();
  times.push(now - last);
  last = now;
  if (times.length > %d) return done(times.slice(1));
  canvas.dispatchEvent(new KeyboardEvent('keydown', { key: times.length %% 2 ? 'ArrowRight' : 'ArrowLeft' }));
  requestAnimationFrame(step);
};
requestAnimationFrame(step);
""" % FRAMES


def measure(browser: Browser, page: Path) -> tuple[float, list[float]]:
    """Milliseconds from opening to the first drawing of the timeline, and between frames while it is moved."""
    browser.open(page)
    ready = browser.run("return document.querySelector('#timeline canvas').dataset.ready")
    return float(ready), browser.post("/execute/async", {"script": PAN, "args": []})


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--program", type=Path)
    parser.add_argument("--megabytes", type=int, default=MEGABYTES, help="size of the trace; the section is for the default")
    arguments = parser.parse_args()
    llm_perf = str(arguments.program.resolve()) if arguments.program else program()
    trace = arguments.folder.resolve() / f"kineto-{arguments.megabytes}.json"
    if not trace.is_file():
        make = [sys.executable, ROOT / "benches" / "make_kineto.py", trace, "--megabytes", str(arguments.megabytes)]
        subprocess.run(make, check=True)
    browser = Browser()
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "run"
        subprocess.run([llm_perf, "import", "--quiet", trace, "--out", folder], check=True, stdout=subprocess.DEVNULL)
        for name, options in [("`report RUN`", []), ("`report RUN --full`", ["--full"])]:
            page = Path(scratch) / "page.html"
            made = run([llm_perf, "report", str(folder), "--out", str(page), *options])
            opened = [measure(browser, page) for _ in range(5)]
            about = browser.run("return document.querySelector('#timeline .about').textContent")
            print(about)
            frames = sorted(time for _, times in opened for time in times)
            rows.append([
                name,
                f"{page.stat().st_size / 1e6:.2f}",
                f"{made.cpu_seconds:.1f}",
                f"{statistics.median(ready for ready, _ in opened):.0f}",
                f"{statistics.median(frames):.1f}",
                f"{frames[len(frames) * 99 // 100]:.1f}",
            ])
        rows = [[row[0], about.split()[0], *row[1:]] for row in rows]
    browser.close()
    header = ["page", "events", "MB", "CPU time to make it, s", "opened to drawn, ms", "frame p50, ms", "frame p99, ms"]
    other = arguments.program or os.environ.get("LLM_PERF_PROGRAM")
    built = f" Made by `{other}`, which may be no release build." if other else ""
    text = f"{provenance()}\n5 openings each, {FRAMES} frames of each while the view is moved.{built} `benches/page.py FOLDER`\n"
    if arguments.megabytes == MEGABYTES:
        write_section("page", f"{text}\n{table(header, rows)}")
    else:
        print(table(header, rows))
    written = dict(zip(header, rows[0]))
    missed = [f"{name} {written[name]}, goal {goal:g}" for name, goal in GOALS.items() if float(written[name]) > goal]
    sys.exit(f"missed: {'; '.join(missed)}" if missed else 0)


if __name__ == "__main__":
    main()
