//! CUPTI: found, loaded, and its functions.
//!
//! The library that the process already has is taken before any other: a second copy would compete with the first. Its
//! functions are called through pointers, so that a process without CUPTI runs as before, and the file says why nothing of
//! the devices is in it.

use core::ffi::{c_char, c_int, c_void};

use crate::activity::{NEWEST_CHECKED, OLDEST};
use crate::buffers;
use crate::catalogue::{self, Kind};
use crate::once::Once;
use crate::settings::InjectSettings;
use crate::state::STATE;
use crate::system::{self, functions};

type Code = c_int;
type Request = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
type Complete = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);

pub(crate) type CallbackFunction = unsafe extern "C" fn(*mut c_void, c_int, u32, *const c_void);

/// `CUpti_CallbackDomain`.
pub(crate) const DRIVER: c_int = 1;
pub(crate) const RUNTIME: c_int = 2;
pub(crate) const RESOURCE: c_int = 3;

/// A node of a graph was made, or copied from another graph's.
const NODE_CREATED: u32 = 13;
pub(crate) const NODE_CLONED: u32 = 20;
pub(crate) const GRAPH_CALLBACKS: [u32; 2] = [NODE_CREATED, NODE_CLONED];

/// Names of the library, newest first.
const NAMES: [&core::ffi::CStr; 3] = [c"libcupti.so.13", c"libcupti.so.12", c"libcupti.so"];

/// Flush what is complete, or everything.
const COMPLETE: u32 = 0;
const FORCED: u32 = 1;

/// `CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER`.
const ZEROED_BUFFERS: c_int = 5;

functions! {
    /// The functions of CUPTI that are used; all are there since CUDA 12.1.
    Cupti {
        get_version: c"cuptiGetVersion" (*mut u32);
        subscribe: c"cuptiSubscribe" (*mut *mut c_void, CallbackFunction, *mut c_void);
        enable_callback: c"cuptiEnableCallback" (u32, *mut c_void, c_int, u32);
        callback_name: c"cuptiGetCallbackName" (c_int, u32, *mut *const c_char);
        register_buffers: c"cuptiActivityRegisterCallbacks" (Request, Complete);
        enable: c"cuptiActivityEnable" (u32);
        disable: c"cuptiActivityDisable" (u32);
        next_record: c"cuptiActivityGetNextRecord" (*mut u8, usize, *mut *mut c_void);
        flush_all: c"cuptiActivityFlushAll" (u32);
        dropped: c"cuptiActivityGetNumDroppedRecords" (*mut c_void, u32, *mut usize);
        timestamp: c"cuptiGetTimestamp" (*mut u64);
        set_attribute: c"cuptiActivitySetAttribute" (c_int, *mut usize, *mut c_void);
        node_id: c"cuptiGetGraphNodeId" (*mut c_void, *mut u64);
    }
}

static CUPTI: Once<Cupti> = Once::new();

/// Has the file say what went wrong.
pub(crate) fn problem(code: Code, what: &[u8]) {
    catalogue::add(Kind::Problem, code as u32, what);
}

/// CUPTI, while it may be called.
#[inline]
fn attached() -> Option<&'static Cupti> {
    if STATE.is_attached() { CUPTI.get() } else { None }
}

/// CUPTI, once it was loaded.
pub(crate) fn loaded() -> Option<&'static Cupti> {
    CUPTI.get()
}

/// Loads CUPTI, where that was not done; `None` where there is none that can be used. Not by two threads at once.
pub(crate) fn load(settings: &InjectSettings) -> Option<&'static Cupti> {
    if let Some(cupti) = CUPTI.get() {
        return Some(cupti);
    }
    let library = find(settings);
    if library.is_null() {
        problem(0, b"CUPTI was not found");
        return None;
    }
    let Some(cupti) = Cupti::of(library) else {
        problem(0, b"CUPTI lacks a required function");
        return None;
    };
    let mut version = 0;
    // SAFETY: the version may be written to.
    let code = unsafe { (cupti.get_version)(&mut version) };
    catalogue::add(Kind::Collector, version, env!("CARGO_PKG_VERSION").as_bytes());
    if code != 0 || version < OLDEST {
        problem(code, b"CUPTI is older than CUDA 12.1");
        return None;
    }
    if version > NEWEST_CHECKED {
        problem(0, b"CUPTI is newer than any tested version; its records are read as CUDA 13 records");
    }
    // SAFETY: there is none yet, and by the contract nobody else is here.
    unsafe { CUPTI.set(cupti) };
    CUPTI.get()
}

