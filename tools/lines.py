#!/usr/bin/env python3
"""Lines of code of every crate: what is compiled into the program, without tests, comments and blank lines.

    python3 tools/lines.py [COMMIT]      of the working tree, or of a commit beside it
"""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEST_MODULE = re.compile(r"#\[cfg\(test\)\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([a-z]+\))? )?mod (\w+);")
TEST_BLOCK = re.compile(r"^( *)#\[cfg\((?:all\()?test\b[^\n]*\]\n(?: *#\[[^\n]*\]\n)*(.*)$", re.MULTILINE)


def files_of_tree() -> dict[str, str]:
    return {str(path.relative_to(ROOT)): path.read_text() for path in ROOT.glob("crates/*/src/**/*.rs")}


def files_of_commit(commit: str) -> dict[str, str]:
    git = ["git", "-C", str(ROOT)]
    listed = subprocess.run([*git, "ls-tree", "-r", commit, "crates"], check=True, capture_output=True, text=True).stdout
    rows = [line.split(None, 3) for line in listed.splitlines()]
    rows = [(name, blob) for _, _, blob, name in rows if re.fullmatch(r"crates/\w+/src/.*\.rs", name)]
    asked = "".join(f"{blob}\n" for _, blob in rows).encode()
    told = subprocess.run([*git, "cat-file", "--batch"], check=True, input=asked, capture_output=True).stdout
    files, at = {}, 0
    for name, _ in rows:
        end = told.index(b"\n", at)
        size = int(told[at:end].split()[2])
        files[name] = told[end + 1 : end + 1 + size].decode()
        at = end + 2 + size
    return files


def without_tests(text: str) -> str:
    """The text without its items for tests alone: from the attribute to the line that closes the item at its indentation."""
    kept, at = [], 0
    for found in TEST_BLOCK.finditer(text):
        if found.start() < at:
            continue
        kept.append(text[at : found.start()])
        end = found.end()
        if not found.group(2).rstrip().endswith((";", "}", ",")):
            closing = re.compile(rf"^{found.group(1)}[}})\]];?,?$", re.MULTILINE).search(text, end)
            end = closing.end() if closing else len(text)
        at = end
    kept.append(text[at:])
    return "".join(kept)


def is_code(line: str) -> bool:
    line = line.strip()
    return bool(line) and not line.startswith("//")


def lines(files: dict[str, str]) -> Counter:
    tests = set()
    for name, text in files.items():
        path = Path(name)
        folder = path.parent if path.stem in ("mod", "lib", "main") else path.with_suffix("")
        tests.update(str(folder / module) for module in TEST_MODULE.findall(text))
    count = Counter()
    for name, text in files.items():
        if any(name == f"{test}.rs" or name.startswith(f"{test}/") for test in tests):
            continue
        count[name.split("/")[1]] += sum(map(is_code, without_tests(text).splitlines()))
    return count


def main() -> None:
    now = lines(files_of_tree())
    before = lines(files_of_commit(sys.argv[1])) if len(sys.argv) > 1 else None
    heads = ["crate", *([sys.argv[1]] if before else []), "now"]
    rows = [[crate, *([before[crate]] if before else []), now[crate]] for crate in sorted({*now, *(before or {})})]
    rows.append(["total", *([before.total()] if before else []), now.total()])
    print("| " + " | ".join(heads) + " |")
    print("| --- |" + " --: |" * (len(heads) - 1))
    for row in rows:
        print("| " + " | ".join(f"{cell:,}" if isinstance(cell, int) else cell for cell in row) + " |")


if __name__ == "__main__":
    main()
