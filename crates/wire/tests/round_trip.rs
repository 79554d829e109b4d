//! What is written is read again, and what is damaged costs what it must and no more.

use llm_perf_wire as wire;
use proptest::prelude::*;
use wire::{BlockWriter, Counter, Name, OpenError, Piece, Place, Record, Shape, Span, header, open};

fn file<'r>(blocks: impl IntoIterator<Item = Vec<Record<'r>>>) -> Vec<u8> {
    let mut file = header().to_vec();
    for records in blocks {
        let mut room = vec![0; 1 << 16];
        let mut block = BlockWriter::new(&mut room);
        for record in &records {
            assert!(block.push(record), "{record:?} does not fit");
        }
        file.extend_from_slice(block.finish());
    }
    file
}

/// Every record of the whole blocks, and how many bytes were not one.
fn read(file: &[u8]) -> (Vec<Record<'_>>, usize) {
    let (mut records, mut damaged) = (Vec::new(), 0);
    for piece in open(file).unwrap() {
        match piece {
            Piece::Block(block) => records.extend(block),
            Piece::Damaged(damage) => damaged += damage.bytes,
        }
    }
    (records, damaged)
}

fn one_of_each() -> Vec<Record<'static>> {
    let span = Span { start: 1_700_000_000_123_456_789, duration: 1500 };
    let place = Place { device: 1, context: 2, stream: 7, correlation: 4_000_000_000, node: 1 << 40, span };
    let shape =
        Shape { grid: [128, 1, 1], block: [256, 2, 1], registers: 40, shared_static: 0, shared_dynamic: 98_304 };
    vec![
        Record::Process { process: 42, parent: 1, name: b"python3" },
        Record::Collector { cupti: 130_001, version: b"0.1.0" },
        Record::Problem { code: 39, what: b"cuptiSubscribe" },
        Record::Clocks { monotonic: 5, wall: 1_700_000_000_000_000_000, device: 0 },
        Record::Device { ordinal: 0, memory: 150_000_000_000, uuid: [7; 16], name: b"NVIDIA H200" },
        Record::Text { number: 0, text: b"_Z4gemmv" },
        Record::Domain { number: 1, text: b"LLM" },
        Record::Registered { number: 3, text: "Schicht \u{fc}".as_bytes() },
        Record::Thread { thread: 43 },
        Record::Push { domain: 1, depth: 0, time: 100, name: Name::Registered(3) },
        Record::Start { domain: 0, handle: 9, time: 90, name: Name::Text(0) },
        Record::Call { function: 0, correlation: 4_000_000_000, span: Span { start: 120, duration: 8 } },
        Record::Node { node: 1 << 40, original: 5, time: 121 },
        Record::Window { open: true, time: 122 },
        Record::End { handle: 9, time: 130 },
        Record::Pop { domain: 1, depth: 0, time: u64::MAX },
        Record::Kernel { name: 0, place, shape },
        Record::Copy { direction: 1, bytes: 1 << 33, place: Place { correlation: 1, ..place } },
        Record::Memset { bytes: 0, place: Place { span: Span { start: 1, duration: 0 }, ..place } },
        Record::Graph { graph: 6, place },
        Record::Count { counter: Counter::HostRecordsDropped, value: 3 },
        Record::Count { counter: Counter::Other(77), value: 1 },
        Record::Finish,
        Record::Rank { rank: 3, world: 8 },
    ]
}

#[test]
fn every_record_comes_back() {
    let written = file([one_of_each(), one_of_each()]);
    let expected: Vec<_> = one_of_each().into_iter().chain(one_of_each()).collect();
    assert_eq!(read(&written), (expected, 0));
}

#[test]
fn a_file_cut_anywhere_gives_the_blocks_before_the_cut() {
    let written = file([one_of_each(), one_of_each()]);
    let (first, count) = (file([one_of_each()]).len(), one_of_each().len());
    for cut in wire::HEADER_BYTES..written.len() {
        let (records, damaged) = read(&written[..cut]);
        let (whole, end) = if cut < first { (0, wire::HEADER_BYTES) } else { (1, first) };
        assert_eq!((records.len(), damaged), (whole * count, cut - end), "cut at {cut}");
    }
    for cut in 0..wire::HEADER_BYTES {
        assert_eq!(open(&written[..cut]).err(), Some(OpenError::TooShort), "cut at {cut}");
    }
}

