//! How a tool gets in: NVTX version 3's injection protocol, the application's side of it.
//!
//! The tool's library exports `InitializeInjectionNvtx2`. We call it with a function that hands out our tables; the tool
//! asks for the table of each module and writes its own functions into the slots. Slots that stay empty are not called.
//! Layouts and numbers: <https://github.com/NVIDIA/NVTX>, `c/include/nvtx3/nvtxDetail/nvtxTypes.h` and `nvToolsExt.h`.

use std::ffi::{CStr, CString, OsString, c_char, c_int, c_uint, c_void};
use std::mem::transmute;
use std::os::unix::ffi::OsStringExt;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};

const PATH_VARIABLE: &str = if size_of::<usize>() == 4 { "NVTX_INJECTION32_PATH" } else { "NVTX_INJECTION64_PATH" };
const ENTRY_POINT: &CStr = c"InitializeInjectionNvtx2";
const VERSION: u16 = 3;

/// Numbers of the tables that a tool may ask for.
const CALLBACKS: u32 = 1;
const VERSION_INFO: u32 = 3;

/// Functions of each module, by its number: none of 0, then core, CUDA, OpenCL, CUDA runtime, domains, synchronisation.
/// Tools expect all of them, though only those of domains are called from here. Slot 0 of each module is unused.
const MODULE_SLOTS: [usize; 7] = [0, 16, 9, 15, 7, 16, 7];
const MOST_SLOTS: usize = 16;
const DOMAINS: usize = 5;
const RANGE_PUSH: usize = 4;
const RANGE_POP: usize = 5;
const CREATE: usize = 12;

const MESSAGE_IS_ASCII: i32 = 1;

type DomainHandle = *mut c_void;
type Create = unsafe extern "C" fn(name: *const c_char) -> DomainHandle;
type Push = unsafe extern "C" fn(domain: DomainHandle, attributes: *const EventAttributes) -> c_int;
type Pop = unsafe extern "C" fn(domain: DomainHandle) -> c_int;
type ExportTable = extern "C" fn(table: u32) -> *const c_void;
type Initialize = unsafe extern "C" fn(export_table: ExportTable) -> c_int;

/// `nvtxEventAttributes_t`, version 2 of it, with a message and nothing else.
#[repr(C)]
struct EventAttributes {
    version: u16,
    size: u16,
    category: u32,
    color_type: i32,
    color: u32,
    payload_type: i32,
    reserved: i32,
    payload: u64,
    message_type: i32,
    message: *const c_char,
}

/// `NvtxExportTableCallbacks`.
#[repr(C)]
struct Callbacks {
    size: usize,
    module_table: unsafe extern "C" fn(c_int, *mut *const SlotPointer, *mut c_uint) -> c_int,
}

/// `NvtxExportTableVersionInfo`.
#[repr(C)]
struct VersionInfo {
    size: usize,
    version: u32,
    reserved: u32,
    set_tool_version: extern "C" fn(u32),
}

static CALLBACK_TABLE: Callbacks = Callbacks { size: size_of::<Callbacks>(), module_table };
static VERSION_TABLE: VersionInfo =
    VersionInfo { size: size_of::<VersionInfo>(), version: VERSION as u32, reserved: 0, set_tool_version };

/// Where a tool writes its function. Atomic, because it may do so at any time.
type Slot = AtomicPtr<c_void>;

/// A place in a module's table: where the slot is, or nothing.
#[repr(transparent)]
struct SlotPointer(*const Slot);

// SAFETY: it points to a static or nowhere, and slots may be used from any thread.
unsafe impl Sync for SlotPointer {}

static SLOTS: [[Slot; MOST_SLOTS]; MODULE_SLOTS.len()] =
    [const { [const { Slot::new(null_mut()) }; MOST_SLOTS] }; MODULE_SLOTS.len()];

/// One more than the most, so that every table ends with nothing.
static TABLES: [[SlotPointer; MOST_SLOTS + 1]; MODULE_SLOTS.len()] = tables();

const fn tables() -> [[SlotPointer; MOST_SLOTS + 1]; MODULE_SLOTS.len()] {
    let mut tables = [const { [const { SlotPointer(null()) }; MOST_SLOTS + 1] }; MODULE_SLOTS.len()];
    let mut module = 1;
    while module < MODULE_SLOTS.len() {
        let mut slot = 1;
        while slot < MODULE_SLOTS[module] {
            tables[module][slot] = SlotPointer(&SLOTS[module][slot]);
            slot += 1;
        }
        module += 1;
    }
    tables
}

extern "C" fn export_table(table: u32) -> *const c_void {
    match table {
        CALLBACKS => (&raw const CALLBACK_TABLE).cast(),
        VERSION_INFO => (&raw const VERSION_TABLE).cast(),
        _ => null(),
    }
}

/// # Safety
///
/// Where `table` and `size` are not null, they can be written to.
unsafe extern "C" fn module_table(module: c_int, table: *mut *const SlotPointer, size: *mut c_uint) -> c_int {
    let Some(slots) = usize::try_from(module).ok().filter(|module| (1..MODULE_SLOTS.len()).contains(module)) else {
        return 0;
    };
    if !size.is_null() {
        // SAFETY: not null, so it can be written to.
        unsafe { size.write(MODULE_SLOTS[slots] as c_uint) };
    }
    if !table.is_null() {
        // SAFETY: not null, so it can be written to.
        unsafe { table.write(TABLES[slots].as_ptr()) };
    }
    1
}

