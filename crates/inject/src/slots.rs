//! Launches of CUDA graphs, seen without CUPTI: where libraries of the process call a function that launches graphs, the slot that the
//! loader has filled with its address gets ours instead, which calls it.
//!
//! Only slots that the loader resolves by the function's name are changed, each to a function of the same type, and never back: when
//! nothing is recorded, ours only calls the function. What calls through a pointer that it has looked up by itself, as programs with a
//! runtime of their own inside do, is not seen.

use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use crate::system;
use crate::timing::{self, FUNCTIONS};

type Launch = unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int;

/// Functions that slots led to before: the same name may be in several libraries.
const MOST: usize = 8;
// SAFETY: null pointers and zeroes.
static ORIGINALS: [Original; MOST] = unsafe { core::mem::zeroed() };
const OURS: [Launch; MOST] =
    [launch::<0>, launch::<1>, launch::<2>, launch::<3>, launch::<4>, launch::<5>, launch::<6>, launch::<7>];

struct Original {
    function: AtomicPtr<c_void>,
    /// The place of its name in [`FUNCTIONS`].
    name: AtomicU32,
}

/// Slots that lead to us.
static LED: AtomicUsize = AtomicUsize::new(0);

/// What a slot leads to instead of the function at place `N`.
///
/// # Safety
///
/// Called as that function.
unsafe extern "C" fn launch<const N: usize>(graph: *mut c_void, stream: *mut c_void) -> c_int {
    /// `cudaErrorInitializationError`, of a call that nobody can make: a slot leads here only after its function is known.
    const NOT_INITIALIZED: c_int = 3;
    let Some(original) = ORIGINALS.get(N) else { return NOT_INITIALIZED };
    let function = original.function.load(Ordering::Acquire);
    // SAFETY: a null pointer is `None`; otherwise it is what the slot held, a function of this type by its name.
    let Some(function) = (unsafe { core::mem::transmute::<*mut c_void, Option<Launch>>(function) }) else {
        return NOT_INITIALIZED;
    };
    let timed = timing::begin(original.name.load(Ordering::Relaxed), graph, stream);
    // SAFETY: by the contract.
    let code = unsafe { function(graph, stream) };
    if let Some(timed) = timed {
        timed.end(code == 0);
    }
    code
}

/// Leads all slots of the process to us that can be; whether there are any.
pub(crate) fn lead() -> bool {
    // SAFETY: it reads what the loader passes, and asks nothing of it.
    unsafe { system::visit_objects(visit) };
    LED.load(Ordering::Relaxed) > 0
}

/// `dl_phdr_info`, as far as it is looked at.
#[repr(C)]
struct Info {
    base: usize,
    name: *const c_char,
    headers: *const Header,
    count: u16,
}

/// `Elf64_Phdr`.
#[repr(C)]
struct Header {
    kind: u32,
    flags: u32,
    offset: usize,
    address: usize,
    physical: usize,
    file_size: usize,
    size: usize,
    align: usize,
}

const LOADED: u32 = 1;
const DYNAMIC: u32 = 2;
const READ_ONLY_AFTER_RELOCATION: u32 = 0x6474_e552;
const WRITABLE: u32 = 2;

/// `Elf64_Rela`.
#[repr(C)]
struct Relocation {
    offset: usize,
    info: u64,
    added: i64,
}

/// `Elf64_Sym`.
#[repr(C)]
struct Symbol {
    name: u32,
    info: [u8; 2],
    section: u16,
    value: usize,
    size: usize,
}

/// Kinds of relocations that fill a slot with the address of a function: in data, in the offset table, and for calls.
#[cfg(target_arch = "x86_64")]
const ADDRESSES: [u32; 3] = [1, 6, 7];
#[cfg(not(target_arch = "x86_64"))]
const ADDRESSES: [u32; 3] = [257, 1025, 1026];

/// An object and its tables.
struct Object<'a> {
    base: usize,
    headers: &'a [Header],
    symbols: usize,
    texts: usize,
}

