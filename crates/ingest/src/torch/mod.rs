//! Traces of the torch profiler: Chrome JSON as Kineto writes it, into a [`Timeline`].
//!
//! The events are scanned where they lie and become rows at once; no tree of the document is ever built, so that memory is
//! bounded by the rows and not by the file. Bytes that are all at hand are read on several threads, a stream block after
//! block, and both give the same. What the rows mean for a run is decided elsewhere.
//!
//! Times are integer nanoseconds out of decimal microseconds. `displayTimeUnit` is a wish for viewers and changes nothing;
//! `baseTimeNanoseconds`, where there is one, is the Unix time of the trace's zero.
//!
//! A trace that ends early or is damaged gives the events before that place, a quality counter, and [`Trace::loss`].

mod category;
mod census;
mod document;
mod event;
mod events;
mod header;
pub(crate) mod lexer;
mod number;
mod parallel;
mod part;
pub(crate) mod signature;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use types::timeline::{HostOperator, Timeline, WorkKind};
use types::{QualityCounter, Severity};

pub use category::Category;
pub use census::Census;

use crate::IngestError;
use crate::demangle::demangle;
use document::Document;
use parallel::Plan;
use part::Part;
use source::{Blocks, Whole};

/// How to read a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TorchSettings {
    /// Threads that read; one reads from beginning to end.
    pub threads: usize,
    /// Bytes a thread takes at a time; `None` chooses by the size of the trace.
    pub chunk_bytes: Option<usize>,
    /// The largest event, or field of the document beside the events, that is read. A larger one is an error, because it
    /// has to fit into memory where the trace is a stream.
    pub largest_event_bytes: usize,
}

impl Default for TorchSettings {
    /// As many threads as there are processors, and events of up to 64 MiB.
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
        Self { threads, chunk_bytes: None, largest_event_bytes: 64 << 20 }
    }
}

/// What a trace says.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The rows. Its quality counters hold all that was left out.
    pub timeline: Timeline,
    /// Events by kind.
    pub census: Census,
    /// What is missing at the end; absent where the document is whole.
    pub loss: Option<Loss>,
}

/// The part of a trace that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Everything before this byte of the (uncompressed) document was read.
    pub offset: u64,
    /// Bytes from there on, as far as they are at hand; a stream that breaks off has lost more.
    pub bytes: u64,
    /// What is wrong there.
    pub reason: LossReason,
    /// Whether events are missing; else only fields after them are.
    pub in_events: bool,
    /// What the source of the bytes said, such as a damaged compressed file.
    pub cause: Option<String>,
}

/// Why the rest of a trace could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossReason {
    /// The document is not closed.
    EndsEarly,
    /// It stops being JSON.
    NotJson,
    /// Something follows the document.
    Trailing,
}

/// Reads a trace whose bytes are all at hand. `file` is only used in messages.
pub fn read(file: &str, bytes: &[u8], settings: &TorchSettings) -> Result<Trace, IngestError> {
    /// Small enough that all threads have work and that a wrong guess costs little, and large enough that each chunk sees
    /// the names of a trace once and not more often.
    const CHUNK: std::ops::RangeInclusive<usize> = 4 << 20..=64 << 20;
    let threads = settings.threads.max(1);
    let chunk = settings.chunk_bytes.unwrap_or_else(|| (bytes.len() / threads / 4).clamp(*CHUNK.start(), *CHUNK.end()));
    let plan = Plan { threads, chunk, largest: settings.largest_event_bytes };
    document::read(file, &mut Whole { bytes, at: 0 }, plan).map(finish)
}

/// Reads a trace that comes as a stream. `file` is only used in messages.
pub fn read_stream(file: &str, reader: impl Read, settings: &TorchSettings) -> Result<Trace, IngestError> {
    let plan = Plan { threads: 1, chunk: usize::MAX, largest: settings.largest_event_bytes };
    document::read(file, &mut Blocks::new(file, reader), plan).map(finish)
}

