//! What the devices are, and whether they are idle, asked of the driver that is in the process.

use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::system;

/// A device as the driver describes it.
pub(crate) struct Device {
    pub(crate) name: [u8; 128],
    pub(crate) uuid: [u8; 16],
    pub(crate) memory: u64,
}

type Push = unsafe extern "C" fn(*mut c_void) -> c_int;
type Wait = unsafe extern "C" fn() -> c_int;
type Pop = unsafe extern "C" fn(*mut *mut c_void) -> c_int;
type GetDevice = unsafe extern "C" fn(*mut c_int, c_int) -> c_int;
type GetName = unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int;
type GetUuid = unsafe extern "C" fn(*mut [u8; 16], c_int) -> c_int;
type GetMemory = unsafe extern "C" fn(*mut usize, c_int) -> c_int;

/// Contexts that calls were made in; what bounds how many devices of one process are waited for.
static CONTEXTS: [AtomicPtr<c_void>; 16] = [const { AtomicPtr::new(core::ptr::null_mut()) }; 16];

/// A call was made in a context.
#[inline]
pub(crate) fn note(context: *mut c_void) {
    for slot in &CONTEXTS {
        let known = slot.load(Ordering::Relaxed);
        if known == context {
            return;
        }
        let free =
            known.is_null() && slot.compare_exchange(known, context, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if free {
            return;
        }
    }
}

/// Waits for everything that runs in those contexts; whether it has ended. Where there is no driver, nothing runs.
pub(crate) fn wait() -> bool {
    let driver = system::loaded(c"libcuda.so.1");
    let symbol = |name| if driver.is_null() { driver } else { system::symbol(driver, name) };
    let (push, wait, pop) =
        (symbol(c"cuCtxPushCurrent_v2"), symbol(c"cuCtxSynchronize"), symbol(c"cuCtxPopCurrent_v2"));
    if push.is_null() || wait.is_null() || pop.is_null() {
        return true;
    }
    // SAFETY: the driver has functions of these types under these names, by its headers.
    let (push, wait, pop) = unsafe {
        (
            core::mem::transmute::<*mut c_void, Push>(push),
            core::mem::transmute::<*mut c_void, Wait>(wait),
            core::mem::transmute::<*mut c_void, Pop>(pop),
        )
    };
    let contexts = CONTEXTS.iter().map(|slot| slot.load(Ordering::Relaxed)).filter(|context| !context.is_null());
    contexts.fold(true, |ended, context| {
        let mut popped = core::ptr::null_mut();
        // SAFETY: the context is one that CUPTI told of; the driver refuses one that is gone, in which nothing runs.
        let refused = unsafe { push(context) } != 0;
        // SAFETY: it is current, and is taken off again.
        refused || (unsafe { (wait(), pop(&mut popped)).0 } == 0 && ended)
    })
}

/// The device with that ordinal. None of the functions needs a context, and CUDA is initialised when there is work.
pub(crate) fn describe(ordinal: u32) -> Option<Device> {
    let driver = system::loaded(c"libcuda.so.1");
    if driver.is_null() {
        return None;
    }
    let symbol = |name| system::symbol(driver, name);
    let (device, name) = (symbol(c"cuDeviceGet"), symbol(c"cuDeviceGetName"));
    let (uuid, memory) = (symbol(c"cuDeviceGetUuid_v2"), symbol(c"cuDeviceTotalMem_v2"));
    if [device, name, uuid, memory].iter().any(|function| function.is_null()) {
        return None;
    }
    let mut found = Device { name: [0; 128], uuid: [0; 16], memory: 0 };
    let (mut handle, mut bytes) = (0, 0);
    // SAFETY: the driver has functions of these types under these names, by its headers; all that they are given may be
    // written to, and the name is shorter than its room by one byte, which stays zero.
    let code = unsafe {
        let device = core::mem::transmute::<*mut c_void, GetDevice>(device);
        let name = core::mem::transmute::<*mut c_void, GetName>(name);
        let uuid = core::mem::transmute::<*mut c_void, GetUuid>(uuid);
        let memory = core::mem::transmute::<*mut c_void, GetMemory>(memory);
        let code = device(&mut handle, ordinal as c_int);
        if code != 0 {
            return None;
        }
        name(found.name.as_mut_ptr().cast(), 127, handle) | uuid(&mut found.uuid, handle) | memory(&mut bytes, handle)
    };
    found.memory = bytes as u64;
    (code == 0).then_some(found)
}
