//! Large allocations of this process, spilled to files once memory holds its share of them.
//!
//! A trace of many gigabytes becomes lists of gigabytes, which are filled and walked from end to end. Where there is no swap, the
//! system has to keep them in memory; pages of a file it can write out and read back. So an allocation of a mebibyte and more
//! that would take the process above its share is mapped from a file of its own. The file has no name, and is
//! gone with the process. Code that fills a `Vec` knows nothing of it, and growing one moves pages and copies none.
//!
//! Nothing is spilled before [`start`] is called, nor where a file cannot be made or the disk is full: then memory holds it.

mod mapped_files;
mod residence;

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use types::Bytes;

use mapped_files::{MappedFiles, PAGE};
pub use residence::MappedInput;

/// The smallest allocation that is spilled. Smaller ones are many, and a file has its cost; what a trace has millions of lies in
/// larger ones.
const LARGE: usize = 1 << 20;

/// What a process may be larger than its share before it lets go of mapped files.
const BESIDE: usize = 128 << 20;

/// The allocator of a program whose large allocations may spill.
pub struct SpillingAllocator;

static SPILL: Spill = Spill::new();

/// Lets large allocations spill from now on, beyond a share that stays in memory: to `TMPDIR` where that is set, else to `folder`; the folder
/// that it is. From then on the process also lets go of the pages of its mapped files where they would make it look larger. No folder is of use where its files lie in memory themselves, or cannot be without a name.
pub fn start(folder: &Path, share: Bytes) -> Option<PathBuf> {
    let temporary = std::env::var_os("TMPDIR").filter(|path| !path.is_empty()).map(PathBuf::from);
    let found = temporary.into_iter().chain([folder.to_owned()]).find(|folder| SPILL.files.open(folder))?;
    let share = usize::try_from(share.get()).unwrap_or(usize::MAX);
    SPILL.share.store(share, Ordering::Relaxed);
    residence::keep_below(share.saturating_add(BESIDE), || SPILL.files.let_go());
    Some(found)
}

/// Allocations in memory and in files.
struct Spill {
    /// Bytes of large allocations that memory may hold.
    share: AtomicUsize,
    /// Bytes of large allocations that it holds.
    held: AtomicUsize,
    files: MappedFiles,
}

impl Spill {
    const fn new() -> Self {
        Self { share: AtomicUsize::new(usize::MAX), held: AtomicUsize::new(0), files: MappedFiles::new() }
    }

    /// Whether that many more bytes are above the share.
    fn is_full(&self, more: usize) -> bool {
        self.held.load(Ordering::Relaxed).saturating_add(more) > self.share.load(Ordering::Relaxed)
    }

    /// A mapped file of this size, which is all zeroes, where memory should not hold it.
    fn spilled(&self, layout: Layout) -> Option<*mut u8> {
        let is_meant = layout.size() >= LARGE && layout.align() <= PAGE && self.is_full(layout.size());
        if is_meant { self.files.add(layout.size()) } else { None }
    }

    fn hold(&self, memory: *mut u8, size: usize) -> *mut u8 {
        if size >= LARGE && !memory.is_null() {
            self.held.fetch_add(size, Ordering::Relaxed);
        }
        memory
    }

    fn release(&self, size: usize) {
        if size >= LARGE {
            self.held.fetch_sub(size, Ordering::Relaxed);
        }
    }

    /// Moves an allocation to a fresh one of another size.
    ///
    /// # Safety
    /// As for [`GlobalAlloc::realloc`].
    unsafe fn moved(&self, memory: *mut u8, layout: Layout, to: *mut u8, size: usize) -> *mut u8 {
        if !to.is_null() {
            // SAFETY: both hold as many bytes as the smaller one has, the new one is nobody else's, and the caller gives up the old one.
            unsafe {
                std::ptr::copy_nonoverlapping(memory, to, layout.size().min(size));
                self.dealloc(memory, layout);
            }
        }
        to
    }
}

// SAFETY: an allocation is either the system's, which gets it back, or a mapping of whole pages of its own, zeroed and aligned to a
// page, which no other allocation shares. `MappedFiles` knows which: it looks at large ones alone, and no smaller one is ever a mapping.
unsafe impl GlobalAlloc for Spill {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match self.spilled(layout) {
            Some(mapped) => mapped,
            // SAFETY: the caller keeps the promises of `GlobalAlloc`.
            None => self.hold(unsafe { System.alloc(layout) }, layout.size()),
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match self.spilled(layout) {
            Some(mapped) => mapped,
            // SAFETY: the caller keeps the promises of `GlobalAlloc`.
            None => self.hold(unsafe { System.alloc_zeroed(layout) }, layout.size()),
        }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if layout.size() >= LARGE && self.files.remove(memory) {
            return;
        }
        self.release(layout.size());
        // SAFETY: no file is mapped there, so it is the system's; the caller keeps the promises of `GlobalAlloc`.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller says that the size is valid for this alignment.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        if layout.size() >= LARGE && self.files.has(memory) {
            let resized = if size >= LARGE { self.files.resize(memory, size) } else { None };
            return resized.unwrap_or_else(|| {
                // SAFETY: the caller keeps the promises of `GlobalAlloc`; the size is not zero.
                let to = self.hold(unsafe { System.alloc(wanted) }, size);
                // SAFETY: as above, and `to` is fresh.
                unsafe { self.moved(memory, layout, to, size) }
            });
        }
        let held = if layout.size() >= LARGE { layout.size() } else { 0 };
        let is_meant = size >= LARGE && layout.align() <= PAGE && size > layout.size() && self.is_full(size - held);
        if is_meant && let Some(to) = self.files.add(size) {
            // SAFETY: the caller keeps the promises of `GlobalAlloc`, and `to` is fresh.
            return unsafe { self.moved(memory, layout, to, size) };
        }
        // SAFETY: no file is mapped there, so it is the system's; the caller keeps the promises of `GlobalAlloc`.
        let moved = unsafe { System.realloc(memory, layout, size) };
        if !moved.is_null() {
            self.release(layout.size());
        }
        self.hold(moved, size)
    }
}

