//! Leaving: what is still on its way is fetched and written, for a bounded time.

use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::{cupti, process, system, window, writer};

static STOP: AtomicBool = AtomicBool::new(false);
static DONE: AtomicBool = AtomicBool::new(false);

/// How long a process is held up at its end, at most. Writing what is left takes a few milliseconds.
const PATIENCE: u64 = 3_000_000_000;

/// When the process leaves through `exit`, before libraries that were initialised earlier are taken down.
pub(crate) extern "C" fn leave(_: *mut c_void) {
    if !process::stop() {
        return;
    }
    cupti::flush(true);
    window::reset();
    STOP.store(true, Ordering::Release);
    writer::wake();
    let started = system::monotonic();
    while !DONE.load(Ordering::Acquire) && system::monotonic().saturating_sub(started) < PATIENCE {
        system::sleep(1);
    }
}

/// Whether the writer thread is to finish.
pub(crate) fn is_near() -> bool {
    STOP.load(Ordering::Acquire)
}

/// The writer thread has finished.
pub(crate) fn done() {
    DONE.store(true, Ordering::Release);
}

/// In the child of a fork.
pub(crate) fn forget() {
    STOP.store(false, Ordering::Relaxed);
    DONE.store(false, Ordering::Relaxed);
}
