//! Work on a device: kernels, copies, fills, and the queues they went through.

use std::num::NonZeroU64;

use super::{Correlation, LaunchShapeId, NameId, OperatorCallId};
use crate::{Bytes, Nanos};

/// Place of a queue in [`super::Timeline::queues`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueId(pub u32);

/// A stream of a device. What a source does not tell is absent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DeviceQueue {
    /// Process that launched its work.
    pub process: Option<u32>,
    /// Rank of that process in a distributed run.
    pub rank: Option<u32>,
    /// Ordinal of the device: the one in [`super::Timeline::devices`] where the source has it, else as that process counts.
    pub device: u32,
    /// CUDA context.
    pub context: Option<u32>,
    /// CUDA stream.
    pub stream: Option<u32>,
}

/// From where to where a copy goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CopyDirection {
    /// Host memory to device memory.
    HostToDevice,
    /// Device memory to host memory.
    DeviceToHost,
    /// Within one device.
    DeviceToDevice,
    /// Between two devices.
    PeerToPeer,
    /// Within the host.
    HostToHost,
    /// The source does not say.
    Unknown,
}

/// What kind of work it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkKind {
    /// A kernel.
    Kernel,
    /// A copy (`memcpy`).
    Copy(CopyDirection),
    /// A fill (`memset`).
    Fill,
    /// A whole CUDA graph, where the source records graphs and not their nodes.
    Graph,
}

impl WorkKind {
    /// The name of a copy's direction, or `memset`; `None` for what computes.
    pub const fn copy_name(self) -> Option<&'static str> {
        Some(match self {
            Self::Kernel | Self::Graph => return None,
            Self::Fill => "memset",
            Self::Copy(CopyDirection::HostToDevice) => "HtoD",
            Self::Copy(CopyDirection::DeviceToHost) => "DtoH",
            Self::Copy(CopyDirection::DeviceToDevice) => "DtoD",
            Self::Copy(CopyDirection::PeerToPeer) => "PtoP",
            Self::Copy(CopyDirection::HostToHost) => "HtoH",
            Self::Copy(CopyDirection::Unknown) => "unknown",
        })
    }
}

/// One kernel, copy or memset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceWork {
    /// What it is.
    pub kind: WorkKind,
    /// Full demangled name.
    pub name: NameId,
    /// Where it ran.
    pub queue: QueueId,
    /// How it was launched; kernels only.
    pub launch: Option<LaunchShapeId>,
    /// Begin on the device.
    pub start: Nanos,
    /// Time on the device; never negative.
    pub duration: Nanos,
    /// The call that launched it, within its process.
    pub correlation: Option<Correlation>,
    /// The operator that launched it, where the source names it.
    pub operator: Option<OperatorCallId>,
    /// Bytes copied or filled.
    pub bytes: Option<Bytes>,
    /// Node of the CUDA graph it belongs to.
    pub graph_node: Option<NonZeroU64>,
}

impl DeviceWork {
    /// End on the device.
    pub fn end(&self) -> Nanos {
        self.start + self.duration
    }
}
