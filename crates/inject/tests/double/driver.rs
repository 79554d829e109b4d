//! Stands in for the CUDA driver in tests: streams on which graphs run one after the other, and events with times. Nothing is computed.
//!
//! The handle of a graph is the microseconds it runs for; one of zero is refused. Its clock is faster than the wall clock. `DOUBLE_TRUTH`
//! names a file that gets the stream, start and end of every launch. What a program may not do is counted: `double_violations`.
#![allow(non_snake_case, clippy::missing_safety_doc)]

// SAFETY of all unsafe code here: pointers are what the driver's users pass by its headers, and each is used for as long as its call lasts.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::io::Write;
use std::sync::Mutex;

const INVALID: c_int = 400;
const NOT_READY: c_int = 600;
/// How much faster its clock is.
const DRIFT: f64 = 1.000_02;

struct Event {
    context: usize,
    time: Option<i64>,
}

struct State {
    /// When a stream has done everything.
    streams: BTreeMap<usize, i64>,
    events: BTreeMap<usize, Event>,
    capturing: BTreeSet<usize>,
    violations: u32,
    process: u32,
}

static STATE: Mutex<State> = Mutex::new(State {
    streams: BTreeMap::new(),
    events: BTreeMap::new(),
    capturing: BTreeSet::new(),
    violations: 0,
    process: 0,
});

thread_local! {
    static CONTEXT: Cell<usize> = const { Cell::new(0) };
    static MODE: Cell<c_int> = const { Cell::new(0) };
}

fn now() -> i64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as i64
}

/// Does something with the state, which no other process than the first may: CUDA does not survive a fork.
fn with<R>(does: impl FnOnce(&mut State) -> R) -> R {
    let mut state = STATE.lock().unwrap();
    if state.process == 0 {
        state.process = std::process::id();
    }
    state.violations += u32::from(state.process != std::process::id());
    does(&mut state)
}

/// A call that disturbs captures of other threads, unless this thread has said that it knows.
fn unsafe_while_capturing(state: &mut State) {
    state.violations += u32::from(MODE.get() != 2 && !state.capturing.is_empty());
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> c_int {
    unsafe { *device = ordinal };
    if ordinal < 2 { 0 } else { 101 }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, _: c_int, device: c_int) -> c_int {
    unsafe { *name = b'0' as c_char + device as c_char };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: c_int) -> c_int {
    unsafe { *uuid = [device as u8 + 1; 16] };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceTotalMem_v2(bytes: *mut usize, _: c_int) -> c_int {
    unsafe { *bytes = 1 << 30 };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxGetCurrent(context: *mut *mut c_void) -> c_int {
    unsafe { *context = CONTEXT.get() as *mut c_void };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxGetId(context: *mut c_void, number: *mut u64) -> c_int {
    unsafe { *number = context as u64 };
    if context.is_null() { 201 } else { 0 }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSetCurrent(context: *mut c_void) -> c_int {
    CONTEXT.set(context as usize);
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxGetDevice(device: *mut c_int) -> c_int {
    unsafe { *device = CONTEXT.get() as c_int & 15 };
    if CONTEXT.get() == 0 { 201 } else { 0 }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuThreadExchangeStreamCaptureMode(mode: *mut c_int) -> c_int {
    unsafe { *mode = MODE.replace(*mode) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamCreate(stream: *mut *mut c_void, flags: c_uint) -> c_int {
    with(unsafe_while_capturing);
    unsafe { *stream = (0x5000 + CONTEXT.get()) as *mut c_void };
    if flags == 1 { 0 } else { INVALID }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamIsCapturing(stream: *mut c_void, captures: *mut c_int) -> c_int {
    unsafe { *captures = with(|state| state.capturing.contains(&(stream as usize))).into() };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventCreate(event: *mut *mut c_void, flags: c_uint) -> c_int {
    with(|state| {
        unsafe_while_capturing(state);
        let handle = 0x1_0000 + 16 * state.events.len();
        state.events.insert(handle, Event { context: CONTEXT.get(), time: None });
        unsafe { *event = handle as *mut c_void };
    });
    flags as c_int
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventRecord(event: *mut c_void, stream: *mut c_void) -> c_int {
    with(|state| {
        state.violations += u32::from(state.capturing.contains(&(stream as usize)));
        let time = now().max(state.streams.get(&(stream as usize)).copied().unwrap_or(0));
        match state.events.get_mut(&(event as usize)).filter(|event| event.context == CONTEXT.get()) {
            Some(event) => event.time = Some(time),
            None => return INVALID,
        }
        0
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventQuery(event: *mut c_void) -> c_int {
    with(|state| {
        unsafe_while_capturing(state);
        match state.events.get(&(event as usize)).and_then(|event| event.time) {
            Some(time) if time <= now() => 0,
            Some(_) => NOT_READY,
            None => INVALID,
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventElapsedTime(milliseconds: *mut f32, from: *mut c_void, to: *mut c_void) -> c_int {
    with(|state| {
        let time = |event: *mut c_void| state.events.get(&(event as usize)).and_then(|event| event.time);
        let Some((from, to)) = time(from).zip(time(to)) else { return INVALID };
        unsafe { *milliseconds = ((to - from) as f64 * DRIFT / 1e6) as f32 };
        if to <= now() { 0 } else { NOT_READY }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGraphLaunch(graph: *mut c_void, stream: *mut c_void) -> c_int {
    with(|state| {
        if graph.is_null() {
            return INVALID;
        }
        if state.capturing.contains(&(stream as usize)) {
            return 0;
        }
        let start = now().max(state.streams.get(&(stream as usize)).copied().unwrap_or(0));
        let end = start + 1000 * graph as i64;
        state.streams.insert(stream as usize, end);
        if let Some(path) = std::env::var_os("DOUBLE_TRUTH") {
            let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
            // In one piece, because it is read while this goes on.
            file.write_all(format!("{} {start} {end}\n", stream as usize).as_bytes()).unwrap();
        }
        0
    })
}

/// Starts or ends a capture.
#[unsafe(no_mangle)]
pub extern "C" fn double_capture(stream: usize, starts: bool) {
    with(|state| if starts { state.capturing.insert(stream) } else { state.capturing.remove(&stream) });
}

/// How often something was done that a program may not do.
#[unsafe(no_mangle)]
pub extern "C" fn double_violations() -> u32 {
    STATE.lock().unwrap().violations
}
