//! A timeline: what a trace says happened, on the host and on devices.
//!
//! Readers of every format fill one; joins, stages and tables are made from it elsewhere. Rows are small and plain,
//! because a trace has millions of them: text is stored once and referred to by [`NameId`], and so are launch shapes,
//! operator signatures, threads and queues. Rows keep the order of the source; nothing here is sorted or matched.
//!
//! A reader lets no timestamp in whose size reaches [`Timeline::LARGEST_TIME`], so that spans can be subtracted and
//! added without overflow.

mod collective;
mod device_work;
mod graph_node;
mod host;
mod job;
mod memory;
mod range;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;

pub use collective::Collective;
pub use device_work::{CopyDirection, DeviceQueue, DeviceWork, QueueId, WorkKind};
pub use graph_node::{CapturedRange, CapturedRangeId, GraphNode};
pub use host::{HostCall, HostOperator, HostThread, OperatorKind, OperatorSignature, SignatureId, ThreadId};
pub use job::{Job, ProcessGroup};
pub use memory::MemoryEvent;
pub use range::{Range, RangeStyle};
pub use table::{LaunchShapeId, NameId, Table};

use crate::{Clock, Device, LaunchShape, Nanos, QualityCounter};

/// Ties a call on the host to the device work it launched. Unique within one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Correlation(pub NonZeroU64);

impl Correlation {
    /// A number of the source; zero is what sources write where there is none.
    pub fn new(number: u64) -> Option<Self> {
        NonZeroU64::new(number).map(Self)
    }
}

/// The number a framework gives one call of an operator, so that device work can name it. Unique within one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperatorCallId(pub NonZeroU64);

impl OperatorCallId {
    /// A number of the source; zero is what sources write where there is none.
    pub fn new(number: u64) -> Option<Self> {
        NonZeroU64::new(number).map(Self)
    }
}

crate::named! {
    /// What kind of file a timeline came from.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum TraceFormat {
        /// Chrome JSON written by the torch profiler (Kineto).
        TorchProfiler = "torch-profiler",
        /// SQLite export of Nsight Systems.
        NsysSqlite = "nsys",
        /// Records of our own collector.
        Wire = "llm-perf",
    }
}

/// Everything one trace file says.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// Kind of file.
    pub format: TraceFormat,
    /// The tool that wrote it, with its version, as far as the file says.
    pub tool: Option<String>,
    /// What all times here are relative to.
    pub clock: Clock,
    /// Devices the file describes.
    pub devices: Vec<Device>,
    /// The distributed job it is a rank of.
    pub job: Option<Job>,
    /// Every text, once.
    pub names: Table<str>,
    /// Names of kernels in their object files, by the demangled name, where the source has both. Other tools are told
    /// of a kernel by these, because each demangles in its own way.
    pub symbols: BTreeMap<NameId, BTreeSet<NameId>>,
    /// Every launch shape, once.
    pub launch_shapes: Table<LaunchShape>,
    /// Every operator signature, once.
    pub signatures: Table<OperatorSignature>,
    /// Threads of the host.
    pub threads: Vec<HostThread>,
    /// Streams of the devices.
    pub queues: Vec<DeviceQueue>,
    /// Kernels, copies and fills.
    pub work: Vec<DeviceWork>,
    /// Work is launches of CUDA graphs alone, each from when its stream was free for it: what else a device did is not known, and
    /// therefore not when it was idle.
    pub graphs_only: bool,
    /// Calls of the CUDA runtime and driver.
    pub calls: Vec<HostCall>,
    /// Framework operators and Python functions. The call tree is the nesting of their spans on one thread.
    pub operators: Vec<HostOperator>,
    /// NVTX ranges and user annotations.
    pub ranges: Vec<Range>,
    /// Ranges inside the captures of CUDA graphs; a range comes after the one it lies in.
    pub captured_ranges: Vec<CapturedRange>,
    /// Nodes of CUDA graphs that were made inside captured ranges.
    pub graph_nodes: Vec<GraphNode>,
    /// Work of graphs and the operator in which its node was captured, both by their rows: from another trace of the job.
    pub captured_operators: Vec<(u32, u32)>,
    /// Allocations and releases.
    pub memory: Vec<MemoryEvent>,
    /// What was lost or could not be understood while reading.
    pub quality: Vec<QualityCounter>,
}

impl Timeline {
    /// No time of a timeline is this large, in either direction: about 73 years.
    pub const LARGEST_TIME: i64 = 1 << 61;

    /// A timeline with nothing in it.
    pub fn new(format: TraceFormat, clock: Clock) -> Self {
        Self {
            format,
            tool: None,
            clock,
            devices: Vec::new(),
            job: None,
            names: Table::default(),
            symbols: BTreeMap::new(),
            launch_shapes: Table::default(),
            signatures: Table::default(),
            threads: Vec::new(),
            queues: Vec::new(),
            work: Vec::new(),
            graphs_only: false,
            calls: Vec::new(),
            operators: Vec::new(),
            ranges: Vec::new(),
            captured_ranges: Vec::new(),
            graph_nodes: Vec::new(),
            captured_operators: Vec::new(),
            memory: Vec::new(),
            quality: Vec::new(),
        }
    }

    /// Gives back the room that lists have beyond their rows: as much again as they hold, where they were filled row by row.
    pub fn shrink_to_fit(&mut self) {
        self.work.shrink_to_fit();
        self.calls.shrink_to_fit();
        self.operators.shrink_to_fit();
        self.ranges.shrink_to_fit();
        self.memory.shrink_to_fit();
    }

    /// A time of the source, or `None` where it cannot be one.
    pub fn time(nanoseconds: i64) -> Option<Nanos> {
        (nanoseconds.unsigned_abs() < Self::LARGEST_TIME as u64).then(|| Nanos::new(nanoseconds))
    }

    /// The text of a name.
    pub fn name(&self, id: NameId) -> &str {
        self.names.get(id)
    }
}
