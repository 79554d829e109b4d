//! The functions that are listened to: those that launch, wait, load code or ask for memory. In a decode loop they are a
//! fourteenth of all calls, which is where most of the cost of recording every call goes.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU32, Ordering};

use crate::cupti::{self, Cupti, DRIVER, RUNTIME};
use crate::settings::Ties;

/// No release has as many functions in a domain.
const MOST_FUNCTIONS: u32 = 1500;

/// Functions that keep the host for long: waits, memory that the driver is asked for or given back, code that is loaded.
const HOLDING: [&[u8]; 17] = [
    b"StreamSynchronize",
    b"EventSynchronize",
    b"DeviceSynchronize",
    b"CtxSynchronize",
    b"Malloc",
    b"Free",
    b"MemAlloc",
    b"MemFree",
    b"MemHostAlloc",
    b"MemHostRegister",
    b"HostAlloc",
    b"HostRegister",
    b"MemCreate",
    b"MemMap",
    b"MemUnmap",
    b"ModuleLoad",
    b"LibraryLoad",
];

/// What a function does, by its name: whether it launches work, or keeps the host; `None` for all others.
fn listened(name: &[u8]) -> Option<bool> {
    let name = name.strip_prefix(b"cuda").or_else(|| name.strip_prefix(b"cu"))?;
    let starts_with = |with: &[&[u8]]| with.iter().any(|prefix| name.starts_with(prefix));
    if starts_with(&[b"LaunchHostFunc"]) {
        None
    } else if starts_with(&[b"Launch", b"Memcpy", b"Memset", b"GraphLaunch"]) {
        Some(true)
    } else {
        starts_with(&HOLDING).then_some(false)
    }
}

/// Functions by which a program says which part of it is to be profiled: start and stop, of the runtime and the driver.
static PROFILER: [AtomicU32; 4] = [const { AtomicU32::new(0) }; 4];
const PROFILER_NAMES: [&[u8]; 4] = [b"cudaProfilerStart", b"cudaProfilerStop", b"cuProfilerStart", b"cuProfilerStop"];

/// Functions that wait for the device, packed.
static WAITS: [AtomicU32; 16] = [const { AtomicU32::new(0) }; 16];
const WAIT_NAMES: [&[u8]; 4] = [b"StreamSynchronize", b"EventSynchronize", b"DeviceSynchronize", b"CtxSynchronize"];

/// Functions that launch graphs, packed: of the runtime and the driver, each also with a default stream for each thread.
static GRAPH_LAUNCHES: [AtomicU32; 4] = [const { AtomicU32::new(0) }; 4];

/// Functions that are listened to, packed; zeroes after the last. A release has about two hundred.
static LISTENED: [AtomicU32; 512] = [const { AtomicU32::new(0) }; 512];

/// Looks up the numbers of the functions, where that was not done.
fn find() {
    if LISTENED.first().is_some_and(|first| first.load(Ordering::Relaxed) != 0) {
        return;
    }
    let mut listening = LISTENED.iter();
    let (mut launching, mut waiting) = (GRAPH_LAUNCHES.iter(), WAITS.iter());
    for (domain, number) in
        [DRIVER, RUNTIME].into_iter().flat_map(|domain| (1..MOST_FUNCTIONS).map(move |number| (domain, number)))
    {
        let name = cupti::function_name(domain, number);
        let take = |slot: Option<&AtomicU32>| {
            if let Some(slot) = slot {
                slot.store(packed(domain, number), Ordering::Relaxed);
            }
        };
        if listened(name).is_some() {
            take(listening.next());
        }
        if name.starts_with(b"cudaGraphLaunch") || name.starts_with(b"cuGraphLaunch") {
            take(launching.next());
        }
        let bare = name.strip_prefix(b"cuda").or_else(|| name.strip_prefix(b"cu")).unwrap_or_default();
        if WAIT_NAMES.iter().any(|wait| bare.starts_with(wait)) {
            take(waiting.next());
        }
        // A release adds its number to the names of the runtime: `cudaProfilerStart_v4000`.
        take(PROFILER_NAMES.iter().position(|wanted| name.starts_with(wanted)).and_then(|place| PROFILER.get(place)));
    }
}

