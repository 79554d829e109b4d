//! What metering a forward pass leaves.

use network::Module;
use types::{Bytes, Cost, DType, Op, Spec};

use crate::message::Message;
use crate::price::Price;
use crate::spread::Spread;

/// One priced operation, as one device does it.
#[derive(Clone, Debug, PartialEq)]
pub struct OpRecord {
    /// Module whose forward pass it is in.
    pub module: Module,
    /// What was done.
    pub op: Op,
    /// On what.
    pub inputs: Vec<Spec>,
    /// To what.
    pub output: Spec,
    /// Price of one expert's worth where the work is spread over experts.
    pub price: Price,
    /// Set inside experts, where weights are read once for each expert touched.
    pub spread: Option<Spread>,
    /// Operations and traffic, the spread included.
    pub cost: Cost,
}

/// What a module was given and gave, at its first call.
#[derive(Clone, Debug, PartialEq)]
pub struct ModuleCall {
    /// Times it was called in the pass.
    pub calls: u64,
    /// Inputs of the first call.
    pub inputs: Vec<Spec>,
    /// Output of the first call; absent while the module is open.
    pub output: Option<Spec>,
    /// Most activation bytes live while it ran.
    pub peak: Bytes,
}

/// An operation of one layer, and how many layers do it.
#[derive(Clone, Debug, PartialEq)]
pub struct TallyRow {
    /// What was done.
    pub op: Op,
    /// On what.
    pub inputs: Vec<Spec>,
    /// To what.
    pub output: Spec,
    /// Set inside experts.
    pub spread: Option<Spread>,
    /// Operations and traffic.
    pub cost: Cost,
    /// Element type of its matrix work.
    pub dtype: DType,
    /// Layers that do it.
    pub count: u64,
}

/// One metered forward pass.
#[derive(Clone, Debug, Default)]
pub struct Pass {
    /// Operations in order; views are left out.
    pub ops: Vec<OpRecord>,
    /// By module index; absent for modules that were not called.
    pub modules: Vec<Option<ModuleCall>>,
    /// Most activation bytes live at once.
    pub peak_activations: Bytes,
    /// What devices send to each other; nothing on a single one.
    pub messages: Vec<Message>,
    /// Sums in place of operations and modules, where only those were wanted.
    pub(crate) tallied: Vec<TallyRow>,
}
