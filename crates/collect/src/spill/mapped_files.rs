//! Files without a name, each mapped as a whole.

use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::residence::forget;

/// Mappings start at a multiple of this at least.
pub(super) const PAGE: usize = 4096;

/// Files at once. A process may have 1,024 open, and a list of a trace is one of a few dozen.
const MOST: usize = 256;

/// Files and where they are mapped.
pub(super) struct MappedFiles {
    /// The folder they are made in; negative where there is none.
    folder: AtomicI32,
    /// How many there are, so that a process without any never waits for another thread.
    count: AtomicUsize,
    list: Mutex<[Mapping; MOST]>,
}

/// One file; nothing is mapped at address 0.
#[derive(Clone, Copy)]
struct Mapping {
    address: usize,
    length: usize,
    file: RawFd,
}

impl MappedFiles {
    pub(super) const fn new() -> Self {
        let nothing = Mapping { address: 0, length: 0, file: -1 };
        Self { folder: AtomicI32::new(-1), count: AtomicUsize::new(0), list: Mutex::new([nothing; MOST]) }
    }

    /// Makes files in a folder from now on, if it can have some without a name that do not lie in memory themselves.
    pub(super) fn open(&self, folder: &Path) -> bool {
        let options = libc::O_PATH | libc::O_DIRECTORY;
        let Ok(opened) = std::fs::OpenOptions::new().read(true).custom_flags(options).open(folder) else {
            return false;
        };
        let opened = OwnedFd::from(opened);
        if is_memory(&opened) || nameless(opened.as_raw_fd()).is_none() {
            return false;
        }
        let _alone = self.lock();
        let before = self.folder.swap(opened.into_raw_fd(), Ordering::Relaxed);
        // SAFETY: it came out of `into_raw_fd` here, and whoever uses it holds the lock.
        drop((before >= 0).then(|| unsafe { OwnedFd::from_raw_fd(before) }));
        true
    }

    /// A new file of that many bytes, all zeroes, and where it is mapped.
    pub(super) fn add(&self, size: usize) -> Option<*mut u8> {
        if self.folder.load(Ordering::Relaxed) < 0 {
            return None;
        }
        let mut list = self.lock();
        let folder = self.folder.load(Ordering::Relaxed);
        let free = list.iter_mut().find(|mapping| mapping.address == 0)?;
        let (file, length) = (nameless(folder)?, whole_pages(size)?);
        reserve(file.as_raw_fd(), length)?;
        let (access, number) = (libc::PROT_READ | libc::PROT_WRITE, file.as_raw_fd());
        // SAFETY: a fresh mapping of a file that nobody else can open, at an address that the system chooses.
        let address = unsafe { libc::mmap(null_mut(), length, access, libc::MAP_SHARED, number, 0) };
        if address == libc::MAP_FAILED {
            return None;
        }
        *free = Mapping { address: address.addr(), length, file: file.into_raw_fd() };
        self.count.fetch_add(1, Ordering::Relaxed);
        Some(address.cast())
    }

    /// Whether a file is mapped there.
    pub(super) fn has(&self, memory: *mut u8) -> bool {
        self.count.load(Ordering::Relaxed) > 0 && self.lock().iter().any(|mapping| mapping.address == memory.addr())
    }

    /// Gives the file that is mapped there another size and says where it is then; on failure all is as before.
    pub(super) fn resize(&self, memory: *mut u8, size: usize) -> Option<*mut u8> {
        let mut list = self.lock();
        let mapping = list.iter_mut().find(|mapping| mapping.address == memory.addr())?;
        let length = whole_pages(size)?;
        if length > mapping.length {
            reserve(mapping.file, length)?;
        }
        // SAFETY: the whole of a mapping that `add` has made, and of which the caller is the only user.
        let address = unsafe { libc::mremap(memory.cast(), mapping.length, length, libc::MREMAP_MAYMOVE) };
        if address == libc::MAP_FAILED {
            return None;
        }
        if length < mapping.length {
            // What is left over takes room on the disk, no more.
            // SAFETY: the file is ours, and nothing is mapped behind `length` any more.
            let _ = unsafe { libc::ftruncate(mapping.file, libc::off_t::try_from(length).ok()?) };
        }
        (mapping.address, mapping.length) = (address.addr(), length);
        Some(address.cast())
    }

    /// Lets go of the pages of all files; they stay in the system's cache.
    pub(super) fn let_go(&self) {
        if self.count.load(Ordering::Relaxed) > 0 {
            for mapping in self.lock().iter().filter(|mapping| mapping.address != 0) {
                forget(mapping.address, mapping.length);
            }
        }
    }

    /// Removes the file that is mapped there; whether there was one.
    pub(super) fn remove(&self, memory: *mut u8) -> bool {
        if self.count.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let mut list = self.lock();
        let Some(mapping) = list.iter_mut().find(|mapping| mapping.address == memory.addr()) else { return false };
        let Mapping { length, file, .. } = *mapping;
        *mapping = Mapping { address: 0, length: 0, file: -1 };
        self.count.fetch_sub(1, Ordering::Relaxed);
        drop(list);
        // SAFETY: the whole of a mapping that `add` has made and that nobody uses any more, and its own file, which is closed once.
        unsafe {
            libc::munmap(memory.cast(), length);
            drop(OwnedFd::from_raw_fd(file));
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, [Mapping; MOST]> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A file without a name in a folder. This is called while memory is allocated, so it must not allocate.
fn nameless(folder: RawFd) -> Option<OwnedFd> {
    let options = libc::O_TMPFILE | libc::O_RDWR | libc::O_CLOEXEC;
    // SAFETY: the folder is open, the path ends with a zero.
    let file = unsafe { libc::openat(folder, c".".as_ptr(), options, 0o600) };
    // SAFETY: it was just opened and belongs to nobody else.
    (file >= 0).then(|| unsafe { OwnedFd::from_raw_fd(file) })
}

/// Takes the room on the disk, because a page that has none when it is written to ends the process.
fn reserve(file: RawFd, length: usize) -> Option<()> {
    // SAFETY: numbers only.
    let refused = unsafe { libc::fallocate(file, 0, 0, libc::off_t::try_from(length).ok()?) };
    (refused == 0).then_some(())
}

fn whole_pages(size: usize) -> Option<usize> {
    // The largest pages that any system of ours has.
    size.checked_next_multiple_of(1 << 16)
}

fn is_memory(folder: &OwnedFd) -> bool {
    /// tmpfs and ramfs, as the system numbers them.
    const MEMORY: [libc::c_long; 2] = [libc::TMPFS_MAGIC, 0x8584_58f6];
    let mut found = std::mem::MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: the folder is open, `found` is there to be written.
    let failed = unsafe { libc::fstatfs(folder.as_raw_fd(), found.as_mut_ptr()) } != 0;
    // SAFETY: all zeroes is a valid `statfs`, and the call fills it.
    failed || MEMORY.contains(&unsafe { found.assume_init() }.f_type)
}