/// Whether a function starts the CUDA profiler or stops it; `None` for all others.
#[inline]
pub(crate) fn profiles(function: u32) -> Option<bool> {
    let place = PROFILER.iter().position(|slot| slot.load(Ordering::Relaxed) == function)?;
    Some(place.is_multiple_of(2))
}

/// Whether a function waits for the device.
pub(crate) fn waits(function: u32) -> bool {
    WAITS.iter().any(|slot| slot.load(Ordering::Relaxed) == function)
}

/// Whether a function launches a graph.
#[inline]
pub(crate) fn launches_graph(function: u32) -> bool {
    GRAPH_LAUNCHES.iter().any(|slot| slot.load(Ordering::Relaxed) == function)
}

/// Listens to the functions of the CUDA profiler.
pub(crate) fn listen_to_profiler(cupti: &Cupti, subscriber: *mut c_void) {
    find();
    for function in PROFILER.iter().map(|slot| slot.load(Ordering::Relaxed)).filter(|function| *function != 0) {
        let (domain, number) = unpacked(function);
        cupti.listen(subscriber, domain, number, Ties::Calls);
    }
}

/// Listens to what ties work to ranges. Not by two threads at once.
pub(crate) fn listen(cupti: &Cupti, subscriber: *mut c_void, ties: Ties) {
    find();
    for function in LISTENED.iter().map(|slot| slot.load(Ordering::Relaxed)).take_while(|function| *function != 0) {
        let (domain, number) = unpacked(function);
        cupti.listen(subscriber, domain, number, ties);
    }
}

/// The number under which a function is logged: its domain in the highest bits.
pub(crate) const fn packed(domain: c_int, function: u32) -> u32 {
    (domain as u32) << 28 | function & 0x0fff_ffff
}

/// Domain and number again.
pub(crate) const fn unpacked(function: u32) -> (c_int, u32) {
    ((function >> 28) as c_int, function & 0x0fff_ffff)
}

/// Whether a function launches work, by its name.
pub(crate) fn launches(name: &[u8]) -> bool {
    listened(name) == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_launch_or_wait_are_listened_to() {
        for name in ["cuLaunchKernel", "cuLaunchKernelEx_ptsz", "cudaLaunchKernel_v7000", "cudaGraphLaunch_v10000"] {
            assert_eq!(listened(name.as_bytes()), Some(true), "{name}");
        }
        for name in ["cudaMemcpyAsync_v3020", "cuMemsetD8Async", "cuMemcpyHtoDAsync_v2", "cuGraphLaunch"] {
            assert_eq!(listened(name.as_bytes()), Some(true), "{name}");
        }
        for name in
            ["cudaStreamSynchronize_v3020", "cuCtxSynchronize", "cudaDeviceSynchronize_v3020", "cudaMalloc_v3020"]
        {
            assert_eq!(listened(name.as_bytes()), Some(false), "{name}");
        }
        for name in ["cuMemFree_v2", "cudaFree_v3020", "cuMemMap", "cuModuleLoadData", "cudaFreeHost_v3020"] {
            assert_eq!(listened(name.as_bytes()), Some(false), "{name}");
        }
        for name in ["cuMemGetInfo_v2", "cuGraphAddMemcpyNode", "cuLaunchHostFunc", "cudaGetDevice_v3020", ""] {
            assert_eq!(listened(name.as_bytes()), None, "{name}");
        }
    }

    #[test]
    fn a_packed_function_comes_apart_again() {
        assert_eq!(unpacked(packed(RUNTIME, 211)), (RUNTIME, 211));
        assert_eq!(unpacked(packed(DRIVER, 307)), (DRIVER, 307));
    }
}
