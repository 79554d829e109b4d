//! What can go wrong while touching the machine.

use std::io::ErrorKind;
use std::path::PathBuf;

use types::{Exit, Failure};

/// Actions of [`CollectError::Io`] that change nothing, so that another output folder would not help.
const READING: [&str; 2] = ["read", "list"];

/// An error of this crate, by cause. The message is whole: it holds what the system said, so there is no `source`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CollectError {
    /// A file operation failed.
    #[error("cannot {action} {}: {reason}", path.display())]
    Io {
        /// What was tried, as a verb: `write`, `create folder`; `read` and `list` change nothing.
        action: &'static str,
        /// On which path.
        path: PathBuf,
        /// What the system said.
        reason: std::io::Error,
    },

    /// This program has no collector in it.
    #[error("this program was built without the CUDA collector")]
    NoCollector,

    /// Nowhere to keep what outlives a run.
    #[error("there is no folder for this user's data")]
    NoUserFolder,

    /// The chosen run folder is in use.
    #[error("{} {state}; a run needs a new or empty folder", path.display())]
    OutTaken {
        /// The folder.
        path: PathBuf,
        /// What it is: `is not empty`, `is a file`.
        state: &'static str,
    },

    /// A path that may not name a file of a run.
    #[error("{path:?} is not a valid path for a file of a run: {reason}")]
    BadRunPath {
        /// The path as given.
        path: String,
        /// Which rule it breaks.
        reason: &'static str,
    },

    /// Something the run did not write stands where it wants to write.
    #[error("{} already exists and was not written by this run", path.display())]
    FileExists {
        /// The file.
        path: PathBuf,
    },

    /// A link, folder or device where a plain file or folder of the run should be.
    #[error("{} is {found}, not a plain {expected}", path.display())]
    NotPlain {
        /// The offending entry.
        path: PathBuf,
        /// `file` or `folder`.
        expected: &'static str,
        /// What it is.
        found: &'static str,
    },

    /// A run folder that is not there.
    #[error("folder {} not found", path.display())]
    NoFolder {
        /// The folder.
        path: PathBuf,
    },

    /// A folder without a manifest.
    #[error("{} has no manifest.json: it is not a run, or it was stopped before it started", path.display())]
    NoManifest {
        /// The folder.
        path: PathBuf,
    },

    /// A manifest that cannot be understood.
    #[error("cannot read {} as a manifest: {reason}", path.display())]
    BadManifest {
        /// The manifest.
        path: PathBuf,
        /// What is wrong, with line and column.
        reason: serde_json::Error,
    },

    /// A bundle that is not what its index says, or none at all.
    #[error("cannot unpack {}: {place}: {reason}", path.display())]
    BadBundle {
        /// The bundle.
        path: PathBuf,
        /// The file inside, or the part of the bundle.
        place: String,
        /// What is wrong there.
        reason: String,
    },

    /// A file of a run that is not as its manifest lists it.
    #[error("{} does not match the manifest of its run", path.display())]
    NotAsListed {
        /// The file.
        path: PathBuf,
    },

    /// Something stands where a bundle is to be written.
    #[error("{} already exists", path.display())]
    BundleExists {
        /// The file.
        path: PathBuf,
    },

    /// A run that is larger than a bundle may be.
    #[error("the run is too large to pack: a bundle holds at most {files} files and {bytes}")]
    TooLargeToPack {
        /// Most files.
        files: usize,
        /// Most bytes.
        bytes: types::Bytes,
    },

    /// A run that somebody is still making.
    #[error("{} is still running", path.display())]
    StillRunning {
        /// The folder.
        path: PathBuf,
    },

    /// No run of that name.
    #[error("run `{selector}` not found in {}", root.display())]
    UnknownRun {
        /// What was asked for.
        selector: String,
        /// Where it was looked for.
        root: PathBuf,
        /// The run with the most similar name.
        nearest: Option<String>,
    },

    /// `latest`, where no run is of the kind that is asked for.
    #[error("no run in {} {wanted}", root.display())]
    NoFittingRun {
        /// Where it was looked for.
        root: PathBuf,
        /// What such a run is.
        wanted: &'static str,
    },

    /// The start of several names.
    #[error("`{selector}` matches {} runs in {}: {}", matches.len(), root.display(), matches.join(", "))]
    AmbiguousRun {
        /// What was asked for.
        selector: String,
        /// Where it was looked for.
        root: PathBuf,
        /// The runs it may mean, newest first.
        matches: Vec<String>,
    },

    /// A helper program could not be started.
    #[error("cannot start {}: {reason}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// What the system said.
        reason: std::io::Error,
    },

    /// A helper program did not do what it was asked.
    #[error("{} failed: {reason}", program.display())]
    Tool {
        /// The program.
        program: PathBuf,
        /// How it ended and what it said.
        reason: String,
    },

    /// There is no interpreter.
    #[error("{}", no_python(named.as_deref()))]
    NoPython {
        /// What was asked for; absent: any.
        named: Option<String>,
    },

    /// No interpreter has torch.
    #[error("no Python interpreter with torch found; tried: {}", asked.join(", "))]
    NoTorch {
        /// Those that were asked.
        asked: Vec<String>,
    },

    /// No interpreter has the engine that runs SQL.
    #[error("no Python interpreter with {engine} found; tried: {}", asked.join(", "))]
    NoQueryEngine {
        /// The package, or packages, one of which would do.
        engine: &'static str,
        /// What to install.
        install: &'static str,
        /// Those that were asked.
        asked: Vec<String>,
    },

    /// The processor could not be measured.
    #[error("cannot calibrate this CPU: {what}: {reason}")]
    Calibration {
        /// What was being measured.
        what: String,
        /// What went wrong.
        reason: String,
    },

    /// Kept rates that cannot be understood.
    #[error("cannot read {} as a calibration: {reason}", path.display())]
    BadCalibration {
        /// The file.
        path: PathBuf,
        /// What is wrong, with line and column.
        reason: serde_json::Error,
    },

    /// Measured rates could not be kept.
    #[error("cannot store measured rates in {}: {reason}", path.display())]
    NotKept {
        /// The folder or file.
        path: PathBuf,
        /// What the system said.
        reason: std::io::Error,
    },

    /// There is no folder for what the tool keeps between runs.
    #[error("no folder to store measured rates in: LLM_PERF_DATA_DIR, XDG_DATA_HOME and HOME are all unset")]
    NoDataFolder,
}

