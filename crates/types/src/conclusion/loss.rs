//! Lost time: what a stage took beyond the roofline time of its work, by cause.

use serde::{Deserialize, Serialize};

use crate::{JsonSchema, Nanos, Remark, Stage};

/// Time of one stage that was lost to one cause. Causes do not overlap: those of a stage add up to what it lost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LostTime {
    /// Prefill or decode, nested stages being part of them; absent for work in no stage.
    pub stage: Option<Stage>,
    /// Where the time went, such as `launch overhead` or `elementwise kernels`.
    pub cause: Remark,
    /// How much, over all instances of the stage.
    pub lost_ns: Nanos,
    /// The same as a share of the run.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub share: Option<f64>,
    /// The part of it that findings say how to save.
    pub claimed_ns: Nanos,
    /// Those findings, by rule.
    #[serde(deserialize_with = "crate::conclusion::finding::rules")]
    pub rules: Vec<String>,
}
