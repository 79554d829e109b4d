//! The analytic model checked against a FLOP counter on the same forward pass.

use serde::{Deserialize, Serialize};

use crate::{Flops, JsonSchema, Stage};

/// One forward pass, counted twice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlopCheck {
    /// The input.
    pub input: String,
    /// Prefill, or decode for its first step.
    pub stage: Stage,
    /// As the analytic model has it; absent where the model is not known to it.
    pub flops_modelled: Option<Flops>,
    /// As `torch.utils.flop_counter` counted it.
    pub flops_counted: Flops,
    /// How far the model is from the counter, as a share of the counter's; absent where either is not known.
    pub difference: Option<f64>,
    /// How it was counted.
    pub notes: Vec<String>,
}
