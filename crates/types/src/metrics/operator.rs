//! Operators: what the framework was asked to do, one call and all calls of one name.

use serde::{Deserialize, Serialize};

use crate::{Bytes, BytesPerSecond, ClockId, DType, Flops, FlopsPerSecond, JsonSchema, Nanos, Stage};

/// One call of an operator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperatorRecord {
    /// Framework name, such as `linear` or `aten::mm`.
    pub name: String,
    /// Module path, as in the checkpoint.
    pub module: Option<String>,
    /// Stage it ran in.
    pub stage: Option<Stage>,
    /// Shapes of its inputs.
    pub shapes: Vec<Vec<u64>>,
    /// Element type of its output.
    pub dtype: Option<DType>,
    /// Clock of `start_ns`.
    pub clock: ClockId,
    /// Begin on the host.
    pub start_ns: Nanos,
    /// Time on the host, callees included.
    pub duration_ns: Nanos,
    /// Memory it allocated.
    pub bytes_allocated: Option<Bytes>,
}

/// All calls of one operator in one stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperatorSummary {
    /// Framework name.
    pub name: String,
    /// The innermost stage they ran in; absent outside of stages and where stages are not known.
    pub stage: Option<Stage>,
    /// Calls.
    pub calls: u64,
    /// Host time, callees included.
    pub total_ns: Nanos,
    /// Host time, callees left out.
    pub self_ns: Nanos,
    /// Time of the device work it launched; absent when no device was traced.
    pub device_ns: Option<Nanos>,
    /// Memory it allocated; absent when not traced.
    pub bytes_allocated: Option<Bytes>,
    /// Where in Python it is called from most, by device time, then by calls: at most three places. Empty without stacks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub python: Vec<OperatorPlace>,
}

/// A place in Python that calls an operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OperatorPlace {
    /// The innermost frame outside of the framework and the standard library: `model/layers.py(120): forward`. The line is the
    /// function's first.
    pub frame: String,
    /// Calls from there.
    pub calls: u64,
    /// Time of the device work they launched.
    pub device_ns: Nanos,
}

/// All calls inside modules of one class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassGroup {
    /// Class name of the published model.
    pub class: String,
    /// Calls.
    pub calls: u64,
    /// Host time.
    pub total_ns: Nanos,
    /// Memory allocated; absent when not traced.
    pub bytes_allocated: Option<Bytes>,
    /// Matrix operations.
    pub flops_matrix: Flops,
    /// Matrix operations per second of host time; absent where there are none or no time was measured.
    pub flops_per_second: Option<FlopsPerSecond>,
}

/// All calls of one operator on inputs of the same shapes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShapeGroup {
    /// Framework name.
    pub name: String,
    /// Shapes of its inputs.
    pub shapes: Vec<Vec<u64>>,
    /// Calls.
    pub calls: u64,
    /// Host time.
    pub total_ns: Nanos,
    /// Memory allocated; absent when not traced.
    pub bytes_allocated: Option<Bytes>,
    /// Matrix operations.
    pub flops_matrix: Flops,
    /// Matrix operations per second of device time, or of host time where no device was traced; absent where there are
    /// none or no time was measured.
    pub flops_per_second: Option<FlopsPerSecond>,
    /// Time of the device work it launched itself; absent where no device was traced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_ns: Option<Nanos>,
    /// Element type of its first input; absent where it is not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dtype: Option<DType>,
    /// Least traffic: every input read and every output written once; absent where the shapes do not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Bytes>,
    /// That traffic per second of device time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<BytesPerSecond>,
    /// Least device time that its work and its traffic allow; absent where the device or the work is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roofline_ns: Option<Nanos>,
    /// Which of the two sets it: `compute` or `memory`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<String>,
    /// Roofline time over device time; absent where it would exceed 1, because then the work is not what the shapes say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roofline_share: Option<f64>,
}

/// Operators grouped in other ways than by name. Each list holds every call once, longest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperatorGroups {
    /// By the class of the module they ran in.
    pub by_class: Vec<ClassGroup>,
    /// By name and the shapes of their inputs.
    pub by_shape: Vec<ShapeGroup>,
}
