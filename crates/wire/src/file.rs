//! A file, read: its blocks, whole or damaged, and their records.

use crate::block::{BLOCK_HEADER, MARKER, RECORD_HEADER};
use crate::coding::Base;
use crate::number::{Input, checksum};
use crate::record::Record;
use crate::{HEADER_BYTES, MAGIC, VERSION};

/// Why bytes are not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// They end before the first block could start.
    TooShort,
    /// They start otherwise.
    NotWire,
    /// They are of a newer version.
    Newer(u16),
}

/// A part of a file.
#[derive(Debug)]
pub enum Piece<'a> {
    /// A whole block.
    Block(Records<'a>),
    /// Bytes that are no block.
    Damaged(Damage),
}

/// Bytes that are no block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where they start.
    pub at: usize,
    /// How many.
    pub bytes: usize,
    /// Whether the file ends with them, as that of a process does which was killed while it wrote.
    pub torn: bool,
}

/// The parts of a file, in order.
#[derive(Clone, Debug)]
pub struct Pieces<'a> {
    file: &'a [u8],
    at: usize,
}

/// The records of a block, in order.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    rest: &'a [u8],
    base: Base,
    /// Records whose tag is not known, passed over so far.
    pub unknown: u64,
    /// Whether a record was malformed; the rest of its block is not read.
    pub malformed: bool,
}

/// Looks at the beginning of a file.
pub fn open(file: &[u8]) -> Result<Pieces<'_>, OpenError> {
    let begins = file.len().min(MAGIC.len());
    if file[..begins] != MAGIC[..begins] {
        return Err(OpenError::NotWire);
    }
    let Some(header) = file.get(..HEADER_BYTES) else { return Err(OpenError::TooShort) };
    let version = u16::from_le_bytes([header[8], header[9]]);
    if version > VERSION {
        return Err(OpenError::Newer(version));
    }
    Ok(Pieces { file, at: HEADER_BYTES })
}

/// The records of a block that is whole.
fn block(bytes: &[u8]) -> Option<&[u8]> {
    let (header, rest) = bytes.split_at_checked(BLOCK_HEADER)?;
    if header[..4] != MARKER {
        return None;
    }
    let number = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let records = rest.get(..usize::try_from(number(4)).ok()?)?;
    (checksum(records) == number(8)).then_some(records)
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        let rest = self.file.get(self.at..).filter(|rest| !rest.is_empty())?;
        if let Some(records) = block(rest) {
            self.at += BLOCK_HEADER + records.len();
            return Some(Piece::Block(Records { rest: records, base: Base::default(), unknown: 0, malformed: false }));
        }
        // Whatever it is, the next block starts with a marker. A marker inside of it may be followed by a length that
        // reaches far, so every candidate costs at most one checksum over the rest; damage is rare.
        let candidates = rest.windows(MARKER.len()).enumerate().skip(1).filter(|(_, window)| *window == MARKER);
        let next = candidates.map(|(at, _)| at).take(MOST_CANDIDATES).find(|at| block(&rest[*at..]).is_some());
        let damage = Damage { at: self.at, bytes: next.unwrap_or(rest.len()), torn: next.is_none() };
        self.at += damage.bytes;
        Some(Piece::Damaged(damage))
    }
}

/// Markers that are tried after damage. A hostile file could otherwise cost the square of its length.
const MOST_CANDIDATES: usize = 64;

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        while !self.rest.is_empty() {
            let header_and_rest = self.rest.split_at_checked(RECORD_HEADER);
            let fields = header_and_rest.and_then(|(header, rest)| {
                let length = usize::from(u16::from_le_bytes([header[1], header[2]]));
                rest.split_at_checked(length).map(|(fields, rest)| (header[0], fields, rest))
            });
            let Some((tag, fields, rest)) = fields else {
                self.malformed = true;
                self.rest = &[];
                return None;
            };
            self.rest = rest;
            match Record::get(tag, Input::new(fields), &mut self.base) {
                Ok(Some(record)) => return Some(record),
                Ok(None) => self.unknown += 1,
                Err(_) => {
                    self.malformed = true;
                    self.rest = &[];
                    return None;
                }
            }
        }
        None
    }
}
