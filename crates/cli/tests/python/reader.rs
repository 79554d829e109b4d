//! The Python that comes with the program: the reader of runs, on a run that the program makes, and the drivers.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::scratch::{Output, Scratch};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn the_reader_reads_what_the_program_wrote() {
    let scratch = Scratch::new();
    let trace = root().join("crates/ingest/tests/fixtures/torch/small.json");
    let made = Output::of(scratch.command(&["import", trace.to_str().unwrap(), "--out", "run"]));
    assert_eq!(made.code, 0, "{}", made.stderr);
    let mut tests = Command::new("python3");
    tests.arg(root().join("python/tests/test_reader.py")).env("LLM_PERF_TEST_RUN", scratch.path("run"));
    // Nothing is left in the checkout.
    tests.env("PYTHONDONTWRITEBYTECODE", "1");
    let output = tests.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("OK") && !said.contains("skipped"), "{said}");
}

pub(crate) fn the_driver_of_queries_is_python_that_old_interpreters_read() {
    let driver = concat!(env!("CARGO_MANIFEST_DIR"), "/../collect/src/tool/query/query.py");
    let parse = "import ast, sys; ast.parse(open(sys.argv[1]).read(), feature_version=(3, 8))";
    let output = Command::new("python3").args(["-c", parse, driver]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
