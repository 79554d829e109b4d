//! CUPTI's activity records, as far as they are looked at.
//!
//! Fields have been where they are since CUDA 12.1: newer versions of a record only grew at the end, and CUPTI itself knows
//! how long each is. `layouts.txt` holds the places as a C compiler sees them in the headers of each release; a test
//! checks the structures against it.

use core::ffi::c_char;

/// Oldest interface whose records are laid out like this: CUDA 12.1.
pub(crate) const OLDEST: u32 = 18;
/// Newest major release that was checked, as `cuptiGetVersion` writes it: CUDA 13.
pub(crate) const NEWEST_CHECKED: u32 = 139_999;

pub(crate) const MEMCPY: u32 = 1;
pub(crate) const MEMSET: u32 = 2;
pub(crate) const CONCURRENT_KERNEL: u32 = 10;
pub(crate) const MEMCPY_PEER: u32 = 22;
pub(crate) const GRAPH_TRACE: u32 = 51;

/// `CUpti_ActivityKernel9` and later, up to the graph.
#[repr(C)]
pub(crate) struct Kernel {
    pub(crate) kind: u32,
    cache: [u8; 2],
    pub(crate) registers: u16,
    shared_memory_request: u64,
    pub(crate) start: u64,
    pub(crate) end: u64,
    completed: u64,
    pub(crate) device: u32,
    pub(crate) context: u32,
    pub(crate) stream: u32,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared_static: u32,
    pub(crate) shared_dynamic: u32,
    local_memory: [u32; 2],
    pub(crate) correlation: u32,
    grid_id: u64,
    pub(crate) name: *const c_char,
    reserved: u64,
    queued: u64,
    submitted: u64,
    launch_type: [u8; 8],
    pub(crate) node: u64,
    launch_attributes: u32,
    pub(crate) graph: u32,
}

/// `CUpti_ActivityMemcpy5` and later, and `CUpti_ActivityMemset4`, up to the graph: the two agree but for one byte.
#[repr(C)]
pub(crate) struct CopyOrMemset {
    pub(crate) kind: u32,
    /// Direction of a copy; part of the value of a fill.
    pub(crate) direction: u8,
    kinds: [u8; 3],
    pub(crate) bytes: u64,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) device: u32,
    pub(crate) context: u32,
    pub(crate) stream: u32,
    pub(crate) correlation: u32,
    runtime_or_reserved: [u32; 4],
    pub(crate) node: u64,
    pub(crate) graph: u32,
}

/// `CUpti_ActivityMemcpyPtoP4`, up to the graph.
#[repr(C)]
pub(crate) struct PeerCopy {
    pub(crate) kind: u32,
    pub(crate) direction: u8,
    kinds: [u8; 3],
    pub(crate) bytes: u64,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) device: u32,
    pub(crate) context: u32,
    pub(crate) stream: u32,
    devices_and_contexts: [u32; 4],
    pub(crate) correlation: u32,
    reserved: u64,
    pub(crate) node: u64,
    pub(crate) graph: u32,
}

/// `CUpti_ActivityGraphTrace` and later.
#[repr(C)]
pub(crate) struct GraphTrace {
    pub(crate) kind: u32,
    pub(crate) correlation: u32,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) device: u32,
    pub(crate) graph: u32,
    pub(crate) context: u32,
    pub(crate) stream: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::offset_of;

    /// Place of every field that is looked at, under the names of the headers.
    fn place(structure: &str, field: &str) -> Option<usize> {
        macro_rules! places {
            ($of:ty: $($theirs:literal $ours:ident)+) => {
                match field { $($theirs => Some(offset_of!($of, $ours)),)+ _ => None }
            };
        }
        match structure.trim_end_matches(|digit: char| digit.is_ascii_digit()) {
            "CUpti_ActivityKernel" => {
                places!(Kernel: "kind" kind "registersPerThread" registers "start" start "end" end
                "deviceId" device "contextId" context "streamId" stream "gridX" grid "blockX" block
                "staticSharedMemory" shared_static "dynamicSharedMemory" shared_dynamic "correlationId" correlation
                "name" name "graphNodeId" node "graphId" graph)
            }
            "CUpti_ActivityMemcpy" | "CUpti_ActivityMemset" => places!(CopyOrMemset: "kind" kind "copyKind" direction
                "bytes" bytes "start" start "end" end "deviceId" device "contextId" context "streamId" stream
                "correlationId" correlation "graphNodeId" node "graphId" graph),
            "CUpti_ActivityMemcpyPtoP" => {
                places!(PeerCopy: "kind" kind "copyKind" direction "bytes" bytes "start" start
                "end" end "deviceId" device "contextId" context "streamId" stream "correlationId" correlation
                "graphNodeId" node "graphId" graph)
            }
            "CUpti_ActivityGraphTrace" => places!(GraphTrace: "kind" kind "correlationId" correlation "start" start
                "end" end "deviceId" device "graphId" graph "contextId" context "streamId" stream),
            _ => None,
        }
    }

    #[test]
    fn fields_lie_where_the_headers_of_every_release_put_them() {
        let table = include_str!("layouts.txt");
        let mut checked = 0;
        for line in table.lines().filter(|line| !line.starts_with('#')) {
            let parts: Vec<_> = line.split_whitespace().collect();
            let [release, structure, field, offset] = parts[..] else { panic!("{line}") };
            assert_eq!(place(structure, field), offset.parse().ok(), "{release} {structure}.{field}");
            checked += 1;
        }
        assert_eq!(checked, 6 * (15 + 11 + 10 + 11 + 8));
    }

    #[test]
    fn no_structure_is_longer_than_the_shortest_of_its_records() {
        assert!(size_of::<Kernel>() <= 208 && size_of::<CopyOrMemset>() <= 88 && size_of::<PeerCopy>() <= 96);
        assert!(size_of::<GraphTrace>() <= 48);
    }
}
