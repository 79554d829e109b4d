//! Summary statistics of repeated measurements. Computing them is left to `analysis`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{JsonSchema, Stage};

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

/// Why samples differ: runs of one input among themselves, and inputs among each other.
///
/// Both are coefficients of variation, a standard deviation as a share of its centre. A stage without enough samples is
/// `null`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Variance {
    /// Spread of one input's runs, pooled over the inputs; absent where no input ran twice.
    pub repeat_cv_per_stage: BTreeMap<Stage, Option<f64>>,
    /// Spread of the inputs' medians; absent with one input.
    pub input_cv_per_stage: BTreeMap<Stage, Option<f64>>,
}
