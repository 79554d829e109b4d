//! Why points, or a calibration, cannot be used.

use types::{Exit, Failure};

/// What is wrong with what was given.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ForecastError {
    /// A row of a table.
    #[error("{file}:{line}: {reason}")]
    Row {
        /// The table.
        file: String,
        /// Counted from one, the header included.
        line: u64,
        /// What is wrong.
        reason: String,
        /// What to do about it.
        fix: String,
    },
    /// Fewer points than a curve needs.
    #[error("{group} has {points} points; a curve needs at least {needed}")]
    TooFew {
        /// Operation and element type.
        group: String,
        /// Points there are.
        points: usize,
        /// Points needed.
        needed: usize,
    },
    /// A device without the rate that is needed.
    #[error("{device} has no dense {dtype} peak, which {op} needs")]
    NoPeak {
        /// The device.
        device: String,
        /// Element type.
        dtype: types::DType,
        /// Operation.
        op: &'static str,
    },
    /// A network that cannot be metered.
    #[error("cannot model a step: {0}")]
    Step(String),
    /// Attention whose time in a server nobody modelled.
    #[error("{op} is not modelled in a server")]
    NotServed {
        /// The operation.
        op: &'static str,
    },
    /// A calibration without the operation asked for.
    #[error("the calibration of {device} has no points for {group}; it has {known}")]
    NotCalibrated {
        /// The device.
        device: String,
        /// Operation and element type.
        group: String,
        /// What it has.
        known: String,
    },
}

impl Failure for ForecastError {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Row { fix, .. } => Some(fix.clone()),
            Self::TooFew { .. } => {
                Some("add more points, or remove the group; other groups do not depend on it".to_owned())
            }
            Self::NotCalibrated { device, .. } => {
                Some(format!("add points with `llm-perf doctor --calibrate --device {device} --points FILE`"))
            }
            Self::Step(_) => None,
            Self::NotServed { .. } => Some("`llm-perf analyze` forecasts single requests of such models".to_owned()),
            Self::NoPeak { .. } => Some("check the device and the element type of the points".to_owned()),
        }
    }
}

impl From<meter::MeterError> for ForecastError {
    fn from(error: meter::MeterError) -> Self {
        Self::Step(error.to_string())
    }
}