/// # Safety
///
/// `info` is the loader's.
unsafe extern "C" fn visit(info: *const c_void, _: usize, _: *mut c_void) -> c_int {
    // Tags of the dynamic section: size of the relocations of calls, texts, symbols, other relocations, their size, those of calls, and
    // how many of the others name no symbol.
    const TAGS: [usize; 7] = [2, 5, 6, 7, 8, 23, 0x6fff_fff9];
    // SAFETY: by the contract.
    let Some(info) = (unsafe { info.cast::<Info>().as_ref() }) else { return 0 };
    // SAFETY: the loader has so many.
    let headers = unsafe { core::slice::from_raw_parts(info.headers, usize::from(info.count)) };
    let Some(dynamic) = headers.iter().find(|header| header.kind == DYNAMIC) else { return 0 };
    let mut tags = [0; 7];
    let mut entry = info.base.wrapping_add(dynamic.address) as *const [usize; 2];
    loop {
        // SAFETY: the section is in memory and ends with a tag of zero.
        let [tag, value] = unsafe { entry.read() };
        if tag == 0 {
            break;
        }
        if let Some((_, slot)) = TAGS.iter().zip(&mut tags).find(|(wanted, _)| **wanted == tag) {
            *slot = value;
        }
        // SAFETY: it was not the last.
        entry = unsafe { entry.add(1) };
    }
    let [calls_size, texts, symbols, others, others_size, calls, relative] = tags;
    // The loader has made addresses of these, but in the few objects that it does not write to.
    let address = |value: usize| if value < info.base { value.wrapping_add(info.base) } else { value };
    if texts == 0 || symbols == 0 {
        return 0;
    }
    let object = Object { base: info.base, headers, symbols: address(symbols), texts: address(texts) };
    // Those that name no symbol come first.
    let unnamed = relative.saturating_mul(size_of::<Relocation>());
    for (table, size) in [(calls, calls_size), (others.wrapping_add(unnamed), others_size.saturating_sub(unnamed))] {
        let count = size / size_of::<Relocation>();
        if table != 0 && count > 0 {
            // SAFETY: the table is in memory and has so many.
            unsafe { core::slice::from_raw_parts(address(table) as *const Relocation, count) }
                .iter()
                .for_each(|relocation| object.relocated(relocation));
        }
    }
    0
}

impl Object<'_> {
    fn relocated(&self, relocation: &Relocation) {
        if !ADDRESSES.contains(&(relocation.info as u32)) || relocation.added != 0 {
            return;
        }
        let symbol = (self.symbols as *const Symbol).wrapping_add((relocation.info >> 32) as usize);
        // SAFETY: a relocation names a symbol of the object's table, which is in memory, and its text.
        let (symbol, name) = unsafe {
            let symbol = &*symbol;
            (symbol, system::text((self.texts as *const c_char).wrapping_add(symbol.name as usize), 32))
        };
        // A function of the object's own is not one that it calls.
        let Some(name) = FUNCTIONS.iter().position(|wanted| wanted.to_bytes() == name).filter(|_| symbol.section == 0)
        else {
            return;
        };
        let slot = self.base.wrapping_add(relocation.offset);
        // SAFETY: the loader has written an address there.
        let value = unsafe { (*(slot as *const AtomicUsize)).load(Ordering::Acquire) };
        // One that leads into the object itself is resolved at the first call.
        if value == 0 || self.segment(value, |header| header.kind == LOADED).is_some() || is_ours(value) {
            return;
        }
        if let Some(ours) = instead_of(value as *mut c_void, name as u32) {
            self.write(slot, ours as usize);
        }
    }

    /// The segment of a kind that an address is in.
    fn segment(&self, address: usize, is: impl Fn(&&Header) -> bool) -> Option<&Header> {
        let has = |header: &&Header| address.wrapping_sub(self.base.wrapping_add(header.address)) < header.size;
        self.headers.iter().filter(is).find(has)
    }

    fn write(&self, slot: usize, value: usize) {
        let store = || {
            // SAFETY: the slot is aligned, and may be written to here.
            unsafe { (*(slot as *const AtomicUsize)).store(value, Ordering::Release) };
            LED.fetch_add(1, Ordering::Relaxed);
        };
        let page = !(system::page() - 1);
        // The loader protects whole pages: the last one, of which only a part is meant, stays writable.
        let protected = self
            .segment(slot, |header| header.kind == READ_ONLY_AFTER_RELOCATION)
            .is_some_and(|header| slot < self.base.wrapping_add(header.address).wrapping_add(header.size) & page);
        if protected {
            // SAFETY: it is a page that the loader only reads from here on.
            unsafe { system::while_writable(slot & page, store) };
        } else if self.segment(slot, |header| header.kind == LOADED && header.flags & WRITABLE != 0).is_some() {
            store();
        }
    }
}

fn is_ours(value: usize) -> bool {
    OURS.iter().any(|ours| *ours as usize == value)
}

/// Which of our functions stands for one of the process; `None` where there are too many.
fn instead_of(function: *mut c_void, name: u32) -> Option<Launch> {
    let place = ORIGINALS.iter().position(|original| {
        let known = original.function.load(Ordering::Acquire);
        known.is_null() || (known == function && original.name.load(Ordering::Relaxed) == name)
    })?;
    let original = ORIGINALS.get(place)?;
    original.name.store(name, Ordering::Relaxed);
    original.function.store(function, Ordering::Release);
    OURS.get(place).copied()
}
