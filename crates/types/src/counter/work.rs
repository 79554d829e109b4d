//! What was profiled: a kernel, or a range with all the work in it.

use std::sync::Arc;

/// Whether one kernel was replayed or a whole range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProfiledKind {
    /// One launch of a kernel.
    Kernel,
    /// A range of the program, replayed as a whole.
    Range,
    /// Neither a launch nor a range by what the file says, such as a whole CUDA graph.
    Other,
}

/// One thing the profiler replayed. What the file does not say is absent.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfiledWork {
    /// The profiler's number for it, unique within a process of a file.
    pub id: u64,
    /// What it is.
    pub kind: ProfiledKind,
    /// Full demangled name of the kernel, or what the profiler writes instead of one (`range`).
    pub name: Arc<str>,
    /// Process that launched it.
    pub process: Option<u32>,
    /// Name of that process, without its folder.
    pub process_name: Option<Arc<str>>,
    /// Ordinal of the device.
    pub device: Option<u32>,
    /// Major and minor compute capability of the device.
    pub compute_capability: Option<(u32, u32)>,
    /// CUDA context.
    pub context: Option<u32>,
    /// CUDA stream; absent for ranges, which may use several.
    pub stream: Option<u32>,
    /// Blocks in x, y, z.
    pub grid: Option<[u32; 3]>,
    /// Threads of a block in x, y, z.
    pub block: Option<[u32; 3]>,
    /// Push/pop ranges that were open at the launch, outermost first within a domain and thread.
    pub pushed: Arc<[OpenRange]>,
    /// Start/end ranges that were open at the launch. They overlap freely, so their order means nothing.
    pub started: Arc<[OpenRange]>,
}

/// An NVTX range that was open.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OpenRange {
    /// Thread that pushed it, or handle of a start/end range.
    pub owner: Option<u64>,
    /// NVTX domain; absent for the default domain.
    pub domain: Option<Arc<str>>,
    /// Its name, which may contain any character.
    pub name: Arc<str>,
}

impl ProfiledWork {
    /// Names of the push/pop ranges of one domain, outermost first.
    pub fn segments<'a>(&'a self, domain: Option<&'a str>) -> impl Iterator<Item = &'a str> {
        self.pushed.iter().filter(move |range| range.domain.as_deref() == domain).map(|range| &*range.name)
    }
}
