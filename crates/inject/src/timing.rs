//! Launches of CUDA graphs, timed by an event before and one after each, without CUPTI.
//!
//! `slots` has the application's thread call [`begin`] and [`Timed::end`], which record two events on the launch's stream and wait for
//! nothing. The writer thread creates events and reads them: their times are relative to an event of its own, at which it has also read
//! the wall clock.

use core::ffi::{CStr, c_int, c_uint, c_void};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use wire::{Counter, Place, Span};

use crate::cupti;
use crate::driver::{self, Driver, driver};
use crate::log::{self, Log};
use crate::state::STATE;
use crate::system::{monotonic, now};

/// Functions that launch a graph on a stream, of the runtime and the driver.
pub(crate) const FUNCTIONS: [&CStr; 2] = [c"cudaGraphLaunch", c"cuGraphLaunch"];
/// Launches of a context that may be on their way at once. What does not fit is not timed, and counted.
const PAIRS: usize = 1024;
/// Contexts that have events.
const CONTEXTS: usize = 16;
/// Readings of both clocks, of which the one before stays until the others are read.
const TIES: usize = 4;
/// Nanoseconds between two readings of both clocks.
const TIE_EVERY: u64 = 100_000_000;
/// How long the writer thread waits for an event of its own.
const PATIENCE: u64 = 2_000_000;

// What becomes of two events.
const FREE: u32 = 1;
/// A thread launches between them.
const LENT: u32 = 2;
/// The writer thread is to read them.
const RECORDED: u32 = 3;

/// Two events, and the launch between them.
struct Pair {
    /// Zero where there are no events yet, else [`FREE`], [`LENT`] or [`RECORDED`].
    state: AtomicU32,
    start: AtomicPtr<c_void>,
    end: AtomicPtr<c_void>,
    name: AtomicU32,
    thread: AtomicU32,
    graph: AtomicUsize,
    stream: AtomicUsize,
    began: AtomicU64,
    took: AtomicU64,
}

/// A context and its events, all zero before it is known. All but the pairs is for the writer thread.
struct Context {
    /// The driver's number of it, which no other context gets, and its handle.
    number: AtomicU64,
    handle: AtomicPtr<c_void>,
    /// The pair to be lent next.
    next: AtomicUsize,
    pairs: [Pair; PAIRS],
    device: AtomicU32,
    stream: AtomicPtr<c_void>,
    ties: [AtomicPtr<c_void>; TIES],
    /// The event of the last reading of both clocks, and the wall clock at it; zero before the first.
    tie: AtomicPtr<c_void>,
    tied: AtomicU64,
}

// SAFETY: numbers and pointers of zero.
static ALL: [Context; CONTEXTS] = unsafe { core::mem::zeroed() };

/// Launches that were not timed.
static UNTIMED: AtomicU64 = AtomicU64::new(0);
/// How far the wall clock may be off at an event, at most.
static APART: AtomicU64 = AtomicU64::new(0);
/// When both clocks were last read.
static LAST_TIE: AtomicU64 = AtomicU64::new(0);

/// A launch that is being timed.
pub(crate) struct Timed {
    pair: &'static Pair,
    log: &'static Log,
}

/// A launch that was timed.
pub(crate) struct TimedLaunch {
    /// What was called.
    pub(crate) name: &'static [u8],
    pub(crate) thread: u32,
    pub(crate) host: Span,
    /// Without its stream and the number of its call.
    pub(crate) place: Place,
    /// Handles of the program's.
    pub(crate) stream: usize,
    pub(crate) graph: usize,
}

/// A graph is about to be launched; `None` where that is not timed. For threads of the application.
#[inline]
pub(crate) fn begin(name: u32, graph: *mut c_void, stream: *mut c_void) -> Option<Timed> {
    if STATE.is_timing() { time(name, graph, stream) } else { None }
}

fn time(name: u32, graph: *mut c_void, stream: *mut c_void) -> Option<Timed> {
    let log = log::current()?;
    // Inside a launch that is timed: the runtime may call the driver by its name.
    if log.inside_runtime.get() > 0 {
        return None;
    }
    let Some(pair) = driver().and_then(|driver| start(driver, stream)) else {
        UNTIMED.fetch_add(1, Ordering::Relaxed);
        return None;
    };
    pair.name.store(name, Ordering::Relaxed);
    pair.thread.store(log.thread.get(), Ordering::Relaxed);
    pair.graph.store(graph as usize, Ordering::Relaxed);
    pair.stream.store(stream as usize, Ordering::Relaxed);
    pair.began.store(now(), Ordering::Relaxed);
    log.inside_runtime.set(1);
    Some(Timed { pair, log })
}

