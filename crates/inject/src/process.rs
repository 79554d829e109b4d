//! Whether this process is collected, and what becomes of that at its end and in the child of a fork.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use crate::path::Path;
use crate::settings::{self, InjectSettings};
use crate::state::{IDLE, OFF, RUNNING, STARTING, STATE, WAITING};
use crate::{attachment, callback, catalogue, cupti, gate, log, request, system, writer};

static REGISTERED: AtomicBool = AtomicBool::new(false);
static FILE: AtomicI32 = AtomicI32::new(-1);

/// How long a process is held up at its end, at most. Writing what is left takes a few milliseconds.
const PATIENCE: u64 = 3_000_000_000;

/// Files of one process number that may lie in one folder, where the system has used the number again.
const MOST_FILES: u32 = 1000;

/// Starts collecting, where that was not done; whether this process is collected.
pub(crate) fn start() -> bool {
    match STATE.life.compare_exchange(IDLE, STARTING, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => {
            // SAFETY: only whoever moves the state from idle to starting gets here.
            let settings = unsafe { settings::prepare() };
            STATE.graphs.store(settings.map_or(1, |settings| settings.graphs), Ordering::Relaxed);
            let life = match settings {
                Some(settings) if settings.waits => wait(),
                Some(settings) if start_writer(settings) => RUNNING,
                _ => OFF,
            };
            STATE.life.store(life, Ordering::Release);
            life == RUNNING
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
        WAITING if STATE.asked.load(Ordering::Relaxed) => {
            begin();
            false
        }
        _ => false,
    }
}

/// Whether nothing happens until somebody asks for a recording.
pub(crate) fn is_waiting() -> bool {
    STATE.life.load(Ordering::Acquire) == WAITING
}

/// The driver has started, in a process that waits.
pub(crate) fn driver_started() {
    STATE.driver.store(true, Ordering::Release);
}

/// Waits to be asked; no more where the application has taken the signal.
fn wait() -> u32 {
    if !system::handle(request::SIGNAL, asked) {
        return OFF;
    }
    register();
    WAITING
}

/// The signal: somebody asks for a recording. Where the thread that it has interrupted may not start another, the next range does.
extern "C" fn asked(_: c_int, _: *mut c_void, context: *mut c_void) {
    if !is_waiting() {
        return;
    }
    STATE.asked.store(true, Ordering::Relaxed);
    // SAFETY: the system passes it.
    if unsafe { request::may_start(context) } {
        system::keeping_error(begin);
    }
}

fn begin() {
    if STATE.life.compare_exchange(WAITING, STARTING, Ordering::AcqRel, Ordering::Acquire).is_err() {
        return;
    }
    STATE.asked.store(false, Ordering::Relaxed);
    if !system::start_thread(serve, core::ptr::null_mut()) {
        STATE.life.store(WAITING, Ordering::Release);
    }
}

/// A recording that was asked for, on a thread of its own.
extern "C" fn serve(_: *mut c_void) -> *mut c_void {
    let folder = request::folder();
    let asked = request::read(&folder);
    if let Some(Some(request)) = asked
        && let Some(file) = create(&folder).filter(|_| log::prepare())
    {
        FILE.store(file, Ordering::Relaxed);
        log::start_session();
        STATE.hopeless.store(false, Ordering::Relaxed);
        STATE.graphs_only.store(request.graphs_only, Ordering::Relaxed);
        STATE.life.store(RUNNING, Ordering::Release);
        gate::requested(request.milliseconds);
        writer::write(file);
        STATE.until.store(0, Ordering::Relaxed);
        system::close(FILE.swap(-1, Ordering::Relaxed));
    }
    // What somebody asks for meanwhile is left for the next signal.
    if asked.is_some() {
        request::done(&folder);
    }
    // Unless the process leaves meanwhile.
    for life in [STARTING, RUNNING] {
        let _ = STATE.life.compare_exchange(life, WAITING, Ordering::AcqRel, Ordering::Acquire);
    }
    core::ptr::null_mut()
}

fn start_writer(settings: &InjectSettings) -> bool {
    let Some(file) = create(&settings.folder) else { return false };
    FILE.store(file, Ordering::Relaxed);
    if !log::prepare() || !writer::start(file) {
        system::close(file);
        return false;
    }
    register();
    true
}

/// What lasts for as long as the process, and its children.
fn register() {
    if !REGISTERED.swap(true, Ordering::AcqRel) {
        // SAFETY: only whoever sets the flag gets here.
        unsafe { attachment::prepare(callback::called) };
        system::at_fork(child);
        system::at_exit(leave);
        catalogue::add(catalogue::Kind::Collector, 0, env!("CARGO_PKG_VERSION").as_bytes());
    }
}

/// A file of its own: `process-NUMBER.wire` in the folder.
fn create(folder: &Path) -> Option<c_int> {
    let (process, _) = system::processes();
    (0..MOST_FILES).find_map(|again| {
        let mut path = Path::new();
        path.append(folder.bytes());
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

/// When the process leaves through `exit`, before libraries that were initialised earlier are taken down.
extern "C" fn leave(_: *mut c_void) {
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
    let waits = settings::settings().is_some_and(|settings| settings.waits);
    STATE.forget(if waits { WAITING } else { IDLE });
}
