#!/usr/bin/env python3
"""The licences of every crate that the program is built from, as one Markdown text on standard output.

    python3 tools/licences.py x86_64-unknown-linux-gnu > THIRD-PARTY.md

Texts come from the sources that cargo has downloaded. A crate that ships none is listed with its licence expression; licences that
several crates share word for word are printed once.
"""

import collections
import json
import pathlib
import re
import subprocess
import sys

TEXT = re.compile(r"^(licen[cs]e|copying|notice|unlicense|copyright)", re.IGNORECASE)
PROGRAM = "llm-perf"


def metadata(target):
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def built_from(graph):
    """Ids of the packages that end up in the program: no tests, no workspace members of our own."""
    nodes = {node["id"]: node for node in graph["resolve"]["nodes"]}
    packages = {package["id"]: package for package in graph["packages"]}
    start = next(id for id, package in packages.items() if package["name"] == PROGRAM)
    seen, open_ids = set(), [start]
    while open_ids:
        current = open_ids.pop()
        if current in seen:
            continue
        seen.add(current)
        for dependency in nodes[current]["deps"]:
            if any(kind["kind"] != "dev" for kind in dependency["dep_kinds"]):
                open_ids.append(dependency["pkg"])
    return [packages[id] for id in seen if packages[id]["source"] is not None]


def texts(package):
    folder = pathlib.Path(package["manifest_path"]).parent
    named = [folder / package["license_file"]] if package.get("license_file") else []
    found = sorted(path for path in folder.iterdir() if path.is_file() and TEXT.match(path.name))
    return [path.read_text(errors="replace").strip() for path in dict.fromkeys(named + found) if path.is_file()]


def main(target):
    packages = sorted(built_from(metadata(target)), key=lambda package: (package["name"], package["version"]))
    shared = collections.defaultdict(list)
    without = []
    for package in packages:
        name = f"{package['name']} {package['version']}"
        if not package["license"] and not package.get("license_file"):
            sys.exit(f"{name} states no licence")
        found = texts(package)
        for text in found:
            shared[text].append(name)
        if not found:
            without.append(name)
    print(f"# Third-party licences\n\nllm-perf for {target} is built from {len(packages)} crates of others.\n")
    print("| crate | licence | repository |\n|---|---|---|")
    for package in packages:
        licence = package["license"] or package["license_file"]
        print(f"| {package['name']} {package['version']} | {licence} | {package['repository'] or ''} |")
    if without:
        print(f"\nNo text of its own in the package: {', '.join(without)}.")
    for text, names in sorted(shared.items(), key=lambda item: item[1]):
        fence = "````" if "```" in text else "```"
        print(f"\n## {', '.join(dict.fromkeys(names))}\n\n{fence}text\n{text}\n{fence}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    main(sys.argv[1])
