//! Files of our own collector (`process-NUMBER.wire`) as a timeline: the same rows as an nsys export gives.
//!
//! One file is one process. Files of one run share the wall clock, so that several can become one timeline; its zero is
//! the earliest beginning among them. A file that was torn, because its process was killed, is read as far as it goes.
//! Whatever the collector dropped, and whatever is missing here, becomes a counter.

mod contents;
mod process;
mod quality;
mod window;

use std::collections::HashMap;

use ::wire::{Counter, OpenError};
use types::timeline::{DeviceQueue, HostThread, QueueId, ThreadId, Timeline, TraceFormat};
use types::{Bytes, Clock, ClockId, ClockKind, Device, DeviceId, Nanos};

use crate::IngestError;
use contents::Contents;
use quality::Losses;

/// What is read, for messages.
const EXPECTED: &str = "a file of the llm-perf collector";

/// Reads the file of one process. `file` is what messages call it.
pub fn read(file: &str, bytes: &[u8]) -> Result<Timeline, IngestError> {
    read_all(&[(file, bytes)])
}

/// Reads the files of all processes of a run into one timeline.
pub fn read_all(files: &[(&str, &[u8])]) -> Result<Timeline, IngestError> {
    let contents = files.iter().map(|(file, bytes)| open(file, bytes)).collect::<Result<Vec<_>, _>>()?;
    let zero = contents.iter().filter_map(Contents::beginning).min().unwrap_or(0);
    let clock = Clock {
        id: ClockId(0),
        kind: ClockKind::HostWall,
        unix_ns_at_zero: i64::try_from(zero).ok().and_then(Timeline::time),
        uncertainty_ns: Some(Nanos::ZERO),
    };
    let mut reader = Reader {
        timeline: Timeline::new(TraceFormat::Wire, clock),
        zero,
        threads: HashMap::new(),
        queues: HashMap::new(),
        losses: Losses::default(),
    };
    for contents in &contents {
        reader.take(contents);
    }
    reader.timeline.graphs_only = contents.iter().any(|contents| contents.graphs_only);
    let apart = contents.iter().filter_map(|contents| contents.counters.get(&Counter::ClocksApart)).max();
    reader.timeline.clock.uncertainty_ns =
        apart.and_then(|apart| i64::try_from(*apart).ok()).map(Nanos::new).or(Some(Nanos::ZERO));
    reader.timeline.tool = contents.iter().find_map(|contents| contents.tool.clone());
    reader.timeline.quality = reader.losses.counters(&reader.timeline);
    Ok(reader.timeline)
}

fn open<'a>(file: &str, bytes: &'a [u8]) -> Result<Contents<'a>, IngestError> {
    let file = file.to_owned();
    match ::wire::open(bytes) {
        Ok(pieces) => Ok(Contents::read(pieces)),
        Err(OpenError::TooShort) if bytes.is_empty() => Err(IngestError::Empty { file, expected: EXPECTED }),
        Err(OpenError::TooShort) => {
            let reason = "it ends before its first record".to_owned();
            Err(IngestError::Damaged { file, place: format!("byte {}", bytes.len()), reason })
        }
        Err(OpenError::NotWire) => {
            Err(IngestError::WrongFormat { file, expected: EXPECTED, found: "its first bytes differ".to_owned() })
        }
        Err(OpenError::Newer(version)) => {
            let (format, found) = ("collector file", version.to_string());
            Err(IngestError::NewerVersion { file, format, found, known: "1" })
        }
    }
}

/// A timeline while it is filled.
struct Reader {
    timeline: Timeline,
    /// What times are relative to, in nanoseconds since 1970.
    zero: u64,
    threads: HashMap<(u32, u32), ThreadId>,
    queues: HashMap<DeviceQueue, QueueId>,
    losses: Losses,
}

impl Reader {
    /// A time of a file; `None`, and counted, where it cannot be one.
    fn time(&mut self, nanoseconds: u64) -> Option<Nanos> {
        let distance = i128::from(nanoseconds) - i128::from(self.zero);
        let time = i64::try_from(distance).ok().and_then(Timeline::time);
        self.losses.impossible_times += u64::from(time.is_none());
        time
    }

    /// Start and duration of something that ended.
    fn span(&mut self, span: ::wire::Span) -> Option<(Nanos, Nanos)> {
        let start = self.time(span.start)?;
        let end = self.time(span.start.saturating_add(span.duration))?;
        Some((start, end - start))
    }

    fn thread(&mut self, contents: &Contents<'_>, thread: u32) -> ThreadId {
        let threads = &mut self.timeline.threads;
        let (process, rank) = (contents.process, contents.rank);
        *self.threads.entry((process, thread)).or_insert_with(|| {
            threads.push(HostThread { process: Some(process), rank, thread: Some(u64::from(thread)) });
            ThreadId(threads.len() as u32 - 1)
        })
    }

    fn queue(&mut self, queue: DeviceQueue) -> QueueId {
        if let Some(place) = self.queues.get(&queue) {
            return *place;
        }
        let place = QueueId(self.timeline.queues.len() as u32);
        self.timeline.queues.push(queue.clone());
        self.queues.insert(queue, place);
        place
    }

    /// The number a device has in the timeline. Every process counts its devices from zero; the driver's identifier tells
    /// which are the same.
    fn device(&mut self, ordinal: u32, memory: u64, uuid: [u8; 16], name: &[u8]) -> u32 {
        let uuid = uuid_text(uuid);
        let devices = &mut self.timeline.devices;
        let known = devices.iter().position(|device| device.uuid.as_deref() == Some(&uuid));
        if let Some(number) = known.and_then(|place| number(&devices[place])) {
            return number;
        }
        let taken: Vec<u32> = devices.iter().filter_map(number).collect();
        let number = (ordinal..=u32::MAX).chain(0..ordinal).find(|number| !taken.contains(number)).unwrap_or(ordinal);
        devices.push(Device {
            id: DeviceId::cuda(number),
            name: String::from_utf8_lossy(name).into_owned(),
            uuid: Some(uuid),
            hardware: None,
            memory_bytes: Some(Bytes::new(memory)).filter(|_| memory > 0),
            multiprocessors: None,
        });
        number
    }
}

fn number(device: &Device) -> Option<u32> {
    device.id.as_str().strip_prefix("cuda:")?.parse().ok()
}

/// As the driver writes it.
fn uuid_text(uuid: [u8; 16]) -> String {
    let mut text = String::from("GPU-");
    for (place, byte) in uuid.iter().enumerate() {
        if [4, 6, 8, 10].contains(&place) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}
