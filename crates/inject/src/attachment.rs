//! Whether CUPTI is attached to this process, and records.
//!
//! Being attached costs every call into CUDA something, also while nothing is recorded, and more so once anything was. Where
//! only windows are wanted, CUPTI is therefore attached when one opens and let go of after it:
//!
//! - [`OFF`]: not attached;
//! - [`ON`]: attached, and records;
//! - [`DRAINING`]: records no more, the writer thread fetches what there is;
//! - [`LEAVING`]: to be let go of where CUPTI allows it, at the end of the next call that launches work;
//! - [`SWITCHING`]: some thread is between two of these.

use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use crate::cupti::{self, Cupti, problem};
use crate::settings::{InjectSettings, settings};
use crate::{activity, callback, system, window, writer};

const OFF: u32 = 0;
const ON: u32 = 1;
const SWITCHING: u32 = 2;
const DRAINING: u32 = 3;
const LEAVING: u32 = 4;

static STATE: AtomicU32 = AtomicU32::new(OFF);
/// Whether the driver has started in this process, or CUPTI was attached, which starts it.
static DRIVER: AtomicBool = AtomicBool::new(false);
/// Whether trying again is of no use: CUPTI was not found or refused, or this is the child of a fork.
static HOPELESS: AtomicBool = AtomicBool::new(false);
/// Whether functions of CUPTI may be called.
static ATTACHED: AtomicBool = AtomicBool::new(false);
/// Whether CUPTI stays once it was attached, because it could not be let go of.
static STAYS: AtomicBool = AtomicBool::new(false);
static SUBSCRIBER: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

/// The driver has started: attaches and switches on, unless only windows are wanted and none is open.
pub(crate) fn start() {
    let Some(settings) = settings() else { return };
    DRIVER.store(true, Ordering::Release);
    if !settings.windows.are_there() {
        switch_on();
        window::begin_without_windows();
    } else if window::any_open() {
        switch_on();
    }
}

/// Whether functions of CUPTI may be called.
#[inline]
pub(crate) fn is_attached() -> bool {
    ATTACHED.load(Ordering::Acquire)
}

/// In the child of a fork: where the driver had started, nothing of CUPTI may be called any more.
pub(crate) fn forget() {
    ATTACHED.store(false, Ordering::Relaxed);
    HOPELESS.fetch_or(DRIVER.load(Ordering::Relaxed), Ordering::Relaxed);
    STATE.store(OFF, Ordering::Relaxed);
}

/// Has CUPTI record from here on; attaches it first where it is not.
pub(crate) fn switch_on() {
    let Some(settings) = settings() else { return };
    // Letting go takes some milliseconds; whoever waits longer does without.
    const ATTEMPTS: u32 = 100;
    for _ in 0..ATTEMPTS {
        if !driver_is_there(settings) || HOPELESS.load(Ordering::Acquire) {
            return;
        }
        let state = STATE.load(Ordering::Acquire);
        match state {
            ON => return,
            SWITCHING => system::sleep(1),
            _ if STATE.compare_exchange(state, SWITCHING, Ordering::AcqRel, Ordering::Acquire).is_ok() => {
                let there = state != OFF || STAYS.load(Ordering::Acquire);
                let on = (there || attach(settings)) && record(settings, true);
                STATE.store(if on { ON } else { OFF }, Ordering::Release);
                // There is more to fetch from now on.
                writer::wake();
                return;
            }
            _ => {}
        }
    }
}

/// Whether the driver has started, as far as can be known: where it does not tell, whether it is in this process at all.
fn driver_is_there(settings: &InjectSettings) -> bool {
    DRIVER.load(Ordering::Acquire) || (!settings.driver_tells && !system::loaded(c"libcuda.so.1").is_null())
}

/// After a window: stops recording, and when everything was fetched prepares to let go. Called by the writer thread, each time
/// after it has fetched what there is.
pub(crate) fn step_back() {
    let Some(settings) = settings() else { return };
    let take = |from| STATE.compare_exchange(from, SWITCHING, Ordering::AcqRel, Ordering::Acquire).is_ok();
    if take(ON) {
        if window::any_open() {
            STATE.store(ON, Ordering::Release);
            return;
        }
        record(settings, false);
        cupti::flush(true);
        STATE.store(DRAINING, Ordering::Release);
    } else if take(DRAINING) {
        if STAYS.load(Ordering::Acquire) {
            listen(settings, false);
            STATE.store(OFF, Ordering::Release);
            return;
        }
        ATTACHED.store(false, Ordering::Release);
        STATE.store(LEAVING, Ordering::Release);
    }
}

/// Whether [`step_back`] has more to do.
pub(crate) fn is_draining() -> bool {
    STATE.load(Ordering::Relaxed) == DRAINING
}

/// At the end of a call that launches work, where CUPTI may be let go of by its own rules.
#[inline]
pub(crate) fn let_go() {
    if STATE.load(Ordering::Relaxed) == LEAVING {
        finalize();
    }
}

#[cold]
fn finalize() {
    if STATE.compare_exchange(LEAVING, SWITCHING, Ordering::AcqRel, Ordering::Acquire).is_err() {
        return;
    }
    let code = cupti::loaded().map_or(0, Cupti::finalize);
    if code != 0 {
        problem(code, b"cuptiFinalize");
        STAYS.store(true, Ordering::Release);
        ATTACHED.store(true, Ordering::Release);
        if let Some(settings) = settings() {
            listen(settings, false);
        }
    }
    STATE.store(OFF, Ordering::Release);
}

/// Attaches CUPTI; whether it may be called now.
fn attach(settings: &InjectSettings) -> bool {
    let attached = cupti::load(settings).and_then(|cupti| cupti.attach(callback::called));
    let Some(subscriber) = attached else {
        HOPELESS.store(true, Ordering::Release);
        return false;
    };
    DRIVER.store(true, Ordering::Release);
    SUBSCRIBER.store(subscriber, Ordering::Release);
    ATTACHED.store(true, Ordering::Release);
    true
}

/// Switches records and callbacks.
fn record(settings: &InjectSettings, on: bool) -> bool {
    let Some(cupti) = cupti::loaded() else { return false };
    ATTACHED.store(true, Ordering::Release);
    let kinds = [activity::CONCURRENT_KERNEL, activity::MEMCPY, activity::MEMCPY_PEER, activity::MEMSET];
    let graphs = [activity::GRAPH_TRACE];
    let calls = [activity::RUNTIME, activity::DRIVER];
    let graphs = graphs.iter().filter(|_| settings.whole_graphs);
    let calls = calls.iter().filter(|_| settings.ties == crate::settings::Ties::AllRecords);
    for kind in kinds.iter().chain(graphs).chain(calls) {
        cupti.switch_kind(*kind, on);
    }
    // Callbacks stay until CUPTI is let go of, which happens in one of them.
    if on {
        listen(settings, true);
    }
    true
}

/// Switches callbacks around launching calls.
fn listen(settings: &InjectSettings, on: bool) {
    if let Some(cupti) = cupti::loaded() {
        callback::switch(cupti, SUBSCRIBER.load(Ordering::Acquire), settings.ties, on);
    }
}
