//! What the small tables of one rank say.

use types::{Bytes, BytesPerSecond, Nanos};

/// One rank.
#[derive(Clone, Debug, Default)]
pub struct RankFacts {
    /// The rank; absent where the trace does not say.
    pub rank: Option<u32>,
    /// Ranks of the job, as the trace says.
    pub world_size: Option<u32>,
    /// Name of its device.
    pub device_name: Option<String>,
    /// Devices of its machine, as the trace says.
    pub machine_devices: Option<u32>,
    /// What all links of its device carry in one direction together, where the catalogue says.
    pub link: Option<BytesPerSecond>,
    /// Whether its times are since 1970.
    pub unix: bool,
    /// Start of its first device work.
    pub first: Nanos,
    /// End of its last.
    pub last: Nanos,
    /// Records of its trace that were dropped or could not be read.
    pub lost: u64,
    /// The spans of its devices, summed, as the parts below.
    pub span: Nanos,
    /// Busy.
    pub busy: Nanos,
    /// Computing, without kernels that wait for communication.
    pub compute: Nanos,
    /// Communicating, and nothing else but wait for that.
    pub communication_exposed: Nanos,
    /// Copying and nothing else.
    pub copies_exposed: Nanos,
    /// Idle, by cause.
    pub idle: Vec<(String, Nanos)>,
    /// Wall times of its steps, in order.
    pub steps: Vec<Nanos>,
    /// Kernels of collectives, by device and start.
    pub collectives: Vec<CollectiveFact>,
    /// Its kernels by name.
    pub kernels: Vec<KernelFact>,
}

/// A kernel of a collective.
#[derive(Clone, Debug, Default)]
pub struct CollectiveFact {
    /// Its name.
    pub name: String,
    /// Element type.
    pub dtype: Option<String>,
    /// Bytes of the message.
    pub bytes: Option<Bytes>,
    /// What the program says the group is for.
    pub group: Option<String>,
    /// Ranks that take part.
    pub group_size: Option<u32>,
    /// Those ranks, as the trace lists them.
    pub members: Option<String>,
    /// When it started.
    pub start: Nanos,
    /// When it ended.
    pub end: Nanos,
    /// No other kernel ran.
    pub exposed: Nanos,
}

/// All launches of one kernel.
#[derive(Clone, Debug)]
pub struct KernelFact {
    /// Full name.
    pub name: String,
    /// Short name.
    pub short_name: String,
    /// Whether it communicates.
    pub communicates: bool,
    /// Launches.
    pub calls: u64,
    /// Time of all.
    pub total: Nanos,
    /// Median.
    pub median: Nanos,
}
