//! The log of one thread: a ring that its thread writes and the writer thread reads, without locks.
//!
//! An entry is four words and, where a range is named by a text, the text. An entry that does not fit is dropped and
//! counted; pushes and pops carry their depth, so that a reader can tell which of a pair is missing.

use core::cell::{Cell, UnsafeCell};
use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use wire::Counter;

use crate::system;

/// Words of a ring: half a mebibyte, some 16,000 launches, of which the writer fetches all every few milliseconds.
const WORDS: u32 = 1 << 16;
/// Threads that can have a log at the same time; what bounds the memory.
const MOST_LOGS: usize = 128;
/// Domains with a depth of their own; the others share the last one.
const DOMAINS: usize = 64;
/// Longest text of a range.
const LONGEST: usize = 1024;
/// Windows that a thread can have open.
const WINDOWS: usize = 4;

/// Kinds of entries.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Skip = 1,
    Call = 2,
    Push = 3,
    Pop = 4,
    Start = 5,
    End = 6,
    Node = 7,
    Window = 8,
}

/// An entry, as it is read. What `number`, `first` and `second` mean depends on the kind.
pub(crate) struct Entry<'a> {
    pub(crate) kind: u8,
    pub(crate) number: u32,
    pub(crate) time: u64,
    pub(crate) first: u64,
    pub(crate) second: u64,
    pub(crate) text: &'a [u8],
}

/// What a range is called.
#[derive(Clone, Copy)]
pub(crate) enum RangeName<'a> {
    Text(&'a [u8]),
    Registered(u32),
}

/// The log of one thread. Starts as zeroes.
pub(crate) struct Log {
    /// Words written and words read, each by one side only.
    written: AtomicU32,
    read: AtomicU32,
    /// Of the thread.
    pub(crate) thread: Cell<u32>,
    generation: Cell<u32>,
    /// The recording that its depths are of.
    session: Cell<u32>,
    ended: AtomicBool,
    /// Set while an entry is written: a signal handler that comes between is not let in.
    busy: Cell<bool>,
    /// Calls of the runtime that this thread is in.
    pub(crate) inside_runtime: Cell<u32>,
    depths: [Cell<u32>; DOMAINS],
    /// Domain plus one, and depth, of the ranges whose pop closes a window.
    closing: [Cell<(u32, u32)>; WINDOWS],
    ring: UnsafeCell<[u64; WORDS as usize]>,
}

static LOGS: [AtomicPtr<Log>; MOST_LOGS] = [const { AtomicPtr::new(null_mut()) }; MOST_LOGS];
static KEY: AtomicU32 = AtomicU32::new(u32::MAX);
static GENERATION: AtomicU32 = AtomicU32::new(1);
/// Recordings so far: what was open in an earlier one is not known to be.
static SESSION: AtomicU32 = AtomicU32::new(0);
/// Entries that found no log, and that did not fit.
static WITHOUT_LOG: AtomicU64 = AtomicU64::new(0);
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Makes ready for logs; once per process.
pub(crate) fn prepare() -> bool {
    if KEY.load(Ordering::Relaxed) == u32::MAX {
        match system::thread_key(end) {
            Some(key) => KEY.store(key, Ordering::Release),
            None => return false,
        }
    }
    true
}

/// In the child of a fork: the logs are the parent's, and their threads are not here.
pub(crate) fn forget_all() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    for slot in &LOGS {
        slot.store(null_mut(), Ordering::Relaxed);
    }
    WITHOUT_LOG.store(0, Ordering::Relaxed);
    DROPPED.store(0, Ordering::Relaxed);
}

/// A recording starts: what is left in the logs is of an earlier one. For the writer thread only.
pub(crate) fn start_session() {
    SESSION.fetch_add(1, Ordering::Relaxed);
    drain_all(|_, _| {});
    DROPPED.store(0, Ordering::Relaxed);
}

/// What logs lack.
pub(crate) fn counts() -> [(Counter, u64); 2] {
    let [without, dropped] = [&WITHOUT_LOG, &DROPPED].map(|count| count.load(Ordering::Relaxed));
    [(Counter::ThreadsWithoutLog, without), (Counter::HostRecordsDropped, dropped)]
}

/// When a thread ends: its log is given back once it is read.
extern "C" fn end(log: *mut c_void) {
    // SAFETY: the value of the key is a log, which the writer thread does not give back before this is set.
    if let Some(log) = unsafe { log.cast::<Log>().as_ref() }
        && log.generation.get() == GENERATION.load(Ordering::Relaxed)
    {
        log.ended.store(true, Ordering::Release);
    }
}

