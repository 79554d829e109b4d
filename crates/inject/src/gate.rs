//! Opens and closes windows. Inside one CUPTI is attached and calls are recorded, or launches of graphs are timed.

use core::sync::atomic::Ordering;

use crate::log::{self, Log};
use crate::settings::settings;
use crate::state::STATE;
use crate::system::{monotonic, now};
use crate::{attachment, request, slots, system, timing};

/// How long after a window CUPTI stays on, for work that was launched in it to end.
const LINGER: u64 = 50_000_000;

/// The driver has started: attaches and switches on, unless only windows are wanted and none is open.
pub(crate) fn driver_started() {
    let Some(settings) = settings() else { return };
    STATE.driver.store(true, Ordering::Release);
    STATE.driver_since.store(monotonic(), Ordering::Release);
    if !settings.windows.are_there() {
        attachment::switch_on();
        STATE.collecting.store(true, Ordering::Relaxed);
    } else if STATE.any_open() {
        attachment::switch_on();
    } else if settings.windows.by_profiler() {
        attachment::stand_by();
    }
}

/// A range is about to be pushed in a domain whose name is that of the window at `place`.
pub(crate) fn pushed(log: &Log, domain: u32, place: usize) {
    let Some(settings) = settings() else { return };
    settings.windows.pushed(place, |effect| {
        if effect.opens {
            open(log);
        }
        if effect.closes {
            log.close_with_next(domain);
        }
    });
}

/// The program has started the CUDA profiler, or is about to stop it. A call of the runtime and the driver's inside of it count once.
///
/// This is called by CUPTI, which must not be switched meanwhile: where it was, it delivered no callbacks after some windows. The writer
/// thread opens the window, and the program waits for that some milliseconds.
pub(crate) fn profiler(starts: bool) {
    const ATTEMPTS: u32 = 100;
    if STATE.profiled.swap(starts, Ordering::AcqRel) == starts {
        return;
    }
    if !starts {
        end_profile();
        return;
    }
    STATE.wake_writer();
    for _ in 0..ATTEMPTS {
        if STATE.profile_open.load(Ordering::Acquire) && STATE.is_collecting() {
            return;
        }
        system::sleep(1);
    }
}

/// Closes the window of the CUDA profiler, where it is open.
fn end_profile() {
    if STATE.profile_open.swap(false, Ordering::AcqRel)
        && let Some(log) = log::current()
    {
        close(log);
    }
}

/// Opens the window of the CUDA profiler, where the program has started it.
fn begin_profile() {
    if !STATE.profiled.load(Ordering::Acquire) || STATE.profile_open.load(Ordering::Acquire) {
        return;
    }
    let Some(log) = log::current() else { return };
    open(log);
    STATE.profile_open.store(true, Ordering::Release);
    // It may have been stopped meanwhile.
    if !STATE.profiled.load(Ordering::Acquire) {
        end_profile();
    }
}

/// Somebody outside has asked for a window, from now on for so many milliseconds. Where CUPTI is another's it ends at once, and the file
/// says why.
pub(crate) fn requested(milliseconds: u32) {
    if let Some(log) = log::current() {
        open(log);
    }
    let lasts = if STATE.is_hopeless() { 1 } else { u64::from(milliseconds) * 1_000_000 };
    STATE.until.store(monotonic().saturating_add(lasts), Ordering::Relaxed);
}

/// Closes the window that somebody asked for when its time has come, or the request was taken back.
fn end_request() {
    let until = STATE.until.load(Ordering::Relaxed);
    if until != 0
        && STATE.any_open()
        && (monotonic() >= until || !matches!(request::read(&request::folder()), Some(Some(_))))
        && let Some(log) = log::current()
    {
        close(log);
    }
}

/// Whether a recording that somebody asked for is over, and everything of it was fetched.
pub(crate) fn request_is_over() -> bool {
    STATE.until.load(Ordering::Relaxed) != 0 && !is_settling() && !attachment::is_on()
}

fn open(log: &Log) {
    if STATE.open.fetch_add(1, Ordering::AcqRel) == 0 {
        STATE.closed.store(0, Ordering::Relaxed);
        if STATE.times_graphs_only() {
            timing::open(slots::lead());
        } else {
            attachment::switch_on();
            STATE.collecting.store(true, Ordering::Relaxed);
        }
        log.window(true, now());
    }
}

/// The range that closes a window was popped.
pub(crate) fn close(log: &Log) {
    if STATE.open.fetch_sub(1, Ordering::AcqRel) == 1 {
        STATE.collecting.store(false, Ordering::Relaxed);
        STATE.timing.store(false, Ordering::Relaxed);
        log.window(false, now());
        STATE.closed.store(monotonic(), Ordering::Relaxed);
    }
}

/// What the writer thread does for windows after each round: opens and closes those of time, and has CUPTI stop some time after one
/// has closed.
pub(crate) fn settle() {
    let Some(settings) = settings() else { return };
    let since = STATE.driver_since.load(Ordering::Acquire);
    if let Some(log) = log::current().filter(|_| since != 0 && settings.windows.by_time()) {
        settings.windows.passed(monotonic().saturating_sub(since) / 1_000_000, |effect| {
            if effect.opens {
                open(log);
            } else if effect.closes {
                close(log);
            }
        });
    }
    begin_profile();
    end_request();
    // A window may open before the driver is there.
    if STATE.any_open() && attachment::is_off() && !STATE.times_graphs_only() {
        attachment::switch_on();
    }
    let closed = STATE.closed.load(Ordering::Relaxed);
    let over = closed != 0 && monotonic().saturating_sub(closed) > LINGER && !STATE.any_open();
    if over {
        STATE.closed.store(0, Ordering::Relaxed);
    }
    if over || attachment::is_draining() {
        attachment::step_back();
    }
    if settings.windows.by_profiler() && since != 0 && attachment::is_off() {
        attachment::stand_by();
    }
}

/// Whether [`settle`] has more to do.
pub(crate) fn is_settling() -> bool {
    STATE.closed.load(Ordering::Relaxed) != 0 || STATE.any_open() || attachment::is_draining()
}