fn finish(document: Document) -> Trace {
    let Document { header, part, loss } = document;
    let Part { mut timeline, census, collectives, .. } = part;
    // Newer profilers describe a collective in the operator around it, with its group.
    let is_described = |operator: &HostOperator| {
        operator.signature.is_some_and(|signature| timeline.signatures.get(signature).collective.is_some())
    };
    if !timeline.operators.iter().any(is_described) {
        timeline.operators.extend(collectives);
    }
    timeline.quality = census.quality();
    timeline.quality.extend(loss.as_ref().map(Loss::quality));
    timeline.quality.extend(unreadable_names(&timeline));
    timeline.tool = Some(header.tool());
    timeline.clock.unix_ns_at_zero = header.unix_ns_at_zero;
    timeline.devices = header.devices;
    timeline.job = header.job;
    let rank = timeline.job.as_ref().and_then(|job| job.rank);
    demangle_kernels(&mut timeline);
    for thread in &mut timeline.threads {
        thread.rank = rank;
    }
    for queue in &mut timeline.queues {
        queue.rank = rank;
    }
    launched_by(&mut timeline);
    Trace { timeline, census, loss }
}

/// Kineto demangles what CUDA's libraries can; names of HIP kernels, and those it gave up on, come as the compiler made
/// them.
fn demangle_kernels(timeline: &mut Timeline) {
    let mangled: Vec<_> = timeline.names.iter().filter(|(_, name)| name.starts_with("_Z")).collect();
    let readable: BTreeMap<_, _> = mangled.into_iter().filter_map(|(id, name)| Some((id, demangle(name)?))).collect();
    let readable: BTreeMap<_, _> =
        readable.into_iter().map(|(id, name)| (id, timeline.names.place(name.as_str()))).collect();
    for work in timeline.work.iter_mut().filter(|work| work.kind == WorkKind::Kernel) {
        if let Some(name) = readable.get(&work.name) {
            timeline.symbols.entry(*name).or_default().insert(work.name);
            work.name = *name;
        }
    }
}

/// Device work does not say which process launched it. A profiler records the process it runs in, so where calls come from
/// one process only, that is the one.
fn launched_by(timeline: &mut Timeline) {
    let calling = |call: &types::timeline::HostCall| timeline.threads[call.thread.0 as usize].process;
    let callers: BTreeSet<_> = timeline.calls.iter().map(calling).collect();
    let mut callers = callers.into_iter();
    match (callers.next(), callers.next()) {
        (Some(process), None) => {
            for queue in &mut timeline.queues {
                queue.process = process;
            }
        }
        (Some(_), Some(_)) if !timeline.work.is_empty() => timeline.quality.push(QualityCounter {
            counter: "trace_work_of_unknown_process".to_owned(),
            value: timeline.work.len() as u64,
            share: Some(1.0),
            severity: Severity::Warning,
            remedy:
                "several processes in this file launch kernels, but it does not record which process launched which \
                 kernel; export one trace per process"
                    .to_owned(),
        }),
        _ => {}
    }
}

fn unreadable_names(timeline: &Timeline) -> Option<QualityCounter> {
    let unreadable = timeline.names.iter().filter(|(_, name)| name.contains(char::REPLACEMENT_CHARACTER)).count();
    (unreadable > 0).then(|| QualityCounter {
        counter: "trace_names_unreadable".to_owned(),
        value: unreadable as u64,
        share: Some(unreadable as f64 / timeline.names.len() as f64),
        severity: Severity::Info,
        remedy: "names contain bytes that are not UTF-8; names that differ only there are treated as one".to_owned(),
    })
}

impl Loss {
    /// The loss as a counter, in bytes.
    fn quality(&self) -> QualityCounter {
        let counter = match self.reason {
            LossReason::EndsEarly => "trace_ends_early",
            LossReason::NotJson => "trace_damaged",
            LossReason::Trailing => "trace_followed_by_other_data",
        };
        let what = match (self.reason, self.in_events) {
            (LossReason::EndsEarly, true) => "the list of events is not closed: events are missing",
            (LossReason::EndsEarly, false) => "the document is not closed: fields after the events may be missing",
            (LossReason::NotJson, true) => "the list of events is not valid JSON: events are missing",
            (LossReason::NotJson, false) => "the fields after the events are not valid JSON",
            (LossReason::Trailing, _) => "data after the document was ignored",
        };
        let cause = self.cause.as_ref().map_or_else(String::new, |cause| format!(" ({cause})"));
        QualityCounter {
            counter: counter.to_owned(),
            // At least one, because a counter of nothing would say that nothing is lost.
            value: self.bytes.max(1),
            share: None,
            severity: if self.in_events { Severity::Error } else { Severity::Warning },
            remedy: format!(
                "{what}, from byte {} on{cause}; copy the file again, or record the trace again",
                self.offset
            ),
        }
    }
}
