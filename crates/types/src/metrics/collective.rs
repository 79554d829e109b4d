//! Collectives of a traced run.

use serde::{Deserialize, Serialize};

use crate::{Bytes, BytesPerSecond, JsonSchema, Nanos};

/// All calls of one collective with messages of one size in one kind of group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CollectiveSummary {
    /// The framework's name for it: `allreduce`, `_allgather_base`, `all_to_allv`; the kernel's where the call was not recorded.
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
    /// What all links of a device carry in one direction together; absent where the catalogue does not say, and where the
    /// group may reach beyond the devices of one machine.
    pub link_bytes_per_second: Option<BytesPerSecond>,
    /// Bus bandwidth of the shortest call as a share of that.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub link_share: Option<f64>,
}

impl CollectiveSummary {
    /// Time above what its calls would have taken had each been as short as the shortest: waiting for other ranks, or for
    /// links and multiprocessors that others used too. Unknown without the size of the message: calls may differ in it.
    pub fn above_shortest(&self) -> Option<Nanos> {
        self.bytes.map(|_| self.total_ns - Nanos::new(self.min_ns.get() * self.calls as i64))
    }
}
