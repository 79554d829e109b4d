//! NVTX, the tool's side of it: ranges with their domains and registered strings.
//!
//! NVTX hands out a table of slots per module; functions written into them are called from then on. Layouts and numbers:
//! <https://github.com/NVIDIA/NVTX>, `c/include/nvtx3/nvtxDetail/nvtxTypes.h` and `nvToolsExt.h`. Marks, categories,
//! resources and names of threads are left alone.

use core::ffi::{c_char, c_int, c_uint, c_void};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::log::{self, RangeName};
use crate::settings::settings;
use crate::{catalogue, gate, process, system};

const CALLBACKS: u32 = 1;
const CORE: c_int = 1;
const CORE2: c_int = 5;

const MESSAGE_ASCII: i32 = 1;
const MESSAGE_WIDE: i32 = 2;
const MESSAGE_REGISTERED: i32 = 3;

/// What a push or pop gives back where depths are not tracked.
const NOT_TRACKED: c_int = -2;

/// Longest text that is looked at.
const LONGEST: usize = 1024;

/// `wchar_t` of Linux.
type Wide = u32;
type Slot = *mut *const c_void;

/// `NvtxExportTableCallbacks`.
#[repr(C)]
struct Callbacks {
    size: usize,
    module_table: Option<unsafe extern "C" fn(c_int, *mut *const Slot, *mut c_uint) -> c_int>,
}

/// `nvtxEventAttributes_t`, as far as it is looked at: the message is the last of it.
#[repr(C)]
pub(crate) struct Attributes {
    version: u16,
    size: u16,
    category: u32,
    color_type: i32,
    color: u32,
    payload_type: i32,
    reserved: i32,
    payload: u64,
    message_type: i32,
    message: *const c_void,
}

static HANDLES: AtomicU64 = AtomicU64::new(1);
static DOMAINS: AtomicU32 = AtomicU32::new(1);
static STRINGS: AtomicU32 = AtomicU32::new(1);

/// Writes our functions into the slots; whether there were any.
///
/// # Safety
///
/// `export_table` is the function that NVTX passes.
pub(crate) unsafe fn attach(export_table: unsafe extern "C" fn(u32) -> *const c_void) -> bool {
    // SAFETY: by the contract; the table is null or of this type.
    let Some(table) = (unsafe { export_table(CALLBACKS).cast::<Callbacks>().as_ref() }) else { return false };
    let Some(module_table) = table.module_table.filter(|_| table.size >= size_of::<Callbacks>()) else { return false };
    let core: [(usize, *const c_void); 8] = [
        (4, range_start_ex as *const c_void),
        (5, range_start_a as *const c_void),
        (6, range_start_w as *const c_void),
        (7, range_end as *const c_void),
        (8, range_push_ex as *const c_void),
        (9, range_push_a as *const c_void),
        (10, range_push_w as *const c_void),
        (11, range_pop as *const c_void),
    ];
    let core2: [(usize, *const c_void); 8] = [
        (2, domain_range_start_ex as *const c_void),
        (3, domain_range_end as *const c_void),
        (4, domain_range_push_ex as *const c_void),
        (5, domain_range_pop as *const c_void),
        (10, register_string_a as *const c_void),
        (11, register_string_w as *const c_void),
        (12, domain_create_a as *const c_void),
        (13, domain_create_w as *const c_void),
    ];
    // SAFETY: the function is NVTX's own, and the functions have the types of the slots they go into.
    unsafe { fill(module_table, CORE, &core) | fill(module_table, CORE2, &core2) }
}

/// # Safety
///
/// `module_table` is NVTX's, and each function has the type of its slot.
unsafe fn fill(
    module_table: unsafe extern "C" fn(c_int, *mut *const Slot, *mut c_uint) -> c_int,
    module: c_int,
    functions: &[(usize, *const c_void)],
) -> bool {
    let (mut slots, mut count) = (core::ptr::null(), 0);
    // SAFETY: both may be written to.
    if unsafe { module_table(module, &mut slots, &mut count) } == 0 || slots.is_null() {
        return false;
    }
    for (number, function) in functions {
        if *number < count as usize {
            // SAFETY: the table has `count` places, each null or the place of a function pointer.
            unsafe {
                let slot = *slots.add(*number);
                if !slot.is_null() {
                    slot.write(*function);
                }
            }
        }
    }
    true
}

