//! The functions that are listened to: those that launch, wait, load code or ask for memory. In a decode loop they are a
//! fourteenth of all calls, which is where most of the cost of recording every call goes.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use crate::cupti::{Cupti, DRIVER, RUNTIME};

/// No release has as many functions in a domain.
const MOST_FUNCTIONS: u32 = 1500;
/// Places of functions of both domains.
pub(crate) const PLACES: usize = 2 * MOST_FUNCTIONS as usize;

// What a function is.
pub(crate) const LISTENED: u8 = 1;
pub(crate) const LAUNCHES_GRAPH: u8 = 2;
/// It launches work of any kind.
pub(crate) const LAUNCHES: u8 = 16;
/// By these a program says which part of it is to be profiled.
pub(crate) const STARTS_PROFILER: u8 = 4;
pub(crate) const STOPS_PROFILER: u8 = 8;

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

/// What a function is, by its name. A release adds its number to names of the runtime: `cudaProfilerStart_v4000`.
fn kind_of(name: &[u8]) -> u8 {
    let is = |names: [&[u8]; 2]| names.iter().any(|start| name.starts_with(start));
    let listened = listened(name).map_or(0, |launches| if launches { LISTENED | LAUNCHES } else { LISTENED });
    if is([b"cudaGraphLaunch", b"cuGraphLaunch"]) {
        listened | LAUNCHES_GRAPH
    } else if is([b"cudaProfilerStart", b"cuProfilerStart"]) {
        STARTS_PROFILER
    } else if is([b"cudaProfilerStop", b"cuProfilerStop"]) {
        STOPS_PROFILER
    } else {
        listened
    }
}

static FOUND: AtomicBool = AtomicBool::new(false);
/// What the functions are, by their places.
static KINDS: [AtomicU8; PLACES] = [const { AtomicU8::new(0) }; PLACES];

/// What a function is.
#[inline]
pub(crate) fn kind(place: u32) -> u8 {
    KINDS.get(place as usize).map_or(0, |kind| kind.load(Ordering::Relaxed))
}

/// Listens to the functions that are any of these. Not by two threads at once.
pub(crate) fn listen(cupti: &Cupti, subscriber: *mut c_void, to: u8) {
    if !FOUND.swap(true, Ordering::Relaxed) {
        for (place, kind) in KINDS.iter().enumerate() {
            let (domain, number) = function(place as u32);
            kind.store(kind_of(cupti.function_name(domain, number)), Ordering::Relaxed);
        }
    }
    for (domain, number) in (0..PLACES as u32).filter(|place| kind(*place) & to != 0).map(function) {
        cupti.listen(subscriber, domain, number);
    }
}

/// The place under which a function is known here: those of the runtime are behind those of the driver.
pub(crate) const fn place(domain: c_int, number: u32) -> u32 {
    if domain == RUNTIME { MOST_FUNCTIONS.saturating_add(number) } else { number }
}

/// Domain and number again.
pub(crate) const fn function(place: u32) -> (c_int, u32) {
    if place >= MOST_FUNCTIONS { (RUNTIME, place - MOST_FUNCTIONS) } else { (DRIVER, place) }
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
    fn graphs_and_the_profiler_have_kinds_of_their_own() {
        let kinds = [
            "cudaGraphLaunch_v10000",
            "cuProfilerStart",
            "cudaProfilerStop_v4000",
            "cudaMalloc_v3020",
            "cudaGetDevice",
        ]
        .map(|name| kind_of(name.as_bytes()));
        assert_eq!(kinds, [LISTENED | LAUNCHES | LAUNCHES_GRAPH, STARTS_PROFILER, STOPS_PROFILER, LISTENED, 0]);
    }

    #[test]
    fn a_place_is_that_of_its_function() {
        for known in [(RUNTIME, 211), (DRIVER, 307)] {
            assert_eq!(function(place(known.0, known.1)), known);
        }
    }
}
