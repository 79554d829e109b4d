#!/usr/bin/env python3
"""What a first release build costs: CPU seconds of every crate and of the whole. Builds into a folder of its own,

    python3 benches/build.py FOLDER

and puts itself before the compiler (`RUSTC_WRAPPER`) to note what each call of it takes.
"""

import json
import os
import resource
import sys
from collections import defaultdict
from pathlib import Path

# Crates below this share one row.
LEAST_SECONDS = 6
LOG = "LLM_PERF_BUILD_LOG"


def compile_crate() -> None:
    """One call of the compiler, noted in the log."""
    status = os.spawnvp(os.P_WAIT, sys.argv[1], sys.argv[1:])
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    name = os.environ.get("CARGO_PKG_NAME", "")
    note = json.dumps([name, used.ru_utime + used.ru_stime]) + "\n"
    # One short write to a file opened for appending is not torn by another process.
    log = os.open(os.environ[LOG], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(log, note.encode())
    sys.exit(status)


def main() -> None:
    # Not at the top: the wrapper starts hundreds of times.
    from benchmark import ROOT, provenance, run, table, write_section

    if len(sys.argv) != 2:
        sys.exit("usage: build.py FOLDER")
    folder = Path(sys.argv[1])
    if folder.exists() and any(folder.iterdir()):
        sys.exit(f"error: {folder} is not empty\nhint: a first build starts from nothing")
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "crates.jsonl"
    os.environ.update({LOG: str(log), "RUSTC_WRAPPER": str(Path(__file__).resolve()), "CARGO_INCREMENTAL": "0"})
    load = os.getloadavg()[0]
    manifest = str(ROOT / "Cargo.toml")
    build = ["cargo", "build", "--release", "--locked", "--manifest-path", manifest, "--target-dir", str(folder)]
    sample = run(build)
    crates = defaultdict(float)
    for line in log.read_text().splitlines():
        name, seconds = json.loads(line)
        crates[name] += seconds
    ordered = sorted(crates.items(), key=lambda crate: -crate[1])
    large = [crate for crate in ordered if crate[1] >= LEAST_SECONDS]
    rest = ordered[len(large) :]
    rows = [[f"`{name}`", f"{seconds:.0f}"] for name, seconds in large]
    rows.append([f"{len(rest)} others", f"{sum(seconds for _, seconds in rest):.0f}"])
    rows.append(["**total**", f"**{sample.cpu_seconds:.0f}**"])
    text = f"{provenance()}\nOne build, {sample.wall_seconds / 60:.1f} minutes; load before it: {load:.2f}. `benches/build.py FOLDER`\n"
    write_section("build", f"{text}\n{table(['crate', 'CPU time, s'], rows)}")


if __name__ == "__main__":
    compile_crate() if LOG in os.environ else main()
