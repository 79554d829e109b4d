//! How the time of a device divides: computing, communicating, copying, idle.

use serde::{Deserialize, Serialize};

use crate::{Bytes, DeviceId, JsonSchema, Nanos};

/// The time of one device, from its first kernel, copy or memset to the end of its last.
///
/// Holds: `busy_ns` + `idle_ns` = `span_ns`; `compute_ns` + `communication_exposed_ns` + `copies_exposed_ns` = `busy_ns`;
/// the parts of `idle` add up to `idle_ns`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceTime {
    /// The device.
    pub device: DeviceId,
    /// Rank of the process, where several were recorded.
    pub rank: Option<u32>,
    /// From the start of its first work to the end of its last.
    pub span_ns: Nanos,
    /// At least one kernel, copy or memset ran.
    pub busy_ns: Nanos,
    /// Nothing ran.
    pub idle_ns: Nanos,
    /// Idle time at the start although work had been launched: the device may have run what was launched before the recording. Part of
    /// `idle_ns`.
    #[serde(default)]
    pub late_start_ns: Nanos,
    /// At least one kernel ran that is not communication.
    pub compute_ns: Nanos,
    /// At least one communication kernel ran.
    pub communication_ns: Nanos,
    /// Communication ran and no other kernel did.
    pub communication_exposed_ns: Nanos,
    /// Communication ran, and so did kernels that wait for it: launched early behind it on its own stream. It is part of
    /// `compute_ns`.
    #[serde(default)]
    pub communication_awaited_ns: Nanos,
    /// A copy or memset ran and no kernel did.
    pub copies_exposed_ns: Nanos,
    /// Copies by direction, and memsets; longest first.
    pub copies: Vec<CopyTime>,
    /// Idle time by cause; longest first.
    pub idle: Vec<IdleTime>,
}

impl DeviceTime {
    /// Communication that nothing hides: alone, or beside kernels that wait for it.
    pub fn communication_unhidden(&self) -> Nanos {
        self.communication_exposed_ns + self.communication_awaited_ns
    }
}

/// All copies of one direction, or all memsets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CopyTime {
    /// `HtoD`, `DtoH`, `DtoD`, `PtoP`, `HtoH`, `unknown` or `memset`.
    pub kind: String,
    /// How many.
    pub calls: u64,
    /// Time of all, each in full.
    pub ns: Nanos,
    /// One ran and no kernel did; where several kinds ran at once, this is put down to the one with the longest time. These add
    /// up to `copies_exposed_ns`.
    #[serde(default)]
    pub exposed_ns: Nanos,
    /// Bytes of all, as far as the trace says.
    pub bytes: Option<Bytes>,
}

/// Idle time of one cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IdleTime {
    /// The cause.
    pub cause: IdleCause,
    /// How long in total.
    pub ns: Nanos,
    /// The longest part in one gap.
    pub longest_ns: Nanos,
    /// Annotations of the program, framework operators or Python functions that the host was in for most of it; for work that had been
    /// launched before, `before` it. The longest first.
    #[serde(default)]
    pub inside: Vec<IdlePlace>,
}

/// Where the host was during idle time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IdlePlace {
    /// Name of the range, operator or function, or `before` and the work behind it.
    pub name: String,
    /// How long of the idle time.
    pub ns: Nanos,
}

impl IdlePlace {
    /// Idle time in front of some work, where no place of the host is known.
    pub fn before(work: &str, ns: Nanos) -> Self {
        Self { name: format!("before {work}"), ns }
    }

    /// The work behind it.
    pub fn next(&self) -> Option<&str> {
        self.name.strip_prefix("before ")
    }
}

crate::named! {
    /// What the host did while a device was idle.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum IdleCause {
        /// Had no request to serve.
        NoRequest = "no_request",
        /// Waited for the next batch of a data loader.
        DataLoading = "data_loading",
        /// Was in the profiler's own code: starting, collecting, writing.
        Profiling = "profiling",
        /// Compiled, captured a graph, loaded a module, or launched a kernel for the first time.
        Compiling = "compiling",
        /// Waited for other processes.
        Peer = "peer",
        /// Waited for the device.
        Synchronising = "synchronising",
        /// Took or gave back memory.
        Allocating = "allocating",
        /// Was in a call that copies or fills memory.
        Copying = "copying",
        /// Ran framework code between launches, and launched.
        Launching = "launching",
        /// Made no CUDA or HIP call for a millisecond or longer, and operators or Python functions show that it worked.
        HostWork = "host_work",
        /// The same, and nothing shows whether it worked, slept or waited.
        HostUnknown = "host_unknown",
        /// Slept, polled for work, or was between two steps of a server with nothing recorded for long.
        NoWork = "no_work",
        /// Had launched the next work already, and the device went on with it within microseconds: its own latency from one kernel to the
        /// next, in a stream or inside a CUDA graph.
        BetweenKernels = "between_kernels",
        /// Had launched the next work already, which started later than that: an order between streams, or work not in the trace.
        Queued = "queued",
        /// The trace does not say.
        NotRecorded = "not_recorded",
    }
}
