//! Changes of a file of the collector: records swapped, doubled and removed, and bytes of blocks changed behind their checksum.

use wire::{BlockWriter, Piece, Record};

use super::bytes;
use crate::random::Random;

/// Bytes before the records of a block: marker, length, checksum.
const BLOCK_HEADER: usize = 12;

/// A file after one to six changes.
pub(crate) fn mutated(random: &mut Random, seed: &[u8]) -> Vec<u8> {
    let mut records: Vec<Record<'_>> = Vec::new();
    for piece in wire::open(seed).expect("a seed is a file of the collector") {
        if let Piece::Block(block) = piece {
            records.extend(block);
        }
    }
    for _ in 0..=random.below(6) {
        change(random, &mut records);
    }
    let mut file = wire::header().to_vec();
    let mut rest = &records[..];
    while !rest.is_empty() {
        let mut memory = vec![0; 1 << 17];
        let mut block = BlockWriter::new(&mut memory);
        let most = 1 + random.below(rest.len().max(200));
        let fit = rest.iter().take(most).take_while(|record| block.push(record)).count().max(1);
        rest = &rest[fit..];
        let mut block = block.finish().to_vec();
        if random.once_in(4) && block.len() > BLOCK_HEADER {
            behind_checksum(random, &mut block);
        }
        file.extend_from_slice(&block);
    }
    if random.once_in(8) { bytes::mutated(random, &file) } else { file }
}

fn change<'a>(random: &mut Random, records: &mut Vec<Record<'a>>) {
    if records.is_empty() {
        return;
    }
    let (at, other) = (random.below(records.len()), random.below(records.len()));
    match random.below(6) {
        0 => records.swap(at, other),
        1 => drop(records.remove(at)),
        2 => drop(records.drain(at.min(other)..at.max(other))),
        3 => records.truncate(at + 1),
        4 => records[at.min(other)..at.max(other)].reverse(),
        _ => {
            let copies = vec![records[at]; 1 + random.below(50)];
            records.splice(other..other, copies);
        }
    }
}

fn behind_checksum(random: &mut Random, block: &mut [u8]) {
    let (header, records) = block.split_at_mut(BLOCK_HEADER);
    for _ in 0..=random.below(4) {
        let at = random.below(records.len());
        records[at] = if random.once_in(2) { random.number() as u8 } else { 0xff };
    }
    header[8..].copy_from_slice(&wire::checksum(records).to_le_bytes());
}
