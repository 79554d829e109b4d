"""The reader of runs. `LLM_PERF_TEST_RUN` names a run that the program has made; without it only made-up folders are read."""

import json
import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import llm_perf  # noqa: E402


def made_up(root: pathlib.Path, name: str, started: str, **metrics: object) -> pathlib.Path:
    folder = root / name
    folder.mkdir()
    manifest = {"schema": "llm-perf/manifest/1", "run_id": name, "status": "complete", "started_at": started, "files": []}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "metrics.json").write_text(json.dumps({"schema": "llm-perf/metrics/1", **metrics}))
    return folder


class Reader(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def test_the_newest_run_is_the_latest_and_names_and_folders_are_found(self) -> None:
        made_up(self.root, "old", "2025-01-01T00:00:00Z")
        made_up(self.root, "new", "2025-02-01T00:00:00Z")
        self.assertEqual(llm_perf.load(root=self.root).id, "new")
        self.assertEqual(llm_perf.load("old", root=self.root).id, "old")
        self.assertEqual(llm_perf.load(self.root / "old").id, "old")
        self.assertEqual([run.id for run in llm_perf.runs(self.root)], ["new", "old"])

    def test_what_is_no_run_is_named(self) -> None:
        with self.assertRaisesRegex(llm_perf.RunError, "run 'nothing' not found"):
            llm_perf.load("nothing", root=self.root)
        bundle = self.root / "x.llmperf"
        bundle.write_bytes(b"")
        with self.assertRaisesRegex(llm_perf.RunError, "llm-perf unpack"):
            llm_perf.load(bundle)

    def test_a_newer_document_is_refused_by_name(self) -> None:
        folder = made_up(self.root, "run", "2025-01-01T00:00:00Z")
        (folder / "metrics.json").write_text('{"schema": "llm-perf/metrics/2"}')
        with self.assertRaisesRegex(llm_perf.RunError, "metrics/2.*update llm-perf"):
            llm_perf.load(folder).metrics
        (folder / "metrics.json").write_text('{"schema": ')
        with self.assertRaisesRegex(llm_perf.RunError, "cannot read .*metrics.json"):
            llm_perf.load(folder).metrics

    def test_a_table_without_a_frame_library_is_its_rows(self) -> None:
        stages = [{"name": "prefill", "wall_ns": 5, "instances": [1, 2]}]
        run = llm_perf.load(made_up(self.root, "run", "2025-01-01T00:00:00Z", stages=stages))
        self.assertEqual(run.stages, stages)
        self.assertEqual(run.rows("kernels"), [])
        frame = run.frame("stages")
        columns = list(frame[0]) if isinstance(frame, list) else list(frame.columns)
        self.assertEqual(columns, ["name", "wall_ns", "instances"])
        with self.assertRaises(ValueError):
            run.frame("stages", engine="abacus")

    def test_a_changed_file_is_found(self) -> None:
        folder = made_up(self.root, "run", "2025-01-01T00:00:00Z")
        manifest = json.loads((folder / "manifest.json").read_text())
        digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        manifest["files"] = [{"path": "abc.txt", "bytes": 3, "sha256": digest}]
        (folder / "manifest.json").write_text(json.dumps(manifest))
        (folder / "abc.txt").write_text("abc")
        self.assertEqual(llm_perf.load(folder).changed_files(), [])
        (folder / "abc.txt").write_text("abd")
        self.assertEqual(llm_perf.load(folder).changed_files(), ["abc.txt"])

    @unittest.skipUnless(os.environ.get("LLM_PERF_TEST_RUN"), "no run of the program is named")
    def test_a_run_of_the_program_is_read(self) -> None:
        run = llm_perf.load(os.environ["LLM_PERF_TEST_RUN"])
        self.assertEqual(run.status, "complete")
        self.assertEqual(run.changed_files(), [])
        self.assertFalse(run.is_redacted)
        self.assertGreater(len(run.kernels), 0)
        self.assertEqual(run.environment["schema"], "llm-perf/environment/1")
        for table in llm_perf.TABLES:
            self.assertEqual(len(run.frame(table)), len(run.rows(table)), table)


if __name__ == "__main__":
    unittest.main()