/// The log of this thread; `None`, and counted, where it can have none.
#[inline]
pub(crate) fn current() -> Option<&'static Log> {
    let key = KEY.load(Ordering::Acquire);
    if key == u32::MAX {
        return None;
    }
    // SAFETY: the value of the key is null or a log that is in use for as long as this thread lives.
    let log = unsafe { system::thread_value(key).cast::<Log>().as_ref() };
    match log {
        Some(log) if log.generation.get() == GENERATION.load(Ordering::Relaxed) => {
            if log.session.get() != SESSION.load(Ordering::Relaxed) {
                log.forget();
            }
            Some(log)
        }
        _ => create(key),
    }
}

#[cold]
fn create(key: u32) -> Option<&'static Log> {
    let memory: *mut Log = system::memory(size_of::<Log>()).cast();
    // SAFETY: null, or zeroed memory of that size for nobody else; all zero is a log with nothing in it.
    let made = unsafe { memory.as_ref() };
    let placed = made.and_then(|log| {
        log.thread.set(system::thread());
        log.generation.set(GENERATION.load(Ordering::Relaxed));
        log.session.set(SESSION.load(Ordering::Relaxed));
        let free = |slot: &&AtomicPtr<Log>| {
            slot.compare_exchange(null_mut(), memory, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        let slot = LOGS.iter().find(free)?;
        if !system::set_thread_value(key, memory.cast()) {
            slot.store(null_mut(), Ordering::Release);
            return None;
        }
        Some(log)
    });
    if placed.is_none() {
        WITHOUT_LOG.fetch_add(1, Ordering::Relaxed);
        if !memory.is_null() {
            // SAFETY: it was made here and nobody else knows it.
            unsafe { system::release(memory.cast(), size_of::<Log>()) };
        }
    }
    placed
}

impl Log {
    /// What was open in an earlier recording.
    #[cold]
    fn forget(&self) {
        self.session.set(SESSION.load(Ordering::Relaxed));
        self.inside_runtime.set(0);
        self.depths.iter().for_each(|depth| depth.set(0));
        self.closing.iter().for_each(|closing| closing.set((0, 0)));
    }

    /// A call that launches work, or waits for it.
    #[inline]
    pub(crate) fn call(&self, function: u32, start: u64, duration: u64, correlation: u32) {
        self.write(Kind::Call, function, start, duration, u64::from(correlation), &[]);
    }

    /// The pop of the next range that is pushed in a domain closes a window.
    pub(crate) fn close_with_next(&self, domain: u32) {
        if let Some(depth) = self.depth(domain)
            && let Some(free) = self.closing.iter().find(|closing| closing.get().0 == 0)
        {
            free.set((domain.wrapping_add(1), depth.get()));
        }
    }

    /// Whether the pop that left so many ranges open in a domain closes a window.
    pub(crate) fn closes(&self, domain: u32, depth: u32) -> bool {
        let closes = |closing: &&Cell<(u32, u32)>| closing.get() == (domain.wrapping_add(1), depth);
        let found = self.closing.iter().find(closes);
        found.inspect(|closing| closing.set((0, 0))).is_some()
    }

    /// A range is pushed; how many were open before.
    pub(crate) fn push(&self, domain: u32, called: RangeName<'_>) -> u32 {
        let Some(slot) = self.depth(domain) else { return 0 };
        let depth = slot.get();
        slot.set(depth.wrapping_add(1));
        // The time is taken last, so that nothing done here counts as the range's.
        let (text, registered) = parts(called);
        self.write(Kind::Push, domain, system::now(), u64::from(depth), registered, text);
        depth
    }

    /// A range is popped; how many stay open, or `None` where none was.
    pub(crate) fn pop(&self, domain: u32) -> Option<u32> {
        let now = system::now();
        let slot = self.depth(domain)?;
        let depth = slot.get().checked_sub(1)?;
        slot.set(depth);
        self.write(Kind::Pop, domain, now, u64::from(depth), 0, &[]);
        Some(depth)
    }

    /// A range is started.
    pub(crate) fn start(&self, domain: u32, handle: u64, called: RangeName<'_>) {
        let (text, registered) = parts(called);
        self.write(Kind::Start, domain, system::now(), handle, registered, text);
    }

    /// A range is ended.
    pub(crate) fn end(&self, handle: u64) {
        self.write(Kind::End, 0, system::now(), handle, 0, &[]);
    }

    /// A node of a graph is made.
    pub(crate) fn node(&self, node: u64, original: u64) {
        self.write(Kind::Node, 0, system::now(), node, original, &[]);
    }

    /// A window opens or closes.
    pub(crate) fn window(&self, open: bool, time: u64) {
        self.write(Kind::Window, u32::from(open), time, 0, 0, &[]);
    }

    fn depth(&self, domain: u32) -> Option<&Cell<u32>> {
        self.depths.get((domain as usize).min(DOMAINS - 1))
    }

    #[inline]
    fn write(&self, kind: Kind, number: u32, time: u64, first: u64, second: u64, text: &[u8]) {
        let inside = self.busy.replace(true);
        if inside || !self.try_write(kind, number, time, first, second, text) {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
        self.busy.set(inside);
    }

    #[inline]
    fn try_write(&self, kind: Kind, number: u32, time: u64, first: u64, second: u64, text: &[u8]) -> bool {
        let text = text.get(..LONGEST).unwrap_or(text);
        let words = 4 + text.len().div_ceil(8) as u32;
        let written = self.written.load(Ordering::Relaxed);
        let place = written % WORDS;
        // An entry lies in one piece: where it would reach over the end, the rest of the ring is passed over.
        let skipped = if place + words > WORDS { WORDS - place } else { 0 };
        if written.wrapping_sub(self.read.load(Ordering::Acquire)) + skipped + words > WORDS {
            return false;
        }
        let ring = self.ring.get().cast::<u64>();
        let place = if skipped > 0 {
            // SAFETY: the place is inside the ring, and the reader does not read what is not yet published.
            unsafe { ring.add(place as usize).write(Kind::Skip as u64) };
            0
        } else {
            place
        };
        // SAFETY: `words` words from here on are inside the ring and free, see above. Only this thread writes, and only
        // once at a time, by `busy`. Bytes of the text go into the words behind the fourth.
        unsafe {
            let at = ring.add(place as usize);
            at.write(kind as u64 | (text.len() as u64) << 8 | u64::from(number) << 32);
            at.add(1).write(time);
            at.add(2).write(first);
            at.add(3).write(second);
            core::ptr::copy_nonoverlapping(text.as_ptr(), at.add(4).cast(), text.len());
        }
        self.written.store(written.wrapping_add(skipped + words), Ordering::Release);
        true
    }

    /// Hands over every entry, oldest first; how many words they took. For the writer thread only.
    fn drain(&self, each: &mut impl FnMut(Entry<'_>)) -> u32 {
        let written = self.written.load(Ordering::Acquire);
        let mut read = self.read.load(Ordering::Relaxed);
        let words = written.wrapping_sub(read);
        let ring = self.ring.get().cast::<u64>().cast_const();
        while read != written {
            let place = read % WORDS;
            // SAFETY: an entry starts at every place that was reached, lies inside the ring in one piece, and was
            // published before `written` was; its thread does not overwrite it before `read` has passed.
            let (entry, words) = unsafe {
                let at = ring.add(place as usize);
                let head = at.read();
                if head as u8 == Kind::Skip as u8 {
                    read = read.wrapping_add(WORDS - place);
                    continue;
                }
                let length = (head >> 8) as u16 as usize;
                let text = core::slice::from_raw_parts(at.add(4).cast(), length);
                let (time, first, second) = (at.add(1).read(), at.add(2).read(), at.add(3).read());
                (
                    Entry { kind: head as u8, number: (head >> 32) as u32, time, first, second, text },
                    4 + length.div_ceil(8),
                )
            };
            each(entry);
            read = read.wrapping_add(words as u32);
        }
        self.read.store(read, Ordering::Release);
        words
    }
}

fn parts(called: RangeName<'_>) -> (&[u8], u64) {
    match called {
        RangeName::Text(text) => (text, 0),
        RangeName::Registered(number) => (&[], u64::from(number)),
    }
}

/// Hands over the entries of all threads, thread by thread, and gives back logs of threads that have ended; whether a log was filling fast
/// enough to need a look soon. For the writer thread only.
pub(crate) fn drain_all(mut each: impl FnMut(u32, Entry<'_>)) -> bool {
    let mut fullest = 0;
    for slot in &LOGS {
        let log = slot.load(Ordering::Acquire);
        // SAFETY: a log in its slot is in use, or its thread has ended; it is given back by this thread only.
        let Some(here) = (unsafe { log.as_ref() }) else { continue };
        // Looked at before the entries: a thread that has ended writes none after them.
        let has_ended = here.ended.load(Ordering::Acquire);
        let thread = here.thread.get();
        fullest = fullest.max(here.drain(&mut |entry| each(thread, entry)));
        if has_ended {
            slot.store(null_mut(), Ordering::Release);
            // SAFETY: its thread has ended and the slot is empty, so nobody knows it any more.
            unsafe { system::release(log.cast(), size_of::<Log>()) };
        }
    }
    fullest > WORDS / 64
}
