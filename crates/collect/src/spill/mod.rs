//! Large allocations of this process, spilled to a file once memory holds its share of them.
//!
//! A trace of many gigabytes becomes lists of gigabytes, which are filled and walked from end to end. Where there is no swap, the
//! system has to keep them in memory; pages of a file it can write out and read back. So an allocation of a mebibyte and more
//! that would take the process above its share is mapped from a file, which has no name and is gone with the process. Code that
//! fills a `Vec` knows nothing of it.
//!
//! Nothing is spilled before [`start`] is called, nor where the file cannot be made or the disk is full: then memory holds it.

mod arena;

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use types::Bytes;

use arena::Arena;

/// The smallest allocation that is spilled. Smaller ones are many; what a trace has millions of lies in larger ones.
const LARGE: usize = 1 << 20;

/// The allocator of a program whose large allocations may spill.
pub struct SpillingAllocator;

/// Bytes of large allocations that memory may hold.
static SHARE: AtomicUsize = AtomicUsize::new(usize::MAX);
/// Bytes of large allocations that it holds.
static HELD: AtomicUsize = AtomicUsize::new(0);
/// What is above.
static ARENA: OnceLock<Arena> = OnceLock::new();

/// Lets large allocations spill from now on, beyond a share that stays in memory: to `TMPDIR` where that is set, else to `folder`.
/// The first folder that can be used stays the one.
pub fn start(folder: &Path, share: Bytes) {
    let temporary = std::env::var_os("TMPDIR").filter(|path| !path.is_empty()).map(PathBuf::from);
    let mut folders = temporary.into_iter().chain([folder.to_owned()]);
    if ARENA.get().is_none()
        && let Some(arena) = folders.find_map(|folder| Arena::open(&folder))
    {
        let _ = ARENA.set(arena);
    }
    SHARE.store(usize::try_from(share.get()).unwrap_or(usize::MAX), Ordering::Relaxed);
}

/// A place in the arena, which is all zeroes, where memory should not hold an allocation; it holds `before` of it already.
fn spilled(layout: Layout, before: usize) -> Option<*mut u8> {
    let arena = ARENA.get().filter(|_| layout.size() >= LARGE)?;
    let held = HELD.load(Ordering::Relaxed).saturating_sub(large(before));
    let is_full = held.saturating_add(layout.size()) > SHARE.load(Ordering::Relaxed);
    if is_full { arena.take(layout) } else { None }
}

/// The arena that an allocation lies in.
fn arena_of(memory: *mut u8) -> Option<&'static Arena> {
    ARENA.get().filter(|arena| arena.has(memory))
}

/// Bytes of an allocation that count.
fn large(size: usize) -> usize {
    if size >= LARGE { size } else { 0 }
}

fn hold(memory: *mut u8, size: usize) -> *mut u8 {
    if !memory.is_null() {
        HELD.fetch_add(large(size), Ordering::Relaxed);
    }
    memory
}

