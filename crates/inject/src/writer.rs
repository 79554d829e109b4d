//! The writer thread: fetches what threads and CUPTI have, turns it into `wire` records and appends them to the file.
//!
//! It wakes up every few milliseconds, and less often while CUPTI is not attached and ranges are few. A block reaches the file
//! with one `write`, so that what a killed process loses is what was not fetched yet, and CUPTI's part of it at most one flush
//! old.

use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering;

use wire::{BlockWriter, Counter, Name, Place, Record, Shape, Span};

use crate::activity::{self, CopyOrMemset, GraphTrace, Kernel, PeerCopy};
use crate::functions::PLACES;
use crate::log::{self, Entry, Kind};
use crate::settings::settings;
use crate::state::STATE;
use crate::texts::Texts;
use crate::timing::{self, TimedLaunch};
use crate::{buffers, catalogue, cupti, driver, functions, gate, system};

/// Bytes of a block.
const BLOCK: usize = 256 << 10;
/// Milliseconds between two rounds: a ring takes some 16,000 launches in between.
const TICK: u32 = 10;
/// The same while there is little to fetch. A log that was not busy takes sixty times as much in between.
const QUIET_TICK: u32 = 100;
/// Milliseconds between two flushes: what a killed process loses at most.
const FLUSH: u32 = 250;
/// Milliseconds between two readings of the clocks.
const CLOCKS: u32 = 1000;
/// Numbers of counters.
const COUNTERS: usize = Counter::ALL.len() + 1;
/// Devices that are described.
const DEVICES: u32 = 64;

/// Where and when a record of CUPTI's happened, where that can be; the records name it alike and have no type in common.
macro_rules! place {
    ($block:expr, $record:expr, $node:expr) => {
        $block.span($record.start, $record.end).map(|span| Place {
            device: $record.device,
            context: $record.context,
            stream: $record.stream,
            correlation: $record.correlation,
            node: $node,
            span,
        })
    };
}

/// All the writer thread knows. Starts as zeroes, in memory of its own, so that the child of a fork starts anew.
struct Writer {
    file: c_int,
    /// The thread that host records of the current block are of; zero for none yet.
    thread: u32,
    /// How far the catalogue was read.
    named: usize,
    /// Whether the devices were described.
    described: bool,
    /// The device clock when the buffer that is read was fetched.
    fetched: u64,
    /// What was lost so far, by the numbers of counters, and what of that is in the file.
    counts: [u64; COUNTERS],
    written: [u64; COUNTERS],
    /// Numbers of the names of functions of driver and runtime that were met, plus one.
    functions: [u32; PLACES],
    /// Launches that were timed: they have numbers of their own.
    timed: u32,
    texts: Texts,
    block: [u8; BLOCK],
}

/// Starts the thread.
pub(crate) fn start(file: c_int) -> bool {
    let memory = system::memory(size_of::<Writer>());
    // SAFETY: null, or zeroed memory of that size for nobody else; all zero is a writer that has written nothing.
    let Some(writer) = (unsafe { memory.cast::<Writer>().as_mut() }) else { return false };
    writer.file = file;
    let started = system::start_thread(run, memory.cast());
    if !started {
        // SAFETY: it was made here, and no thread has it.
        unsafe { system::release(memory, size_of::<Writer>()) };
    }
    started
}

/// Writes on the calling thread until the recording is over.
pub(crate) fn write(file: c_int) {
    let memory = system::memory(size_of::<Writer>());
    // SAFETY: as in `start`.
    if let Some(writer) = unsafe { memory.cast::<Writer>().as_mut() } {
        writer.file = file;
        writer.live();
        // SAFETY: it was made here, and it is not used any more.
        unsafe { system::release(memory, size_of::<Writer>()) };
    }
}

extern "C" fn run(writer: *mut c_void) -> *mut c_void {
    // SAFETY: `start` made it for this thread alone.
    if let Some(writer) = unsafe { writer.cast::<Writer>().as_mut() } {
        writer.live();
    }
    core::ptr::null_mut()
}

impl Writer {
    fn set(&mut self, counter: Counter, value: u64) {
        if let Some(count) = self.counts.get_mut(counter.number() as usize) {
            *count = value;
        }
    }

    fn add(&mut self, counter: Counter, value: u64) {
        let before = self.counts.get(counter.number() as usize).copied().unwrap_or(0);
        self.set(counter, before.saturating_add(value));
    }