/// Records the first event. Nothing is recorded on a stream that captures: it would become a part of the graph.
fn start(driver: &Driver, stream: *mut c_void) -> Option<&'static Pair> {
    let (mut captures, mut context, mut number) = (0, core::ptr::null_mut(), 0);
    // SAFETY: the stream is the one that the program launches on, and all else may be written to.
    let code = unsafe { (driver.is_capturing)(stream, &mut captures) | (driver.context)(&mut context) };
    // SAFETY: as above; the context is current.
    if code != 0 || captures != 0 || context.is_null() || unsafe { (driver.context_number)(context, &mut number) } != 0
    {
        return None;
    }
    let pair = lend(context, number)?;
    let recorded = record(driver, &pair.start, stream);
    if !recorded {
        pair.state.store(FREE, Ordering::Release);
    }
    recorded.then_some(pair)
}

fn record(driver: &Driver, event: &AtomicPtr<c_void>, stream: *mut c_void) -> bool {
    // SAFETY: the event is of the context that is current, and the stream is the program's.
    unsafe { (driver.record)(event.load(Ordering::Relaxed), stream) == 0 }
}

/// Two events of a context; `None` where none are free. A context that is new gets its events from the writer thread.
fn lend(context: *mut c_void, number: u64) -> Option<&'static Pair> {
    let of_context = ALL.iter().find(|one| {
        let known = one.number.load(Ordering::Acquire);
        let claims = || one.number.compare_exchange(0, number, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        known == number || (known == 0 && claims())
    })?;
    of_context.handle.store(context, Ordering::Release);
    let pair = of_context.pairs.get(of_context.next.fetch_add(1, Ordering::Relaxed) % PAIRS)?;
    pair.state.compare_exchange(FREE, LENT, Ordering::AcqRel, Ordering::Relaxed).is_ok().then_some(pair)
}

impl Timed {
    /// The launch is over, and was accepted or not.
    pub(crate) fn end(self, accepted: bool) {
        let Self { pair, log } = self;
        log.inside_runtime.set(0);
        pair.took.store(now().saturating_sub(pair.began.load(Ordering::Relaxed)), Ordering::Relaxed);
        let stream = pair.stream.load(Ordering::Relaxed) as *mut c_void;
        let recorded = accepted && driver().is_some_and(|driver| record(driver, &pair.end, stream));
        if !recorded {
            UNTIMED.fetch_add(u64::from(accepted), Ordering::Relaxed);
        }
        pair.state.store(if recorded { RECORDED } else { FREE }, Ordering::Release);
    }
}

/// Has launches timed from here on, where any can be seen. For the writer thread.
pub(crate) fn open(any_seen: bool) {
    if driver::load().is_none() {
        cupti::problem(0, b"the CUDA driver is not loaded");
    } else if !any_seen {
        cupti::problem(0, b"no library of the process calls a function that launches CUDA graphs by its name");
    }
    UNTIMED.store(0, Ordering::Relaxed);
    APART.store(0, Ordering::Relaxed);
    LAST_TIE.store(0, Ordering::Relaxed);
    for context in &ALL {
        context.tied.store(0, Ordering::Relaxed);
        for pair in &context.pairs {
            // What did not end in time for an earlier recording.
            let _ = pair.state.compare_exchange(RECORDED, FREE, Ordering::AcqRel, Ordering::Relaxed);
        }
    }
    STATE.timing.store(true, Ordering::Release);
}

/// What this recording lacks: launches that were not timed, or have not ended, and how far the wall clock may be off at an event.
pub(crate) fn counts() -> [(Counter, u64); 3] {
    let waits = |pair: &&Pair| pair.state.load(Ordering::Relaxed) == RECORDED;
    let unfinished = ALL.iter().flat_map(|context| &context.pairs).filter(waits).count() as u64;
    let [untimed, apart] = [&UNTIMED, &APART].map(|count| count.load(Ordering::Relaxed));
    [(Counter::LaunchesUntimed, untimed), (Counter::RecordsUnfinished, unfinished), (Counter::ClocksApart, apart)]
}

/// Hands over every launch that has ended. For the writer thread.
pub(crate) fn read(mut each: impl FnMut(TimedLaunch)) {
    /// `CU_STREAM_CAPTURE_MODE_RELAXED`: this thread does not disturb captures of others.
    const RELAXED: c_int = 2;
    let Some(driver) = driver() else { return };
    let is_due = monotonic().saturating_sub(LAST_TIE.load(Ordering::Relaxed)) > TIE_EVERY;
    for context in ALL.iter().take_while(|context| context.number.load(Ordering::Acquire) != 0) {
        let (handle, mut number, mut mode) = (context.handle.load(Ordering::Acquire), 0, RELAXED);
        // SAFETY: the handle was current on a thread of the program; the driver refuses a context that is gone. Number and mode may be
        // written to.
        let code = unsafe {
            (driver.set_context)(handle)
                | (driver.context_number)(handle, &mut number)
                | (driver.capture_mode)(&mut mode)
        };
        if handle.is_null() || code != 0 || number != context.number.load(Ordering::Relaxed) {
            continue;
        }
        if context.prepare(driver) && (is_due || context.tied.load(Ordering::Relaxed) == 0) {
            context.tie(driver);
        }
        for pair in context.pairs.iter().filter(|pair| pair.state.load(Ordering::Acquire) == RECORDED) {
            if let Some(span) = context.span(driver, pair) {
                each(pair.launch(span, context));
                pair.state.store(FREE, Ordering::Release);
            }
        }
        // SAFETY: no context is current from here on.
        unsafe { (driver.set_context)(core::ptr::null_mut()) };
    }
    if is_due {
        LAST_TIE.store(monotonic(), Ordering::Relaxed);
    }
}

