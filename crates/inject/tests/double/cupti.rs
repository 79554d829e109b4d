//! Stands in for libcupti in tests: calls back, fills buffers and keeps books like the real one, on demand.
//!
//! Compiled by the tests into a library of its own. `double_*` are what the application under test drives it with.
#![allow(non_snake_case, clippy::missing_safety_doc)]

// SAFETY of all unsafe code here: pointers are what CUPTI's users pass by its headers, and each is used for as long as its call lasts.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

type Callback = unsafe extern "C" fn(*mut c_void, c_int, u32, *const c_void);
type Request = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
type Complete = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);

/// A kernel record of this many bytes, as of CUDA 13.
const RECORD: usize = 216;
const LAUNCH: u32 = 211;
const WAIT: u32 = 131;
const PROFILER: [(u32, u32); 2] = [(68, 309), (69, 310)];
const GRAPH_LAUNCH: (u32, u32) = (311, 514);
const KERNEL_KIND: u32 = 10;
const GRAPH_KIND: u32 = 51;

struct State {
    callback: Option<Callback>,
    request: Option<Request>,
    complete: Option<Complete>,
    listened: Vec<(c_int, u32)>,
    /// Whether it has stopped delivering callbacks.
    deaf: bool,
    kinds: Vec<u32>,
    buffer: Option<(usize, usize, usize)>,
    dropped: usize,
    names: Vec<CString>,
}

static STATE: Mutex<State> = Mutex::new(State {
    callback: None,
    request: None,
    complete: None,
    listened: Vec::new(),
    deaf: false,
    kinds: Vec::new(),
    buffer: None,
    dropped: 0,
    names: Vec::new(),
});
static CORRELATION: AtomicU32 = AtomicU32::new(1);
static CLOCK: AtomicU64 = AtomicU64::new(0);

fn clock() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
    CLOCK.fetch_max(now, Ordering::Relaxed).max(now)
}