#[test]
fn a_damaged_block_costs_itself_alone() {
    let (mut written, first) = (file([one_of_each(), one_of_each(), one_of_each()]), file([one_of_each()]).len());
    written[first + 40] ^= 1;
    let (records, damaged) = read(&written);
    assert_eq!((records.len(), damaged), (2 * one_of_each().len(), first - wire::HEADER_BYTES));
}

#[test]
fn a_newer_version_is_refused_and_other_bytes_are_not_taken_for_ours() {
    let mut newer = file([one_of_each()]);
    newer[8] = 2;
    assert_eq!(open(&newer).err(), Some(OpenError::Newer(2)));
    assert_eq!(open(b"SQLite format 3\0").err(), Some(OpenError::NotWire));
    assert_eq!(open(b"").err(), Some(OpenError::TooShort));
}

#[test]
fn a_tag_of_a_newer_writer_is_passed_over() {
    // Tag 200 with two bytes of fields, between two records that are known.
    let mut room = [0; 256];
    let mut block = BlockWriter::new(&mut room);
    assert!(block.push(&Record::Thread { thread: 1 }));
    let end = block.finish().len();
    let mut contents = room[12..end].to_vec();
    contents.extend_from_slice(&[200, 2, 0, 9, 9]);
    contents.extend_from_slice(&room[12..end]);
    let mut written = header().to_vec();
    written.extend_from_slice(&room[..4]);
    written.extend_from_slice(&(contents.len() as u32).to_le_bytes());
    let sum = contents
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
    written.extend_from_slice(&((sum ^ (sum >> 32)) as u32).to_le_bytes());
    written.extend_from_slice(&contents);
    assert_eq!(read(&written), (vec![Record::Thread { thread: 1 }, Record::Thread { thread: 1 }], 0));
    let Some(Piece::Block(mut records)) = open(&written).unwrap().next() else { panic!("no block") };
    assert_eq!((records.by_ref().count(), records.unknown, records.malformed), (2, 1, false));
}

#[test]
fn a_full_block_says_so_and_stays_as_it_was() {
    let mut room = [0; 40];
    let mut block = BlockWriter::new(&mut room);
    let record = Record::Push { domain: 0, depth: 0, time: 1_000_000, name: Name::Text(1) };
    let mut fitted = 0;
    while block.push(&record) {
        fitted += 1;
    }
    let mut written = header().to_vec();
    written.extend_from_slice(block.finish());
    assert!(fitted > 1);
    assert_eq!(read(&written), (vec![record; fitted], 0));
    assert!(BlockWriter::new(&mut [0; 5]).finish().is_empty(), "too small for a header, so there is no block");
}

#[test]
fn a_text_longer_than_a_record_may_have_is_cut() {
    let text = vec![b'x'; wire::LONGEST_TEXT + 1];
    let written = file([vec![Record::Text { number: 1, text: &text }]]);
    assert_eq!(read(&written).0, [Record::Text { number: 1, text: &text[..wire::LONGEST_TEXT] }]);
}

proptest! {
    #[test]
    fn any_bytes_behind_a_header_are_read_or_counted(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        let mut file = header().to_vec();
        file.extend_from_slice(&bytes);
        let (records, damaged) = read(&file);
        prop_assert!(damaged <= bytes.len() && records.len() <= bytes.len() / 3);
    }

    #[test]
    fn calls_with_any_numbers_come_back(calls in proptest::collection::vec((any::<u32>(), any::<u32>(), any::<u64>(), any::<u64>()), 0..60)) {
        let call = |(function, correlation, start, duration)| Record::Call { function, correlation, span: Span { start, duration } };
        let calls: Vec<_> = calls.into_iter().map(call).collect();
        let written = file([calls.clone()]);
        prop_assert_eq!(read(&written), (calls, 0));
    }
}
