//! Clocks: what a timestamp is relative to.

use serde::{Deserialize, Serialize};

use crate::{JsonSchema, Nanos};

/// Which clock of a run a timestamp belongs to; an index into `clocks[]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ClockId(pub u32);

/// Where a clock ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClockKind {
    /// The host's monotonic clock.
    HostMonotonic,
    /// The host's wall clock.
    HostWall,
    /// A device's own timer.
    Device,
    /// The clock of the tool that wrote an imported trace.
    Trace,
}

/// One clock and how it maps to wall time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Clock {
    /// Its index.
    pub id: ClockId,
    /// Where it ticks.
    pub kind: ClockKind,
    /// Unix time when it read zero, where known.
    pub unix_ns_at_zero: Option<Nanos>,
    /// How far that mapping may be off.
    pub uncertainty_ns: Option<Nanos>,
}