/// The library that the user names, else the one that the process has, that was found for it, or that the loader finds.
fn find(settings: &InjectSettings) -> *mut c_void {
    // SAFETY: it is the library that the user named or that NVIDIA ships under this name.
    let load = |path: &core::ffi::CStr| unsafe { system::load(path) };
    if let Some(path) = settings.cupti.as_c() {
        return load(path);
    }
    let there = NAMES.into_iter().map(system::loaded);
    let found = there.chain(settings.cupti_fallback.as_c().map(load)).chain(NAMES.into_iter().map(load));
    found.into_iter().find(|library| !library.is_null()).unwrap_or(core::ptr::null_mut())
}

/// Has CUPTI hand over what it has: what is complete, or at the end everything.
pub(crate) fn flush(everything: bool) {
    if let Some(cupti) = attached() {
        // SAFETY: may be called from any thread that is not inside a callback.
        unsafe { (cupti.flush_all)(if everything { FORCED } else { COMPLETE }) };
    }
}

/// The device clock; zero where there is none.
pub(crate) fn device_clock() -> u64 {
    let mut time = 0;
    if let Some(cupti) = attached() {
        // SAFETY: the time may be written to.
        unsafe { (cupti.timestamp)(&mut time) };
    }
    time
}

/// Records that CUPTI has dropped since it was last asked.
pub(crate) fn dropped(context: *mut c_void, stream: u32) -> u64 {
    let mut count = 0;
    if let Some(cupti) = attached() {
        // SAFETY: the count may be written to; context and stream are those CUPTI gave with a buffer.
        unsafe { (cupti.dropped)(context, stream, &mut count) };
    }
    count as u64
}

/// The record after `record` in a buffer; null after the last.
///
/// # Safety
///
/// `memory` holds `valid` bytes that CUPTI wrote; `record` is null or what this gave for the same buffer.
pub(crate) unsafe fn next_record(memory: *mut u8, valid: usize, record: *mut c_void) -> *mut c_void {
    let mut record = record;
    let Some(cupti) = attached() else { return core::ptr::null_mut() };
    // SAFETY: by the contract.
    let code = unsafe { (cupti.next_record)(memory, valid, &mut record) };
    if code == 0 { record } else { core::ptr::null_mut() }
}

/// The number of a node of a graph.
pub(crate) fn node_id(node: *mut c_void) -> Option<u64> {
    let cupti = attached()?;
    let mut number = 0;
    // SAFETY: the node is the one CUPTI just told of, and the number may be written to.
    (!node.is_null() && unsafe { (cupti.node_id)(node, &mut number) } == 0).then_some(number)
}

impl Cupti {
    /// Attaches it to the process; what callbacks are switched with, `None` where it refuses.
    pub(crate) fn attach(&self, called: CallbackFunction) -> Option<*mut c_void> {
        let mut subscriber = core::ptr::null_mut();
        // SAFETY: the handle may be written to, and the function stays where it is.
        let code = unsafe { (self.subscribe)(&mut subscriber, called, core::ptr::null_mut()) };
        if code != 0 {
            // Another tool is here first. Two cannot share the records either, so the device is left to it.
            problem(code, b"cuptiSubscribe");
            return None;
        }
        // Buffers are handed out as zeroes; CUPTI would otherwise clear each on the thread that launches.
        let (mut size, mut yes) = (1, 1u8);
        // SAFETY: size and value may be written to; the value of this attribute is one byte.
        unsafe { (self.set_attribute)(ZEROED_BUFFERS, &mut size, (&raw mut yes).cast()) };
        // SAFETY: the functions stay where they are.
        let code = unsafe { (self.register_buffers)(buffers::requested, buffers::completed) };
        if code != 0 {
            problem(code, b"cuptiActivityRegisterCallbacks");
            return None;
        }
        for function in GRAPH_CALLBACKS {
            // SAFETY: the subscriber is ours. A release that does not know the function refuses, and graphs have no nodes.
            unsafe { (self.enable_callback)(1, subscriber, RESOURCE, function) };
        }
        Some(subscriber)
    }

    /// Switches records of a kind.
    pub(crate) fn switch_kind(&self, kind: u32, on: bool) {
        // SAFETY: a kind is only a number.
        let code = unsafe { if on { (self.enable)(kind) } else { (self.disable)(kind) } };
        if code != 0 && on {
            problem(code, b"cuptiActivityEnable");
        }
    }

    /// Has CUPTI call at a function.
    pub(crate) fn listen(&self, subscriber: *mut c_void, domain: c_int, function: u32) {
        // SAFETY: the subscriber is ours.
        unsafe { (self.enable_callback)(1, subscriber, domain, function) };
    }

    /// The name of a function by its number in a domain; empty where there is none.
    pub(crate) fn function_name(&self, domain: c_int, function: u32) -> &'static [u8] {
        let mut name = core::ptr::null();
        // SAFETY: the name may be written to, and what is written is a constant of CUPTI.
        match unsafe { (self.callback_name)(domain, function, &mut name) } {
            // SAFETY: as above.
            0 => unsafe { system::text(name, 256) },
            _ => &[],
        }
    }
}
