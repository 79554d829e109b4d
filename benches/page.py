#!/usr/bin/env python3
"""The page of a run with half a million events: its size, the time to make it, and how fast a browser draws it. Needs
chromedriver and chromium, and

    cargo build --release

and makes the trace with `make_kineto.py` in the folder it is given, where it is not there yet. Another program is measured with
`--program PATH`, and the section says so.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from benchmark import ROOT, program, provenance, run, table, write_section

MEGABYTES = 450
FRAMES = 60
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


class Browser:
    """A browser without a window, over the WebDriver protocol."""

    def __init__(self) -> None:
        driver, binary = shutil.which("chromedriver"), shutil.which("chromium")
        if not driver or not binary:
            sys.exit("error: there is no chromedriver and no chromium\nhint: Debian has them in chromium-driver")
        self.driver = subprocess.Popen([driver, "--port=0"], stdout=subprocess.PIPE, text=True)
        line = next(line for line in self.driver.stdout if "successfully on port" in line)
        self.address = f"http://127.0.0.1:{line.split()[-1].rstrip('.')}/session"
        options = {"binary": binary, "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                                               "--window-size=1280,900"]}
        wanted = {"capabilities": {"alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": options}}}
        self.address += "/" + self.post("", wanted)["sessionId"]

    def post(self, path: str, body: dict):
        request = urllib.request.Request(self.address + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)["value"]

    def measure(self, page: Path) -> tuple[float, list[float]]:
        """Milliseconds from opening to the first drawing of the timeline, and between frames while it is moved."""
        self.post("/url", {"url": f"file://{page}"})
        asked = {"script": "return document.querySelector('#timeline canvas').dataset.ready", "args": []}
        while not (ready := self.post("/execute/sync", asked)):
            time.sleep(0.02)
        return float(ready), self.post("/execute/async", {"script": PAN, "args": []})

    def close(self) -> None:
        urllib.request.urlopen(urllib.request.Request(self.address, method="DELETE"))
        self.driver.terminate()
        self.driver.wait()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--program", type=Path)
    arguments = parser.parse_args()
    llm_perf = str(arguments.program.resolve()) if arguments.program else program()
    trace = arguments.folder.resolve() / f"kineto-{MEGABYTES}.json"
    if not trace.is_file():
        make = [sys.executable, ROOT / "benches" / "make_kineto.py", trace, "--megabytes", str(MEGABYTES)]
        subprocess.run(make, check=True)
    browser = Browser()
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "run"
        subprocess.run([llm_perf, "import", "--quiet", trace, "--out", folder], check=True, stdout=subprocess.DEVNULL)
        for name, options in [("`report RUN`", []), ("`report RUN --full`", ["--full"])]:
            page = Path(scratch) / "page.html"
            made = run([llm_perf, "report", str(folder), "--out", str(page), *options])
            opened = [browser.measure(page) for _ in range(5)]
            about = browser.post("/execute/sync", {
                "script": "return document.querySelector('#timeline .about').textContent", "args": []})
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
    built = f" Made by `{arguments.program}`, which is no release build." if arguments.program else ""
    text = f"{provenance()}\n5 openings each, {FRAMES} frames of each while the view is moved.{built} `benches/page.py FOLDER`\n"
    write_section("page", f"{text}\n{table(header, rows)}")


if __name__ == "__main__":
    main()
