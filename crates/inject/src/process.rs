//! Whether this process is collected, and what becomes of that in the child of a fork.

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use crate::path::Path;
use crate::settings::{self, InjectSettings};
use crate::state::{IDLE, OFF, RUNNING, STARTING, STATE};
use crate::{attachment, callback, catalogue, exit, log, system, writer};

static REGISTERED: AtomicBool = AtomicBool::new(false);
static FILE: AtomicI32 = AtomicI32::new(-1);

/// Files of one process number that may lie in one folder, where the system has used the number again.
const MOST_FILES: u32 = 1000;

/// Starts collecting, where that was not done; whether this process is collected.
pub(crate) fn start() -> bool {
    match STATE.life.compare_exchange(IDLE, STARTING, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => {
            // SAFETY: only whoever moves the state from idle to starting gets here.
            let started = unsafe { settings::prepare() }.is_some_and(start_writer);
            STATE.life.store(if started { RUNNING } else { OFF }, Ordering::Release);
            started
        }
        Err(state) => state == RUNNING,
    }
}

/// Whether this process is collected. In the child of a fork this starts it, at the first thing there is to record.
#[inline]
pub(crate) fn is_running() -> bool {
    match STATE.life.load(Ordering::Acquire) {
        RUNNING => true,
        IDLE => start(),
        _ => false,
    }
}

fn start_writer(settings: &InjectSettings) -> bool {
    let Some(file) = create(settings) else { return false };
    FILE.store(file, Ordering::Relaxed);
    if !log::prepare() || !writer::start(file) {
        system::close(file);
        return false;
    }
    if !REGISTERED.swap(true, Ordering::AcqRel) {
        // SAFETY: only whoever sets the flag gets here.
        unsafe { attachment::prepare(callback::called) };
        system::at_fork(child);
        system::at_exit(exit::leave);
        catalogue::add(catalogue::Kind::Collector, 0, env!("CARGO_PKG_VERSION").as_bytes());
    }
    true
}

/// A file of its own: `process-NUMBER.wire` in the folder.
fn create(settings: &InjectSettings) -> Option<c_int> {
    let (process, _) = system::processes();
    (0..MOST_FILES).find_map(|again| {
        let mut path = Path::new();
        path.append(settings.folder.bytes());
        path.append(b"/process-");
        path.append_number(process);
        if again > 0 {
            path.append(b"-");
            path.append_number(again);
        }
        path.append(b".wire");
        system::create(path.as_c()?)
    })
}

/// In the child of a fork. Its threads are gone and the file is its parent's; it starts anew when it has something to say.
/// CUDA itself does not survive a fork, so neither does what was attached to it.
extern "C" fn child() {
    if STATE.life.load(Ordering::Relaxed) == OFF {
        return;
    }
    let file = FILE.swap(-1, Ordering::Relaxed);
    if file >= 0 {
        system::close(file);
    }
    log::forget_all();
    STATE.forget();
}
