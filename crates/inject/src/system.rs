//! The few functions of libc and the loader that are used, and safe ways to call them.

use core::ffi::{c_char, c_int, c_long, c_void};
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicU32, Ordering};

#[cfg(injected_library)]
#[link(name = "c")]
unsafe extern "C" {}
// Before glibc 2.34 these two held what libc holds now; where libc has it all, the linker leaves them out.
#[cfg(injected_library)]
#[link(name = "dl")]
unsafe extern "C" {}
#[cfg(injected_library)]
#[link(name = "pthread")]
unsafe extern "C" {}

#[repr(C)]
struct TimeSpec {
    seconds: i64,
    nanoseconds: i64,
}

/// `sigset_t` of glibc.
#[repr(C, align(8))]
struct SignalSet([u8; 128]);

/// `struct sigaction` of glibc.
#[repr(C)]
struct SignalAction {
    handler: usize,
    mask: SignalSet,
    flags: c_int,
    restorer: usize,
}

pub(crate) type SignalHandler = extern "C" fn(c_int, *mut c_void, *mut c_void);

type ThreadMain = extern "C" fn(*mut c_void) -> *mut c_void;

/// Called for an object that the loader has loaded, with its `dl_phdr_info`.
pub(crate) type ObjectVisitor = unsafe extern "C" fn(*const c_void, usize, *mut c_void) -> c_int;

mod c {
    use super::{ObjectVisitor, SignalAction, SignalSet, ThreadMain, TimeSpec};
    use core::ffi::{c_char, c_int, c_long, c_uint, c_void};

    unsafe extern "C" {
        pub(super) fn getenv(name: *const c_char) -> *const c_char;
        pub(super) fn open(path: *const c_char, flags: c_int, ...) -> c_int;
        pub(super) fn write(file: c_int, bytes: *const c_void, count: usize) -> isize;
        pub(super) fn read(file: c_int, bytes: *mut c_void, count: usize) -> isize;
        pub(super) fn close(file: c_int) -> c_int;
        pub(super) fn getpid() -> c_int;
        pub(super) fn getppid() -> c_int;
        pub(super) fn unlink(path: *const c_char) -> c_int;
        pub(super) fn sigaction(signal: c_int, new: *const SignalAction, old: *mut SignalAction) -> c_int;
        pub(super) fn __errno_location() -> *mut c_int;
        pub(super) fn syscall(number: c_long, ...) -> c_long;
        pub(super) fn clock_gettime(clock: c_int, time: *mut TimeSpec) -> c_int;
        pub(super) fn nanosleep(wanted: *const TimeSpec, left: *mut TimeSpec) -> c_int;
        pub(super) fn mmap(at: *mut c_void, size: usize, may: c_int, how: c_int, file: c_int, from: i64)
        -> *mut c_void;
        pub(super) fn munmap(at: *mut c_void, size: usize) -> c_int;
        pub(super) fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
        pub(super) fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
        pub(super) fn pthread_create(
            thread: *mut usize,
            attributes: *const c_void,
            main: ThreadMain,
            argument: *mut c_void,
        ) -> c_int;
        pub(super) fn pthread_detach(thread: usize) -> c_int;
        pub(super) fn pthread_setname_np(thread: usize, name: *const c_char) -> c_int;
        pub(super) fn pthread_sigmask(how: c_int, set: *const SignalSet, old: *mut SignalSet) -> c_int;
        pub(super) fn sigfillset(set: *mut SignalSet) -> c_int;
        pub(super) fn pthread_key_create(key: *mut c_uint, destructor: Option<extern "C" fn(*mut c_void)>) -> c_int;
        pub(super) fn pthread_getspecific(key: c_uint) -> *mut c_void;
        pub(super) fn pthread_setspecific(key: c_uint, value: *const c_void) -> c_int;
        pub(super) fn pthread_atfork(
            prepare: Option<extern "C" fn()>,
            parent: Option<extern "C" fn()>,
            child: Option<extern "C" fn()>,
        ) -> c_int;
        pub(super) fn __cxa_atexit(
            function: extern "C" fn(*mut c_void),
            argument: *mut c_void,
            library: *mut c_void,
        ) -> c_int;
        pub(super) fn dl_iterate_phdr(visit: ObjectVisitor, data: *mut c_void) -> c_int;
        pub(super) fn mprotect(at: *mut c_void, size: usize, may: c_int) -> c_int;
        pub(super) fn getpagesize() -> c_int;
        #[cfg(injected_library)]
        pub(super) fn abort() -> !;
    }
}

