//! Whether CUPTI is attached to this process, and records.
//!
//! Being attached costs every call into CUDA something, also while nothing is recorded, and more so once anything was. Where
//! only windows are wanted, CUPTI is therefore attached when one opens and let go of after it, unless the program has graphs: those
//! that CUPTI has seen end the program when they are launched without it. Nor is it let go of where somebody may ask again.
//!
//! - [`OFF`]: not attached;
//! - [`STANDING_BY`]: attached, and records nothing;
//! - [`ON`]: attached, and records;
//! - [`DRAINING`]: records no more, the writer thread fetches what there is;
//! - [`LEAVING`]: to be let go of where that is safe, at the end of the next call that waits for the device;
//! - [`SWITCHING`]: some thread is between two of these.

use core::ffi::c_void;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::cupti::{self, CallbackFunction, Cupti, problem};
use crate::once::Once;
use crate::settings::{InjectSettings, settings};
use crate::state::STATE;
use crate::{activity, devices, functions, system};

const OFF: u32 = 0;
const ON: u32 = 1;
const SWITCHING: u32 = 2;
const DRAINING: u32 = 3;
const LEAVING: u32 = 4;
const STANDING_BY: u32 = 5;

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

/// Has CUPTI record from here on; attaches it first where it is not.
pub(crate) fn switch_on() {
    let Some(settings) = settings() else { return };
    // Letting go takes some milliseconds; whoever waits longer does without.
    const ATTEMPTS: u32 = 100;
    for _ in 0..ATTEMPTS {
        if !driver_is_there(settings) || STATE.is_hopeless() {
            return;
        }
        let state = STATE.attachment.load(Ordering::Acquire);
        match state {
            ON => return,
            SWITCHING => system::sleep(1),
            _ if STATE.attachment.compare_exchange(state, SWITCHING, Ordering::AcqRel, Ordering::Acquire).is_ok() => {
                let on =
                    (state != OFF || attach(settings)) && record(settings, true, state == OFF || state == STANDING_BY);
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
    if STATE.is_hopeless() {
        return;
    }
    if STATE.attachment.compare_exchange(OFF, SWITCHING, Ordering::AcqRel, Ordering::Acquire).is_ok() {
        let attached = attach(settings);
        STATE.attachment.store(if attached { STANDING_BY } else { OFF }, Ordering::Release);
    }
}

/// After a window: stops recording, and when everything was fetched prepares to let go. Called by the writer thread, each time
/// after it has fetched what there is.
pub(crate) fn step_back() {
    let Some(settings) = settings() else { return };
    let take = |from| STATE.attachment.compare_exchange(from, SWITCHING, Ordering::AcqRel, Ordering::Acquire).is_ok();
    if take(ON) {
        if STATE.any_open() {
            STATE.attachment.store(ON, Ordering::Release);
            return;
        }
        record(settings, false, false);
        cupti::flush(true);
        STATE.attachment.store(DRAINING, Ordering::Release);
    } else if take(DRAINING) {
        if stays(settings) {
            rest();
        } else {
            STATE.attached.store(false, Ordering::Release);
            STATE.attachment.store(LEAVING, Ordering::Release);
        }
    }
}

/// Whether CUPTI is not let go of any more, once it was attached.
fn stays(settings: &InjectSettings) -> bool {
    settings.waits || settings.windows.by_profiler() || STATE.stays.load(Ordering::Acquire)
}

/// Stays attached, and goes on listening: where callbacks were switched off while a thread was inside a call, CUPTI delivered none
/// after some windows.
fn rest() {
    STATE.attached.store(true, Ordering::Release);
    STATE.attachment.store(STANDING_BY, Ordering::Release);
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

/// Whether CUPTI is to be let go of.
#[inline]
pub(crate) fn is_leaving() -> bool {
    STATE.attachment.load(Ordering::Relaxed) == LEAVING
}

/// The thread that lets go of CUPTI just now.
static FINALIZER: AtomicU32 = AtomicU32::new(0);

/// Lets go of CUPTI: at the end of a call into CUDA, by its documentation, and with nothing running on the device. It is therefore done
/// after a call by which the program waits, when nothing is being captured, and waits for all else that runs.
#[cold]
pub(crate) fn finalize() {
    let Some(settings) = settings() else { return };
    if STATE.attachment.compare_exchange(LEAVING, SWITCHING, Ordering::AcqRel, Ordering::Acquire).is_err() {
        return;
    }
    FINALIZER.store(system::thread(), Ordering::Release);
    if stays(settings) {
        rest();
    } else if devices::wait() {
        let_go();
    } else {
        STATE.attachment.store(LEAVING, Ordering::Release);
    }
    FINALIZER.store(0, Ordering::Release);
}

/// Holds up other threads that are about to launch while CUPTI is let go of, for milliseconds.
#[inline]
pub(crate) fn wait_while_finalizing() {
    const ATTEMPTS: u32 = 100;
    for _ in 0..ATTEMPTS {
        let finalizer = FINALIZER.load(Ordering::Acquire);
        if finalizer == 0 || finalizer == system::thread() {
            return;
        }
        system::sleep(1);
    }
}

fn let_go() {
    let code = cupti::loaded().map_or(0, Cupti::finalize);
    if code == 0 {
        STATE.attachment.store(OFF, Ordering::Release);
    } else {
        problem(code, b"cuptiFinalize");
        STATE.stays.store(true, Ordering::Release);
        rest();
    }
}

/// Attaches CUPTI; whether it may be called now.
fn attach(settings: &InjectSettings) -> bool {
    let attached = cupti::load(settings).zip(CALLBACK.get()).and_then(|(cupti, called)| cupti.attach(*called));
    let Some(subscriber) = attached else {
        STATE.hopeless.store(true, Ordering::Release);
        return false;
    };
    STATE.driver.store(true, Ordering::Release);
    SUBSCRIBER.store(subscriber, Ordering::Release);
    STATE.attached.store(true, Ordering::Release);
    if let Some(cupti) = cupti::loaded().filter(|_| settings.windows.by_profiler()) {
        functions::listen_to_profiler(cupti, subscriber);
    }
    true
}

/// Switches records and callbacks. `anew` is whether no record can be left of an earlier time.
fn record(settings: &InjectSettings, on: bool, anew: bool) -> bool {
    let Some(cupti) = cupti::loaded() else { return false };
    STATE.attached.store(true, Ordering::Release);
    if on {
        // As the kinds below have it: whole, until the first launch.
        STATE.graph_launches.store(0, Ordering::Relaxed);
        STATE.sampling.store(false, Ordering::Relaxed);
    }
    if anew {
        STATE.since.store(cupti::device_clock(), Ordering::Release);
    }
    let kinds = [activity::CONCURRENT_KERNEL, activity::MEMCPY, activity::MEMCPY_PEER, activity::MEMSET];
    let graphs = [activity::GRAPH_TRACE];
    let calls = [activity::RUNTIME, activity::DRIVER];
    let graphs = graphs.iter().filter(|_| STATE.graphs.load(Ordering::Relaxed) != 1);
    let calls = calls.iter().filter(|_| settings.ties == crate::settings::Ties::AllRecords);
    for kind in kinds.iter().chain(graphs).chain(calls) {
        cupti.switch_kind(*kind, on);
    }
    // Callbacks stay until CUPTI is let go of, which happens in one of them.
    if on {
        functions::listen(cupti, SUBSCRIBER.load(Ordering::Acquire), settings.ties);
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
