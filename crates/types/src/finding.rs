//! Findings: a conclusion, the evidence it rests on and what acting on it would save.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Nanos, Severity, Stage};

/// One conclusion drawn from a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Stable rule id, such as `launch-bound`.
    pub rule: String,
    /// How much it matters.
    pub severity: Severity,
    /// Stage it concerns; absent when it concerns the whole run.
    pub stage: Option<Stage>,
    /// The numbers it rests on, each with its value.
    pub evidence: Vec<String>,
    /// Time that acting on it would save; absent when this run's numbers do not tell.
    pub saves_ns: Option<Nanos>,
    /// The same as a share of the run.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub saves_share: Option<f64>,
    /// What to try.
    pub advice: String,
}