impl Pair {
    fn launch(&self, span: Span, of: &Context) -> TimedLaunch {
        let host = Span { start: self.began.load(Ordering::Relaxed), duration: self.took.load(Ordering::Relaxed) };
        let name = FUNCTIONS.get(self.name.load(Ordering::Relaxed) as usize).map_or(&b""[..], |name| name.to_bytes());
        let (device, context) = (of.device.load(Ordering::Relaxed), of.number.load(Ordering::Relaxed) as u32);
        TimedLaunch {
            name,
            thread: self.thread.load(Ordering::Relaxed),
            host,
            place: Place { device, context, span, ..Place::default() },
            stream: self.stream.load(Ordering::Relaxed),
            graph: self.graph.load(Ordering::Relaxed),
        }
    }
}

impl Context {
    /// Creates the events of a context that is current, where that was not done; whether it has any.
    fn prepare(&self, driver: &Driver) -> bool {
        /// `CU_STREAM_NON_BLOCKING`: work of the default stream does not wait for it, nor it for that.
        const NON_BLOCKING: c_uint = 1;
        if !self.stream.load(Ordering::Relaxed).is_null() {
            return true;
        }
        let create = |event: &AtomicPtr<c_void>| {
            let mut made = core::ptr::null_mut();
            // SAFETY: the event may be written to; no flag means that it takes times.
            let code = unsafe { (driver.create_event)(&mut made, 0) };
            event.store(made, Ordering::Relaxed);
            code == 0
        };
        let (mut device, mut stream) = (0, core::ptr::null_mut());
        // SAFETY: both may be written to.
        let code =
            unsafe { (driver.device_of_context)(&mut device) | (driver.create_stream)(&mut stream, NON_BLOCKING) };
        if code != 0 || !self.ties.iter().all(create) {
            return false;
        }
        self.device.store(device as u32, Ordering::Relaxed);
        self.stream.store(stream, Ordering::Relaxed);
        for pair in self.pairs.iter().take_while(|pair| create(&pair.start) && create(&pair.end)) {
            pair.state.store(FREE, Ordering::Release);
        }
        true
    }

    /// Reads both clocks at an event; the one of some readings between which the least time passed.
    fn tie(&self, driver: &Driver) {
        let stream = self.stream.load(Ordering::Relaxed);
        let before = self.tie.load(Ordering::Relaxed);
        let mut best = PATIENCE;
        for event in self.ties.iter().map(|event| event.load(Ordering::Relaxed)).filter(|event| *event != before) {
            let began = now();
            // SAFETY: event and stream are of this context.
            let recorded = unsafe { (driver.record)(event, stream) == 0 };
            // SAFETY: as above.
            let waits = || unsafe { (driver.query)(event) != 0 };
            while recorded && waits() && now().saturating_sub(began) < PATIENCE {}
            let took = now().saturating_sub(began);
            if recorded && took < best {
                best = took;
                self.tie.store(event, Ordering::Relaxed);
                self.tied.store(began + took / 2, Ordering::Relaxed);
            }
        }
        if best < PATIENCE {
            APART.fetch_max(best / 2, Ordering::Relaxed);
        }
    }

    /// When a launch ran, once it has ended.
    fn span(&self, driver: &Driver, pair: &Pair) -> Option<Span> {
        let [start, end, tie] = [&pair.start, &pair.end, &self.tie].map(|event| event.load(Ordering::Relaxed));
        let tied = self.tied.load(Ordering::Relaxed);
        let elapsed = |from, to| {
            let mut milliseconds = 0.0_f32;
            // SAFETY: the events are of this context, and the time may be written to.
            let code = unsafe { (driver.elapsed)(&mut milliseconds, from, to) };
            (code == 0).then_some((f64::from(milliseconds) * 1e6) as i64)
        };
        // SAFETY: the event is of this context.
        if tied == 0 || unsafe { (driver.query)(end) } != 0 {
            return None;
        }
        let start_at = tied.wrapping_add_signed(elapsed(tie, start)?);
        Some(Span { start: start_at, duration: u64::try_from(elapsed(start, end)?).ok()? })
    }
}
