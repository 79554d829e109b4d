#!/usr/bin/env python3
"""What every way to install costs a newcomer: from a clean checkout, with empty homes, to `llm-perf doctor`.

    python3 benches/install.py FOLDER
    python3 benches/install.py FOLDER --builder docker       the container too; podman and buildah do as well

FOLDER is filled and can be removed afterwards. Images of the recipe are chosen as there: RUST=... BASE=...
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

from benchmark import ROOT, provenance, table, write_section


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--builder", choices=["docker", "podman", "buildah"])
    parser.add_argument("--only", choices=["cargo", "pip", "archive"], help="one way, to try this script; writes nothing")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    if folder.exists() and any(folder.iterdir()):
        sys.exit(f"error: {folder} is not empty\nhint: an install starts from nothing")
    load = os.getloadavg()[0]
    ways = {"cargo": from_cargo, "pip": from_pip, "archive": from_archive}
    chosen = [arguments.only] if arguments.only else list(ways)
    rows = [ways[way](folder / way) for way in chosen]
    if arguments.builder:
        rows.append(from_recipe(folder / "container", arguments.builder))
    header = ["way", "minutes", "CPU time, s", "installed", "to pass on"]
    text = f"{provenance()}\nOne run each; load before it: {load:.2f}. `benches/install.py FOLDER --builder BUILDER`\n\n{table(header, rows)}"
    if arguments.only:
        print(text)
    else:
        write_section("install", text)


def from_cargo(folder: Path) -> list[str]:
    checkout, environment = newcomer(folder)
    cost = timed(["cargo", "install", "--path", "crates/cli", "--locked", "--root", str(folder / "root")], checkout, environment)
    program = folder / "root/bin/llm-perf"
    works(program, environment)
    return ["`cargo install --path crates/cli --locked`", *cost, megabytes(program), "-"]


def from_pip(folder: Path) -> list[str]:
    checkout, environment = newcomer(folder)
    python = folder / "venv/bin/python"
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True, env=environment)
    wheels = folder / "wheels"
    cost = timed([str(python), "-m", "pip", "wheel", "--no-deps", "--wheel-dir", str(wheels), "."], checkout, environment)
    (wheel,) = wheels.glob("*.whl")
    quiet([str(python), "-m", "pip", "install", str(wheel)], folder, environment)
    works(folder / "venv/bin/llm-perf", environment)
    quiet([str(python), "-c", "import llm_perf; llm_perf.load"], folder, environment)
    return ["`pip install .`", *cost, megabytes(folder / "venv/bin/llm-perf"), megabytes(wheel)]


def from_archive(folder: Path) -> list[str]:
    checkout, environment = newcomer(folder)
    cost = timed(["tools/release.sh"], checkout, environment)
    (archive,) = (checkout / "target/dist").glob("*.tar.gz")
    shutil.unpack_archive(archive, folder / "unpacked")
    (program,) = (folder / "unpacked").glob("*/llm-perf")
    works(program, environment)
    return ["`tools/release.sh`, unpacked", *cost, megabytes(program), megabytes(archive)]


def from_recipe(folder: Path, builder: str) -> list[str]:
    """The image is built by whoever the builder asks to, so that its CPU time is not ours to count."""
    checkout, _ = newcomer(folder)
    images = [f"--build-arg={name}={os.environ[name]}" for name in ["RUST", "BASE"] if name in os.environ]
    build = [builder, "build", "-f", "Containerfile", "-t", "llm-perf-install", *images, "."]
    minutes, _ = timed(build, checkout, os.environ)
    if builder == "buildah":
        container = subprocess.run([builder, "from", "llm-perf-install"], check=True, capture_output=True, text=True).stdout.strip()
        start = [builder, "run", container, "--", "llm-perf"]
    else:
        start = [builder, "run", "--rm", "llm-perf-install"]
    if "built in and loads" not in quiet([*start, "doctor"], folder, os.environ):
        sys.exit("error: the program in the image has no collector")
    size = "{{.Size}}"
    listed = [builder, "images", "--format", size, "--filter", "reference=llm-perf-install"]
    image = subprocess.run(listed, check=True, capture_output=True, text=True).stdout.split()
    return [f"`{builder} build -f Containerfile .`", minutes, "-", "-", " ".join(image[:2])]


def newcomer(folder: Path) -> tuple[Path, dict[str, str]]:
    """A clean checkout, and the environment of somebody who has Rust, a C compiler and Python, and nothing fetched or built."""
    folder.mkdir(parents=True)
    checkout, home = folder / "checkout", folder / "home"
    home.mkdir()
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(checkout)], check=True)
    real = Path.home()
    keep = {name: value for name, value in os.environ.items() if not name.startswith(("CARGO", "LLM_PERF", "RUST"))}
    keep |= {
        "HOME": str(home),
        "CARGO_HOME": str(home / "cargo"),
        "RUSTUP_HOME": os.environ.get("RUSTUP_HOME", str(real / ".rustup")),
        "XDG_CACHE_HOME": str(home / "cache"),
    }
    return checkout, keep


def timed(command: list[str], folder: Path, environment: dict[str, str]) -> list[str]:
    """Minutes and CPU seconds."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    quiet(command, folder, environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return [f"{(time.perf_counter() - began) / 60:.1f}", f"{used:.0f}"]


def quiet(command: list[str], folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"error: {' '.join(command)} ended with exit code {done.returncode}\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


def works(program: Path, environment: dict[str, str]) -> None:
    """The program says that it can run here and has its collector, and models the built-in network."""
    said = quiet([str(program), "doctor"], program.parent, environment)
    if "The default command can run here." not in said or "built in and loads" not in said:
        sys.exit(f"error: {program} doctor says\n{said}")
    quiet([str(program), "analyze", "--out", str(program.parent.parent / "run")], program.parent, environment)


def megabytes(path: Path) -> str:
    return f"{path.stat().st_size / 1e6:.1f} MB"


if __name__ == "__main__":
    main()