// SAFETY: all of it is `Spill`'s.
unsafe impl GlobalAlloc for SpillingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the promises of `GlobalAlloc`.
        unsafe { SPILL.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the promises of `GlobalAlloc`.
        unsafe { SPILL.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the promises of `GlobalAlloc`.
        unsafe { SPILL.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller keeps the promises of `GlobalAlloc`.
        unsafe { SPILL.realloc(memory, layout, size) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Memory may hold that much; files go beside the program, which lies on a disk.
    fn spill(share: usize) -> Spill {
        let program = std::env::current_exe().unwrap();
        let spill = Spill::new();
        assert!(spill.files.open(program.parent().unwrap()));
        spill.share.store(share, Ordering::Relaxed);
        spill
    }

    fn layout(size: usize) -> Layout {
        Layout::from_size_align(size, 16).unwrap()
    }

    #[test]
    fn what_is_above_the_share_is_mapped_and_the_rest_is_not() {
        let spill = spill(3 * LARGE);
        let layouts = [2 * LARGE, 2 * LARGE, LARGE - 1, LARGE].map(layout);
        // SAFETY: every block is used within its size and given back once, with its layout.
        unsafe {
            let blocks = layouts.map(|layout| spill.alloc(layout));
            assert_eq!(blocks.map(|block| spill.files.has(block)), [false, true, false, false]);
            assert_eq!(spill.held.load(Ordering::Relaxed), 3 * LARGE);
            for (block, layout) in blocks.into_iter().zip(layouts) {
                block.write_bytes(7, layout.size());
                spill.dealloc(block, layout);
            }
            assert_eq!(spill.held.load(Ordering::Relaxed), 0);
            assert!(!blocks.into_iter().any(|block| spill.files.has(block)));
        }
    }

    #[test]
    fn a_file_that_cannot_be_made_leaves_the_allocation_to_memory() {
        let files = MappedFiles::new();
        assert_eq!(files.add(LARGE), None, "no folder is known");
        assert!(!files.open(Path::new("/no/such/folder")) && !files.open(Path::new("/proc")));
        let spill = spill(0);
        assert_eq!(spill.files.add(1 << 50), None, "no disk has a pebibyte");
        // SAFETY: the block is used within its size and given back once, with its layout.
        unsafe {
            let block = spill.alloc(layout(LARGE));
            assert!(spill.files.has(block));
            assert!(spill.files.resize(block, 1 << 50).is_none() && spill.files.has(block));
            spill.dealloc(block, layout(LARGE));
        }
    }

    #[test]
    fn files_in_memory_are_no_place_to_spill_to() {
        let memory = Path::new("/dev/shm");
        assert!(!memory.is_dir() || !MappedFiles::new().open(memory));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn blocks_keep_their_bytes_however_they_grow_and_shrink(
            steps in proptest::collection::vec((0..4usize, 1..40usize, any::<bool>()), 1..40),
        ) {
            let spill = spill(2 * LARGE);
            let mut blocks: [Option<(*mut u8, Layout, u8)>; 4] = [None; 4];
            for (number, (place, tenths, frees)) in steps.into_iter().enumerate() {
                let (size, mark) = (tenths * LARGE / 10, number as u8 + 1);
                // SAFETY: blocks are used within their size, and given back once with the layout they have.
                unsafe {
                    blocks[place] = match blocks[place] {
                        None => {
                            let block = spill.alloc_zeroed(layout(size));
                            prop_assert!(std::slice::from_raw_parts(block, size).iter().all(|byte| *byte == 0));
                            Some((block, layout(size), mark))
                        }
                        Some((block, old, written)) => {
                            let known = |block: *mut u8, size| {
                                std::slice::from_raw_parts(block, size).iter().all(|byte| *byte == written)
                            };
                            prop_assert!(known(block, old.size()));
                            if frees {
                                spill.dealloc(block, old);
                                None
                            } else {
                                let moved = spill.realloc(block, old, size);
                                prop_assert!(known(moved, size.min(old.size())));
                                Some((moved, layout(size), mark))
                            }
                        }
                    };
                    if let Some((block, layout, mark)) = blocks[place] {
                        prop_assert_eq!(block.addr() % layout.align(), 0);
                        block.write_bytes(mark, layout.size());
                    }
                }
            }
            for (block, layout, _) in blocks.into_iter().flatten() {
                // SAFETY: it is given back once, with its layout.
                unsafe { spill.dealloc(block, layout) };
            }
            prop_assert_eq!(spill.held.load(Ordering::Relaxed), 0);
        }
    }
}
