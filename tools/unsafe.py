"""Counts `unsafe` in the crates that the program is built from, and writes the table of docs/reference/dependencies.md.

    python3 tools/unsafe.py           prints the dozen with most
    python3 tools/unsafe.py --write   puts them into the page

Counted are the words `unsafe` in Rust sources of the crate's library outside of comments, strings and characters: blocks, functions, impls,
traits and `extern` blocks alike. Crates are those that end up in the program on this machine, build scripts and macros of the compiler
left out. What is behind features that are off or for other machines is counted too, because a text cannot tell.
"""

import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/reference/dependencies.md"
MOST = 12
# Comments (nested ones too, to a depth that occurs), raw strings, strings, characters: what is left is code.
NOT_CODE = re.compile(r"""//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/|r(\#*)".*?"\1|b?"(?:\\.|[^"\\])*"|b?'(?:\\.[^']*|[^'\\])'""", re.DOTALL)


def cargo(*arguments):
    return subprocess.run(["cargo", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def crates():
    """Name, version and folder of every crate in the program."""
    tree = cargo("tree", "-p", "llm-perf", "--locked", "--offline", "-e", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}")
    used = {tuple(line.split()[:2]) for line in tree.splitlines() if line.strip()}
    metadata = json.loads(cargo("metadata", "--format-version", "1", "--locked", "--offline"))
    for package in metadata["packages"]:
        if (package["name"], "v" + package["version"]) in used:
            library = [target for target in package["targets"] if {"lib", "rlib", "cdylib"} & set(target["kind"])]
            if library:
                yield package, pathlib.Path(library[0]["src_path"]).parent


def count(folder):
    total, lines = 0, 0
    for path in sorted(folder.rglob("*.rs")):
        if any(part in ("tests", "benches", "examples") for part in path.relative_to(folder).parts):
            continue
        text = path.read_text(errors="replace")
        lines += text.count("\n")
        total += len(re.findall(r"\bunsafe\b(?!_)", NOT_CODE.sub(" ", text)))
    return total, lines


def main():
    rows = [(*count(folder), package) for package, folder in crates()]
    rows.sort(key=lambda row: (-row[0], row[2]["name"]))
    own = {package["name"].removeprefix("llm-perf-"): total for total, _, package in rows if package["source"] is None}
    # No part of the program's crates: it is compiled apart and loaded into other processes.
    own["inject"] = count(ROOT / "crates/inject/src")[0]
    others = [row for row in rows if row[2]["source"] is not None]
    table = ["| crate | version | `unsafe` | lines |", "|---|---|--:|--:|"]
    table += [f"| `{package['name']}` | {package['version']} | {total:,} | {lines:,} |" for total, lines, package in others[:MOST]]
    held = sum(total for total, _, _ in others[:MOST])
    everything = sum(total for total, _, _ in others)
    table += ["", f"{len(others)} crates of others, {everything:,} in total; these {MOST} hold {held / everything:.0%}. "
                  f"{sum(total == 0 for total, _, _ in others)} have none. Our own crates: "
                  + ", ".join(f"`{name}` {total}" for name, total in sorted(own.items()) if total) + "; the others have none."]
    text = "\n".join(table)
    if "--write" not in sys.argv[1:]:
        print(text)
        return
    page = PAGE.read_text()
    start, end = "<!-- begin unsafe -->\n", "<!-- end unsafe -->"
    before, rest = page.split(start)
    PAGE.write_text(before + start + text + "\n" + end + rest.split(end)[1])


main()
