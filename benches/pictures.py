#!/usr/bin/env python3
"""The pictures of the README and the guides, made from pages of real captures under crates/ingest/tests/fixtures. Needs
chromedriver and chromium, and

    cargo build --release

Another program is used with `--program PATH`. Look at what it made before committing.
"""

import argparse
import base64
import subprocess
import tempfile
from contextlib import closing
from pathlib import Path

from benchmark import ROOT, program
from browser import Browser

FIXTURES = ROOT / "crates" / "ingest" / "tests" / "fixtures"
PICTURES = ROOT / "docs" / "pictures"
WIDTH = 1120
MOST_BYTES = 150_000


def picture(browser: Browser, page: Path, name: str, first: str, last: str) -> None:
    """The part of a page from the top of one element to the end of another."""
    browser.command("Emulation.setEmulatedMedia", media="screen", features=[{"name": "prefers-color-scheme", "value": "light"}])
    resize = lambda height: browser.command(
        "Emulation.setDeviceMetricsOverride", width=WIDTH, height=height, deviceScaleFactor=1, mobile=False)
    resize(900)
    browser.open(page)
    # A window as high as the page: nothing moves when its lower parts are taken.
    resize(browser.run("return document.documentElement.scrollHeight"))
    top, bottom = (browser.run(f"return document.querySelector('{one}').getBoundingClientRect().{side} + scrollY")
                   for one, side in [(first, "top"), (last, "bottom")])
    clip = {"x": 0, "y": max(top - 10, 0), "width": WIDTH, "height": bottom - top + 20, "scale": 1}
    shot = browser.command("Page.captureScreenshot", format="webp", quality=80, clip=clip)
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
        runs = {"torch-profiler": "torch/dsocr-h200.json.gz", "nsys": "nsys/dsocr-h200.sqlite.gz"}
        for run, capture in runs.items():
            command = [llm_perf, "import", "--quiet", FIXTURES / capture, "--model", "deepseek-ocr", "--out", Path(scratch) / run]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        page = Path(scratch) / "torch-profiler" / "report.html"
        picture(browser, page, "page.webp", "header", "#stages")
        picture(browser, page, "timeline.webp", "#timeline", "#flame")
        comparison = Path(scratch) / "comparison.html"
        command = [llm_perf, "report", *(str(Path(scratch) / run) for run in runs), "--out", comparison]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        picture(browser, comparison, "comparison.webp", "header", "#device-time")


if __name__ == "__main__":
    main()
