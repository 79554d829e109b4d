//! Why there is no profile.

use std::path::PathBuf;

use collect::tool::torch::FailureKind;
use engine::{EngineError, InputError};
use meter::MeterError;
use types::{Bytes, DType, Exit, Failure, Remedy};

use crate::CollectError;
use crate::pipeline::device::hardware::DeviceError;
use crate::pipeline::error::ImportError;
use crate::pipeline::model::ModelError;
use crate::pipeline::model::analytic::AnalyzeError;
use crate::pipeline::target::TargetError;

/// Why there is no profile.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// An input that is not what the network takes.
    #[error("this model does not accept {name}")]
    WrongFeed {
        /// The input.
        name: String,
    },
    /// A prompt with more tokens than are run.
    #[error("{name} has {tokens} tokens; the limit is {most}")]
    PromptTooLong {
        /// The input.
        name: String,
        /// Its tokens.
        tokens: u64,
        /// The most.
        most: u64,
    },
    /// A model that does not fit the memory.
    #[error("the weights of {model} take {needed} in {dtype}, but only {available} of memory is free")]
    Memory {
        /// The model.
        model: String,
        /// Memory of the weights.
        needed: Bytes,
        /// Their element type.
        dtype: DType,
        /// Memory there is.
        available: Bytes,
        /// Whether they would fit in half of it.
        halved: bool,
    },
    /// No dataset of that name ships with the program.
    #[error("unknown dataset `builtin:{name}`; expected `builtin:pages` or `builtin:prompts`")]
    NoDataset {
        /// What was asked for.
        name: String,
    },
    /// A dataset without files.
    #[error("no file under {root} matches {patterns}")]
    NoInputs {
        /// The folder.
        root: String,
        /// The patterns.
        patterns: String,
    },
    /// Inputs, but none that can be used.
    #[error("none of the {count} inputs can be used; the first: {problem}")]
    NoUsableInputs {
        /// How many there are.
        count: usize,
        /// What is wrong with the first.
        problem: String,
    },
    /// A pattern that is none.
    #[error("dataset.{key}: invalid pattern `{pattern}`: {reason}")]
    Pattern {
        /// Which key.
        key: &'static str,
        /// The pattern.
        pattern: String,
        /// What is wrong.
        reason: String,
    },
    /// A file cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: std::io::Error,
    },
    /// What ships with the program is broken.
    #[error("the built-in {dataset} are broken: {reason}")]
    Shipped {
        /// Which dataset.
        dataset: String,
        /// How.
        reason: String,
    },
    /// A setting out of range.
    #[error("{key} is {found}; it must be {expected}")]
    Setting {
        /// The key.
        key: &'static str,
        /// What it must be.
        expected: &'static str,
        /// What it is.
        found: String,
    },
    /// A remedy of another engine.
    #[error("remedy `{remedy}` requires the {} engine, but this run uses {engine}", remedy.engines().join(" and "))]
    OtherEngine {
        /// The remedy.
        remedy: Remedy,
        /// The engine.
        engine: String,
    },
    /// A folder that holds no model.
    #[error("{} has no config.json", path.display())]
    NoConfig {
        /// The folder.
        path: PathBuf,
    },
    /// A config.json that is none.
    #[error("{} is not a valid config.json: {reason}", path.display())]
    BadConfig {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// Nothing says which model is meant.
    #[error("no model given")]
    NoModel,
    /// The Python driver gave up.
    #[error("{message}")]
    Driver {
        /// What kind of trouble.
        kind: FailureKind,
        /// In a sentence.
        message: String,
        /// Where in Python, line by line.
        traceback: Vec<String>,
    },
    /// Another rank is not there.
    #[error("rank {rank}: {problem}")]
    Rank {
        /// Which.
        rank: u32,
        /// What is wrong.
        problem: String,
    },
    /// The model.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The command.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The trace.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// The user stopped the run.
    #[error("stopped by the user after {done} of {total} inferences")]
    Stopped {
        /// Done.
        done: u64,
        /// Planned.
        total: u64,
    },
    /// An input.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The model of the work.
    #[error(transparent)]
    Meter(#[from] MeterError),
    /// The analytic report.
    #[error(transparent)]
    Analyze(#[from] AnalyzeError),
    /// A device.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A document could not be written down.
    #[error(transparent)]
    Report(#[from] report::ReportError),
    /// The machine or the run folder.
    #[error(transparent)]
    Collect(#[from] CollectError),
}

impl ProfileError {
    /// The driver gave up.
    pub(crate) fn driver(kind: FailureKind, message: String, traceback: Option<String>) -> Self {
        let traceback = traceback.iter().flat_map(|text| text.trim_end().lines()).map(str::to_owned).collect();
        Self::Driver { kind, message, traceback }
    }

    /// Whether one input is to blame, so that the others can be run without it.
    pub(super) fn is_about_one_input(&self) -> bool {
        matches!(self, Self::Input(_) | Self::PromptTooLong { .. })
    }
}

impl Failure for ProfileError {
    fn exit(&self) -> Exit {
        match self {
            Self::NoDataset { .. }
            | Self::NoInputs { .. }
            | Self::Pattern { .. }
            | Self::Setting { .. }
            | Self::NoConfig { .. }
            | Self::BadConfig { .. }
            | Self::NoModel
            | Self::OtherEngine { .. }
            | Self::Unreadable { .. }
            | Self::Driver { kind: FailureKind::RemoteCode | FailureKind::Device | FailureKind::Settings, .. } => {
                Exit::Usage
            }
            Self::Model(error) => error.exit(),
            Self::Target(error) => error.exit(),
            Self::Import(error) => error.exit(),
            Self::Collect(error) => error.exit(),
            Self::Analyze(error) => error.exit(),
            _ => Exit::Failed,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::NoInputs { .. } => Some(
                "use PNG or JPEG files for models that read pages, and text files for others; --inputs takes a folder, \
                 a file or a pattern"
                    .to_owned(),
            ),
            Self::Memory { halved: true, .. } => {
                Some("use model.dtype=bfloat16, which takes half the memory".to_owned())
            }
            Self::Memory { .. } => Some(
                "model it without running it: `llm-perf analyze`; or choose a smaller one: `llm-perf models`"
                    .to_owned(),
            ),
            Self::Engine(EngineError::MissingShards { .. }) => Some(
                "the download is incomplete; download the rest, or pass another folder with --weights DIR".to_owned(),
            ),
            Self::OtherEngine { engine, .. } => {
                Some(format!("try the remedies of the {engine} engine with --try auto"))
            }
            Self::NoConfig { .. } => Some("pass the folder of a Hugging Face model, or a config.json".to_owned()),
            Self::Driver { kind, .. } => driver_hint(*kind).map(str::to_owned),
            Self::Model(error) => error.hint(),
            Self::Target(error) => error.hint(),
            Self::Import(error) => error.hint(),
            Self::Collect(error) => error.hint(),
            Self::Analyze(error) => error.hint(),
            _ => None,
        }
    }

    fn quoted(&self) -> &[String] {
        match self {
            Self::Driver { traceback, .. } => traceback,
            _ => &[],
        }
    }
}

/// What a user can do about a driver that gave up.
fn driver_hint(kind: FailureKind) -> Option<&'static str> {
    Some(match kind {
        FailureKind::Torch => "pass an interpreter that has torch: --python PATH",
        FailureKind::Transformers => "install transformers for that interpreter, or pass another one: --python PATH",
        FailureKind::RemoteCode => "read the code, then allow it with --trust-remote-code",
        FailureKind::Config => "for a model with its own code, pass the folder with that code and --trust-remote-code",
        FailureKind::Memory => {
            "reduce memory: fewer tokens (infer.max_new_tokens, infer.seq_len), a smaller batch, or \
             model.dtype=bfloat16"
        }
        FailureKind::Import => "install the missing package, or pass another interpreter: --python PATH",
        FailureKind::Factory => {
            "a factory takes no arguments and returns a torch.nn.Module, or a module and its inputs"
        }
        FailureKind::Pictures => "use a factory: --model module:factory",
        FailureKind::Settings => "use infer.logits=all",
        FailureKind::Device | FailureKind::Stopped | FailureKind::Model => return None,
    })
}
