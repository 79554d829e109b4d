//! The one function that CUPTI calls: around calls that launch work or keep the host, and when a node of a graph is made.
//!
//! Only functions that launch, wait, load code or ask for memory are listened to. In a decode loop they are a fourteenth of all calls, which is where
//! most of the cost of recording every call goes.

use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicU32, Ordering};

use crate::attachment;
use crate::cupti::{self, Cupti};
use crate::log;
use crate::process;
use crate::settings::Ties;
use crate::system::now;
use crate::window;

/// `CUpti_CallbackDomain`.
pub(crate) const DRIVER: c_int = 1;
pub(crate) const RUNTIME: c_int = 2;
pub(crate) const RESOURCE: c_int = 3;

const ENTER: c_int = 0;

/// A node of a graph was made, or copied from another graph's.
const NODE_CREATED: u32 = 13;
const NODE_CLONED: u32 = 20;
pub(crate) const GRAPH_CALLBACKS: [u32; 2] = [NODE_CREATED, NODE_CLONED];

/// No release has as many functions in a domain.
const MOST_FUNCTIONS: u32 = 1500;

pub(crate) type CallbackFunction = unsafe extern "C" fn(*mut c_void, c_int, u32, *const c_void);

/// `CUpti_CallbackData`.
#[repr(C)]
struct CallData {
    site: c_int,
    function_name: *const c_char,
    parameters: *const c_void,
    result: *mut c_void,
    symbol: *const c_char,
    context: *mut c_void,
    context_number: u32,
    /// A word that is kept from the enter to the exit of a call.
    kept: *mut u64,
    correlation: u32,
}

/// `CUpti_ResourceData`.
#[repr(C)]
struct ResourceData {
    context: *mut c_void,
    handle: *mut c_void,
    descriptor: *const GraphData,
}

/// `CUpti_GraphData`, up to the nodes.
#[repr(C)]
struct GraphData {
    graph: *mut c_void,
    original_graph: *mut c_void,
    node: *mut c_void,
    original_node: *mut c_void,
}

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

/// Functions that are listened to, packed; zeroes after the last. A release has about two hundred.
static LISTENED: [AtomicU32; 512] = [const { AtomicU32::new(0) }; 512];

/// Switches what ties work to ranges. Not by two threads at once.
pub(crate) fn switch(cupti: &Cupti, subscriber: *mut c_void, ties: Ties, on: bool) {
    if LISTENED.first().is_some_and(|first| first.load(Ordering::Relaxed) == 0) {
        let all =
            [DRIVER, RUNTIME].into_iter().flat_map(|domain| (1..MOST_FUNCTIONS).map(move |number| (domain, number)));
        let wanted = all.filter(|(domain, number)| listened(cupti::function_name(*domain, *number)).is_some());
        for (slot, (domain, number)) in LISTENED.iter().zip(wanted) {
            slot.store(packed(domain, number), Ordering::Relaxed);
        }
    }
    for function in LISTENED.iter().map(|slot| slot.load(Ordering::Relaxed)).take_while(|function| *function != 0) {
        let (domain, number) = unpacked(function);
        cupti.switch_function(subscriber, domain, number, ties, on);
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

/// What CUPTI calls.
///
/// # Safety
///
/// `data` is what CUPTI passes for that domain.
pub(crate) unsafe extern "C" fn called(_: *mut c_void, domain: c_int, function: u32, data: *const c_void) {
    if data.is_null() {
        return;
    }
    match domain {
        // SAFETY: data of this domain is of this type, by the contract.
        DRIVER | RUNTIME => unsafe { on_call(domain, function, &*data.cast::<CallData>()) },
        // SAFETY: as above.
        RESOURCE if GRAPH_CALLBACKS.contains(&function) => unsafe { on_node(function, &*data.cast::<ResourceData>()) },
        _ => {}
    }
}

/// # Safety
///
/// The data is CUPTI's own.
#[inline]
unsafe fn on_call(domain: c_int, function: u32, data: &CallData) {
    if data.kept.is_null() {
        return;
    }
    if data.site == ENTER {
        // A driver call inside a call of the runtime has the same correlation: the outer one is the one recorded.
        let wanted = window::is_open() && log::current().is_some_and(|log| enter(log, domain));
        // SAFETY: the word is this call's own.
        unsafe { data.kept.write(if wanted { now() } else { 0 }) };
        return;
    }
    // SAFETY: as above, and it was written on entering.
    let start = unsafe { data.kept.read() };
    attachment::let_go();
    if start == 0 || !process::is_running() {
        return;
    }
    if let Some(log) = log::current() {
        let duration = now().saturating_sub(start);
        if domain == RUNTIME {
            log.inside_runtime.set(log.inside_runtime.get().saturating_sub(1));
        }
        log.call(packed(domain, function), start, duration, data.correlation);
    }
}

/// Whether a call that is entered is recorded.
#[inline]
fn enter(log: &log::Log, domain: c_int) -> bool {
    let inside = log.inside_runtime.get();
    if domain == RUNTIME {
        log.inside_runtime.set(inside + 1);
        return true;
    }
    inside == 0
}

/// # Safety
///
/// The data is CUPTI's own, of a callback about nodes.
unsafe fn on_node(function: u32, data: &ResourceData) {
    // SAFETY: for these callbacks the descriptor is of this type.
    let Some(graph) = (unsafe { data.descriptor.as_ref() }) else { return };
    if !process::is_running() {
        return;
    }
    let original = if function == NODE_CLONED { cupti::node_id(graph.original_node) } else { None };
    if let (Some(node), Some(log)) = (cupti::node_id(graph.node), log::current()) {
        log.node(node, original.unwrap_or(0));
    }
}

/// Whether a function launches work, by its name.
pub(crate) fn launches(name: &[u8]) -> bool {
    listened(name) == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::offset_of;

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
    fn callback_data_is_laid_out_as_published() {
        // offsetof over cupti_callbacks.h of CUDA 13.0.
        assert_eq!((offset_of!(CallData, context), offset_of!(CallData, kept)), (40, 56));
        assert_eq!(offset_of!(CallData, correlation), 64);
        assert_eq!(offset_of!(ResourceData, descriptor), 16);
        assert_eq!((offset_of!(GraphData, node), offset_of!(GraphData, original_node)), (16, 24));
    }

    #[test]
    fn a_packed_function_comes_apart_again() {
        assert_eq!(unpacked(packed(RUNTIME, 211)), (RUNTIME, 211));
        assert_eq!(unpacked(packed(DRIVER, 307)), (DRIVER, 307));
    }
}
