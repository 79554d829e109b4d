#!/usr/bin/env python3
"""The pictures of the README and the guides, made from pages of real captures under crates/*/tests/fixtures. Needs
chromedriver and chromium, and

    cargo build --release

Another program is used with `--program PATH`. Look at what it made before committing.
"""

import argparse
import base64
import shutil
import subprocess
import tempfile
import time
from contextlib import closing
from functools import partial
from pathlib import Path

from benchmark import ROOT, program
from browser import Browser

FIXTURES = ROOT / "crates" / "ingest" / "tests" / "fixtures"
PICTURES = ROOT / "docs" / "pictures"
WIDTH = 1120
SERVING = ROOT / "crates" / "cli" / "tests" / "fixtures" / "serving"
TIMELINE_PARTS = ["#timeline .tools", "#timeline canvas", "#timeline .legend", "#timeline .panel h3", "#timeline .panel .facts"]
# The first kernel of a name, close by.
SELECT = """
const [canvas, find] = ['canvas', '.find'].map((one) => document.querySelector(`#timeline ${one}`));
find.value = 'CatArrayBatchedCopy';
find.dispatchEvent(new Event('input'));
document.querySelector('#timeline .next').click();
find.value = '';
find.dispatchEvent(new Event('input'));
for (let times = 0; times < 9; times++) canvas.dispatchEvent(new KeyboardEvent('keydown', {key: 'w'}));
"""
MOST_BYTES = 150_000


# Puts numbers on elements, as the guide "How to read a report" counts them.
MARK = """
document.querySelectorAll('.mark').forEach((one) => one.remove());
arguments[0].forEach((selector, index) => {
  const box = document.querySelector(selector).getBoundingClientRect();
  const mark = document.createElement('b');
  mark.className = 'mark';
  mark.textContent = index + 1;
  Object.assign(mark.style, {position: 'absolute', left: `${Math.max(box.left + scrollX - 30, 2)}px`, top: `${box.top + scrollY}px`,
    width: '24px', height: '24px', borderRadius: '12px', background: '#c8402f', color: '#fff', font: '700 14px/24px sans-serif',
    textAlign: 'center', zIndex: 9});
  document.body.append(mark);
});
"""


def picture(browser: Browser, page: Path, name: str, first: str, last: str, marks: list[str] = [], before: str = "") -> None:
    """The part of a page from the top of one element to the end of another, with numbers on some, after a script."""
    browser.command("Emulation.setEmulatedMedia", media="screen", features=[{"name": "prefers-color-scheme", "value": "light"}])
    resize = lambda height: browser.command(
        "Emulation.setDeviceMetricsOverride", width=WIDTH, height=height, deviceScaleFactor=1, mobile=False)
    resize(900)
    browser.open(page)
    if before:
        browser.run(before)
        time.sleep(0.5)
    # A window as high as the page: nothing moves when its lower parts are taken.
    resize(browser.run("return document.documentElement.scrollHeight"))
    top, bottom = (browser.run(f"return document.querySelector('{one}').getBoundingClientRect().{side} + scrollY")
                   for one, side in [(first, "top"), (last, "bottom")])
    browser.run(MARK, marks)
    clip = {"x": 0, "y": max(top - 10, 0), "width": WIDTH, "height": bottom - top + 20, "scale": 1}
    shot = browser.command("Page.captureScreenshot", format="webp", quality=70, clip=clip)
    data = base64.b64decode(shot["data"])
    (PICTURES / name).write_bytes(data)
    print(f"{name}: {len(data):,} bytes")
    assert len(data) < MOST_BYTES, f"{name} is too large for a README"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", type=Path)
    arguments = parser.parse_args()
    llm_perf = str(arguments.program.resolve()) if arguments.program else program()
    PICTURES.mkdir(exist_ok=True)
    with closing(Browser()) as browser, tempfile.TemporaryDirectory() as scratch:
        shot = partial(picture, browser)
        dsocr = ["--model", "deepseek-ocr"]

        def page(name: str, verb: str, *rest) -> Path:
            command = [llm_perf, verb, "--quiet", *rest, "--out", Path(scratch) / name]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            return Path(scratch) / name / "report.html"

        run = page("torch-profiler", "import", FIXTURES / "torch/dsocr-h200.json.gz", *dsocr)
        shot(run, "page.webp", "header", "#lost-time figure")
        shot(run, "timeline.webp", "#timeline", "#timeline .about")
        shot(run, "read-first.webp", "header", "nav", ["#read-first", ".about-run", ".verdict", ".numbers", ".answers", "nav"])
        shot(run, "read-charts.webp", "#lost-time", "#device-time",
             ["#lost-time .seen", "#lost-time svg", "#stages .seen", "#stages svg", "#device-time svg"])
        shot(run, "read-timeline.webp", "#timeline", "#timeline .panel", TIMELINE_PARTS, SELECT)
        shot(run, "read-flame.webp", "#flame", "#stacks canvas", ["#flame .seen", "#flame canvas", "#flame .find", "#stacks canvas"])
        two = [FIXTURES / f"torch/two-ranks-h200-{rank}.json.gz" for rank in (0, 1)]
        ranks = page("ranks", "import", *two)
        shot(ranks, "read-ranks.webp", "#ranks", "#timeline canvas", ["#ranks svg", "#timeline canvas"])
        load = page("load", "import", SERVING / "trace.json.gz", "--requests", SERVING / "requests.json",
                    "--model", SERVING / "config.json")
        shot(load, "requests.webp", "#requests", "#requests canvas")
        job = Path(scratch) / "job"
        job.mkdir()
        for trace in two:
            shutil.copy(trace, job)
        shot(page("fleet", "fleet", job), "fleet.webp", "header", "#ranks canvas")
        shot(page("model", "analyze", *dsocr), "analyze.webp", "header", "#modules figure")
        page("nsys", "import", FIXTURES / "nsys/dsocr-h200.sqlite.gz", *dsocr)
        comparison = Path(scratch) / "comparison.html"
        command = [llm_perf, "report", *(str(Path(scratch) / run) for run in ("torch-profiler", "nsys")), "--out", comparison]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        shot(comparison, "comparison.webp", "header", "#device-time")


if __name__ == "__main__":
    main()