    fn live(&mut self) {
        let unwritten = system::write(self.file, &wire::header());
        self.add(Counter::BytesUnwritten, unwritten as u64);
        let mut block = Block::new(self);
        block.start();
        block.finish();
        let (mut flushed, mut told): (u32, u32) = (0, 0);
        loop {
            let heard = STATE.bell.load(Ordering::Acquire);
            let leaving = STATE.leaving.load(Ordering::Acquire);
            let last = leaving || (gate::request_is_over() && STATE.end_recording());
            if !last && flushed == 0 {
                cupti::flush(false);
            }
            let mut block = Block::new(self);
            let busy = block.round();
            if last || told == 0 {
                block.clocks();
                block.counts();
            }
            if last {
                block.put(&Record::Finish);
            }
            block.finish();
            if last {
                STATE.left.store(leaving, Ordering::Release);
                return;
            }
            gate::settle();
            let tick = if busy || gate::is_settling() || STATE.is_attached() { TICK } else { QUIET_TICK };
            system::sleep_until_rung(&STATE.bell, heard, tick);
            let later = |time: u32, every: u32| if time + tick < every { time + tick } else { 0 };
            (flushed, told) = (later(flushed, FLUSH), later(told, CLOCKS));
        }
    }
}

/// A block that is being filled.
struct Block<'w> {
    writer: &'w mut Writer,
    open: Option<BlockWriter<'w>>,
}

/// The room of a block, apart from the rest of the writer.
fn room<'w>(writer: &mut Writer) -> &'w mut [u8] {
    // SAFETY: the room is only used through the one open block, which does not outlive the writer: a block is finished
    // before the next one takes the room again, and nothing else touches that field.
    unsafe { core::slice::from_raw_parts_mut(writer.block.as_mut_ptr(), BLOCK) }
}

impl<'w> Block<'w> {
    fn new(writer: &'w mut Writer) -> Self {
        writer.thread = 0;
        let open = Some(BlockWriter::new(room(writer)));
        Self { writer, open }
    }

    /// Writes the block to the file and starts another.
    fn finish(&mut self) {
        if let Some(open) = self.open.take() {
            let unwritten = system::write(self.writer.file, open.finish());
            self.writer.add(Counter::BytesUnwritten, unwritten as u64);
        }
        self.writer.thread = 0;
        self.open = Some(BlockWriter::new(room(self.writer)));
    }

    /// Adds a record that stands for itself.
    fn put(&mut self, record: &Record<'_>) {
        self.put_host(self.writer.thread, record);
    }

    /// Adds a record of a thread; zero for one that is of none.
    fn put_host(&mut self, thread: u32, record: &Record<'_>) {
        for _ in 0..2 {
            let known = self.writer.thread == thread;
            if let Some(open) = &mut self.open
                && (known || open.push(&Record::Thread { thread }))
                && open.push(record)
            {
                self.writer.thread = thread;
                return;
            }
            self.finish();
        }
    }

    /// The number of a text, which is written where it is new.
    fn text(&mut self, text: &[u8]) -> u32 {
        let (number, new) = self.writer.texts.number(text);
        if new {
            self.writer.add(Counter::TextsCut, u64::from(text.len() >= wire::LONGEST_TEXT));
            self.put(&Record::Text { number, text });
        }
        number
    }

    fn start(&mut self) {
        let (process, parent) = system::processes();
        let mut room = [0; 64];
        let name = system::read_small(c"/proc/self/comm", &mut room).trim_ascii_end();
        self.put(&Record::Process { process, parent, name });
        if let Some((rank, world)) = settings().and_then(|settings| settings.rank) {
            self.put(&Record::Rank { rank, world });
        }
        if STATE.times_graphs_only() {
            self.put(&Record::GraphsOnly);
        }
        self.clocks();
    }

    /// Reads the clocks; the one of several readings between which the least time passed.
    fn clocks(&mut self) {
        let mut best = (u64::MAX, Record::Clocks { monotonic: 0, wall: 0, device: 0 });
        for _ in 0..5 {
            let before = system::monotonic();
            let (wall, device) = (system::now(), cupti::device_clock());
            let after = system::monotonic();
            let (took, monotonic) = (after.saturating_sub(before), before.midpoint(after));
            if took < best.0 {
                best = (took, Record::Clocks { monotonic, wall, device });
            }
        }
        self.put(&best.1);
    }