/// Hands over a wide text as UTF-8, cut where the room ends.
///
/// # Safety
///
/// `text` is null or ends with a zero.
unsafe fn with_narrow<R>(text: *const Wide, use_it: impl FnOnce(&[u8]) -> R) -> R {
    let (mut room, mut used) = ([0; LONGEST], 0);
    for place in (0..LONGEST).take_while(|_| !text.is_null()) {
        // SAFETY: everything before the zero may be read, and the zero itself.
        let wide = unsafe { *text.add(place) };
        let mut bytes = [0; 4];
        let encoded = char::from_u32(wide).unwrap_or(char::REPLACEMENT_CHARACTER).encode_utf8(&mut bytes);
        let Some(slot) = room.get_mut(used..used + encoded.len()).filter(|_| wide != 0) else { break };
        for (slot, byte) in slot.iter_mut().zip(encoded.bytes()) {
            *slot = byte;
        }
        used += encoded.len();
    }
    use_it(room.get(..used).unwrap_or_default())
}

/// Which domain a handle is; null is the default one.
fn domain_number(handle: *const c_void) -> u32 {
    handle as usize as u32
}

/// The window that a text opens, where there are windows.
fn window_of(text: &[u8]) -> Option<usize> {
    settings().filter(|settings| settings.windows.are_there()).and_then(|settings| settings.windows.find(text))
}

/// A handle of a registered string is its number, and in the lowest four bits the window it opens, plus one.
fn string_handle(number: u32, window: Option<usize>) -> *const c_void {
    ((number as usize) << 4 | window.map_or(0, |place| (place + 1) & 15)) as *const c_void
}

fn push(domain: u32, called: RangeName<'_>, window: Option<usize>) -> c_int {
    if !process::is_running() {
        return NOT_TRACKED;
    }
    let Some(log) = log::current() else { return NOT_TRACKED };
    if let Some(place) = window {
        gate::pushed(log, domain, place);
    }
    log.push(domain, called) as c_int
}

fn pop(domain: u32) -> c_int {
    if !process::is_running() {
        return NOT_TRACKED;
    }
    let Some(log) = log::current() else { return NOT_TRACKED };
    let Some(depth) = log.pop(domain) else { return NOT_TRACKED };
    while log.closes(domain, depth) {
        gate::close(log);
    }
    depth as c_int
}

fn start(domain: u32, called: RangeName<'_>) -> u64 {
    let handle = HANDLES.fetch_add(1, Ordering::Relaxed);
    if process::is_running()
        && let Some(log) = log::current()
    {
        log.start(domain, handle, called);
    }
    handle
}

fn end(handle: u64) {
    if process::is_running()
        && let Some(log) = log::current()
    {
        log.end(handle);
    }
}

