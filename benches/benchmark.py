"""What the benchmark scripts share: running a command under a stopwatch, and writing a section of docs/benchmarks.md.

Standard library only. Run the scripts from a clean checkout, so that the commit they print is the one they measured.
"""

import os
import platform
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks.md"
PROGRAM = ROOT / "target" / "release" / "llm-perf"


@dataclass(frozen=True)
class Sample:
    """One run of a command."""

    wall_seconds: float
    cpu_seconds: float
    peak_bytes: int


def program() -> str:
    """The release build; anything else is worth little, and is named by LLM_PERF_PROGRAM and in the section."""
    if "LLM_PERF_PROGRAM" in os.environ:
        return os.environ["LLM_PERF_PROGRAM"]
    if not PROGRAM.is_file():
        sys.exit("error: there is no release build\nhint: cargo build --release")
    return str(PROGRAM)


def run(command: list[str]) -> Sample:
    """Runs the command once with its output thrown away."""
    nowhere = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0), (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    began = time.perf_counter()
    child = os.posix_spawnp(command[0], command, os.environ, file_actions=nowhere)
    _, status, usage = os.wait4(child, 0)
    wall = time.perf_counter() - began
    if status != 0:
        sys.exit(f"error: {' '.join(command)} ended with exit code {os.waitstatus_to_exitcode(status)}")
    return Sample(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def watch(command: list[str]) -> Sample:
    """Runs the command once, its output thrown away; the peak is of anonymous memory, which a mapped file is no part of."""
    began = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    most = 0
    while True:
        finished, status, usage = os.wait4(child.pid, os.WNOHANG)
        if finished:
            break
        for line in Path(f"/proc/{child.pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                most = max(most, int(line.split()[1]) * 1024)
        time.sleep(0.002)
    wall = time.perf_counter() - began
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"error: {' '.join(command)} ended with exit code {child.returncode}")
    return Sample(wall, usage.ru_utime + usage.ru_stime, most)


def spread(values: list[float], scale: float, digits: int) -> str:
    """Median and the range that holds nine tenths of the values."""
    ordered = sorted(values)
    edge = len(ordered) // 20
    low, middle, high = ordered[edge], statistics.median(ordered), ordered[-1 - edge]
    return f"{middle * scale:.{digits}f} ({low * scale:.{digits}f} to {high * scale:.{digits}f})"


def table(header: list[str], rows: list[list[str]]) -> str:
    """A Markdown table with its numbers to the right."""
    rule = ["---"] + ["--:"] * (len(header) - 1)
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, rule, *rows])


def provenance() -> str:
    """Commit and machine, without anything that names the machine.

    Where there is neither git nor Rust, `LLM_PERF_BUILT_FROM` says what the program was built from.
    """
    build = "debug build, " if "/debug/" in os.environ.get("LLM_PERF_PROGRAM", "") else ""
    source = os.environ.get("LLM_PERF_BUILT_FROM")
    if source:
        return f"Commit `{source}`, {date()}. {processor()}{', ' + build.rstrip(', ') if build else ''}."
    return f"Commit {commit()}, {date()}. {processor()}, {build}{rust()}."


def commit() -> str:
    revision = output("git", "rev-parse", "--short=10", "HEAD")
    page = PAGE.relative_to(ROOT)
    changed = output("git", "status", "--porcelain", "--", ".", f":!{page}")
    return f"`{revision}`" + (" with uncommitted changes" if changed else "")


def date() -> str:
    return time.strftime("%Y-%m-%d")


def processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    features = next((line.split(":", 1)[1].split() for line in lines if line.startswith("flags")), [])
    virtual = " (virtual machine)" if "hypervisor" in features else ""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = platform.freedesktop_os_release()["PRETTY_NAME"]
    return f"{model}, {len(os.sched_getaffinity(0))} cores, {memory:.0f} GiB{virtual}, {system}"


def rust() -> str:
    return " ".join(output("rustc", "--version").split()[:2])


def output(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def write_section(name: str, text: str) -> None:
    """Puts the text between the markers of that section, and prints it."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    page = PAGE.read_text()
    if page.count(begin) != 1 or page.count(end) != 1:
        sys.exit(f"error: {PAGE.relative_to(ROOT)} needs {begin} and {end} once each")
    head, rest = page.split(begin)
    PAGE.write_text(f"{head}{begin}\n{text}\n{end}{rest.split(end)[1]}")
    print(text)