const CLOCK_REALTIME: c_int = 0;
const CLOCK_MONOTONIC: c_int = 1;
const O_WRONLY: c_int = 1;
const O_CREAT: c_int = 0o100;
const O_EXCL: c_int = 0o200;
const O_CLOEXEC: c_int = 0o2_000_000;
const PROT_READ: c_int = 1;
const PROT_READ_WRITE: c_int = 3;
const MAP_PRIVATE_ANONYMOUS: c_int = 0x22;
const SIG_SETMASK: c_int = 2;
const SA_SIGINFO: c_int = 4;
const SA_RESTART: c_int = 0x1000_0000;
const RTLD_LAZY: c_int = 1;
const RTLD_NOLOAD: c_int = 4;
#[cfg(target_arch = "x86_64")]
const SYS_GETTID: c_long = 186;
#[cfg(not(target_arch = "x86_64"))]
const SYS_GETTID: c_long = 178;
#[cfg(target_arch = "x86_64")]
const SYS_FUTEX: c_long = 202;
#[cfg(not(target_arch = "x86_64"))]
const SYS_FUTEX: c_long = 98;
const FUTEX_WAIT_PRIVATE: c_int = 128;
const FUTEX_WAKE_PRIVATE: c_int = 129;

/// A text of C as bytes, without its zero, cut at `most`.
///
/// # Safety
///
/// `text` is null or ends with a zero, and stays as it is for `'a`.
pub(crate) unsafe fn text<'a>(text: *const c_char, most: usize) -> &'a [u8] {
    if text.is_null() {
        return &[];
    }
    let mut length = 0;
    // SAFETY: every byte before the zero may be read.
    while length < most && unsafe { *text.add(length) } != 0 {
        length += 1;
    }
    // SAFETY: as many bytes as were just read.
    unsafe { core::slice::from_raw_parts(text.cast(), length) }
}

/// A variable of the environment, as it is now.
pub(crate) fn variable(name: &core::ffi::CStr) -> &[u8] {
    // SAFETY: the name is a C string; the value is one too, or null. The application may replace it later, so callers
    // copy it at once.
    unsafe { text(c::getenv(name.as_ptr()), 4096) }
}

/// Opens a new file for writing; `None` where there is one of that name, or it may not be made.
pub(crate) fn create(path: &core::ffi::CStr) -> Option<c_int> {
    let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
    // SAFETY: the path is a C string, and the mode is passed as the variable argument that O_CREAT asks for.
    let file = unsafe { c::open(path.as_ptr(), flags, 0o644 as c_int) };
    (file >= 0).then_some(file)
}

/// Writes all bytes; how many could not be written.
pub(crate) fn write(file: c_int, mut bytes: &[u8]) -> usize {
    let mut refusals = 0;
    while !bytes.is_empty() {
        // SAFETY: the bytes may be read, and the descriptor is only a number.
        let written = unsafe { c::write(file, bytes.as_ptr().cast(), bytes.len()) };
        match usize::try_from(written) {
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            // Signals are blocked on the writer thread, so that a refusal is final but for rare exceptions.
            Err(_) if refusals < 3 => refusals += 1,
            Err(_) => break,
        }
    }
    bytes.len()
}

/// Reads a small file into `room`; what was read.
pub(crate) fn read_small<'r>(path: &core::ffi::CStr, room: &'r mut [u8]) -> &'r [u8] {
    // SAFETY: the path is a C string.
    let file = unsafe { c::open(path.as_ptr(), O_CLOEXEC) };
    if file < 0 {
        return &[];
    }
    // SAFETY: the room may be written to for as many bytes as it has.
    let count = unsafe { c::read(file, room.as_mut_ptr().cast(), room.len()) };
    close(file);
    room.get(..usize::try_from(count).unwrap_or(0)).unwrap_or_default()
}

/// Closes a file.
pub(crate) fn close(file: c_int) {
    // SAFETY: a descriptor is only a number; this one is ours.
    unsafe { c::close(file) };
}

/// This process and its parent.
pub(crate) fn processes() -> (u32, u32) {
    // SAFETY: neither has conditions.
    unsafe { (c::getpid() as u32, c::getppid() as u32) }
}

/// Removes a file.
pub(crate) fn remove(path: &core::ffi::CStr) {
    // SAFETY: the path is a C string.
    unsafe { c::unlink(path.as_ptr()) };
}