/// Hands over what a range with attributes is called, and the window it opens.
///
/// # Safety
///
/// `attributes` is null or what NVTX passes.
unsafe fn with_message<R>(attributes: *const Attributes, use_it: impl FnOnce(RangeName<'_>, Option<usize>) -> R) -> R {
    // SAFETY: null, or attributes; a version that is shorter than ours has no message.
    let attributes = unsafe { attributes.as_ref() }.filter(|it| usize::from(it.size) >= size_of::<Attributes>());
    let Some(attributes) = attributes else { return use_it(RangeName::Text(&[]), None) };
    match attributes.message_type {
        MESSAGE_ASCII => {
            // SAFETY: a message of this type is a C string, for as long as the call lasts.
            let text = unsafe { system::text(attributes.message.cast(), LONGEST) };
            use_it(RangeName::Text(text), window_of(text))
        }
        MESSAGE_WIDE => {
            // SAFETY: a message of this type is a wide C string.
            unsafe { with_narrow(attributes.message.cast(), |text| use_it(RangeName::Text(text), window_of(text))) }
        }
        MESSAGE_REGISTERED => {
            let handle = attributes.message as usize;
            use_it(RangeName::Registered((handle >> 4) as u32), (handle & 15).checked_sub(1))
        }
        _ => use_it(RangeName::Text(&[]), None),
    }
}

// The functions NVTX calls. SAFETY of all: the pointers are what NVTX passes on from the application: attributes, and
// strings that end with a zero, valid for as long as the call lasts.

unsafe extern "C" fn range_start_ex(attributes: *const Attributes) -> u64 {
    // SAFETY: see above.
    unsafe { with_message(attributes, |called, _| start(0, called)) }
}

unsafe extern "C" fn range_start_a(text: *const c_char) -> u64 {
    // SAFETY: see above.
    start(0, RangeName::Text(unsafe { system::text(text, LONGEST) }))
}

unsafe extern "C" fn range_start_w(text: *const Wide) -> u64 {
    // SAFETY: see above.
    unsafe { with_narrow(text, |text| start(0, RangeName::Text(text))) }
}

unsafe extern "C" fn range_end(handle: u64) {
    end(handle);
}

unsafe extern "C" fn range_push_ex(attributes: *const Attributes) -> c_int {
    // SAFETY: see above.
    unsafe { with_message(attributes, |called, window| push(0, called, window)) }
}

unsafe extern "C" fn range_push_a(text: *const c_char) -> c_int {
    // SAFETY: see above.
    let text = unsafe { system::text(text, LONGEST) };
    push(0, RangeName::Text(text), window_of(text))
}

unsafe extern "C" fn range_push_w(text: *const Wide) -> c_int {
    // SAFETY: see above.
    unsafe { with_narrow(text, |text| push(0, RangeName::Text(text), window_of(text))) }
}

unsafe extern "C" fn range_pop() -> c_int {
    pop(0)
}

unsafe extern "C" fn domain_range_start_ex(domain: *const c_void, attributes: *const Attributes) -> u64 {
    // SAFETY: see above.
    unsafe { with_message(attributes, |called, _| start(domain_number(domain), called)) }
}

unsafe extern "C" fn domain_range_end(_: *const c_void, handle: u64) {
    end(handle);
}

unsafe extern "C" fn domain_range_push_ex(domain: *const c_void, attributes: *const Attributes) -> c_int {
    // SAFETY: see above.
    unsafe { with_message(attributes, |called, window| push(domain_number(domain), called, window)) }
}

unsafe extern "C" fn domain_range_pop(domain: *const c_void) -> c_int {
    pop(domain_number(domain))
}

fn register(text: &[u8]) -> *const c_void {
    let number = STRINGS.fetch_add(1, Ordering::Relaxed);
    catalogue::add(catalogue::Kind::Registered, number, text);
    string_handle(number, window_of(text))
}

unsafe extern "C" fn register_string_a(_: *const c_void, text: *const c_char) -> *const c_void {
    // SAFETY: see above.
    register(unsafe { system::text(text, LONGEST) })
}

unsafe extern "C" fn register_string_w(_: *const c_void, text: *const Wide) -> *const c_void {
    // SAFETY: see above.
    unsafe { with_narrow(text, register) }
}

fn create_domain(text: &[u8]) -> *const c_void {
    let number = DOMAINS.fetch_add(1, Ordering::Relaxed);
    catalogue::add(catalogue::Kind::Domain, number, text);
    number as usize as *const c_void
}

unsafe extern "C" fn domain_create_a(text: *const c_char) -> *const c_void {
    // SAFETY: see above.
    create_domain(unsafe { system::text(text, LONGEST) })
}

unsafe extern "C" fn domain_create_w(text: *const Wide) -> *const c_void {
    // SAFETY: see above.
    unsafe { with_narrow(text, create_domain) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::offset_of;

    #[test]
    fn attributes_are_laid_out_as_published() {
        assert_eq!(size_of::<Attributes>(), 48);
        assert_eq!(offset_of!(Attributes, message_type), 32);
        assert_eq!(offset_of!(Attributes, message), 40);
    }

    #[test]
    fn wide_texts_become_utf_8() {
        let text = ['S', '\u{fc}', '\u{1f600}'].map(|c| c as u32);
        let wide = [text[0], text[1], text[2], 0];
        // SAFETY: it ends with a zero.
        unsafe { with_narrow(wide.as_ptr(), |text| assert_eq!(text, "S\u{fc}\u{1f600}".as_bytes())) };
    }
}
