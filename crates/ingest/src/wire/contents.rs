//! What a file holds, sorted by what it is: names first, because a name may come after its first use.

use std::collections::{BTreeMap, HashMap};

use ::wire::{Counter, Name, Piece, Pieces, Record};

/// The records of a file.
#[derive(Debug, Default)]
pub(super) struct Contents<'a> {
    pub(super) process: u32,
    /// Its number in a distributed run.
    pub(super) rank: Option<u32>,
    /// The collector and CUPTI, with their versions.
    pub(super) tool: Option<String>,
    pub(super) problems: Vec<(u32, &'a [u8])>,
    pub(super) texts: HashMap<u32, &'a [u8]>,
    pub(super) registered: HashMap<u32, &'a [u8]>,
    pub(super) domains: HashMap<u32, &'a [u8]>,
    /// Ordinal, memory, identifier, name.
    pub(super) devices: Vec<(u32, u64, [u8; 16], &'a [u8])>,
    /// Wall and device clock, and the wall clock less the monotonic one.
    pub(super) clocks: Vec<Clocks>,
    /// Records of the host with their threads.
    pub(super) host: Vec<(u32, Record<'a>)>,
    pub(super) work: Vec<Record<'a>>,
    /// When windows opened and closed.
    pub(super) windows: Vec<(bool, u64)>,
    /// Nothing but launches of graphs was timed.
    pub(super) graphs_only: bool,
    pub(super) counters: BTreeMap<Counter, u64>,
    pub(super) finished: bool,
    /// Bytes at the end that are no block.
    pub(super) torn: u64,
    /// Bytes elsewhere that are no block, and blocks that are not what they say.
    pub(super) damaged: u64,
    /// Records of a newer collector.
    pub(super) unknown: u64,
}

/// Clocks that were read at the same moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clocks {
    pub(super) monotonic: u64,
    pub(super) wall: u64,
    pub(super) device: u64,
}

impl<'a> Contents<'a> {
    pub(super) fn read(pieces: Pieces<'a>) -> Self {
        let mut contents = Self::default();
        for piece in pieces {
            match piece {
                Piece::Block(mut records) => {
                    let mut thread = 0;
                    for record in records.by_ref() {
                        contents.add(&mut thread, record);
                    }
                    contents.unknown += records.unknown;
                    contents.damaged += u64::from(records.malformed);
                }
                Piece::Damaged(damage) if damage.torn => contents.torn += damage.bytes as u64,
                Piece::Damaged(damage) => contents.damaged += damage.bytes as u64,
            }
        }
        contents
    }

    fn add(&mut self, thread: &mut u32, record: Record<'a>) {
        match record {
            Record::Process { process, .. } => self.process = process,
            Record::Rank { rank, .. } => self.rank = Some(rank),
            Record::Collector { cupti, version } => {
                let collector = format!("llm-perf collector {}", String::from_utf8_lossy(version));
                self.tool = Some(match cupti {
                    0 => collector,
                    // `cuptiGetVersion` counts releases up to CUDA 12, and says the release since.
                    1..100_000 => format!("{collector}, CUPTI interface {cupti}"),
                    _ => format!("{collector}, CUPTI {}.{}", cupti / 10_000, cupti % 10_000 / 100),
                });
            }
            Record::Problem { code, what } => self.problems.push((code, what)),
            Record::Clocks { monotonic, wall, device } => self.clocks.push(Clocks { monotonic, wall, device }),
            Record::Device { ordinal, memory, uuid, name } => self.devices.push((ordinal, memory, uuid, name)),
            Record::Text { number, text } => _ = self.texts.insert(number, text),
            Record::Domain { number, text } => _ = self.domains.insert(number, text),
            Record::Registered { number, text } => _ = self.registered.insert(number, text),
            Record::Thread { thread: now } => *thread = now,
            Record::Push { .. }
            | Record::Pop { .. }
            | Record::Start { .. }
            | Record::End { .. }
            | Record::Call { .. }
            | Record::Node { .. } => self.host.push((*thread, record)),
            Record::Window { open, time } => self.windows.push((open, time)),
            Record::Kernel { .. } | Record::Copy { .. } | Record::Memset { .. } | Record::Graph { .. } => {
                self.work.push(record);
            }
            Record::GraphsOnly => self.graphs_only = true,
            Record::Count { counter, value } => _ = self.counters.insert(counter, value),
            Record::Finish => self.finished = true,
        }
    }

    /// When the process started to be collected, in nanoseconds since 1970.
    pub(super) fn beginning(&self) -> Option<u64> {
        self.clocks.first().map(|clocks| clocks.wall)
    }

    /// How far the device clock is ahead of the wall clock. Readings a few hundred nanoseconds apart are one clock read
    /// twice.
    pub(super) fn device_ahead(&self) -> i128 {
        const ONE_CLOCK: i128 = 1000;
        let read = self.clocks.iter().filter(|clocks| clocks.device != 0);
        let ahead =
            read.map(|clocks| i128::from(clocks.device) - i128::from(clocks.wall)).min_by_key(|ahead| ahead.abs());
        ahead.filter(|ahead| ahead.abs() > ONE_CLOCK).unwrap_or(0)
    }

    /// How far the wall clock was set while the process ran.
    pub(super) fn wall_set_by(&self) -> u64 {
        let apart = |clocks: &Clocks| i128::from(clocks.wall) - i128::from(clocks.monotonic);
        let (least, most) = (self.clocks.iter().map(apart).min(), self.clocks.iter().map(apart).max());
        least.zip(most).map_or(0, |(least, most)| u64::try_from(most - least).unwrap_or(u64::MAX))
    }

    /// The text of a range's name; `None` where it was lost.
    pub(super) fn name(&self, name: Name) -> Option<&'a [u8]> {
        match name {
            Name::Text(number) => self.texts.get(&number).copied(),
            Name::Registered(number) => self.registered.get(&number).copied(),
        }
    }
}
