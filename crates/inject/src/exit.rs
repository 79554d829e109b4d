//! Leaving: what is still on its way is fetched and written, for a bounded time.

use core::ffi::c_void;
use core::sync::atomic::Ordering;

use crate::state::STATE;
use crate::{cupti, system};

/// How long a process is held up at its end, at most. Writing what is left takes a few milliseconds.
const PATIENCE: u64 = 3_000_000_000;

/// When the process leaves through `exit`, before libraries that were initialised earlier are taken down.
pub(crate) extern "C" fn leave(_: *mut c_void) {
    if !STATE.stop() {
        return;
    }
    cupti::flush(true);
    STATE.close_windows();
    STATE.leaving.store(true, Ordering::Release);
    STATE.wake_writer();
    let started = system::monotonic();
    while !STATE.left.load(Ordering::Acquire) && system::monotonic().saturating_sub(started) < PATIENCE {
        system::sleep(1);
    }
}
