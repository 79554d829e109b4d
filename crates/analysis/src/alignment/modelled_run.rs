//! What the model says should run.

use std::collections::BTreeMap;

use types::{Cost, Nanos, Op, Stage};

/// One operation of the model and its total cost over all instances of its stage.
#[derive(Clone, Debug)]
pub struct ModelledOperator {
    /// Path of its module, as in the checkpoint.
    pub module: String,
    /// Class of that module.
    pub class: String,
    /// The innermost stage it belongs to.
    pub stage: Stage,
    /// What is done.
    pub op: Op,
    /// Shape of the weight it applies.
    pub weight: Option<Vec<u64>>,
    /// Whether it is inside experts, of which a run applies as many as its tokens choose.
    pub spread: bool,
    /// Operations and traffic.
    pub cost: Cost,
    /// Roofline time of that on the device; absent when its peaks are not known.
    pub roofline: Option<Nanos>,
}

/// A model's forward passes, operation by operation, in order.
#[derive(Clone, Debug, Default)]
pub struct ModelledRun {
    /// The prefill pass, vision included.
    pub prefill: Vec<ModelledOperator>,
    /// One decode step; costs are those of all steps.
    pub decode: Vec<ModelledOperator>,
    /// Classes by module path, for modules that have no operation of their own.
    pub classes: BTreeMap<String, String>,
}
