//! Where the time went: operators, kernels, regions and modules.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::ranked;
use crate::{
    CollectiveSummary, CostCentre, DeviceMemory, DeviceTime, JsonSchema, KernelSummary, Nanos, OperatorGroups,
    OperatorSummary, RegionSummary, Remark, RoutingCounts, Stage, Work,
};

/// One module: measured beside modelled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModuleSummary {
    /// Path, as in the checkpoint.
    pub path: String,
    /// Class name of the published model.
    pub class: String,
    /// Stage.
    pub stage: Stage,
    /// Measured time, submodules included.
    pub measured_ns: Option<Nanos>,
    /// Measured time, submodules left out.
    pub exclusive_ns: Option<Nanos>,
    /// Roofline time of this work.
    pub speed_of_light_ns: Option<Nanos>,
    /// Measured minus least.
    pub lost_ns: Option<Nanos>,
    /// Modelled work of what was measured; absent where the model does not price it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work: Option<Work>,
    /// What the roofline time is bound by: `compute`, `memory` or `launch`.
    pub bound: Option<String>,
    /// Why time is lost.
    pub cause: Option<Remark>,
    /// What says that its work is the module's own or a submodule's, each that holds for some of it.
    #[serde(default)]
    pub placed_by: BTreeSet<PlacedBy>,
}

crate::named! {
    /// What says which module a kernel, copy or memset belongs to.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum PlacedBy {
        /// The operator that launched it.
        Operators = "operators",
        /// A range around its launch that is named after the module.
        Ranges = "ranges",
        /// Such a range around the capture of its node, for work of a CUDA graph.
        Capture = "capture",
        /// Its place among the kernels of a CUDA graph, which repeat once for each layer.
        Order = "order",
        /// Its place among the matrix kernels, which come in the order of the model's GEMMs.
        #[serde(alias = "products")]
        Gemms = "gemms",
    }
}

/// The run, broken down in every way its sources allow.
///
/// Holds: a module's lost time is its measured time beyond its roofline time, absent where it took less than that.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Breakdown {
    /// How the time of each device divides; empty without a timeline that has device work.
    #[serde(default)]
    pub device_time: Vec<DeviceTime>,
    /// Memory of each device; empty without a timeline whose allocator reports totals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub device_memory: Vec<DeviceMemory>,
    /// Operators by time.
    #[serde(serialize_with = "ranked::serialize")]
    #[schemars(with = "Vec<ranked::Ranked<OperatorSummary>>")]
    pub operators: Vec<OperatorSummary>,
    /// Kernels by time; complete, one row per name, stage and device.
    #[serde(serialize_with = "ranked::serialize")]
    #[schemars(with = "Vec<ranked::Ranked<KernelSummary>>")]
    pub kernels: Vec<KernelSummary>,
    /// NVTX regions.
    pub regions: Vec<RegionSummary>,
    /// Modules, measured beside modelled.
    pub modules: Vec<ModuleSummary>,
    /// Modules of a traced run that differ by the number of a layer or an expert alone, summed, with `*` for the number.
    #[serde(default)]
    pub module_kinds: Vec<ModuleSummary>,
    /// Operators by module class and by shape.
    #[serde(default)]
    pub operator_groups: OperatorGroups,
    /// Collectives by name, message and group; empty where the trace does not describe any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collectives: Vec<CollectiveSummary>,
    /// Parts of the network by time, without overlap.
    #[serde(default)]
    pub cost_centres: Vec<CostCentre>,
    /// Where mixtures of experts sent their tokens; empty for models without experts and when not recorded.
    #[serde(default)]
    pub routing: Vec<RoutingCounts>,
}