// SAFETY: an allocation is either the system's, which gets it back, or a slot of the arena, zeroed and aligned to a page, which no
// other allocation shares; their addresses tell them apart.
unsafe impl GlobalAlloc for SpillingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the promises of `GlobalAlloc`.
        spilled(layout, 0).unwrap_or_else(|| hold(unsafe { System.alloc(layout) }, layout.size()))
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the promises of `GlobalAlloc`.
        spilled(layout, 0).unwrap_or_else(|| hold(unsafe { System.alloc_zeroed(layout) }, layout.size()))
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if let Some(arena) = arena_of(memory) {
            return arena.give_back(memory);
        }
        HELD.fetch_sub(large(layout.size()), Ordering::Relaxed);
        // SAFETY: it is not in the arena, so it is the system's; the caller keeps the promises of `GlobalAlloc`.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let (old, arena) = (layout.size(), arena_of(memory));
        if arena.is_some_and(|arena| size <= old || arena.grow(memory, old, size)) {
            return memory;
        }
        // SAFETY: the caller says that the size is valid for this alignment.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        let to = match arena {
            // SAFETY: the caller keeps the promises of `GlobalAlloc`; the size is not zero.
            Some(_) => Some(hold(unsafe { System.alloc(wanted) }, size)),
            None => spilled(wanted, old).filter(|_| size > old),
        };
        match to {
            Some(to) if to.is_null() => to,
            // SAFETY: both hold as many bytes as the smaller one has, the new one is nobody else's, and the caller gives up the old one.
            Some(to) => unsafe {
                std::ptr::copy_nonoverlapping(memory, to, old.min(size));
                self.dealloc(memory, layout);
                to
            },
            None => {
                // SAFETY: it is not in the arena, so it is the system's; the caller keeps the promises of `GlobalAlloc`.
                let moved = unsafe { System.realloc(memory, layout, size) };
                if !moved.is_null() {
                    HELD.fetch_sub(large(old), Ordering::Relaxed);
                }
                hold(moved, size)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use proptest::prelude::*;

    use super::*;

    /// Memory may hold that much until this is dropped.
    fn share(bytes: usize) -> MutexGuard<'static, ()> {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        // Beside the program, which lies on a disk.
        let program = std::env::current_exe().unwrap();
        ARENA.get_or_init(|| Arena::open(program.parent().unwrap()).unwrap());
        SHARE.store(bytes, Ordering::Relaxed);
        assert_eq!(HELD.load(Ordering::Relaxed), 0);
        turn
    }

    fn layout(size: usize) -> Layout {
        Layout::from_size_align(size, 16).unwrap()
    }

    #[test]
    fn what_is_above_the_share_is_mapped_and_the_rest_is_not() {
        let _turn = share(3 * LARGE);
        let layouts = [2 * LARGE, 2 * LARGE, LARGE - 1, LARGE].map(layout);
        // SAFETY: every block is used within its size and given back once, with its layout.
        unsafe {
            let blocks = layouts.map(|layout| SpillingAllocator.alloc(layout));
            assert_eq!(blocks.map(|block| arena_of(block).is_some()), [false, true, false, false]);
            assert_eq!(HELD.load(Ordering::Relaxed), 3 * LARGE);
            for (block, layout) in blocks.into_iter().zip(layouts) {
                block.write_bytes(7, layout.size());
                SpillingAllocator.dealloc(block, layout);
            }
            assert_eq!(HELD.load(Ordering::Relaxed), 0);
        }
    }

    #[test]
    fn where_no_file_can_be_made_nothing_spills() {
        let is_none = |folder: &str| Arena::open(Path::new(folder)).is_none();
        assert!(is_none("/no/such/folder") && is_none("/proc"));
        assert!(!Path::new("/dev/shm").is_dir() || is_none("/dev/shm"), "its files lie in memory");
    }

    #[test]
    fn an_arena_without_a_free_slot_leaves_allocations_to_memory() {
        let program = std::env::current_exe().unwrap();
        let arena = Arena::open(program.parent().unwrap()).unwrap();
        assert_eq!(arena.take(layout(1 << 40)), None, "longer than a slot");
        let slots: Vec<*mut u8> = std::iter::from_fn(|| arena.take(layout(1))).collect();
        assert_eq!(slots.len(), 256);
        slots.iter().for_each(|slot| arena.give_back(*slot));
        assert!(arena.take(layout(1)).is_some());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn blocks_keep_their_bytes_however_they_grow_and_shrink(
            steps in proptest::collection::vec((0..4usize, 1..40usize, any::<bool>()), 1..40),
        ) {
            let _turn = share(2 * LARGE);
            let mut blocks: [Option<(*mut u8, Layout, u8)>; 4] = [None; 4];
            for (number, (place, tenths, frees)) in steps.into_iter().enumerate() {
                let (size, mark) = (tenths * LARGE / 10, number as u8 + 1);
                // SAFETY: blocks are used within their size, and given back once with the layout they have.
                unsafe {
                    blocks[place] = match blocks[place] {
                        None => {
                            let block = SpillingAllocator.alloc_zeroed(layout(size));
                            prop_assert!(std::slice::from_raw_parts(block, size).iter().all(|byte| *byte == 0));
                            Some((block, layout(size), mark))
                        }
                        Some((block, old, written)) => {
                            let known = |block: *mut u8, size| {
                                std::slice::from_raw_parts(block, size).iter().all(|byte| *byte == written)
                            };
                            prop_assert!(known(block, old.size()));
                            if frees {
                                SpillingAllocator.dealloc(block, old);
                                None
                            } else {
                                let moved = SpillingAllocator.realloc(block, old, size);
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
                unsafe { SpillingAllocator.dealloc(block, layout) };
            }
            prop_assert_eq!(HELD.load(Ordering::Relaxed), 0);
        }
    }
}
