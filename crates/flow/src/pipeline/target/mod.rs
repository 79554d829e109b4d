//! What a profiler launches: a model on one of our engines, or any command of the user's.
//!
//! A target is an argument list, the environment variables that go with it, and a line that says in a report what it was.
//! Starting it, and what is recorded meanwhile, is left to the verbs.

mod engine;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use types::UserError;

pub use crate::pipeline::target::engine::{Engine, choose as choose_engine};

/// Something that can be launched and measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    kind: TargetKind,
    argv: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
}

/// Where a target comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// `llm-perf workload` with this engine: it pushes the ranges of the stages.
    Workload(Engine),
    /// A command of the user's; what it does is not known.
    Command,
}

impl Target {
    /// `program workload ARGUMENTS...`, where `program` is this program.
    pub fn workload(engine: Engine, program: &Path, arguments: impl IntoIterator<Item = OsString>) -> Self {
        let mut argv = vec![program.as_os_str().to_owned(), OsString::from("workload")];
        argv.extend(arguments);
        Self { kind: TargetKind::Workload(engine), argv, environment: Vec::new() }
    }

    /// A command of the user's, looked for on `PATH` as a shell would. It is checked now, before anything is measured.
    pub fn command(argv: Vec<OsString>) -> Result<Self, UserError> {
        let program = argv.first().filter(|program| !program.is_empty()).ok_or_else(no_command)?;
        find_program(program)?;
        Ok(Self { kind: TargetKind::Command, argv, environment: Vec::new() })
    }

    /// The same with one more environment variable.
    #[must_use]
    pub fn with_variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Where it comes from.
    pub fn kind(&self) -> TargetKind {
        self.kind
    }

    /// The program and its arguments.
    pub fn argv(&self) -> &[OsString] {
        &self.argv
    }

    /// The same with as little work as shows every kernel: a workload of ours runs one input once. A command is what it is.
    pub fn argv_once(&self) -> Vec<OsString> {
        let once = ["epochs", "samples_per_epoch", "repeats"].map(|what| format!("dataset.sampling.{what}=1"));
        let all = once.into_iter().chain(["dataset.sampling.warmup_rounds=0".to_owned()]);
        let fewer = all.filter(|_| self.is_workload()).map(OsString::from);
        self.argv.iter().cloned().chain(fewer).collect()
    }

    /// Whether it is a workload of ours.
    pub fn is_workload(&self) -> bool {
        matches!(self.kind, TargetKind::Workload(_))
    }

    /// Variables set in addition to those of this process.
    pub fn environment(&self) -> &[(OsString, OsString)] {
        &self.environment
    }

    /// What it is, in one line, for reports and manifests.
    pub fn description(&self) -> String {
        match self.kind {
            TargetKind::Workload(engine) => format!("the model under test on the {} engine", engine.name()),
            TargetKind::Command => collect::command_line(&self.argv),
        }
    }
}

/// Finds the program as `execvp` would: a name with a slash is a path, any other is looked for on `PATH`.
fn find_program(program: &OsStr) -> Result<PathBuf, UserError> {
    let given = Path::new(program);
    let is_path = program.as_encoded_bytes().contains(&b'/');
    collect::tool::find_program(program, &collect::tool::path_folders()).ok_or_else(|| {
        let program = given.display();
        if is_path && given.is_file() {
            return UserError::usage(format!("{program} is not executable")).hint(format!(
                "run it with its interpreter, as in `-- python3 {program}`, or make it executable with chmod +x"
            ));
        }
        UserError::usage(format!("program `{program}` not found{}", if is_path { "" } else { " on PATH" }))
    })
}

/// An argument list without a program.
pub(crate) fn no_command() -> UserError {
    UserError::usage("no command after `--`")
        .hint("put the command to measure last: llm-perf profile -- python serve.py")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn a_workload_is_this_program_with_its_arguments() {
        let target = Target::workload(Engine::Torch, Path::new("/opt/llm-perf"), words("--engine torch"));
        assert_eq!(target.argv(), words("/opt/llm-perf workload --engine torch"));
        assert_eq!(target.kind(), TargetKind::Workload(Engine::Torch));
        assert_eq!(target.description(), "the model under test on the torch engine");
        assert_eq!(target.argv_once()[..4], *target.argv());
        assert!(target.argv_once().contains(&OsString::from("dataset.sampling.repeats=1")));
    }

    #[test]
    fn a_command_is_kept_as_it_was_given_and_shown_as_one_would_type_it() {
        let argv: Vec<OsString> = ["sh", "-c", "echo 'a b'", ""].map(OsString::from).to_vec();
        let target = Target::command(argv.clone()).unwrap().with_variable("A", "1");
        assert_eq!(target.argv(), argv);
        assert_eq!(target.argv_once(), argv);
        assert_eq!(target.environment(), [(OsString::from("A"), OsString::from("1"))]);
        assert_eq!(target.description(), r"sh -c 'echo '\''a b'\''' ''");
    }

    #[test]
    fn what_cannot_be_started_is_found_before_anything_is_measured() {
        assert_eq!(Target::command(Vec::new()), Err(no_command()));
        let error = Target::command(words("no-such-program-anywhere")).unwrap_err();
        assert_eq!(error.to_string(), "program `no-such-program-anywhere` not found on PATH");
        let error = Target::command(words("./nowhere/serve")).unwrap_err();
        assert_eq!(error.to_string(), "program `./nowhere/serve` not found");
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = Target::command(vec![file.path().into()]).unwrap_err();
        assert!(error.to_string().ends_with("is not executable"), "{error}");
        assert!(error.hints[0].starts_with("run it with its interpreter"));
    }
}
