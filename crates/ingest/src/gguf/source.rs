//! The bytes of a header, read in order: every length is checked against what is left of the file before it is believed.

use std::io::{self, Read};

use crate::IngestError;

pub(super) struct Source<'a, R> {
    bytes: R,
    file: &'a str,
    at: u64,
    size: u64,
}

impl<'a, R: Read> Source<'a, R> {
    /// `size` bytes of `file`.
    pub(super) fn new(bytes: R, size: u64, file: &'a str) -> Self {
        Self { bytes, file, at: 0, size }
    }

    pub(super) fn file(&self) -> &'a str {
        self.file
    }

    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Bytes behind this place.
    pub(super) fn left(&self) -> u64 {
        self.size.saturating_sub(self.at)
    }

    /// What is wrong at this place.
    pub(super) fn damaged(&self, what: &str, reason: impl Into<String>) -> IngestError {
        IngestError::Damaged {
            file: self.file.to_owned(),
            place: format!("byte {}, {what}", self.at),
            reason: reason.into(),
        }
    }

    pub(super) fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], IngestError> {
        let mut bytes = [0; N];
        self.fill(&mut bytes, what)?;
        Ok(bytes)
    }

    pub(super) fn u32(&mut self, what: &str) -> Result<u32, IngestError> {
        self.array(what).map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self, what: &str) -> Result<u64, IngestError> {
        self.array(what).map(u64::from_le_bytes)
    }

    /// A name of at most `most` bytes.
    pub(super) fn name(&mut self, most: u64, what: &str) -> Result<String, IngestError> {
        let length = self.u64(what)?;
        if length > most {
            return Err(self.damaged(what, format!("a name of {length} bytes; the limit is {most}")));
        }
        self.text(length, what)
    }

    /// A text of `length` bytes; what is not UTF-8 in it is replaced.
    pub(super) fn text(&mut self, length: u64, what: &str) -> Result<String, IngestError> {
        self.enough(length, what)?;
        let mut bytes = vec![0; length as usize];
        self.fill(&mut bytes, what)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Passes over `length` bytes.
    pub(super) fn skip(&mut self, length: u64, what: &str) -> Result<(), IngestError> {
        self.enough(length, what)?;
        let passed = io::copy(&mut (&mut self.bytes).take(length), &mut io::sink());
        match passed {
            Ok(passed) if passed == length => {
                self.at += length;
                Ok(())
            }
            Ok(_) => Err(self.ends(what)),
            Err(error) => Err(self.damaged(what, error.to_string())),
        }
    }

    fn fill(&mut self, bytes: &mut [u8], what: &str) -> Result<(), IngestError> {
        self.enough(bytes.len() as u64, what)?;
        match self.bytes.read_exact(bytes) {
            Ok(()) => {
                self.at += bytes.len() as u64;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(self.ends(what)),
            Err(error) => Err(self.damaged(what, error.to_string())),
        }
    }

    fn enough(&self, length: u64, what: &str) -> Result<(), IngestError> {
        if length <= self.left() {
            return Ok(());
        }
        Err(self.damaged(
            what,
            format!("{length} bytes are needed, but only {} are left before the file ends", self.left()),
        ))
    }

    fn ends(&self, what: &str) -> IngestError {
        self.damaged(what, "the file ends here")
    }
}
