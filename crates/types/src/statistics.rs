//! Summary statistics of repeated measurements. Computing them is left to `analysis`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Centre and spread of `n` samples. Spread is absent where too few samples define it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Statistics {
    /// Arithmetic mean.
    pub mean: f64,
    /// Sample standard deviation; absent below two samples.
    pub std: Option<f64>,
    /// Median.
    pub median: f64,
    /// Median absolute deviation from the median; absent below two samples.
    pub mad: Option<f64>,
    /// Smallest sample.
    pub min: f64,
    /// Largest sample.
    pub max: f64,
    /// Number of samples.
    pub n: u64,
}
