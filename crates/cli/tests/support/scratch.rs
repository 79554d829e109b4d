//! A folder to profile in.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::llm_perf;

/// A capture among the fixtures of `ingest`.
#[allow(dead_code, reason = "each test file takes what it needs")]
pub(crate) fn capture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../ingest/tests/fixtures").join(name)
}

/// What one call gave.
pub(crate) struct Output {
    /// Minus one where a signal ended it.
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A scratch folder with a home of its own, so that nothing is kept in the tester's.
pub(crate) struct Scratch(TempDir);

#[allow(dead_code, reason = "each test file takes what it needs")]
impl Scratch {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    /// With a capture imported into `run`.
    pub(crate) fn imported(capture: &Path) -> Self {
        let scratch = Self::new();
        let output = Output::of(scratch.command(&["import", capture.to_str().unwrap(), "--out", "run"]));
        assert_eq!(output.code, 0, "{}", output.stderr);
        scratch
    }

    /// A run folder made from a serving engine's trace and the requests of its load.
    #[allow(dead_code, reason = "only pages of requests need it")]
    pub(crate) fn served() -> Self {
        let scratch = Self::new();
        let file = |name: &str| format!("{}/tests/fixtures/serving/{name}", env!("CARGO_MANIFEST_DIR"));
        let (trace, requests, model) = (file("trace.json.gz"), file("requests.json"), file("config.json"));
        let files = ["import", &trace, "--requests", &requests, "--model", &model];
        let output = Output::of(scratch.command(&[&files[..], &["--out", "run"]].concat()));
        assert_eq!(output.code, 0, "{}", output.stderr);
        scratch
    }

    /// The page made again from a run folder.
    pub(crate) fn page(&self, arguments: &[&str]) -> PathBuf {
        let output = Output::of(self.command(&[&["report"], arguments, &["--out", "page.html"]].concat()));
        assert_eq!((output.code, output.stdout.as_str()), (0, "page.html\n"), "{}", output.stderr);
        self.path("page.html")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = llm_perf();
        command.args(arguments);
        self.at_home(command)
    }

    /// Any program, run here and with the same home.
    pub(crate) fn at_home(&self, mut command: Command) -> Command {
        command.current_dir(self.0.path());
        command.env("LLM_PERF_DATA_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("profile-data"));
        command
    }

    /// Profiles with the arguments, then the settings.
    pub(crate) fn profile(&self, settings: &[&str], arguments: &[&str]) -> Output {
        Output::of(self.command(&[&["profile"], arguments, settings].concat()))
    }

    pub(crate) fn manifest(&self, run: &str) -> Value {
        self.json(run, "manifest.json")
    }

    pub(crate) fn json(&self, run: &str, name: &str) -> Value {
        serde_json::from_slice(&std::fs::read(self.path(run).join(name)).unwrap()).unwrap()
    }

    pub(crate) fn text(&self, run: &str, name: &str) -> String {
        std::fs::read_to_string(self.path(run).join(name)).unwrap_or_else(|_| panic!("{name}"))
    }

    /// Asserts that every file of a profile is there, not empty, and valid where it has a schema.
    pub(crate) fn assert_whole_bundle(&self, run: &str) {
        for name in [
            "report.md",
            "operators.md",
            "metrics.json",
            "stakeholder_summary.md",
            "inputs.yaml",
            "env.json",
            "assumptions.md",
            "config.yaml",
            "static_analysis/analytic_model/report.json",
            "static_analysis/analytic_model/summary.md",
        ] {
            assert!(!self.text(run, name).is_empty(), "{name}");
        }
        let analytic = ["report.json", "report.yaml"].map(|name| format!("static_analysis/analytic_model/{name}"));
        let written = ["metrics.json", "env.json", "manifest.json", "inputs.yaml"].map(str::to_owned);
        for file in written.iter().chain(&analytic).map(|name| self.path(run).join(name)) {
            let name = file.display();
            let checked = Output::of(self.command(&["validate", file.to_str().unwrap()]));
            assert_eq!(checked.code, 0, "{name}: {}{}", checked.stdout, checked.stderr);
        }
        let verified = Output::of(self.command(&["runs", &format!("./{run}"), "--verify"]));
        assert_eq!(verified.code, 0, "{}", verified.stderr);
    }
}

impl Output {
    pub(crate) fn of(mut command: Command) -> Self {
        Self::from(command.output().unwrap())
    }

    /// Of one that was started with its output in pipes.
    #[allow(dead_code, reason = "each test file takes what it needs")]
    pub(crate) fn of_child(child: std::process::Child) -> Self {
        Self::from(child.wait_with_output().unwrap())
    }

    fn from(output: std::process::Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { code: output.status.code().unwrap_or(-1), stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }
}
