"""Runs of llm-perf, for Python.

    import llm_perf

    run = llm_perf.load("latest")
    run.stages[0]["name"], run.metrics["totals"]["wall_ns"]
    run.frame("kernels").sort("total_ns")            # Polars or pandas, where one is installed

A run is a folder of JSON documents; this module reads it and needs nothing but the standard library. Documents are plain dictionaries
with the keys of their schemas (`llm-perf schema metrics`). Times are integers in nanoseconds, and what is not known is None.
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import re
import shutil
import sysconfig
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Dict, List, Optional, Union

__all__ = ["Run", "RunError", "load", "program", "runs"]

#: Where runs go unless `--out` says otherwise.
DEFAULT_ROOT = pathlib.Path("tmp/profile-output")

#: Tables of `metrics.json` that have one row for each thing.
TABLES = ("stages", "operators", "kernels", "modules", "regions", "samples", "findings", "quality", "devices", "lost_time")

#: The newest version of each document that this module reads.
KNOWN = {"manifest": 1, "metrics": 1, "environment": 1, "kernels": 1, "analytic": 1, "regions": 1}

Document = Dict[str, Any]
Rows = List[Document]
PathLike = Union[str, "os.PathLike[str]"]


class RunError(Exception):
    """A folder that is no run, or a document that cannot be read; the message names the file."""


@dataclass(frozen=True)
class Run:
    """A run folder."""

    #: The folder.
    path: pathlib.Path

    @cached_property
    def manifest(self) -> Document:
        """What the run is, its status and its files."""
        return self.document("manifest.json")

    @cached_property
    def metrics(self) -> Document:
        """Everything that was measured, counted or derived."""
        return self.document("metrics.json")

    @cached_property
    def environment(self) -> Document:
        """The machine and the software."""
        return self.document("env.json")

    @property
    def id(self) -> str:
        """Name of the run."""
        return str(self.manifest["run_id"])

    @property
    def status(self) -> str:
        """`complete`, `partial`, `failed`, or `running` (also where the process is gone)."""
        return str(self.manifest["status"])

    @property
    def is_redacted(self) -> bool:
        """Whether `llm-perf pack --redact` made it."""
        return self.manifest.get("redacted") is not None

    @property
    def stages(self) -> Rows:
        """Stages with their times and utilisation."""
        return self.rows("stages")

    @property
    def operators(self) -> Rows:
        """Operators by name and stage."""
        return self.rows("operators")

    @property
    def kernels(self) -> Rows:
        """Kernels by name, stage and device."""
        return self.rows("kernels")

    @property
    def findings(self) -> Rows:
        """What costs time and what to do about it."""
        return self.rows("findings")

    def rows(self, table: str) -> Rows:
        """A table of the metrics as a list of dictionaries; empty where the run has none."""
        found = self.metrics.get(table) or []
        if not isinstance(found, list):
            raise RunError(f"{self.path / 'metrics.json'}: {table} is not a table; expected one of {', '.join(TABLES)}")
        return found

    def frame(self, table: str, engine: Optional[str] = None) -> Any:
        """A table as a frame of `engine` ("polars" or "pandas"); of the one that is installed where none is named, and the
        rows themselves where neither is. Nested values become JSON texts, so that every column has one type."""
        rows = [{key: _flat(value) for key, value in row.items()} for row in self.rows(table)]
        for name in [engine] if engine else ["polars", "pandas"]:
            if name == "polars":
                try:
                    import polars  # type: ignore[import-not-found,unused-ignore]
                except ImportError:
                    continue
                return polars.DataFrame(rows, infer_schema_length=None)
            if name == "pandas":
                try:
                    import pandas  # type: ignore[import-not-found,import-untyped,unused-ignore]
                except ImportError:
                    continue
                return pandas.DataFrame(rows)
            raise ValueError(f"unknown engine {name!r}; expected 'polars' or 'pandas'")
        if engine:
            raise ImportError(f"{engine} is not installed: pip install {engine}")
        return rows

    def document(self, name: str) -> Document:
        """A JSON document of the run by its path in the folder."""
        path = self.path / name
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise RunError(f"{path} not found") from None
        except (OSError, ValueError) as error:
            raise RunError(f"cannot read {path}: {error}") from None
        if not isinstance(found, dict):
            raise RunError(f"{path} is not an llm-perf document")
        _check_version(path, found.get("schema"))
        return found

    def changed_files(self) -> List[str]:
        """Files that are not as the manifest lists them; empty where all are."""
        changed = []
        for file in self.manifest.get("files", []):
            path = self.path / file["path"]
            if path.is_symlink() or not path.is_file() or _sha256(path) != file["sha256"]:
                changed.append(str(file["path"]))
        return changed


def load(run: PathLike = "latest", root: PathLike = DEFAULT_ROOT) -> Run:
    """The run of that folder, of that name beneath `root`, or the newest there: `latest`."""
    named = pathlib.Path(run)
    for folder in (named, pathlib.Path(root) / named):
        if (folder / "manifest.json").is_file():
            return Run(folder)
    if str(run) == "latest":
        found = runs(root)
        if found:
            return found[0]
        raise RunError(f"no run found in {root}")
    if named.is_file():
        raise RunError(f"{named} is a file; turn it into a run folder with `llm-perf unpack {named}`")
    raise RunError(f"run {str(run)!r} not found, neither as a folder nor in {root}")


def runs(root: PathLike = DEFAULT_ROOT) -> List[Run]:
    """Every run beneath a folder, newest first."""
    folders = pathlib.Path(root).iterdir() if pathlib.Path(root).is_dir() else iter(())
    found = [Run(folder) for folder in folders if (folder / "manifest.json").is_file()]

    def started(run: Run) -> str:
        try:
            return str(run.manifest.get("started_at", ""))
        except RunError:
            return ""

    return sorted(found, key=lambda run: (started(run), run.path.name), reverse=True)


def program() -> str:
    """Path of the program that was installed with this module, or of the one on the path."""
    beside = pathlib.Path(sysconfig.get_path("scripts")) / "llm-perf"
    if beside.is_file():
        return str(beside)
    found = shutil.which("llm-perf")
    if found is None:
        raise RunError("llm-perf not found on PATH")
    return found


def _flat(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, (dict, list)) else value


def _check_version(path: pathlib.Path, schema: Any) -> None:
    parts = re.fullmatch(r"llm-perf/([a-z-]+)/([1-9][0-9]*)", schema) if isinstance(schema, str) else None
    if parts is None:
        raise RunError(f"{path} has no llm-perf schema")
    if int(parts[2]) > KNOWN.get(parts[1], int(parts[2])):
        raise RunError(f"{path} has schema {schema}, but this module reads versions up to {KNOWN[parts[1]]}; update llm-perf")


def _sha256(path: pathlib.Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for piece in iter(lambda: file.read(1 << 20), b""):
            digest.update(piece)
    return digest.hexdigest()
