//! One block: the unit that is written at once and checked on its own.

use crate::coding::Base;
use crate::number::{Output, checksum};
use crate::record::Record;

/// Bytes before the records of a block: marker, length, checksum.
pub(crate) const BLOCK_HEADER: usize = 12;

/// First bytes of a block. Not text, so that no name looks like one.
pub(crate) const MARKER: [u8; 4] = [0xb1, 0x0c, 0x4c, 0x50];

/// Bytes before the fields of a record: tag and length.
pub(crate) const RECORD_HEADER: usize = 3;

/// Fills a block in memory that is given.
pub struct BlockWriter<'a> {
    bytes: &'a mut [u8],
    used: usize,
    base: Base,
}

impl<'a> BlockWriter<'a> {
    /// An empty block.
    pub fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, used: BLOCK_HEADER, base: Base::default() }
    }

    /// Adds a record; `false` where it does not fit, and then the block is as before.
    pub fn push(&mut self, record: &Record<'_>) -> bool {
        let before = self.base;
        if self.add(record).is_some() {
            return true;
        }
        self.base = before;
        false
    }

    fn add(&mut self, record: &Record<'_>) -> Option<()> {
        let [tag_slot, low, high, room @ ..] = self.bytes.get_mut(self.used..)? else { return None };
        let mut output = Output::new(room);
        let tag = record.put(&mut output, &mut self.base);
        let length = u16::try_from(output.written()).ok().filter(|_| output.fits())?;
        *tag_slot = tag;
        [*low, *high] = length.to_le_bytes();
        self.used += RECORD_HEADER + usize::from(length);
        Some(())
    }

    /// The block, ready to be written; nothing where it has no record.
    pub fn finish(self) -> &'a [u8] {
        let empty: &[u8] = &[];
        if self.used == BLOCK_HEADER {
            return empty;
        }
        let Some(block) = self.bytes.get_mut(..self.used) else { return empty };
        let Some((header, records)) = block.split_at_mut_checked(BLOCK_HEADER) else { return empty };
        let length = (records.len() as u32).to_le_bytes();
        let parts = MARKER.into_iter().chain(length).chain(checksum(records).to_le_bytes());
        for (slot, byte) in header.iter_mut().zip(parts) {
            *slot = byte;
        }
        block
    }
}
