//! Why a workload cannot be metered.

use network::NetworkError;
use types::{Exit, Failure};

use crate::shard::UnevenSplit;

/// Why a workload could not be metered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeterError {
    /// The network refused.
    #[error("cannot model the {pass} pass: {source}")]
    Network {
        /// Which pass.
        pass: &'static str,
        /// What the network says.
        source: NetworkError,
    },
    /// More traffic or memory than 64 bits count.
    #[error("the {pass} pass moves or holds more than 18 exabytes; choose a smaller batch or a shorter prompt")]
    TooLarge {
        /// Which pass.
        pass: &'static str,
    },
    /// Devices cannot share it evenly.
    #[error(transparent)]
    UnevenSplit(#[from] UnevenSplit),
    /// Two decode steps ran different operations, or one got cheaper with a longer cache.
    #[error("decode steps differ at operation {index} ({op}), so their costs cannot be summed")]
    NotAffine {
        /// Which operation.
        index: usize,
        /// Its name.
        op: &'static str,
    },
}

impl Failure for MeterError {
    fn exit(&self) -> Exit {
        Exit::Usage
    }
}
