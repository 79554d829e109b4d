//! Paths of files, without memory of the application's.

use core::ffi::CStr;

/// Longest path, with its zero.
const PATH: usize = 4096;

/// A path as C wants it.
pub(crate) struct Path {
    bytes: [u8; PATH],
    length: usize,
}

impl Path {
    /// A path of these bytes.
    pub(crate) fn of(text: &[u8]) -> Self {
        let mut path = Self { bytes: [0; PATH], length: 0 };
        path.append(text);
        path
    }

    /// An empty one.
    pub(crate) const fn new() -> Self {
        Self { bytes: [0; PATH], length: 0 }
    }

    /// Adds to it; what does not fit makes it empty, so that no other file is meant.
    pub(crate) fn append(&mut self, text: &[u8]) {
        let end = self.length.saturating_add(text.len());
        match self.bytes.get_mut(self.length..end) {
            Some(room) if end < PATH => {
                for (slot, byte) in room.iter_mut().zip(text) {
                    *slot = *byte;
                }
                self.length = end;
            }
            _ => *self = Self::new(),
        }
    }

    /// Adds a number.
    pub(crate) fn append_number(&mut self, mut number: u32) {
        let mut digits = [0; 10];
        for slot in digits.iter_mut().rev() {
            *slot = b'0' + (number % 10) as u8;
            number /= 10;
        }
        let first = digits.iter().position(|digit| *digit != b'0').unwrap_or(digits.len() - 1);
        self.append(digits.get(first..).unwrap_or_default());
    }

    /// As C wants it; `None` where it is empty.
    pub(crate) fn as_c(&self) -> Option<&CStr> {
        if self.length == 0 { None } else { CStr::from_bytes_until_nul(&self.bytes).ok() }
    }

    /// Its bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_does_not_fit_is_no_path() {
        let mut path = Path::of(b"/a");
        path.append(b"/");
        path.append_number(120);
        assert_eq!(path.as_c(), Some(c"/a/120"));
        path.append(&[b'x'; PATH]);
        assert_eq!(path.as_c(), None);
    }
}
