//! Why there is no profile.

use std::path::PathBuf;

use engine::{EngineError, InputError};
use meter::MeterError;
use types::{Bytes, DType};

use crate::CollectError;
use crate::analyze::AnalyzeError;
use crate::hardware::DeviceError;

/// Why there is no profile.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// An input that is not what the network takes.
    #[error("{name} is not what this model takes")]
    WrongFeed {
        /// The input.
        name: String,
    },
    /// A prompt with more tokens than are run.
    #[error("{name} has {tokens} tokens; at most {most} are run")]
    PromptTooLong {
        /// The input.
        name: String,
        /// Its tokens.
        tokens: u64,
        /// The most.
        most: u64,
    },
    /// A model that does not fit the memory.
    #[error("the weights of {model} take {needed} in {dtype}, and {available} of memory are free")]
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
    #[error("no dataset `builtin:{name}` ships with the program; there are `builtin:pages` and `builtin:prompts`")]
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
    #[error("dataset.{key}: `{pattern}` is no pattern: {reason}")]
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
    #[error("the {dataset} that ship with the program are broken: {reason}")]
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
    /// The next step, where there is one that the message does not already say.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoInputs { .. } => Some(
                "models that read pages take PNG and JPEG, others text files; --inputs takes a folder, a file or a \
                 pattern"
                    .to_owned(),
            ),
            Self::Memory { halved: true, .. } => Some("model.dtype=bfloat16 takes half of it".to_owned()),
            Self::Memory { .. } => {
                Some("`llm-perf analyze` models it without running it; `llm-perf models` lists smaller ones".to_owned())
            }
            Self::Collect(error) => error.hint(),
            Self::Analyze(error) => error.hint(),
            _ => None,
        }
    }

    /// Whether one input is to blame, so that the others can be run without it.
    pub(super) fn is_about_one_input(&self) -> bool {
        matches!(self, Self::Input(_) | Self::PromptTooLong { .. })
    }

    /// Whether the request was wrong, rather than the run failing.
    pub fn is_wrong_usage(&self) -> bool {
        match self {
            Self::NoDataset { .. }
            | Self::NoInputs { .. }
            | Self::Pattern { .. }
            | Self::Setting { .. }
            | Self::Unreadable { .. } => true,
            Self::Collect(error) => error.is_wrong_usage(),
            Self::Analyze(error) => error.is_wrong_usage(),
            _ => false,
        }
    }
}
