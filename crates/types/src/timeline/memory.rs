//! Allocations as a framework reports them.

use super::ThreadId;
use crate::{Bytes, Nanos};

/// One allocation or release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryEvent {
    /// When.
    pub time: Nanos,
    /// On which thread.
    pub thread: ThreadId,
    /// Bytes taken; negative when given back.
    pub bytes: i64,
    /// Ordinal of the device; absent for host memory.
    pub device: Option<u32>,
    /// Bytes in tensors on that device afterwards.
    pub allocated: Option<Bytes>,
    /// Bytes the framework then held from the device, in use or not.
    pub reserved: Option<Bytes>,
}
