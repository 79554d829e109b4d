//! Opens and closes windows. Inside one calls are recorded and CUPTI is attached; outside it is let go of.

use core::sync::atomic::Ordering;

use crate::attachment;
use crate::log::Log;
use crate::settings::settings;
use crate::state::STATE;
use crate::system::{monotonic, now};

/// How long after a window CUPTI stays on, for work that was launched in it to end.
const LINGER: u64 = 50_000_000;

/// The driver has started: attaches and switches on, unless only windows are wanted and none is open.
pub(crate) fn driver_started() {
    let Some(settings) = settings() else { return };
    STATE.driver.store(true, Ordering::Release);
    if !settings.windows.are_there() {
        attachment::switch_on();
        STATE.collecting.store(true, Ordering::Relaxed);
    } else if STATE.any_open() {
        attachment::switch_on();
    }
}

/// A range is about to be pushed in a domain whose name is that of the window at `place`.
pub(crate) fn pushed(log: &Log, domain: u32, place: usize) {
    let Some(settings) = settings() else { return };
    let effect = settings.windows.pushed(place);
    if effect.opens {
        open(log);
    }
    if effect.closes {
        log.close_with_next(domain);
    }
}

fn open(log: &Log) {
    if STATE.open.fetch_add(1, Ordering::AcqRel) == 0 {
        STATE.closed.store(0, Ordering::Relaxed);
        attachment::switch_on();
        STATE.collecting.store(true, Ordering::Relaxed);
        log.window(true, now());
    }
}

/// The range that closes a window was popped.
pub(crate) fn close(log: &Log) {
    if STATE.open.fetch_sub(1, Ordering::AcqRel) == 1 {
        STATE.collecting.store(false, Ordering::Relaxed);
        log.window(false, now());
        STATE.closed.store(monotonic(), Ordering::Relaxed);
    }
}

/// Lets go of CUPTI some time after a window has closed. Called by the writer thread now and then, after it has fetched what
/// there is.
pub(crate) fn settle() {
    let closed = STATE.closed.load(Ordering::Relaxed);
    let over = closed != 0 && monotonic().saturating_sub(closed) > LINGER && !STATE.any_open();
    if over {
        STATE.closed.store(0, Ordering::Relaxed);
    }
    if over || attachment::is_draining() {
        attachment::step_back();
    }
}

/// Whether [`settle`] has more to do.
pub(crate) fn is_settling() -> bool {
    STATE.closed.load(Ordering::Relaxed) != 0 || STATE.any_open() || attachment::is_draining()
}