fn busy() -> bool {
    std::env::var_os("DOUBLE_CUPTI_BUSY").is_some()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetVersion(version: *mut u32) -> c_int {
    let version_is = std::env::var("DOUBLE_CUPTI_VERSION").ok().and_then(|text| text.parse().ok()).unwrap_or(130_001);
    unsafe { *version = version_is };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiSubscribe(handle: *mut *mut c_void, callback: Callback, _: *mut c_void) -> c_int {
    if busy() {
        return 39;
    }
    unsafe { *handle = 8 as *mut c_void };
    STATE.lock().unwrap().callback = Some(callback);
    0
}

/// How many functions and kinds of records somebody wants to hear of; 0 where nobody is attached.
#[unsafe(no_mangle)]
pub extern "C" fn double_wanted() -> u32 {
    let state = STATE.lock().unwrap();
    if state.callback.is_none() { 0 } else { (1 + state.listened.len() + state.kinds.len()) as u32 }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiEnableCallback(enable: u32, _: *mut c_void, domain: c_int, function: u32) -> c_int {
    let mut state = STATE.lock().unwrap();
    if enable == 0 {
        // As CUPTI 13.0 does where a thread is inside a call: it delivers no more callbacks.
        state.listened.clear();
        state.deaf = true;
    } else if !state.deaf && !state.listened.contains(&(domain, function)) {
        state.listened.push((domain, function));
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetCallbackName(domain: c_int, function: u32, name: *mut *const c_char) -> c_int {
    let found: &CStr = match (domain, function) {
        (2, LAUNCH) => c"cudaLaunchKernel_v7000",
        (2, WAIT) => c"cudaStreamSynchronize_v3020",
        (1, 307) => c"cuLaunchKernel",
        (2, 68) => c"cudaProfilerStart_v4000",
        (2, 69) => c"cudaProfilerStop_v4000",
        (1, 309) => c"cuProfilerStart",
        (1, 310) => c"cuProfilerStop",
        (2, 311) => c"cudaGraphLaunch_v10000",
        (1, 514) => c"cuGraphLaunch",
        (_, 1) => c"cudaMalloc_v3020",
        _ => return 1,
    };
    unsafe { *name = found.as_ptr() };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiGetGraphNodeId(_: *mut c_void, _: *mut u64) -> c_int {
    1
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityRegisterCallbacks(request: Request, complete: Complete) -> c_int {
    let mut state = STATE.lock().unwrap();
    state.request = Some(request);
    state.complete = Some(complete);
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivitySetAttribute(_: c_int, _: *mut usize, _: *mut c_void) -> c_int {
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityEnable(kind: u32) -> c_int {
    STATE.lock().unwrap().kinds.push(kind);
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityDisable(kind: u32) -> c_int {
    STATE.lock().unwrap().kinds.retain(|other| *other != kind);
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivityGetNextRecord(memory: *mut u8, valid: usize, record: *mut *mut c_void) -> c_int {
    let next = if unsafe { (*record).is_null() } { memory } else { unsafe { (*record).cast::<u8>().add(RECORD) } };
    if next as usize + RECORD > memory as usize + valid {
        return 12;
    }
    unsafe { *record = next.cast() };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityFlushAll(_: u32) -> c_int {
    let (complete, buffer) = {
        let mut state = STATE.lock().unwrap();
        (state.complete, state.buffer.take())
    };
    if let (Some(complete), Some((memory, size, used))) = (complete, buffer) {
        unsafe { complete(std::ptr::null_mut(), 0, memory as *mut u8, size, used) };
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivityGetNumDroppedRecords(_: *mut c_void, _: u32, dropped: *mut usize) -> c_int {
    unsafe { *dropped = std::mem::take(&mut STATE.lock().unwrap().dropped) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetTimestamp(time: *mut u64) -> c_int {
    unsafe { *time = clock() };
    0
}

#[repr(C)]
struct CallData {
    site: c_int,
    texts: [usize; 5],
    context_number: u32,
    kept: *mut u64,
    correlation: u32,
}

fn called(domain: c_int, function: u32, correlation: u32, inside: impl FnOnce()) {
    let callback = {
        let state = STATE.lock().unwrap();
        state.callback.filter(|_| state.listened.contains(&(domain, function)))
    };
    let mut kept = 0;
    let mut data = CallData { site: 0, texts: [0; 5], context_number: 1, kept: &mut kept, correlation };
    let mut notify = |site| {
        data.site = site;
        if let Some(callback) = callback {
            unsafe { callback(std::ptr::null_mut(), domain, function, (&raw const data).cast()) };
        }
    };
    notify(0);
    inside();
    notify(1);
}

/// A call of the runtime that launches one kernel, and the driver call inside of it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn double_launch(name: *const c_char) {
    let correlation = CORRELATION.fetch_add(1, Ordering::Relaxed);
    let name = unsafe { CStr::from_ptr(name) }.to_owned();
    called(2, LAUNCH, correlation, || called(1, 307, correlation, || kernel(name, correlation, 0)));
}

/// A call of the runtime that launches a graph of so many kernels: a record of each, or one of all where those are wanted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn double_graph(name: *const c_char, nodes: u32) {
    let correlation = CORRELATION.fetch_add(1, Ordering::Relaxed);
    let name = unsafe { CStr::from_ptr(name) }.to_owned();
    called(2, GRAPH_LAUNCH.0, correlation, || {
        called(1, GRAPH_LAUNCH.1, correlation, || {
            if STATE.lock().unwrap().kinds.contains(&GRAPH_KIND) {
                let start = clock();
                let mut record = [0u8; RECORD];
                put(&mut record, 0, &GRAPH_KIND.to_ne_bytes());
                put(&mut record, 4, &correlation.to_ne_bytes());
                put(&mut record, 8, &start.to_ne_bytes());
                put(&mut record, 16, &(start + 1500 * u64::from(nodes)).to_ne_bytes());
                put(&mut record, 28, &3u32.to_ne_bytes());
                add(record, GRAPH_KIND);
            } else {
                (0..nodes).for_each(|node| kernel(name.clone(), correlation, 3 << 32 | u64::from(node + 1)));
            }
        });
    });
}

/// Calls of the runtime and of the driver that start or stop the profiler.
#[unsafe(no_mangle)]
pub extern "C" fn double_profiler(start: bool) {
    let (runtime, driver) = PROFILER[usize::from(!start)];
    let correlation = CORRELATION.fetch_add(1, Ordering::Relaxed);
    called(2, runtime, correlation, || called(1, driver, correlation, || {}));
}

/// A call of the runtime that waits.
#[unsafe(no_mangle)]
pub extern "C" fn double_wait() {
    called(2, WAIT, CORRELATION.fetch_add(1, Ordering::Relaxed), || {});
}

/// A kernel of a node, or of none. One whose name starts with `backward`, `unstarted` or `ancient` has such times.
fn kernel(name: CString, correlation: u32, node: u64) {
    let start = clock();
    let (start, end) = match name.to_str().unwrap() {
        name if name.starts_with("backward") => (start, start - 1),
        name if name.starts_with("unstarted") => (0, start),
        name if name.starts_with("ancient") => (start - 3_600_000_000_000, start),
        _ => (start, start + 1500),
    };
    let name = {
        let mut state = STATE.lock().unwrap();
        let known = state.names.iter().find(|other| **other == name).map(|other| other.as_ptr() as usize);
        known.unwrap_or_else(|| {
            state.names.push(name);
            state.names.last().unwrap().as_ptr() as usize
        })
    };
    let mut record = [0u8; RECORD];
    put(&mut record, 0, &KERNEL_KIND.to_ne_bytes());
    put(&mut record, 6, &32u16.to_ne_bytes());
    put(&mut record, 16, &start.to_ne_bytes());
    put(&mut record, 24, &end.to_ne_bytes());
    put(&mut record, 44, &1u32.to_ne_bytes());
    put(&mut record, 48, &7u32.to_ne_bytes());
    for (place, size) in [128u32, 1, 1, 256, 1, 1].into_iter().enumerate() {
        put(&mut record, 52 + 4 * place, &size.to_ne_bytes());
    }
    put(&mut record, 92, &correlation.to_ne_bytes());
    put(&mut record, 104, &name.to_ne_bytes());
    put(&mut record, 144, &node.to_ne_bytes());
    add(record, KERNEL_KIND);
}

fn put(record: &mut [u8; RECORD], at: usize, bytes: &[u8]) {
    record[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Puts a record into the buffer, where records of its kind are wanted.
fn add(record: [u8; RECORD], kind: u32) {
    let (request, full) = {
        let state = STATE.lock().unwrap();
        if !state.kinds.contains(&kind) {
            return;
        }
        let full = state.buffer.is_none_or(|(_, size, used)| used + RECORD > size);
        (state.request, full)
    };
    if full {
        cuptiActivityFlushAll(0);
        let (mut memory, mut size, mut most) = (std::ptr::null_mut(), 0, 0);
        let Some(request) = request else { return };
        unsafe { request(&mut memory, &mut size, &mut most) };
        let mut state = STATE.lock().unwrap();
        if memory.is_null() {
            state.dropped += 1;
            return;
        }
        state.buffer = Some((memory as usize, size, 0));
    }
    let mut state = STATE.lock().unwrap();
    let Some((memory, _, used)) = &mut state.buffer else { return };
    unsafe { std::ptr::copy_nonoverlapping(record.as_ptr(), (*memory as *mut u8).add(*used), RECORD) };
    *used += RECORD;
}
