//! Why there is no region report.

use std::path::PathBuf;

use analysis::region::SelectionError;
use collect::tool::{Complaint, Shortfall};
use ingest::IngestError;
use types::{Exit, Failure};

use super::plan::PlanError;
use crate::CollectError;
use crate::pipeline::device::hardware::DeviceError;

/// Why there is no region report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegionsError {
    /// The profiler is missing or does not serve.
    #[error("cannot use Nsight Compute: {}", .0.found)]
    NoProfiler(Shortfall),
    /// The profiler complained, and there is nothing to report.
    #[error("{}", complaint.message())]
    Refused {
        /// About what.
        complaint: Complaint,
        /// The last it said.
        said: Vec<String>,
        /// Where all of it is.
        log: String,
    },
    /// The profiler failed with words that are not known.
    #[error("Nsight Compute {ending}")]
    Failed {
        /// How it ended.
        ending: String,
        /// The last it said.
        said: Vec<String>,
        /// Where all of it is.
        log: String,
    },
    /// The user ended it.
    #[error("interrupted")]
    Interrupted,
    /// What was asked for cannot be planned.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A pattern of kernels.
    #[error("ncu_cli.{key}: {error}")]
    Selection {
        /// The key.
        key: &'static str,
        /// What is wrong with it.
        error: SelectionError,
    },
    /// A page cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: std::io::Error,
    },
    /// A file that is no raw page.
    #[error("{file} is {found}, not a raw page of Nsight Compute")]
    NotRaw {
        /// The file.
        file: String,
        /// What it is.
        found: &'static str,
    },
    /// A page a reader refuses.
    #[error(transparent)]
    Ingest(#[from] IngestError),
    /// The device.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The run folder, or a program that cannot be started.
    #[error(transparent)]
    Collect(#[from] CollectError),
}

impl Failure for RegionsError {
    fn exit(&self) -> Exit {
        match self {
            Self::Plan(error) => error.exit(),
            Self::Selection { .. }
            | Self::NotRaw { .. }
            | Self::Refused {
                complaint: Complaint::NoProgram | Complaint::UnknownMetric | Complaint::UnknownSection,
                ..
            } => Exit::Usage,
            Self::Device(error) => error.exit(),
            Self::Collect(error) => error.exit(),
            _ => Exit::Failed,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::NoProfiler(shortfall) => Some(format!("{}; or read existing pages with --from", shortfall.next_step))
                .filter(|text| !text.is_empty()),
            Self::Refused { complaint, .. } => Some(complaint.hint().to_owned()),
            Self::Failed { log, .. } => Some(format!("its full output is in {log}")),
            Self::Plan(error) => error.hint(),
            Self::NotRaw { .. } => Some("write one with `ncu --import FILE --csv --page raw`".to_owned()),
            Self::Ingest(error) => error.hint(),
            Self::Device(error) => error.hint(),
            Self::Collect(error) => error.hint(),
            Self::Selection { .. } => Some("names match exactly; start a pattern with regex:".to_owned()),
            Self::Interrupted | Self::Unreadable { .. } => None,
        }
    }

    fn quoted(&self) -> &[String] {
        match self {
            Self::Refused { said, .. } | Self::Failed { said, .. } => said,
            _ => &[],
        }
    }
}
