//! An nsys export through SQLite itself: the tables and columns that our reader reads, into rows of the same size.

use std::collections::HashMap;
use std::error::Error;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Row};

const KERNELS: &str = "SELECT start, end, deviceId, contextId, streamId, globalPid, correlationId, graphNodeId, \
                       demangledName, mangledName, registersPerThread, gridX, gridY, gridZ, blockX, blockY, blockZ, \
                       staticSharedMemory, dynamicSharedMemory FROM CUPTI_ACTIVITY_KIND_KERNEL";
const COPIES: &str = "SELECT start, end, deviceId, contextId, streamId, globalPid, correlationId, graphNodeId, bytes, \
                      copyKind FROM CUPTI_ACTIVITY_KIND_MEMCPY";
const CALLS: &str = "SELECT start, end, globalTid, correlationId, nameId FROM CUPTI_ACTIVITY_KIND_RUNTIME";
const RANGES: &str = "SELECT start, end, eventType, globalTid, textId, domainId, text FROM NVTX_EVENTS \
                      WHERE eventType IN (59, 60, 70, 71)";

/// Texts, each kept once.
#[derive(Default)]
struct Names {
    places: HashMap<Box<[u8]>, u32>,
}

impl Names {
    fn place(&mut self, text: &[u8]) -> u32 {
        if let Some(place) = self.places.get(text) {
            return *place;
        }
        let place = self.places.len() as u32;
        self.places.insert(text.into(), place);
        place
    }
}

struct Work {
    start: i64,
    duration: i64,
    queue: [u32; 3],
    name: u32,
    correlation: u32,
    bytes: i64,
    shape: u32,
}

struct Call {
    start: i64,
    duration: i64,
    thread: i64,
    correlation: u32,
    name: u32,
}

struct Range {
    start: i64,
    end: Option<i64>,
    thread: i64,
    domain: u32,
    name: u32,
}

/// Reads the export and prints its totals.
pub(crate) fn read(path: &str) -> Result<(), Box<dyn Error>> {
    let base = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    let mut names = Names::default();
    let mut texts = HashMap::new();
    each(&base, "SELECT id, value FROM StringIds", |row| {
        texts.insert(row.get::<_, i64>(0)?, names.place(bytes(row.get_ref(1)?)));
        Ok(())
    })?;
    let text = |number: Option<i64>| number.and_then(|number| texts.get(&number).copied()).unwrap_or(u32::MAX);
    let mut shapes: HashMap<[i64; 9], u32> = HashMap::new();
    let mut kernels = Vec::new();
    each(&base, KERNELS, |row| {
        let mut shape = [0; 9];
        for (place, value) in shape.iter_mut().enumerate() {
            *value = row.get(10 + place)?;
        }
        let next = shapes.len() as u32;
        let shape = *shapes.entry(shape).or_insert(next);
        kernels.push(Work { name: text(row.get(8)?), shape, bytes: 0, ..work(row)? });
        Ok(())
    })?;
    let mut copies = Vec::new();
    each(&base, COPIES, |row| {
        copies.push(Work { bytes: row.get(8)?, name: row.get(9)?, ..work(row)? });
        Ok(())
    })?;
    let mut calls = Vec::new();
    each(&base, CALLS, |row| {
        let start: i64 = row.get(0)?;
        let duration = row.get::<_, i64>(1)? - start;
        calls.push(Call { start, duration, thread: row.get(2)?, correlation: row.get(3)?, name: text(row.get(4)?) });
        Ok(())
    })?;
    let mut ranges = Vec::new();
    each(&base, RANGES, |row| {
        let name = match row.get_ref(6)? {
            ValueRef::Null => text(row.get(4)?),
            value => names.place(bytes(value)),
        };
        let domain = row.get::<_, Option<u32>>(5)?.unwrap_or(0);
        ranges.push(Range { start: row.get(0)?, end: row.get(1)?, thread: row.get(3)?, domain, name });
        Ok(())
    })?;
    println!("kernels {}", kernels.len());
    println!("kernel_ns {}", kernels.iter().map(|kernel| kernel.duration).sum::<i64>());
    println!("calls {}", calls.len());
    println!("operators 0");
    println!("ranges {}", ranges.len());
    // Nothing read may be optimised away.
    std::hint::black_box((kernels, copies, calls, ranges));
    Ok(())
}

fn work(row: &Row<'_>) -> rusqlite::Result<Work> {
    let start: i64 = row.get(0)?;
    Ok(Work {
        start,
        duration: row.get::<_, i64>(1)? - start,
        queue: [row.get(2)?, row.get(3)?, row.get(4)?],
        name: 0,
        correlation: row.get::<_, Option<u32>>(6)?.unwrap_or(0),
        bytes: row.get::<_, Option<i64>>(7)?.unwrap_or(0),
        shape: 0,
    })
}

fn bytes(value: ValueRef<'_>) -> &[u8] {
    match value {
        ValueRef::Text(text) | ValueRef::Blob(text) => text,
        _ => b"",
    }
}

fn each(base: &Connection, query: &str, mut add: impl FnMut(&Row<'_>) -> rusqlite::Result<()>) -> rusqlite::Result<()> {
    let mut statement = base.prepare(query)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        add(row)?;
    }
    Ok(())
}