/// Handles a signal that nobody handles; whether that is so.
pub(crate) fn handle(signal: c_int, handler: SignalHandler) -> bool {
    let set = SignalSet([0; 128]);
    let mut before = SignalAction { handler: 0, mask: set, flags: 0, restorer: 0 };
    let ours = SignalAction {
        handler: handler as usize,
        mask: SignalSet([0; 128]),
        flags: SA_SIGINFO | SA_RESTART,
        restorer: 0,
    };
    // SAFETY: both may be read and written to, and the handler stays where it is.
    unsafe {
        c::sigaction(signal, null(), &mut before) == 0
            && (before.handler == 0 || before.handler == ours.handler)
            && c::sigaction(signal, &ours, null_mut()) == 0
    }
}

/// Does something without a change to what the last function of libc has failed for.
pub(crate) fn keeping_error(does: impl FnOnce()) {
    // SAFETY: every thread has one, for as long as it lives.
    unsafe {
        let error = *c::__errno_location();
        does();
        *c::__errno_location() = error;
    }
}

/// This thread.
pub(crate) fn thread() -> u32 {
    // SAFETY: the call takes no arguments and has no conditions.
    unsafe { c::syscall(SYS_GETTID) as u32 }
}

fn clock(clock: c_int) -> u64 {
    let mut time = TimeSpec { seconds: 0, nanoseconds: 0 };
    // SAFETY: the time may be written to.
    unsafe { c::clock_gettime(clock, &mut time) };
    (time.seconds as u64).wrapping_mul(1_000_000_000).wrapping_add(time.nanoseconds as u64)
}

/// The monotonic clock, in nanoseconds.
pub(crate) fn monotonic() -> u64 {
    clock(CLOCK_MONOTONIC)
}

/// The wall clock, in nanoseconds since 1970: the one CUPTI reports in on Linux, so that calls, ranges and device work
/// need no conversion.
#[inline]
pub(crate) fn now() -> u64 {
    clock(CLOCK_REALTIME)
}

fn time(milliseconds: u32) -> TimeSpec {
    TimeSpec { seconds: i64::from(milliseconds / 1000), nanoseconds: i64::from(milliseconds % 1000) * 1_000_000 }
}

/// Sleeps on the calling thread.
pub(crate) fn sleep(milliseconds: u32) {
    // SAFETY: the time may be read, and nobody asks what was left.
    unsafe { c::nanosleep(&time(milliseconds), null_mut()) };
}

/// Sleeps on the calling thread until `bell` is no longer `heard`, at most so long.
pub(crate) fn sleep_until_rung(bell: &AtomicU32, heard: u32, milliseconds: u32) {
    // SAFETY: the word and the time may be read for as long as the call lasts.
    unsafe { c::syscall(SYS_FUTEX, bell.as_ptr(), FUTEX_WAIT_PRIVATE, heard, &time(milliseconds)) };
}

/// Wakes whoever sleeps until `bell` is rung.
pub(crate) fn ring(bell: &AtomicU32) {
    bell.fetch_add(1, Ordering::Release);
    // SAFETY: the word is only an address to it.
    unsafe { c::syscall(SYS_FUTEX, bell.as_ptr(), FUTEX_WAKE_PRIVATE, 1 as c_int) };
}

/// Memory of its own, all zero; null where there is none.
pub(crate) fn memory(size: usize) -> *mut u8 {
    // SAFETY: anonymous memory at no particular place touches nothing that is there.
    let memory = unsafe { c::mmap(null_mut(), size, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS, -1, 0) };
    if memory as isize == -1 { null_mut() } else { memory.cast() }
}

/// Gives memory back.
///
/// # Safety
///
/// It is from [`memory`], of that size, and nobody uses it any more.
pub(crate) unsafe fn release(memory: *mut u8, size: usize) {
    // SAFETY: by the contract of this function.
    unsafe { c::munmap(memory.cast(), size) };
}

/// Bytes of a page.
pub(crate) fn page() -> usize {
    // SAFETY: has no conditions.
    usize::try_from(unsafe { c::getpagesize() }).unwrap_or(4096)
}

/// Does something while the page at an address may be written to, which otherwise may only be read; whether it could.
///
/// # Safety
///
/// The page is the loader's, mapped and only read by all others.
pub(crate) unsafe fn while_writable(page_start: usize, does: impl FnOnce()) -> bool {
    let change = |may| {
        // SAFETY: by the contract.
        unsafe { c::mprotect(page_start as *mut c_void, page(), may) == 0 }
    };
    let writable = change(PROT_READ_WRITE);
    if writable {
        does();
        change(PROT_READ);
    }
    writable
}

/// Calls `visit` for every object that is loaded, while none can be loaded or unloaded.
///
/// # Safety
///
/// It can handle what the loader passes, and asks nothing of the loader.
pub(crate) unsafe fn visit_objects(visit: ObjectVisitor) {
    // SAFETY: by the contract.
    unsafe { c::dl_iterate_phdr(visit, null_mut()) };
}

