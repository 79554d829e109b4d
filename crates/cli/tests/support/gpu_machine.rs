//! A machine with a GPU and its tools, all of them fake, for tests of `deep`.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::llm_perf;

/// A machine with a GPU as far as the program can tell, in a folder of its own.
pub(crate) struct Machine {
    pub(crate) home: TempDir,
    pub(crate) has_gpu: bool,
}

pub(crate) struct Output {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

pub(crate) fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

impl Machine {
    pub(crate) fn new() -> Self {
        let machine = Self { home: TempDir::new().unwrap(), has_gpu: true };
        let library = machine.path("lib/libnvidia-ml.so.1");
        std::fs::create_dir_all(library.parent().unwrap()).unwrap();
        let source = tests().join("fake/nvml.c");
        let status = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).status();
        assert!(status.expect("a C compiler").success());
        for tool in ["nsys", "ncu"] {
            machine.install(tool);
        }
        machine
    }

    pub(crate) fn install(&self, tool: &str) {
        let folder = self.path("tools");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::copy(tests().join("fake").join(tool), folder.join(tool)).unwrap();
    }

    pub(crate) fn remove(&self, tool: &str) {
        std::fs::remove_file(self.path("tools").join(tool)).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = llm_perf();
        command.arg("deep");
        if !arguments.contains(&"--resume") && !arguments.contains(&"--collector") {
            command.args(["--collector", "nsys"]);
        }
        command.args(arguments).current_dir(self.home.path()).env_clear();
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .env("PATH", format!("{}:{path}", self.path("tools").display()))
            .env("HOME", self.home.path())
            .env("COLUMNS", "100")
            .env("LLM_PERF_DATA_DIR", self.path("data"))
            .env("FAKE_CAPTURES", tests().join("fixtures/deep"))
            .env("FAKE_METRICS", tests().join("fixtures/deep/metrics.txt.gz"))
            .env("FAKE_LOG", self.path("tools.log"));
        if self.has_gpu {
            command.env("LD_LIBRARY_PATH", self.path("lib"));
        }
        command
    }

    pub(crate) fn deep(&self, arguments: &[&str]) -> Output {
        Output::of(self.command(&[&["--out", "run"], arguments, &["--", "sh", "-c", "echo hello"]].concat()))
    }

    pub(crate) fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&std::fs::read(self.path("run").join(name)).unwrap_or_else(|_| panic!("{name}")))
            .unwrap()
    }

    pub(crate) fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path("run").join(name)).unwrap_or_else(|_| panic!("{name}"))
    }

    /// The tools' command lines so far, each as its first words.
    pub(crate) fn log(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.path("tools.log")).unwrap_or_default();
        text.lines().map(|line| line.replace(&self.home.path().display().to_string(), "HOME")).collect()
    }

    pub(crate) fn assert_valid(&self) {
        let run = self.path("run");
        let files = ["manifest.json", "metrics.json", "kernels.json", "env.json", "plan.json", "inputs.yaml"];
        let output = llm_perf().arg("validate").args(files.map(|file| run.join(file))).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}

impl Output {
    pub(crate) fn of(mut command: Command) -> Self {
        let output = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { code: output.status.code().unwrap_or(-1), stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }
}