/// Tools say which version they are; there is nothing to do about it.
extern "C" fn set_tool_version(_version: u32) {}

/// A tool that has attached, and our domain in it.
#[derive(Debug)]
pub(super) struct Tool {
    domain: DomainHandle,
}

// SAFETY: NVTX functions may be called from any thread, and the handle is only ever passed to them.
unsafe impl Send for Tool {}
// SAFETY: as above.
unsafe impl Sync for Tool {}

/// Loads the tool that the environment names and lets it attach; `None` when none is named.
pub(super) fn attach(domain: &CStr) -> Result<Option<Tool>, String> {
    let Some(path) = std::env::var_os(PATH_VARIABLE).filter(|path| !path.is_empty()) else { return Ok(None) };
    load(path.clone()).map_err(|reason| format!("{PATH_VARIABLE} is {}: {reason}", path.display()))?;
    let create = function(CREATE);
    let domain = if create.is_null() {
        null_mut()
    } else {
        // SAFETY: the tool put a function of this type into this slot, and the name is a C string.
        unsafe { transmute::<*mut c_void, Create>(create)(domain.as_ptr()) }
    };
    Ok(Some(Tool { domain }))
}

fn load(path: OsString) -> Result<(), String> {
    let path = CString::new(path.into_vec()).map_err(|_| "the path contains a zero byte".to_owned())?;
    // SAFETY: the path is a C string. Loading runs the library's constructors: the user asked for that by naming it.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY) };
    if library.is_null() {
        return Err(loader_message());
    }
    // SAFETY: the handle is open and the name is a C string.
    let entry = unsafe { libc::dlsym(library, ENTRY_POINT.as_ptr()) };
    let attached = if entry.is_null() {
        Err(format!("the library does not export {}", ENTRY_POINT.to_string_lossy()))
    } else {
        // SAFETY: a library that exports this name has a function of this type there, by the protocol.
        match unsafe { transmute::<*mut c_void, Initialize>(entry)(export_table) } {
            0 => Err("the library refused to attach".to_owned()),
            _ => Ok(()),
        }
    };
    if attached.is_err() {
        // SAFETY: the handle is open; a library that did not attach has left nothing behind that is called later.
        unsafe { libc::dlclose(library) };
    }
    attached
}

fn loader_message() -> String {
    // SAFETY: gives a C string that is valid until the next call of the loader on this thread, or null.
    let message = unsafe { libc::dlerror() };
    if message.is_null() {
        return "it cannot be loaded".to_owned();
    }
    // SAFETY: not null, so it is a C string; it is copied at once.
    unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned()
}

/// What the tool put into a slot of the domain functions; null when it left it empty.
fn function(slot: usize) -> *mut c_void {
    SLOTS[DOMAINS][slot].load(Ordering::Acquire)
}

impl Tool {
    pub(super) fn push(&self, name: &str) {
        let push = function(RANGE_PUSH);
        let Ok(message) = CString::new(name) else { return };
        if push.is_null() {
            return;
        }
        let attributes = EventAttributes {
            version: VERSION,
            size: size_of::<EventAttributes>() as u16,
            category: 0,
            color_type: 0,
            color: 0,
            payload_type: 0,
            reserved: 0,
            payload: 0,
            message_type: MESSAGE_IS_ASCII,
            message: message.as_ptr(),
        };
        // SAFETY: the tool put a function of this type into this slot; attributes and message outlive the call, and the
        // tool copies what it keeps.
        unsafe { transmute::<*mut c_void, Push>(push)(self.domain, &attributes) };
    }

    pub(super) fn pop(&self) {
        let pop = function(RANGE_POP);
        if !pop.is_null() {
            // SAFETY: the tool put a function of this type into this slot.
            unsafe { transmute::<*mut c_void, Pop>(pop)(self.domain) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn attributes_are_laid_out_as_published() {
        // 48 bytes on 64-bit machines.
        assert_eq!(size_of::<EventAttributes>(), 40 + size_of::<usize>());
        assert_eq!(offset_of!(EventAttributes, payload), 24);
        assert_eq!(offset_of!(EventAttributes, message_type), 32);
    }

    #[test]
    fn every_module_has_its_table_and_unknown_ones_have_none() {
        for (module, slots) in MODULE_SLOTS.iter().enumerate().skip(1) {
            let (mut table, mut size) = (null(), 0);
            // SAFETY: both can be written to.
            assert_eq!(unsafe { module_table(module as c_int, &mut table, &mut size) }, 1);
            assert_eq!(size as usize, *slots);
            // SAFETY: the table has one more place than slots.
            let places = unsafe { std::slice::from_raw_parts(table, slots + 1) };
            assert!(places[0].0.is_null() && places[*slots].0.is_null());
            assert!(places[1..*slots].iter().all(|place| !place.0.is_null()));
        }
        for module in [-1, 0, 7] {
            // SAFETY: null is allowed.
            assert_eq!(unsafe { module_table(module, null_mut(), null_mut()) }, 0);
        }
    }

    #[test]
    fn only_known_tables_are_exported() {
        assert!(!export_table(CALLBACKS).is_null() && !export_table(VERSION_INFO).is_null());
        assert!([0, 2, 4, u32::MAX].into_iter().all(|table| export_table(table).is_null()));
    }
}
