//! Numbers in as few bytes as they need, and the cursors that write and read them.

/// Writes into memory that is given. Once something did not fit, nothing more is written and [`Output::fits`] is false.
pub(crate) struct Output<'a> {
    bytes: &'a mut [u8],
    at: usize,
    fits: bool,
}

impl<'a> Output<'a> {
    pub(crate) fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, at: 0, fits: true }
    }

    pub(crate) fn fits(&self) -> bool {
        self.fits
    }

    pub(crate) fn written(&self) -> usize {
        self.at
    }

    pub(crate) fn byte(&mut self, byte: u8) {
        match self.bytes.get_mut(self.at) {
            Some(slot) => {
                *slot = byte;
                self.at += 1;
            }
            None => self.fits = false,
        }
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        let room = self.at.checked_add(bytes.len()).and_then(|end| self.bytes.get_mut(self.at..end));
        match room {
            Some(room) => {
                // Lengths are equal by construction; zipping says so to the compiler without a way to fail.
                for (slot, byte) in room.iter_mut().zip(bytes) {
                    *slot = *byte;
                }
                self.at += bytes.len();
            }
            None => self.fits = false,
        }
    }

    /// Seven bits a byte, least first; the highest bit says that more follows.
    pub(crate) fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.byte(number as u8 | 0x80);
            number >>= 7;
        }
        self.byte(number as u8);
    }

    /// Small distances in either direction are small numbers.
    pub(crate) fn signed(&mut self, number: i64) {
        self.number(((number << 1) ^ (number >> 63)) as u64);
    }
}

/// Reads from bytes; `None` where they end or are no number.
pub(crate) struct Input<'a> {
    bytes: &'a [u8],
}

impl<'a> Input<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*first)
    }

    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(taken)
    }

    pub(crate) fn rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.bytes)
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return None;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    pub(crate) fn narrow(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    pub(crate) fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }
}

/// Checksum of the records of a block: FNV-1a over the bytes, folded to 32 bits: finds torn and overwritten blocks, and needs no table.
pub fn checksum(bytes: &[u8]) -> u32 {
    let mix = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let sum = bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix);
    (sum ^ (sum >> 32)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_at_the_edges_come_back() {
        let mut room = [0; 10];
        for number in [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX] {
            let mut output = Output::new(&mut room);
            output.number(number);
            let written = output.written();
            assert_eq!(Input::new(&room[..written]).number(), Some(number));
        }
        for number in [0, -1, 1, i64::MIN, i64::MAX] {
            let mut output = Output::new(&mut room);
            output.signed(number);
            let written = output.written();
            assert_eq!(Input::new(&room[..written]).signed(), Some(number));
        }
    }

    #[test]
    fn a_number_that_is_too_long_or_cut_off_is_none() {
        assert_eq!(Input::new(&[0xff; 10]).number(), None);
        assert_eq!(Input::new(&[0x80; 3]).number(), None);
        assert_eq!(Input::new(&[]).number(), None);
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let mut room = [0; 2];
        let mut output = Output::new(&mut room);
        output.bytes(&[1, 2, 3]);
        assert!(!output.fits() && output.written() == 0);
    }
}
