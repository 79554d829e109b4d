//! Why there is no import.

pub(crate) mod tables;

use std::path::PathBuf;

use ingest::IngestError;
use meter::{MeterError, WorkloadError};
use types::{Exit, Failure};

use crate::CollectError;
use crate::pipeline::device::hardware::DeviceError;
use crate::pipeline::error::tables::TablesError;
use crate::pipeline::model::analytic::AnalyzeError;

/// Why there is no import.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// A file cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: std::io::Error,
    },
    /// What a pipe or a compressed file holds cannot be put aside.
    #[error("cannot unpack {} into {}: {reason}", path.display(), folder.display())]
    TemporaryFolder {
        /// The file.
        path: PathBuf,
        /// The folder for temporary files.
        folder: PathBuf,
        /// What the system said.
        reason: std::io::Error,
    },
    /// A file of a kind nobody here knows.
    #[error("{file} is not a supported trace")]
    UnknownFormat {
        /// The file.
        file: String,
        /// What is known.
        known: String,
    },
    /// A file of a known kind that says nothing a run could be made of.
    #[error("{file}: {reason}")]
    NothingInside {
        /// The file.
        file: String,
        /// What it says instead.
        reason: String,
        /// What to do.
        hint: String,
    },
    /// A report that only its own tool reads, which is not here.
    #[error("reading {} requires {tool}: {found}", file.display())]
    NoTool {
        /// The report.
        file: PathBuf,
        /// The tool.
        tool: &'static str,
        /// What was found of it.
        found: String,
        /// How to export the report.
        by_hand: String,
    },
    /// The tool of a report did not export it.
    #[error("cannot export {}: `{command}` {ending}{said}", file.display())]
    ToolFailed {
        /// The report.
        file: PathBuf,
        /// What was typed.
        command: String,
        /// How it ended.
        ending: String,
        /// The last it said.
        said: String,
        /// How to export the report.
        by_hand: String,
    },
    /// Files that cannot be of one run.
    #[error("{one} and {other} are not from one run: {why}")]
    NotOneRun {
        /// One file.
        one: String,
        /// Another.
        other: String,
        /// What tells.
        why: String,
    },
    /// A file a reader refuses.
    #[error(transparent)]
    Ingest(#[from] IngestError),
    /// The workload.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// Metering.
    #[error(transparent)]
    Meter(#[from] MeterError),
    /// The device that was named.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The device that was named does not say how fast it is in the model's element type.
    #[error("{device} has no {dtype} matrix peak")]
    NoRate {
        /// The device.
        device: String,
        /// The element type.
        dtype: types::DType,
    },
    /// The analytic model beside it.
    #[error(transparent)]
    Analytic(#[from] Box<AnalyzeError>),
    /// The tables beside it.
    #[error(transparent)]
    Tables(#[from] TablesError),
    /// A document could not be written down.
    #[error(transparent)]
    Report(#[from] report::ReportError),
    /// The run folder.
    #[error(transparent)]
    Collect(#[from] CollectError),
}

impl Failure for ImportError {
    fn exit(&self) -> Exit {
        match self {
            Self::UnknownFormat { .. }
            | Self::NotOneRun { .. }
            | Self::Workload(_)
            | Self::Meter(_)
            | Self::NoRate { .. } => Exit::Usage,
            Self::Device(error) => error.exit(),
            Self::Analytic(error) => error.exit(),
            Self::Collect(error) => error.exit(),
            Self::Tables(error) => error.exit(),
            Self::Unreadable { .. }
            | Self::TemporaryFolder { .. }
            | Self::NothingInside { .. }
            | Self::NoTool { .. }
            | Self::ToolFailed { .. }
            | Self::Ingest(_)
            | Self::Report(_) => Exit::Failed,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownFormat { known, .. } => {
                Some(format!("supported formats: {known}; each may be compressed with gzip or zstd"))
            }
            Self::NothingInside { hint, .. } => Some(hint.clone()),
            Self::TemporaryFolder { .. } => Some(
                "set TMPDIR to a folder on a disk with more space, or decompress the file first and import the result"
                    .to_owned(),
            ),
            Self::NoTool { tool, by_hand, .. } => {
                Some(format!("export it where {tool} is installed, then import the result: `{by_hand}`"))
            }
            Self::ToolFailed { by_hand, .. } => {
                Some(format!("export it with the release that recorded it, then import the result: `{by_hand}`"))
            }
            Self::NotOneRun { .. } => {
                Some("import each one separately, then run `llm-perf compare` on the two runs".to_owned())
            }
            Self::Ingest(error) => error.hint(),
            Self::Device(error) => error.hint(),
            Self::Analytic(error) => error.hint(),
            Self::NoRate { .. } => Some("choose another element type with workload.dtype=NAME".to_owned()),
            Self::Collect(error) => error.hint(),
            Self::Tables(error) => error.hint(),
            Self::Unreadable { .. } | Self::Workload(_) | Self::Meter(_) | Self::Report(_) => None,
        }
    }
}
