//! What the tables of `nsys stats` say, one record per row.

use types::Nanos;

/// A report of `nsys stats`, known by its header.
#[derive(Clone, Debug, PartialEq)]
pub enum StatsTable {
    /// `cuda_gpu_kern_sum`: kernels by name.
    Kernels(Vec<NamedSum>),
    /// `cuda_api_sum` or `osrt_sum`, which look alike: calls by function.
    Calls(Vec<NamedSum>),
    /// `cuda_gpu_mem_time_sum`: copies and memsets by kind.
    MemoryTimes(Vec<NamedSum>),
    /// `cuda_gpu_mem_size_sum`: their sizes.
    MemorySizes(Vec<MemorySize>),
    /// `nvtx_pushpop_sum`, `nvtx_startend_sum` or `nvtx_sum`: ranges by name, as the host saw them.
    Ranges(Vec<RangeSum>),
    /// `nvtx_gpu_proj_sum`: ranges by name, as the device saw the work in them.
    RangeProjections(Vec<RangeProjection>),
    /// `cuda_gpu_trace`: device work one by one.
    Trace(Vec<TraceRow>),
}

/// How long all things of one name took.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeSum {
    /// Of all together.
    pub total: Nanos,
    /// How many.
    pub count: u64,
    /// Share of the table's total in percent, as rounded by the tool.
    pub percent: Option<f64>,
    /// Mean in nanoseconds, as rounded by the tool.
    pub mean_ns: Option<f64>,
    /// Median in nanoseconds, as rounded by the tool.
    pub median_ns: Option<f64>,
    /// Shortest.
    pub min: Option<Nanos>,
    /// Longest.
    pub max: Option<Nanos>,
    /// Standard deviation in nanoseconds, as rounded by the tool.
    pub deviation_ns: Option<f64>,
}

/// A name and its time.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedSum {
    /// Kernel, function or operation.
    pub name: String,
    /// Its time.
    pub time: TimeSum,
}

/// A range and its time on the host.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeSum {
    /// The range.
    pub range: RangeName,
    /// Its time.
    pub time: TimeSum,
}

/// A range and the time of the work launched inside it.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeProjection {
    /// The range.
    pub range: RangeName,
    /// From the begin of the first work to the end of the last, over all instances that launched any.
    pub projected: TimeSum,
    /// Time of the same instances on the host.
    pub host_total: Nanos,
    /// Kernels, copies and memsets launched inside.
    pub operations: u64,
    /// Ranges around it, on average.
    pub mean_level: Option<f64>,
    /// Ranges inside it, on average.
    pub mean_children: Option<f64>,
}

/// A range by domain, name and how it was opened.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RangeName {
    /// NVTX domain; absent for the default domain, and in tables of versions that do not print it.
    pub domain: Option<String>,
    /// Its name.
    pub name: String,
    /// How it was opened, in the tool's word (`PushPop`); absent where the table has no such column.
    pub style: Option<String>,
}

/// Sizes of all copies or memsets of one kind. In bytes, but rounded by the tool to a thousandth of the unit it prints.
#[derive(Clone, Debug, PartialEq)]
pub struct MemorySize {
    /// What they do.
    pub operation: String,
    /// How many.
    pub count: u64,
    /// Of all together.
    pub total_bytes: f64,
    /// Smallest.
    pub min_bytes: Option<f64>,
    /// Largest.
    pub max_bytes: Option<f64>,
}

/// One kernel, copy or memset.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceRow {
    /// Kernel, or the operation in brackets (`[CUDA memcpy Host-to-Device]`).
    pub name: String,
    /// Begin, on the clock of the trace.
    pub start: Nanos,
    /// Time on the device.
    pub duration: Nanos,
    /// Ties it to the call that launched it.
    pub correlation: Option<u64>,
    /// Blocks in x, y, z; kernels only.
    pub grid: Option<[u32; 3]>,
    /// Threads of a block in x, y, z; kernels only.
    pub block: Option<[u32; 3]>,
    /// Registers a thread uses; kernels only.
    pub registers: Option<u32>,
    /// Bytes copied or filled, rounded by the tool.
    pub bytes: Option<f64>,
    /// Name of the device, as the tool prints it.
    pub device: Option<String>,
    /// CUDA context.
    pub context: Option<u32>,
    /// CUDA stream.
    pub stream: Option<u32>,
}

impl StatsTable {
    /// Rows of the table.
    pub fn len(&self) -> usize {
        match self {
            Self::Kernels(rows) | Self::Calls(rows) | Self::MemoryTimes(rows) => rows.len(),
            Self::MemorySizes(rows) => rows.len(),
            Self::Ranges(rows) => rows.len(),
            Self::RangeProjections(rows) => rows.len(),
            Self::Trace(rows) => rows.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
