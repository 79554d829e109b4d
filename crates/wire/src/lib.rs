//! The records that the collector inside a CUDA process writes and `ingest` reads.
//!
//! A file belongs to one process: a magic, a version, then blocks. A block has a marker, its length and a checksum, and
//! is encoded on its own: times are relative to the ones before them in the same block and to nothing else. A process
//! may die at any moment, so a file may end anywhere; what comes before the torn block is whole, and a damaged block in
//! the middle costs that block only. Texts are written once and referred to by number, across blocks.
//!
//! Records have a tag and a length. A reader passes over tags it does not know, and fields that were added behind those it
//! knows; only a change of what is already there needs a new [`VERSION`].
//!
//! No standard library, no allocation and no file here: the writer is linked into other people's processes.
//!
//! ```
//! use llm_perf_wire::{BlockWriter, Piece, Record, header, open};
//!
//! let mut memory = [0; 1024];
//! let mut block = BlockWriter::new(&mut memory);
//! assert!(block.push(&Record::Process { process: 42, parent: 1, name: b"python3" }));
//! let file = [&header(), block.finish()].concat();
//!
//! let Some(Piece::Block(mut records)) = open(&file).unwrap().next() else { panic!("a whole block") };
//! assert!(matches!(records.next(), Some(Record::Process { process: 42, .. })));
//! // A file that was cut gives what came before, and says where.
//! let Some(Piece::Damaged(damage)) = open(&file[..file.len() - 1]).unwrap().next() else { panic!("a torn block") };
//! assert!(damage.torn);
//! ```
#![no_std]

#[cfg(test)]
extern crate std;

mod block;
mod coding;
mod file;
mod number;
mod record;

pub use block::BlockWriter;
pub use file::{Damage, OpenError, Piece, Pieces, Records, open};
pub use number::checksum;
pub use record::{Counter, Name, Place, Record, Shape, Span};

/// First bytes of a file.
pub const MAGIC: [u8; 8] = *b"LLMPERFW";

/// Version of the format. A reader refuses a newer one.
pub const VERSION: u16 = 1;

/// Bytes before the first block: magic, version, and two bytes that are zero.
pub const HEADER_BYTES: usize = 12;

/// Most bytes of text in one record; longer texts are cut by the writer, which counts them.
pub const LONGEST_TEXT: usize = 16 << 10;

/// The bytes a file starts with.
pub const fn header() -> [u8; HEADER_BYTES] {
    let [low, high] = VERSION.to_le_bytes();
    let m = MAGIC;
    [m[0], m[1], m[2], m[3], m[4], m[5], m[6], m[7], low, high, 0, 0]
}