    /// Fetches everything there is; whether there will soon be more.
    fn round(&mut self) -> bool {
        let named = self.writer.named;
        self.writer.named = catalogue::read(named, |entry| {
            let catalogue::Entry { kind, number, text } = entry;
            match kind {
                kind if kind == catalogue::Kind::Domain as u8 => self.put(&Record::Domain { number, text }),
                kind if kind == catalogue::Kind::Registered as u8 => self.put(&Record::Registered { number, text }),
                kind if kind == catalogue::Kind::Problem as u8 => {
                    self.put(&Record::Problem { code: number, what: text });
                }
                _ => self.put(&Record::Collector { cupti: number, version: text }),
            }
        });
        self.devices();
        let busy = log::drain_all(|thread, entry| self.entry(thread, &entry));
        buffers::drain(|context, stream, memory, valid| self.buffer(context, stream, memory, valid));
        if STATE.times_graphs_only() {
            timing::read(|launch| self.timed(&launch));
        }
        busy
    }

    /// An entry of a thread's log.
    fn entry(&mut self, thread: u32, entry: &Entry<'_>) {
        let &Entry { kind, number, time, first, second, text } = entry;
        let name = |block: &mut Self| match second {
            0 => Name::Text(block.text(text)),
            registered => Name::Registered(registered as u32),
        };
        let record = if kind == Kind::Call as u8 {
            let function = self.function(number);
            Record::Call { function, correlation: second as u32, span: Span { start: time, duration: first } }
        } else if kind == Kind::Push as u8 {
            Record::Push { domain: number, depth: first as u32, time, name: name(self) }
        } else if kind == Kind::Pop as u8 {
            Record::Pop { domain: number, depth: first as u32, time }
        } else if kind == Kind::Start as u8 {
            Record::Start { domain: number, handle: first, time, name: name(self) }
        } else if kind == Kind::End as u8 {
            Record::End { handle: first, time }
        } else if kind == Kind::Node as u8 {
            Record::Node { node: first, original: second, time }
        } else {
            Record::Window { open: number != 0, time }
        };
        self.put_host(thread, &record);
    }

    /// The number of the name of the function at a place.
    fn function(&mut self, place: u32) -> u32 {
        self.writer.add(Counter::Launches, u64::from(functions::kind(place) & functions::LAUNCHES != 0));
        let known = self.writer.functions.get(place as usize).copied().unwrap_or(0);
        if let Some(name) = known.checked_sub(1) {
            return name;
        }
        let (domain, number) = functions::function(place);
        let name = self.text(cupti::loaded().map_or(&[], |cupti| cupti.function_name(domain, number)));
        if let Some(slot) = self.writer.functions.get_mut(place as usize) {
            *slot = name.wrapping_add(1);
        }
        name
    }

    /// A buffer that CUPTI has filled.
    fn buffer(&mut self, context: *mut c_void, stream: u32, memory: *mut u8, valid: usize) {
        let mut record = core::ptr::null_mut();
        self.writer.fetched = cupti::device_clock();
        loop {
            // SAFETY: CUPTI filled the buffer, and the record is from it.
            record = unsafe { cupti::next_record(memory, valid, record) };
            if record.is_null() {
                break;
            }
            // SAFETY: the record is CUPTI's, in a buffer that is ours until it is lent again.
            unsafe { self.activity(record) };
        }
        self.writer.add(Counter::DeviceRecordsDropped, cupti::dropped(context, stream));
    }

    /// # Safety
    ///
    /// `record` is an activity record of CUPTI.
    unsafe fn activity(&mut self, record: *const c_void) {
        // SAFETY: every record starts with its kind; the structure of each kind is no longer than the record of any
        // release that is let in, see `activity`.
        let made = unsafe {
            match record.cast::<u32>().read() {
                activity::CONCURRENT_KERNEL => self.kernel(&*record.cast()),
                activity::MEMCPY => {
                    let copy = &*record.cast::<CopyOrMemset>();
                    let (direction, bytes) = (copy.direction, copy.bytes);
                    place!(self, copy, copy.node).map(|place| Record::Copy { direction, bytes, place })
                }
                activity::MEMCPY_PEER => {
                    let copy = &*record.cast::<PeerCopy>();
                    let (direction, bytes) = (copy.direction, copy.bytes);
                    place!(self, copy, copy.node).map(|place| Record::Copy { direction, bytes, place })
                }
                activity::MEMSET => {
                    let fill = &*record.cast::<CopyOrMemset>();
                    place!(self, fill, fill.node).map(|place| Record::Memset { bytes: fill.bytes, place })
                }
                activity::GRAPH_TRACE => {
                    let graph = &*record.cast::<GraphTrace>();
                    place!(self, graph, 0).map(|place| Record::Graph { graph: graph.graph, place })
                }
                _ => {
                    self.writer.add(Counter::RecordsUnknown, 1);
                    None
                }
            }
        };
        made.into_iter().for_each(|record| self.put(&record));
    }

