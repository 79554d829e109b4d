//! What counts as this process's memory, kept small where files are mapped.
//!
//! Pages of a mapped file stay in the system's cache when the process lets go of them, and are found there at the next touch. A
//! process that maps tens of gigabytes and lets go of nothing looks as large as that to whoever looks at its size, be it a batch
//! system that ends jobs by it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often the size is looked at: in this time a process can touch a few hundred megabytes.
const PAUSE: Duration = Duration::from_millis(50);
/// What the process may grow by after it has let go of all it can, before it does so again.
const GROWTH: usize = 128 << 20;
/// Files that are read at once. More than these are left to the system.
const MOST: usize = 64;

/// Where files are mapped to be read, and how many bytes; nothing is mapped at address 0.
static READ: Mutex<[(usize, usize); MOST]> = Mutex::new([(0, 0); MOST]);

/// A file that is mapped to be read, for as long as this lives.
#[derive(Debug)]
pub struct MappedInput(usize);

impl MappedInput {
    /// Lists a mapping.
    ///
    /// # Safety
    /// All of it is a shared mapping of a file, from its start, and this is dropped before it is unmapped.
    pub unsafe fn new(bytes: &[u8]) -> Self {
        let mut list = read();
        if let Some(free) = list.iter_mut().find(|(address, _)| *address == 0) {
            *free = (bytes.as_ptr().addr(), bytes.len());
        }
        Self(bytes.as_ptr().addr())
    }
}

impl Drop for MappedInput {
    fn drop(&mut self) {
        if let Some(listed) = read().iter_mut().find(|(address, _)| *address == self.0) {
            *listed = (0, 0);
        }
    }
}

/// Lets go of files from now on whenever the process is larger than that many bytes: of those that are listed here, and of
/// others by `let_go`. Once asked, it holds for the whole process.
pub(super) fn keep_below(bytes: usize, let_go: fn()) {
    static STARTED: AtomicBool = AtomicBool::new(false);
    if STARTED.swap(true, Ordering::Relaxed) {
        return;
    }
    let keep = move || {
        let mut most = bytes;
        loop {
            std::thread::sleep(PAUSE);
            if resident().is_some_and(|resident| resident > most) {
                for (address, length) in read().iter().copied().filter(|(address, _)| *address != 0) {
                    forget(address, length);
                }
                let_go();
                most = bytes.max(resident().unwrap_or_default().saturating_add(GROWTH));
            }
        }
    };
    // Without this thread nothing is wrong but a size that looks large.
    let _ = std::thread::Builder::new().name("residence".to_owned()).spawn(keep);
}

/// Lets go of the pages of a mapped file. The caller holds the lock of the list that says it is one.
pub(super) fn forget(address: usize, length: usize) {
    let start = std::ptr::with_exposed_provenance_mut(address);
    // SAFETY: pages of a shared mapping of a file stay as they are in the system's cache, so nobody who reads or writes them notices.
    // The mapping is still there: it is taken off its list, under the lock that the caller holds, before it is unmapped.
    unsafe { libc::madvise(start, length, libc::MADV_DONTNEED) };
}

/// Bytes of this process that are in memory.
fn resident() -> Option<usize> {
    let pages: usize = std::fs::read_to_string("/proc/self/statm").ok()?.split(' ').nth(1)?.parse().ok()?;
    // SAFETY: takes a number only.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    pages.checked_mul(usize::try_from(page).ok()?)
}

fn read() -> MutexGuard<'static, [(usize, usize); MOST]> {
    READ.lock().unwrap_or_else(PoisonError::into_inner)
}