/// A library that is loaded already; null where it is not.
pub(crate) fn loaded(name: &core::ffi::CStr) -> *mut c_void {
    // SAFETY: the name is a C string; nothing is loaded, so no initialiser runs.
    unsafe { c::dlopen(name.as_ptr(), RTLD_LAZY | RTLD_NOLOAD) }
}

/// Loads a library; null where that fails.
///
/// # Safety
///
/// Its initialisers may run in this process.
pub(crate) unsafe fn load(path: &core::ffi::CStr) -> *mut c_void {
    // SAFETY: the path is a C string; the initialisers are the caller's concern.
    unsafe { c::dlopen(path.as_ptr(), RTLD_LAZY) }
}

/// The functions of a library that are used, as a structure, and `of`, which finds all of them or none. Each gives back a code.
macro_rules! functions {
    ($(#[$meta:meta])* $library:ident { $($field:ident: $symbol:literal ($($argument:ty),*);)+ }) => {
        $(#[$meta])*
        pub(crate) struct $library {
            $(pub(crate) $field: unsafe extern "C" fn($($argument),*) -> core::ffi::c_int,)+
        }

        impl $library {
            fn of(library: *mut core::ffi::c_void) -> Option<Self> {
                Some(Self { $($field: {
                    let symbol = crate::system::symbol(library, $symbol);
                    // SAFETY: null is `None` of an optional function; otherwise the library has a function of this type under this
                    // name, by its headers.
                    unsafe { core::mem::transmute::<*mut core::ffi::c_void, Option<_>>(symbol) }?
                },)+ })
            }
        }
    };
}
pub(crate) use functions;

/// A symbol of a library; null where it has none of that name.
pub(crate) fn symbol(library: *mut c_void, name: &core::ffi::CStr) -> *mut c_void {
    // SAFETY: the handle is from `load` or `loaded`, and the name is a C string.
    unsafe { c::dlsym(library, name.as_ptr()) }
}

/// Starts a thread that no signal of the application is delivered to.
pub(crate) fn start_thread(main: ThreadMain, argument: *mut c_void) -> bool {
    let (mut all, mut before) = (SignalSet([0; 128]), SignalSet([0; 128]));
    let mut thread = 0;
    // SAFETY: sets and thread may be written to. The mask of this thread is put back, whatever becomes of the new one.
    unsafe {
        c::sigfillset(&mut all);
        let masked = c::pthread_sigmask(SIG_SETMASK, &all, &mut before) == 0;
        let started = c::pthread_create(&mut thread, null(), main, argument) == 0;
        if masked {
            c::pthread_sigmask(SIG_SETMASK, &before, null_mut());
        }
        if started {
            c::pthread_setname_np(thread, c"llm-perf".as_ptr());
            c::pthread_detach(thread);
        }
        started
    }
}

/// A value of each thread, with a function that gets it when the thread ends.
pub(crate) fn thread_key(destructor: extern "C" fn(*mut c_void)) -> Option<u32> {
    let mut key = 0;
    // SAFETY: the key may be written to, and the destructor takes what `set_thread_value` stores.
    (unsafe { c::pthread_key_create(&mut key, Some(destructor)) } == 0).then_some(key)
}

/// The value of this thread; null where it has none.
#[inline]
pub(crate) fn thread_value(key: u32) -> *mut c_void {
    // SAFETY: the key is from `thread_key`.
    unsafe { c::pthread_getspecific(key) }
}

/// Sets the value of this thread.
pub(crate) fn set_thread_value(key: u32, value: *mut c_void) -> bool {
    // SAFETY: the key is from `thread_key`.
    unsafe { c::pthread_setspecific(key, value) == 0 }
}

/// Has a function called in the child of every fork.
pub(crate) fn at_fork(child: extern "C" fn()) {
    // SAFETY: the function stays where it is: a library that CUDA or NVTX has loaded is not unloaded.
    unsafe { c::pthread_atfork(None, None, Some(child)) };
}

/// Has a function called when the process leaves through `exit`.
pub(crate) fn at_exit(function: extern "C" fn(*mut c_void)) {
    // SAFETY: the function stays where it is, see `at_fork`. No library is named, so that it runs at exit only.
    unsafe { c::__cxa_atexit(function, null_mut(), null_mut()) };
}

/// Ends the process.
#[cfg(injected_library)]
pub(crate) fn abort(message: &[u8]) -> ! {
    write(2, message);
    // SAFETY: has no conditions.
    unsafe { c::abort() }
}
