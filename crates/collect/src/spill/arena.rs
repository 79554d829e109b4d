//! A file without a name, mapped as a whole and divided into slots of one allocation each.
//!
//! The file is sparse: a slot takes the disk space that its allocation asked for, and an allocation grows where it is.

use std::alloc::Layout;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};

/// Largest allocation: a list of 400 million rows of the host.
const SLOT: usize = 1 << 34;
/// Slots in each word of `taken`, of which there are four: a trace has a few dozen large lists.
const BITS: usize = u64::BITS as usize;
const LENGTH: usize = SLOT * BITS * 4;
/// Slots are aligned to a page of any system.
const ALIGNMENT: usize = 4096;

/// The mapped file.
pub(super) struct Arena {
    file: File,
    base: *mut u8,
    /// A bit for each slot.
    taken: [AtomicU64; 4],
}

// SAFETY: `base` never changes, and a slot belongs to whoever set its bit.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

impl Arena {
    /// A new one in a folder; none where its file would lie in memory itself, or cannot be without a name or with holes.
    pub(super) fn open(folder: &Path) -> Option<Self> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).custom_flags(libc::O_TMPFILE).mode(0o600).open(folder).ok()?;
        if is_memory(&file) {
            return None;
        }
        file.set_len(LENGTH as u64).ok()?;
        punch(&file, 0, SLOT)?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh mapping of a file that nobody else can open, at an address that the system chooses.
        let base = unsafe { libc::mmap(null_mut(), LENGTH, access, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        (base != libc::MAP_FAILED).then(|| Self { file, base: base.cast(), taken: Default::default() })
    }

    /// Zeroes for an allocation; none where the disk or all slots are full.
    pub(super) fn take(&self, layout: Layout) -> Option<*mut u8> {
        if layout.size() > SLOT || layout.align() > ALIGNMENT {
            return None;
        }
        let bit = |word: &AtomicU64| {
            let free = |bits: u64| (bits != u64::MAX).then(|| bits | (bits + 1));
            word.fetch_update(Ordering::Acquire, Ordering::Relaxed, free).ok()
        };
        let (word, before) = self.taken.iter().enumerate().find_map(|(word, bits)| Some((word, bit(bits)?)))?;
        let slot = word * BITS + before.trailing_ones() as usize;
        // SAFETY: the slot is inside the mapping.
        let memory = unsafe { self.base.add(slot * SLOT) };
        if !self.grow(memory, 0, layout.size()) {
            self.give_back(memory);
            return None;
        }
        Some(memory)
    }

    /// Whether an allocation lies here.
    pub(super) fn has(&self, memory: *mut u8) -> bool {
        memory.addr().wrapping_sub(self.base.addr()) < LENGTH
    }

    /// Reserves disk space for an allocation that grows; whether there was enough. A page that has none when it is written to would
    /// end the process.
    pub(super) fn grow(&self, memory: *mut u8, from: usize, to: usize) -> bool {
        let at = memory.addr() - self.base.addr() + from;
        // SAFETY: numbers only.
        to <= SLOT
            && unsafe { libc::fallocate(self.file.as_raw_fd(), 0, at as libc::off_t, (to - from) as libc::off_t) } == 0
    }

    /// Frees a slot and its disk space.
    pub(super) fn give_back(&self, memory: *mut u8) {
        let at = memory.addr() - self.base.addr();
        // A slot that keeps its bytes is never used again: the next allocation there would not be zeroes.
        if punch(&self.file, at, SLOT).is_some() {
            let slot = at / SLOT;
            self.taken[slot / BITS].fetch_and(!(1 << (slot % BITS)), Ordering::Release);
        }
    }
}

/// This is called while memory is allocated, so it must not allocate.
fn punch(file: &File, from: usize, length: usize) -> Option<()> {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: numbers only.
    let refused = unsafe { libc::fallocate(file.as_raw_fd(), mode, from as libc::off_t, length as libc::off_t) };
    (refused == 0).then_some(())
}

fn is_memory(file: &File) -> bool {
    // tmpfs and ramfs, as the system numbers them.
    let memory = [libc::TMPFS_MAGIC, 0x8584_58f6];
    let mut found = std::mem::MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: the file is open, `found` is there to be written.
    let failed = unsafe { libc::fstatfs(file.as_raw_fd(), found.as_mut_ptr()) } != 0;
    // SAFETY: all zeroes is a valid `statfs`, and the call fills it.
    failed || memory.contains(&unsafe { found.assume_init() }.f_type)
}

#[cfg(test)]
impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the whole of the mapping that `open` has made, and tests have given back all of it.
        unsafe { libc::munmap(self.base.cast(), LENGTH) };
    }
}