impl CollectError {
    /// An [`CollectError::Io`], for `map_err`.
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |reason| Self::Io { action, path, reason }
    }
}

impl Failure for CollectError {
    fn exit(&self) -> Exit {
        match self {
            Self::OutTaken { .. }
            | Self::NoFolder { .. }
            | Self::NoManifest { .. }
            | Self::UnknownRun { .. }
            | Self::NoFittingRun { .. }
            | Self::StillRunning { .. }
            | Self::BundleExists { .. }
            | Self::AmbiguousRun { .. }
            | Self::NoPython { named: Some(_) } => Exit::Usage,
            _ => Exit::Failed,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Io { action, reason, .. } => match reason.kind() {
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                    Some("free some space, or write the run to another disk with `--out DIR`".to_owned())
                }
                ErrorKind::FileTooLarge => Some("lift the file size limit with `ulimit -f unlimited`".to_owned()),
                ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem if !READING.contains(action) => {
                    Some("use a writable folder; `--out DIR` sets the run folder".to_owned())
                }
                ErrorKind::NotADirectory => Some("part of that path is a file; choose another folder".to_owned()),
                // What a folder is made below is a file.
                ErrorKind::AlreadyExists if *action == "create folder" => {
                    Some("part of that path is a file; choose another folder".to_owned())
                }
                _ => None,
            },
            Self::NoUserFolder => Some("set LLM_PERF_DATA_DIR to a folder".to_owned()),
            Self::NoCollector => Some(
                "the collector is built for Linux with glibc on x86_64 and aarch64; to use one built elsewhere, set \
                 LLM_PERF_INJECT_LIBRARY to its path"
                    .to_owned(),
            ),
            Self::OutTaken { .. } => Some("nothing was overwritten; choose another folder with `--out DIR`".to_owned()),
            Self::FileExists { .. } => Some("nothing was overwritten; move it away and run again".to_owned()),
            Self::NoFolder { .. } | Self::NoManifest { .. } => Some("list the runs with `llm-perf runs`".to_owned()),
            Self::UnknownRun { nearest, root, .. } => Some(match nearest {
                Some(nearest) => format!("did you mean `{nearest}`?"),
                None => format!("list the runs with `llm-perf runs --root {}`", root.display()),
            }),
            Self::NoFittingRun { root, .. } => {
                Some(format!("list the runs with `llm-perf runs --root {}`", root.display()))
            }
            Self::BadBundle { reason, .. } if reason.contains("newer llm-perf") => {
                Some("nothing was unpacked; update llm-perf and unpack it again".to_owned())
            }
            Self::BadBundle { .. } => {
                Some("nothing was unpacked; the file may be truncated or damaged; copy it again".to_owned())
            }
            Self::NotAsListed { .. } => Some("list the changed files with `llm-perf runs RUN --verify`".to_owned()),
            Self::BundleExists { .. } => {
                Some("nothing was overwritten; choose another file with `--out FILE`".to_owned())
            }
            Self::TooLargeToPack { .. } => Some("leave out the raw profiler files with `--redact`".to_owned()),
            Self::StillRunning { .. } => Some("wait for it to finish, or stop its process first".to_owned()),
            Self::AmbiguousRun { .. } => Some("give more of the name, or use `latest`".to_owned()),
            Self::BadCalibration { .. } => {
                Some("measure again with `llm-perf doctor --calibrate`, which replaces it".to_owned())
            }
            Self::NoPython { .. } | Self::NoTorch { .. } => Some(
                "choose the interpreter your models run with: pass --python PATH or set LLM_PERF_PYTHON".to_owned(),
            ),
            Self::NoQueryEngine { install, .. } => Some(format!(
                "run `pip install {install}`, or choose an interpreter that has it: pass --python PATH or set \
                 LLM_PERF_PYTHON"
            )),
            Self::NoDataFolder | Self::NotKept { .. } => Some("set LLM_PERF_DATA_DIR to a writable folder".to_owned()),
            _ => None,
        }
    }
}

fn no_python(named: Option<&str>) -> String {
    match named {
        Some(named) => format!("Python interpreter `{named}` not found"),
        None => "python3 not found on PATH".to_owned(),
    }
}
