//! Why there is no sweep.

use types::{Exit, Failure};

use crate::CollectError;
use crate::pipeline::device::hardware::DeviceError;
use crate::pipeline::model::analytic::AnalyzeError;

/// Why there is no sweep.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SweepError {
    /// A key that cannot vary.
    #[error("--sweep {key}: only workload settings can be swept")]
    NoWorkloadKey {
        /// The key.
        key: String,
    },
    /// One key on two axes.
    #[error("--sweep {key} is given twice")]
    SameKey {
        /// The key.
        key: String,
    },
    /// An axis without values.
    #[error("--sweep {key} has no values")]
    NoValues {
        /// The key.
        key: String,
    },
    /// More points than are taken seriously.
    #[error("the sweep has {points} points; the limit is {most}")]
    TooMany {
        /// How many.
        points: u128,
        /// The most.
        most: u64,
    },
    /// Not one point can be modelled.
    #[error("none of the {count} points can be modelled; the first: {first}")]
    Nothing {
        /// How many there are.
        count: usize,
        /// What is wrong with the first.
        first: String,
    },
    /// A setting shared with a single analysis.
    #[error(transparent)]
    Analyze(#[from] AnalyzeError),
    /// A device.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The run folder.
    #[error(transparent)]
    Collect(#[from] CollectError),
}

impl Failure for SweepError {
    fn exit(&self) -> Exit {
        match self {
            Self::Analyze(error) => error.exit(),
            Self::Device(error) => error.exit(),
            Self::Collect(error) => error.exit(),
            _ => Exit::Usage,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::NoWorkloadKey { .. } => {
                Some("sweep devices with --hardware NAME,NAME; use one run per model".to_owned())
            }
            Self::Analyze(error) => error.hint(),
            Self::Device(error) => error.hint(),
            Self::Collect(error) => error.hint(),
            _ => None,
        }
    }
}
