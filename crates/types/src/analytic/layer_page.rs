//! What the page of one module class shows. Markdown is made of it elsewhere.

use crate::{Cost, Origin, Seconds};

/// One formula with its numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormulaLine {
    /// What it gives, such as `flops_matrix`.
    pub quantity: String,
    /// In symbols.
    pub formula: String,
    /// With the numbers put in; evaluates to `value`.
    pub substituted: String,
    /// The result.
    pub value: u128,
    /// Modelled, or assumed where an expectation enters.
    pub origin: Origin,
}

/// One operation of a module.
#[derive(Clone, Debug, PartialEq)]
pub struct OperationLines {
    /// Name of the operation.
    pub name: String,
    /// What it computes.
    pub definition: String,
    /// Why its formulas are what they are.
    pub derivation: String,
    /// Where that can be looked up.
    pub source: String,
    /// Shapes in.
    pub inputs: Vec<String>,
    /// Shape out.
    pub output: String,
    /// Its formulas.
    pub formulas: Vec<FormulaLine>,
    /// The peaks that bound it, in words.
    pub peaks: String,
    /// Its roofline time.
    pub time: Seconds,
    /// What that is bound by.
    pub bound: &'static str,
}

/// Parts of a module that cost the same in a pass.
#[derive(Clone, Debug, PartialEq)]
pub struct PartCost {
    /// What stands for one of them in the sums.
    pub symbol: String,
    /// Their names inside the module.
    pub names: Vec<String>,
    /// Class.
    pub class: String,
    /// What one of them costs in the pass, its own parts included.
    pub cost: Cost,
    /// Formulas of its own operations, by operation: `flops_matrix = 2 * M * N * K`.
    pub formulas: Vec<(String, Vec<String>)>,
    /// Whether its cost is a sum over parts of its own.
    pub has_parts: bool,
}

/// One module in one pass.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerPass {
    /// `prefill`, or which decode step.
    pub name: String,
    /// Shapes in.
    pub inputs: Vec<String>,
    /// Shape out.
    pub output: Option<String>,
    /// Its own operations.
    pub operations: Vec<OperationLines>,
    /// Its parts that run, with what they cost.
    pub parts: Vec<PartCost>,
    /// The sum over its parts and its own operations, for every quantity that is not zero; empty without parts.
    pub sums: Vec<FormulaLine>,
    /// All of it, parts included.
    pub total: Cost,
    /// Roofline time of all of it.
    pub time: Seconds,
}

/// A part of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerPart {
    /// Name inside the module.
    pub name: String,
    /// Class.
    pub class: String,
}

/// The page of one module class, shown on its first instance that runs.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerPage {
    /// Class name.
    pub class: String,
    /// With the file that defines it.
    pub qualified_class: String,
    /// Other names it goes by.
    pub aliases: Vec<String>,
    /// What it computes.
    pub definition: String,
    /// Instances in the model.
    pub instances: u64,
    /// The instance shown.
    pub example: String,
    /// What it is constructed with.
    pub settings: Vec<(String, String)>,
    /// Parameters of the instance, parts included.
    pub parameters: u64,
    /// Its parts.
    pub parts: Vec<LayerPart>,
    /// The passes it takes part in; empty when it never runs on this workload.
    pub passes: Vec<LayerPass>,
    /// What is taken as given.
    pub assumptions: Vec<String>,
}