    /// When device work ran; `None`, and counted, where that cannot be.
    fn span(&mut self, start: u64, end: u64) -> Option<Span> {
        let found = times(start, end, STATE.since.load(Ordering::Relaxed), self.writer.fetched);
        found.map_err(|counter| self.writer.add(counter, 1)).ok()
    }

    /// Describes the devices, as soon as the driver can: at the end of a process it cannot any more.
    fn devices(&mut self) {
        if self.writer.described || !(STATE.is_attached() || STATE.times_graphs_only()) {
            return;
        }
        let Some(driver) = driver::load() else { return };
        for ordinal in 0..DEVICES {
            let Some(device) = driver.describe(ordinal) else { break };
            let name = device.name.split(|byte| *byte == 0).next().unwrap_or_default();
            self.put(&Record::Device { ordinal, memory: device.memory, uuid: device.uuid, name });
            self.writer.described = true;
        }
    }

    fn kernel(&mut self, kernel: &Kernel) -> Option<Record<'static>> {
        let place = place!(self, kernel, kernel.node)?;
        let shape = Shape {
            grid: kernel.grid,
            block: kernel.block,
            registers: u32::from(kernel.registers),
            shared_static: kernel.shared_static,
            shared_dynamic: kernel.shared_dynamic,
        };
        // SAFETY: the name is a C string that CUPTI keeps.
        let name = self.text(unsafe { system::text(kernel.name, wire::LONGEST_TEXT) });
        Some(Record::Kernel { name, place, shape })
    }

    /// A launch that was timed. Handles have the numbers of texts of their bytes: unlike any other handle's.
    fn timed(&mut self, launch: &TimedLaunch) {
        self.writer.timed += 1;
        self.writer.add(Counter::Launches, 1);
        let (function, correlation) = (self.text(launch.name), self.writer.timed);
        self.put_host(launch.thread, &Record::Call { function, correlation, span: launch.host });
        let mut number = |handle: usize| self.writer.texts.number(&handle.to_ne_bytes()).0;
        let (graph, stream) = (number(launch.graph), number(launch.stream));
        self.put(&Record::Graph { graph, place: Place { stream, correlation, ..launch.place } });
    }

    /// What was lost, where that has changed.
    fn counts(&mut self) {
        let timed = timing::counts().into_iter().filter(|_| STATE.times_graphs_only());
        let counts = log::counts().into_iter().chain([(Counter::NamesDropped, catalogue::dropped())]).chain(timed);
        counts.for_each(|(counter, value)| self.writer.set(counter, value));
        for counter in Counter::ALL {
            let place = counter.number() as usize;
            let value = self.writer.counts.get(place).copied().unwrap_or(0);
            if let Some(written) = self.writer.written.get_mut(place).filter(|written| **written != value) {
                *written = value;
                self.put(&Record::Count { counter: *counter, value });
            }
        }
    }
}

/// How far clocks of host and device may be apart, converted into one another for minutes.
const APART: u64 = 100_000_000;

/// When work ran, or what it is counted as. `since` is when recording was switched on and `until` when the record was fetched; zero where
/// that is not known.
fn times(start: u64, end: u64, since: u64, until: u64) -> Result<Span, Counter> {
    match (start, end) {
        // CUPTI has none: the work had not ended, or there was no room for them.
        (_, 0) => Err(Counter::RecordsUnfinished),
        (0, _) => Err(Counter::TimesInvalid),
        _ if start.saturating_add(APART) < since || (until != 0 && end > until.saturating_add(APART)) => {
            Err(Counter::TimesOutside)
        }
        _ => end.checked_sub(start).map(|duration| Span { start, duration }).ok_or(Counter::TimesInvalid),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_cannot_be_are_told_from_those_that_are_not_there() {
        const S: u64 = 1_000_000_000;
        let (unfinished, invalid) = (Err(Counter::RecordsUnfinished), Err(Counter::TimesInvalid));
        let outside = Err(Counter::TimesOutside);
        assert_eq!(times(5 * S, 6 * S, 4 * S, 7 * S), Ok(Span { start: 5 * S, duration: S }));
        assert_eq!(times(5 * S, 5 * S, 5 * S, 5 * S), Ok(Span { start: 5 * S, duration: 0 }));
        assert_eq!(times(5 * S, 6 * S, 0, 0), Ok(Span { start: 5 * S, duration: S }));
        assert_eq!((times(0, 0, S, S), times(S, 0, S, S)), (unfinished, unfinished));
        assert_eq!((times(0, S, 0, 0), times(6 * S, 5 * S, S, 9 * S)), (invalid, invalid));
        assert_eq!((times(S, 2 * S, 3 * S, 9 * S), times(S, 9 * S, S, 3 * S)), (outside, outside));
    }
}
