//! SQLite exports of Nsight Systems (`nsys export --type sqlite`, or `nsys profile --export=sqlite`) as a timeline.
//!
//! Reads kernels, copies, memsets, whole graphs, calls of the CUDA runtime and driver, NVTX ranges with their domains, operators
//! that PyTorch wrote as ranges, and the devices. Leaves out what has no place in a timeline (samples, scheduling, operating system calls; what was waited
//! for, which the calls show as well) and all that is confidential: an export carries the environment, the command line,
//! the host's name and its paths, and of these tables only the columns that `machine.rs` names are looked at.
//!
//! A file that was cut off or damaged is read as far as it goes, with counters of what was lost. Two things cannot be seen
//! from the bytes and are the caller's to look for: a journal beside the file (`FILE-journal`), which means that the
//! export was killed, and a flipped bit inside a value, against which SQLite has no checksum.

mod calls;
mod emitted;
mod identity;
mod machine;
mod ranges;
mod schema;
mod strings;
mod work;

use types::timeline::{Timeline, TraceFormat};
use types::{Nanos, QualityCounter, Severity};

use self::identity::{Queues, Threads};
use self::machine::Machine;
use self::ranges::Ranges;
use self::strings::Strings;
use self::work::Work;
use crate::IngestError;
use crate::nsys::database::{Database, Losses, Malformed};

/// Reads a whole export. `file` is what messages call it.
pub fn read(file: &str, bytes: &[u8]) -> Result<Timeline, IngestError> {
    let database = Database::open(file, bytes)?;
    if !schema::EVENTS.iter().any(|table| database.table(table).is_some()) {
        let (present, expected) = (database.pages.present(), database.pages.expected);
        if present < expected {
            let reason = format!("the file ends before any event, with {present} of {expected} pages");
            return Err(IngestError::Damaged { file: file.to_owned(), place: format!("byte {}", bytes.len()), reason });
        }
        let found = schema::list(database.tables().iter().map(|table| table.name.as_str()));
        return Err(IngestError::NoTables { file: file.to_owned(), expected: schema::EVENTS.join(", "), found });
    }
    let machine = Machine::read(file, &database)?;
    let mut strings = Strings::open(file, &database)?;
    let mut threads = Threads::new();
    let work = Work::read(file, &database, &mut strings, Queues::new(machine.device_numbers))?;
    let (calls, call_losses) = calls::read(file, &database, &mut strings, &mut threads)?;
    let ranges = Ranges::read(file, &database, &mut strings, &mut threads)?;

    let mut losses = database.losses;
    for part in [machine.losses, work.losses, call_losses, ranges.losses, strings.losses] {
        losses.add(part);
    }
    let kept = (work.rows.len() + calls.len() + ranges.rows.len() + ranges.operators.len()) as u64;
    let mut quality = lost(&database, losses, kept);
    quality.extend(uncertain(&strings, &ranges, machine.errors));

    let mut timeline = Timeline::new(TraceFormat::NsysSqlite, machine.clock);
    timeline.tool = machine.tool;
    timeline.devices = machine.devices;
    timeline.names = strings.names;
    timeline.symbols = work.symbols;
    timeline.launch_shapes = work.launch_shapes;
    timeline.threads = threads.threads;
    timeline.queues = work.queues.queues;
    timeline.work = work.rows;
    timeline.calls = calls;
    timeline.ranges = ranges.rows;
    timeline.operators = ranges.operators;
    timeline.signatures = ranges.signatures;
    timeline.quality = quality;
    Ok(timeline)
}

/// Counters of what is not in the file any more.
fn lost(database: &Database<'_>, losses: Losses, kept: u64) -> Vec<QualityCounter> {
    let pages = &database.pages;
    let cut = u64::from(!pages.bytes.len().is_multiple_of(pages.size));
    let missing = pages.expected.saturating_sub(pages.present()).max(losses.missing).max(cut);
    let whole = pages.expected.max(pages.present()).max(1);
    let of = |counter: Option<QualityCounter>, whole: u64| counter.map(|counter| counter.of(whole));
    [
        of(QualityCounter::some("nsys_pages_missing", Severity::Error, missing), whole),
        of(QualityCounter::some("nsys_pages_damaged", Severity::Error, losses.damaged), whole),
        of(QualityCounter::some("nsys_rows_unreadable", Severity::Error, losses.rows), losses.rows + kept),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Counters of what is in the file and cannot be relied on.
fn uncertain(strings: &Strings<'_>, ranges: &Ranges, errors: u64) -> Vec<QualityCounter> {
    [
        QualityCounter::some("nsys_names_missing", Severity::Warning, strings.missing),
        QualityCounter::some("nsys_names_garbled", Severity::Info, strings.garbled),
        QualityCounter::some("nvtx_domains_unnamed", Severity::Info, ranges.unnamed_domains),
        QualityCounter::some("nsys_errors_reported", Severity::Warning, errors),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Start and duration of something that started and ended.
fn span(start: i64, end: i64) -> Result<(Nanos, Nanos), Malformed> {
    let (Some(start), Some(end)) = (Timeline::time(start), Timeline::time(end)) else { return Err(Malformed) };
    if end < start {
        return Err(Malformed);
    }
    Ok((start, end - start))
}
