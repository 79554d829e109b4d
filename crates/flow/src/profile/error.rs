//! Why there is no profile.

use std::path::PathBuf;

use engine::{EngineError, InputError};
use meter::MeterError;

use crate::CollectError;
use crate::analyze::AnalyzeError;
use crate::hardware::DeviceError;

/// Why there is no profile.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// A model this verb cannot run yet.
    #[error("{model} takes no pages; this version profiles models that read pages")]
    NoPages {
        /// The model.
        model: String,
    },
    /// No dataset of that name ships with the program.
    #[error("no dataset `builtin:{name}` ships with the program; there is `builtin:pages`")]
    NoDataset {
        /// What was asked for.
        name: String,
    },
    /// A dataset without images.
    #[error("no image under {root} matches {patterns}")]
    NoImages {
        /// The folder.
        root: String,
        /// The patterns.
        patterns: String,
    },
    /// Images, but none that can be read.
    #[error("none of the {count} images can be used; the first: {problem}")]
    NoUsableImages {
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
    #[error("the pages that ship with the program are broken: {reason}")]
    Shipped {
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
            Self::NoImages { .. } => {
                Some("PNG and JPEG are read; --inputs takes a folder, a file or a pattern".to_owned())
            }
            Self::NoPages { .. } => {
                Some("`llm-perf analyze` models it; `llm-perf models` lists what can be run".to_owned())
            }
            Self::Collect(error) => error.hint(),
            Self::Analyze(error) => error.hint(),
            _ => None,
        }
    }

    /// Whether the request was wrong, rather than the run failing.
    pub fn is_wrong_usage(&self) -> bool {
        match self {
            Self::NoPages { .. }
            | Self::NoDataset { .. }
            | Self::NoImages { .. }
            | Self::Pattern { .. }
            | Self::Setting { .. }
            | Self::Unreadable { .. } => true,
            Self::Collect(error) => error.is_wrong_usage(),
            Self::Analyze(error) => error.is_wrong_usage(),
            _ => false,
        }
    }
}
