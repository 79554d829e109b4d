//! Collectives of a traced run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Bytes, BytesPerSecond, Nanos};

/// All calls of one collective with messages of one size in one kind of group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CollectiveSummary {
    /// The framework's name for it: `allreduce`, `_allgather_base`, `all_to_allv`.
    pub name: String,
    /// Element type, as the source spells it.
    pub dtype: Option<String>,
    /// Ranks that take part.
    pub group_size: Option<u32>,
    /// What the program says the group is for.
    pub group: Option<String>,
    /// Bytes of one call: what a rank hands in, or gets where that is more; absent where sizes are not recorded.
    pub bytes: Option<Bytes>,
    /// Calls whose kernels were recorded.
    pub calls: u64,
    /// Device time, waiting for other ranks included.
    pub total_ns: Nanos,
    /// Shortest call: the one that waited least.
    pub min_ns: Nanos,
    /// Bus bandwidth over all calls, as `nccl-tests` defines it: bytes that cross the links of a rank per second.
    pub bus_bytes_per_second: Option<BytesPerSecond>,
    /// The same of the shortest call, which waited least for the others.
    pub bus_bytes_per_second_best: Option<BytesPerSecond>,
}
