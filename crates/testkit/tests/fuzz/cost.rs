//! What one input cost: memory at its peak and processor time, of this process as a whole.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, with a sum of what is held.
pub(crate) struct Counting;

// SAFETY: every call goes to the system's allocator as it came; the sums beside it touch no memory that was handed out.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the promises of `GlobalAlloc`.
        let memory = unsafe { System.alloc(layout) };
        if !memory.is_null() {
            ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
            let held = HELD.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
            PEAK.fetch_max(held, Ordering::Relaxed);
        }
        memory
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller keeps the promises of `GlobalAlloc`.
        let moved = unsafe { System.realloc(memory, layout, size) };
        if !moved.is_null() {
            let held = HELD.fetch_add(size, Ordering::Relaxed) + size;
            PEAK.fetch_max(held, Ordering::Relaxed);
            HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        }
        moved
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the promises of `GlobalAlloc`.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// What a call took.
pub(crate) struct Cost {
    pub(crate) memory: usize,
    /// How often memory was asked for, which tells the ways through a reader apart.
    pub(crate) allocations: usize,
    pub(crate) processor: Duration,
}

/// Calls something and measures it.
pub(crate) fn measured<T>(call: impl FnOnce() -> T) -> (T, Cost) {
    let (held, before) = (HELD.load(Ordering::Relaxed), processor());
    let asked = ALLOCATIONS.load(Ordering::Relaxed);
    PEAK.store(held, Ordering::Relaxed);
    let result = call();
    let memory = PEAK.load(Ordering::Relaxed).saturating_sub(held);
    let allocations = ALLOCATIONS.load(Ordering::Relaxed) - asked;
    (result, Cost { memory, allocations, processor: processor().saturating_sub(before) })
}

/// Processor time of all threads of this process: other programs on the machine do not count.
fn processor() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is there to be written.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
