//! Whether CUPTI is attached to this process, and records.
//!
//! Being attached costs every call into CUDA something, also while nothing is recorded, and more so once anything was. Where
//! only windows are wanted, CUPTI is therefore attached when the first one opens, and stays: it can only be let go of while nothing runs
//! on the device, and graphs that it has seen end the program when they are launched without it.
//!
//! - [`OFF`]: not attached;
//! - [`STANDING_BY`]: attached, and records nothing;
//! - [`ON`]: attached, and records;
//! - [`DRAINING`]: records no more, the writer thread fetches what there is;
//! - [`SWITCHING`]: some thread is between two of these.

use core::ffi::c_void;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::cupti::{self, CallbackFunction};
use crate::once::Once;
use crate::settings::{InjectSettings, settings};
use crate::state::STATE;
use crate::{activity, functions, system};

const OFF: u32 = 0;
const ON: u32 = 1;
const SWITCHING: u32 = 2;
const DRAINING: u32 = 3;
const STANDING_BY: u32 = 4;

static SUBSCRIBER: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
/// What CUPTI is to call.
static CALLBACK: Once<CallbackFunction> = Once::new();

/// Says what CUPTI is to call.
///
/// # Safety
///
/// Nobody else calls this at the same time, and nobody has before.
pub(crate) unsafe fn prepare(callback: CallbackFunction) {
    // SAFETY: by the contract.
    unsafe { CALLBACK.set(callback) };
}

/// Moves from one of these to another; whether it was there.
fn moved(from: u32, to: u32) -> bool {
    STATE.attachment.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
}

/// Has CUPTI record from here on; attaches it first where it is not.
pub(crate) fn switch_on() {
    let Some(settings) = settings() else { return };
    // Attaching takes some milliseconds; whoever waits longer does without.
    const ATTEMPTS: u32 = 100;
    for _ in 0..ATTEMPTS {
        if !driver_is_there(settings) || STATE.is_hopeless() {
            return;
        }
        let state = STATE.attachment.load(Ordering::Acquire);
        match state {
            ON => return,
            SWITCHING => system::sleep(1),
            _ if moved(state, SWITCHING) => {
                let on = (state != OFF || attach(settings)) && record(true, state != DRAINING);
                STATE.attachment.store(if on { ON } else { OFF }, Ordering::Release);
                // There is more to fetch from now on.
                STATE.wake_writer();
                return;
            }
            _ => {}
        }
    }
}

/// Whether the driver has started, as far as can be known: where it does not tell, whether it is in this process at all.
fn driver_is_there(settings: &InjectSettings) -> bool {
    STATE.driver.load(Ordering::Acquire) || (!settings.driver_tells && !system::loaded(c"libcuda.so.1").is_null())
}

/// Attaches CUPTI where it is not, to hear of nodes of graphs and of the CUDA profiler's functions.
pub(crate) fn stand_by() {
    let Some(settings) = settings() else { return };
    if !STATE.is_hopeless() && moved(OFF, SWITCHING) {
        let attached = attach(settings);
        STATE.attachment.store(if attached { STANDING_BY } else { OFF }, Ordering::Release);
    }
}

/// After a window: stops recording. Called by the writer thread, each time after it has fetched what there is.
pub(crate) fn step_back() {
    if moved(ON, SWITCHING) {
        let goes_on = STATE.any_open();
        if !goes_on {
            record(false, false);
            cupti::flush(true);
        }
        STATE.attachment.store(if goes_on { ON } else { DRAINING }, Ordering::Release);
    } else {
        moved(DRAINING, STANDING_BY);
    }
}

/// Whether CUPTI records.
pub(crate) fn is_on() -> bool {
    matches!(STATE.attachment.load(Ordering::Acquire), ON | SWITCHING)
}

/// Whether CUPTI is not attached.
pub(crate) fn is_off() -> bool {
    STATE.attachment.load(Ordering::Acquire) == OFF
}

/// Whether [`step_back`] has more to do.
pub(crate) fn is_draining() -> bool {
    STATE.attachment.load(Ordering::Relaxed) == DRAINING
}

/// Attaches CUPTI; whether it may be called now.
fn attach(settings: &InjectSettings) -> bool {
    let attached =
        cupti::load(settings).zip(CALLBACK.get()).and_then(|(cupti, called)| Some((cupti, cupti.attach(*called)?)));
    let Some((cupti, subscriber)) = attached else {
        STATE.hopeless.store(true, Ordering::Release);
        return false;
    };
    STATE.driver.store(true, Ordering::Release);
    SUBSCRIBER.store(subscriber, Ordering::Release);
    STATE.attached.store(true, Ordering::Release);
    if settings.windows.by_profiler() {
        functions::listen(cupti, subscriber, functions::STARTS_PROFILER | functions::STOPS_PROFILER);
    }
    true
}

/// Switches records and callbacks. `anew` is whether no record can be left of an earlier time.
fn record(on: bool, anew: bool) -> bool {
    let Some(cupti) = cupti::loaded() else { return false };
    if on {
        // As the kinds below have it: whole, until the first launch.
        STATE.graph_launches.store(0, Ordering::Relaxed);
        STATE.sampling.store(false, Ordering::Relaxed);
    }
    if anew {
        STATE.since.store(cupti::device_clock(), Ordering::Release);
    }
    let kinds = [activity::CONCURRENT_KERNEL, activity::MEMCPY, activity::MEMCPY_PEER, activity::MEMSET];
    let graphs = [activity::GRAPH_TRACE].into_iter().filter(|_| STATE.graphs.load(Ordering::Relaxed) != 1);
    kinds.into_iter().chain(graphs).for_each(|kind| cupti.switch_kind(kind, on));
    // Callbacks stay: where they were switched off while a thread was inside a call, CUPTI delivered none after some windows.
    if on {
        functions::listen(cupti, SUBSCRIBER.load(Ordering::Acquire), functions::LISTENED);
    }
    true
}

/// Has the launches of graphs that follow recorded by their nodes, or as a whole.
pub(crate) fn record_nodes(on: bool) {
    if STATE.attachment.load(Ordering::Acquire) == ON
        && let Some(cupti) = cupti::loaded()
    {
        cupti.switch_kind(activity::GRAPH_TRACE, !on);
    }
}
