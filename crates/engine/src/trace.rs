//! What a forward pass records: ranges always, operations when asked.

use std::time::Instant;

use network::Module;
use types::{Bytes, Nanos, Op, Spec};

/// One operation.
#[derive(Clone, Debug)]
pub struct OpTrace {
    /// Module whose forward pass it is in.
    pub module: Module,
    /// What was done.
    pub op: Op,
    /// On what.
    pub inputs: Vec<Spec>,
    /// To what.
    pub output: Spec,
    /// Start, since the session's clock started.
    pub start: Nanos,
    /// Time it took.
    pub duration: Nanos,
    /// Memory of its output; nothing for views.
    pub allocated: Bytes,
}

/// One range of a module that has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeTime {
    /// Its name.
    pub name: &'static str,
    /// Start, since the session's clock started.
    pub start: Nanos,
    /// Time it took.
    pub duration: Nanos,
}

/// What was recorded.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Operations in order; empty unless asked for.
    pub ops: Vec<OpTrace>,
    /// Ranges in the order they ended.
    pub ranges: Vec<RangeTime>,
}

/// Time since `zero`.
pub(crate) fn since(zero: Instant) -> Nanos {
    Nanos::from_duration(zero.elapsed()).unwrap_or(Nanos::new(i64::MAX))
}
