//! The buffers that CUPTI fills: a fixed number of them, each free, with CUPTI, or full.

use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use crate::system;

/// Bytes of a buffer: some 5,000 kernels.
const SIZE: usize = 1 << 20;
/// How many there can be; with [`SIZE`], what bounds the memory.
const MOST: usize = 48;

const ABSENT: u32 = 0;
const FREE: u32 = 1;
const LENT: u32 = 2;
const FULL: u32 = 3;

struct Buffer {
    state: AtomicU32,
    memory: AtomicPtr<u8>,
    valid: AtomicUsize,
    /// The context its records are of, to ask CUPTI what it dropped.
    context: AtomicPtr<c_void>,
    stream: AtomicU32,
}

// SAFETY: numbers and pointers of zero: all are absent.
static BUFFERS: [Buffer; MOST] = unsafe { core::mem::zeroed() };

/// CUPTI wants a buffer. Without one it drops records and counts them.
///
/// # Safety
///
/// All three may be written to.
pub(crate) unsafe extern "C" fn requested(memory: *mut *mut u8, size: *mut usize, most_records: *mut usize) {
    let found = lend();
    // SAFETY: by the contract. No limit on the records means as many as fit.
    unsafe {
        memory.write(found.unwrap_or(null_mut()));
        size.write(if found.is_some() { SIZE } else { 0 });
        most_records.write(0);
    }
}

fn lend() -> Option<*mut u8> {
    let take =
        |buffer: &&Buffer, from| buffer.state.compare_exchange(from, LENT, Ordering::AcqRel, Ordering::Relaxed).is_ok();
    if let Some(buffer) = BUFFERS.iter().find(|buffer| take(buffer, FREE)) {
        return Some(buffer.memory.load(Ordering::Relaxed));
    }
    let buffer = BUFFERS.iter().find(|buffer| take(buffer, ABSENT))?;
    let memory = system::memory(SIZE);
    if memory.is_null() {
        buffer.state.store(ABSENT, Ordering::Release);
        return None;
    }
    buffer.memory.store(memory, Ordering::Relaxed);
    Some(memory)
}

/// CUPTI gives a buffer back.
pub(crate) unsafe extern "C" fn completed(context: *mut c_void, stream: u32, memory: *mut u8, _: usize, valid: usize) {
    // One that is not ours belongs to another user of CUPTI in this process, who has to free it.
    let ours = |buffer: &&Buffer| buffer.memory.load(Ordering::Relaxed) == memory;
    if let Some(buffer) = BUFFERS.iter().filter(|_| !memory.is_null()).find(ours) {
        buffer.valid.store(valid.min(SIZE), Ordering::Relaxed);
        buffer.context.store(context, Ordering::Relaxed);
        buffer.stream.store(stream, Ordering::Relaxed);
        buffer.state.store(FULL, Ordering::Release);
    }
}

/// Hands over every full buffer with its context, its stream, and how many bytes CUPTI has filled, and frees it after, cleared as CUPTI was
/// promised. For the writer thread only.
pub(crate) fn drain(mut each: impl FnMut(*mut c_void, u32, *mut u8, usize)) {
    for buffer in BUFFERS.iter().filter(|buffer| buffer.state.load(Ordering::Acquire) == FULL) {
        let (memory, valid) = (buffer.memory.load(Ordering::Relaxed), buffer.valid.load(Ordering::Relaxed));
        each(buffer.context.load(Ordering::Relaxed), buffer.stream.load(Ordering::Relaxed), memory, valid);
        // SAFETY: the buffer is full, so it is this thread's until it is free, and it has so many bytes.
        unsafe { memory.write_bytes(0, valid) };
        buffer.state.store(FREE, Ordering::Release);
    }
}
