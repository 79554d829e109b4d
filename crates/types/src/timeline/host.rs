//! Work on the host: threads, calls of the CUDA runtime and driver, framework operators.

use super::{Collective, Correlation, NameId, OperatorCallId};
use crate::Nanos;

/// Place of a thread in [`super::Timeline::threads`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId(pub u32);

/// One thread of one process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostThread {
    /// Its process; absent where the source has a label instead of a number.
    pub process: Option<u32>,
    /// Rank of that process in a distributed run.
    pub rank: Option<u32>,
    /// The thread's number in the source, of which only equality means something.
    pub thread: Option<u64>,
}

/// One call of the CUDA runtime or driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostCall {
    /// The function, such as `cudaLaunchKernel`.
    pub name: NameId,
    /// Who called.
    pub thread: ThreadId,
    /// Begin.
    pub start: Nanos,
    /// Time in the call; never negative.
    pub duration: Nanos,
    /// Ties the call to the device work it launched, within its process.
    pub correlation: Option<Correlation>,
}

impl HostCall {
    /// Return of the call.
    pub fn end(&self) -> Nanos {
        self.start + self.duration
    }
}

/// Who defines an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OperatorKind {
    /// The framework, such as `aten::mm`.
    Framework,
    /// A Python function, or a module's call such as `nn.Module: Linear_3`.
    Python,
}

/// Place of a signature in [`super::Timeline::signatures`].
pub type SignatureId = super::table::TableId<OperatorSignature>;

/// What an operator was called with. One entry per argument; an argument that is no tensor has no dimensions, and a list
/// of tensors has one entry per tensor, each with the type of the list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct OperatorSignature {
    /// Dimensions.
    pub shapes: Vec<Vec<u64>>,
    /// Element types or kinds, as the source spells them (`c10::BFloat16`, `Scalar`).
    pub types: Vec<String>,
    /// Strides in elements; empty where the source has none.
    pub strides: Vec<Vec<i64>>,
    /// Arguments that are no tensors, as the source writes them, a place for each argument. Kept for convolutions and
    /// attention alone, whose work depends on them.
    pub values: Vec<String>,
    /// What the framework records of a collective beside its arguments.
    pub collective: Option<Collective>,
}

/// One call of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostOperator {
    /// Who defines it.
    pub kind: OperatorKind,
    /// Its name.
    pub name: NameId,
    /// Who called.
    pub thread: ThreadId,
    /// What it was called with.
    pub signature: Option<SignatureId>,
    /// Begin.
    pub start: Nanos,
    /// Time, callees included; never negative.
    pub duration: Nanos,
    /// The number device work may refer to.
    pub call: Option<OperatorCallId>,
}

impl HostOperator {
    /// Return of the operator.
    pub fn end(&self) -> Nanos {
        self.start + self.duration
    }
}
