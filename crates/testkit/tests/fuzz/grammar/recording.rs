//! Files of the collector, record by record: blocks have right lengths and checksums, texts are named before or after they are used.

use wire::{BlockWriter, Counter, Name, Place, Record, Shape, Span};

use super::{name, number, span};
use crate::random::Random;

/// Texts that records refer to, and how many numbers there are beyond.
const TEXTS: u32 = 12;

/// A file.
pub(crate) fn file(random: &mut Random) -> Vec<u8> {
    let mut clock = 1_760_000_000_000_000_000;
    let mut records = vec![Record::Process { process: 7, parent: 1, name: b"python3" }];
    records.extend((0..TEXTS).map(|number| {
        let kind = *random.one_of(&["kernel", "call", "range"]);
        Record::Text { number, text: name(random, kind).as_bytes() }
    }));
    if random.once_in(3) {
        let at = random.below(records.len());
        records.rotate_left(at);
    }
    records.extend((0..random.below(150)).map(|_| record(random, &mut clock)));
    if !random.once_in(4) {
        records.push(Record::Finish);
    }
    let mut file = wire::header().to_vec();
    let mut rest = &records[..];
    while !rest.is_empty() {
        let mut memory = vec![0; 1 << 16];
        let mut block = BlockWriter::new(&mut memory);
        let most = 1 + random.below(60);
        let fit = rest.iter().take(most).take_while(|record| block.push(record)).count().max(1);
        rest = &rest[fit..];
        file.extend_from_slice(block.finish());
    }
    file
}

fn small(random: &mut Random) -> u32 {
    number(random) as u32
}

fn text(random: &mut Random) -> u32 {
    if random.once_in(16) { small(random) } else { random.below(TEXTS as usize) as u32 }
}

fn when(random: &mut Random, clock: &mut i64) -> Span {
    let [start, duration] = span(random, clock);
    Span { start: start as u64, duration: duration as u64 }
}

fn called(random: &mut Random) -> Name {
    if random.once_in(3) { Name::Registered(small(random)) } else { Name::Text(text(random)) }
}

fn record(random: &mut Random, clock: &mut i64) -> Record<'static> {
    let domain = random.below(3) as u32;
    let depth = random.below(4) as u32;
    let time = when(random, clock).start;
    match random.below(24) {
        0 => Record::Rank { rank: small(random), world: small(random) },
        1 => Record::Collector { cupti: small(random), version: b"0.1.0" },
        2 => Record::Problem { code: small(random), what: b"a call" },
        3 => Record::Clocks { monotonic: number(random) as u64, wall: time, device: when(random, clock).start },
        4 => Record::Device {
            ordinal: small(random),
            memory: number(random) as u64,
            uuid: [7; 16],
            name: b"NVIDIA H200",
        },
        5 => Record::Domain { number: domain, text: random.one_of(&["LLM", "", "CCCL", "NCCL"]).as_bytes() },
        6 => Record::Registered { number: small(random), text: name(random, "range").as_bytes() },
        7 => Record::Thread { thread: small(random) },
        8 | 9 => Record::Push { domain, depth, time, name: called(random) },
        10 | 11 => Record::Pop { domain, depth, time },
        12 => Record::Start { domain, handle: number(random) as u64, time, name: called(random) },
        13 => Record::End { handle: number(random) as u64, time },
        14 | 15 => Record::Call { function: text(random), correlation: small(random), span: when(random, clock) },
        16 => Record::Node { node: number(random) as u64, original: number(random) as u64, time },
        17 => Record::Window { open: random.once_in(2), time },
        18 => Record::Copy {
            direction: random.below(12) as u8,
            bytes: number(random) as u64,
            place: place(random, clock),
        },
        19 => Record::Memset { bytes: number(random) as u64, place: place(random, clock) },
        20 => Record::Graph { graph: small(random), place: place(random, clock) },
        21 => Record::Count { counter: counter(random), value: number(random) as u64 },
        _ => Record::Kernel { name: text(random), place: place(random, clock), shape: shape(random) },
    }
}

fn counter(random: &mut Random) -> Counter {
    let counters = [
        Counter::DeviceRecordsDropped,
        Counter::HostRecordsDropped,
        Counter::NamesDropped,
        Counter::BytesUnwritten,
        Counter::Launches,
        Counter::TimesInvalid,
        Counter::TimesOutside,
        Counter::Other(99),
    ];
    *random.one_of(&counters)
}

fn place(random: &mut Random, clock: &mut i64) -> Place {
    let [device, context, stream, correlation] = [(); 4].map(|()| small(random));
    let node = if random.once_in(4) { number(random) as u64 } else { 0 };
    Place { device, context, stream, correlation, node, span: when(random, clock) }
}

fn shape(random: &mut Random) -> Shape {
    let [grid, block] = [(); 2].map(|()| [(); 3].map(|()| small(random)));
    let [registers, shared_static, shared_dynamic] = [(); 3].map(|()| small(random));
    Shape { grid, block, registers, shared_static, shared_dynamic }
}
