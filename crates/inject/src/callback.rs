//! The one function that CUPTI calls: around calls that launch work or keep the host, and when a node of a graph is made.

use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::Ordering;

use crate::cupti::{self, DRIVER, GRAPH_CALLBACKS, NODE_CLONED, RESOURCE, RUNTIME};
use crate::functions::{self, LAUNCHES_GRAPH, STARTS_PROFILER, STOPS_PROFILER};
use crate::state::STATE;
use crate::system::now;
use crate::{attachment, gate, log};

const ENTER: c_int = 0;

/// Launches in a row that are recorded alike: switching costs as much as some launches.
const BLOCK: u32 = 8;

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
    let place = functions::place(domain, function);
    let kind = functions::kind(place);
    if kind & (STARTS_PROFILER | STOPS_PROFILER) != 0 {
        let starts = kind == STARTS_PROFILER;
        // Recording starts when the call is over and stops before it begins.
        if starts != (data.site == ENTER) && STATE.is_running() {
            gate::profiler(starts);
        }
        return;
    }
    if data.site == ENTER {
        // A driver call inside a call of the runtime has the same correlation: the outer one is the one recorded.
        let wanted = STATE.is_collecting() && log::current().is_some_and(|log| enter(log, domain));
        // SAFETY: the word is this call's own.
        unsafe { data.kept.write(if wanted { now() } else { 0 }) };
        if wanted && kind & LAUNCHES_GRAPH != 0 {
            sample();
        }
        return;
    }
    // SAFETY: as above, and it was written on entering.
    let start = unsafe { data.kept.read() };
    if start == 0 || !STATE.is_running() {
        return;
    }
    if let Some(log) = log::current() {
        let duration = now().saturating_sub(start);
        if domain == RUNTIME {
            log.inside_runtime.set(log.inside_runtime.get().saturating_sub(1));
        }
        log.call(place, start, duration, data.correlation);
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

/// Before a launch of a graph where they are sampled: has eight launches in a row recorded by their nodes, and so many times as many as
/// wholes.
#[inline]
fn sample() {
    let every = STATE.graphs.load(Ordering::Relaxed);
    if every < 2 {
        return;
    }
    let number = STATE.graph_launches.fetch_add(1, Ordering::Relaxed);
    let nodes = (number / BLOCK).checked_rem(every) == Some(0);
    if STATE.sampling.swap(nodes, Ordering::Relaxed) != nodes {
        attachment::record_nodes(nodes);
    }
}

/// # Safety
///
/// The data is CUPTI's own, of a callback about nodes.
unsafe fn on_node(function: u32, data: &ResourceData) {
    // SAFETY: for these callbacks the descriptor is of this type.
    let Some(graph) = (unsafe { data.descriptor.as_ref() }) else { return };
    if !STATE.is_running() {
        return;
    }
    let original = if function == NODE_CLONED { cupti::node_id(graph.original_node) } else { None };
    if let (Some(node), Some(log)) = (cupti::node_id(graph.node), log::current()) {
        log.node(node, original.unwrap_or(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::offset_of;

    #[test]
    fn callback_data_is_laid_out_as_published() {
        // offsetof over cupti_callbacks.h of CUDA 13.0.
        assert_eq!((offset_of!(CallData, context), offset_of!(CallData, kept)), (40, 56));
        assert_eq!(offset_of!(CallData, correlation), 64);
        assert_eq!(offset_of!(ResourceData, descriptor), 16);
        assert_eq!((offset_of!(GraphData, node), offset_of!(GraphData, original_node)), (16, 24));
    }
}
