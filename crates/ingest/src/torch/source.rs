//! Where the bytes of a trace come from: all of them at hand, or block after block.

use std::io::{ErrorKind, Read};

use super::events::{Expectation, Pause, Progress, scan};
use super::parallel::{self, Plan};
use super::part::Part;
use crate::IngestError;

/// A window on the bytes from the current place on.
pub(crate) trait Source {
    /// The bytes at hand.
    fn window(&self) -> &[u8];
    /// Moves the current place forward.
    fn consume(&mut self, bytes: usize);
    /// Bytes before the window.
    fn offset(&self) -> u64;
    /// Makes the window longer; `false` where nothing follows.
    fn more(&mut self) -> Result<bool, IngestError>;
    /// Reads the events of a list that has just been opened, up to where it ends.
    fn events(&mut self, plan: Plan, part: &mut Part) -> Result<Pause, IngestError>;
    /// What cut the input short, where something did and it was not the end of the file.
    fn fault(&self) -> Option<&str>;
}

/// Bytes that are all there, such as a mapped file.
pub(crate) struct Whole<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) at: usize,
}

impl Source for Whole<'_> {
    fn window(&self) -> &[u8] {
        &self.bytes[self.at..]
    }

    fn consume(&mut self, bytes: usize) {
        self.at += bytes;
    }

    fn offset(&self) -> u64 {
        self.at as u64
    }

    fn more(&mut self) -> Result<bool, IngestError> {
        Ok(false)
    }

    fn events(&mut self, plan: Plan, part: &mut Part) -> Result<Pause, IngestError> {
        let Progress { at, pause, .. } = parallel::read(self.bytes, self.at, plan, part);
        self.at = at;
        Ok(pause)
    }

    fn fault(&self) -> Option<&str> {
        None
    }
}

/// Bytes that come in blocks, such as a compressed file.
pub(crate) struct Blocks<'a, R> {
    file: &'a str,
    reader: R,
    buffer: Vec<u8>,
    at: usize,
    before: u64,
    fault: Option<String>,
}

/// How much is read at a time.
const BLOCK: usize = 1 << 20;

impl<'a, R: Read> Blocks<'a, R> {
    pub(crate) fn new(file: &'a str, reader: R) -> Self {
        Self { file, reader, buffer: Vec::new(), at: 0, before: 0, fault: None }
    }
}

impl<R: Read> Source for Blocks<'_, R> {
    fn window(&self) -> &[u8] {
        &self.buffer[self.at..]
    }

    fn consume(&mut self, bytes: usize) {
        self.at += bytes;
    }

    fn offset(&self) -> u64 {
        self.before + self.at as u64
    }

    fn more(&mut self) -> Result<bool, IngestError> {
        if self.fault.is_some() {
            return Ok(false);
        }
        self.before += self.at as u64;
        self.buffer.drain(..self.at);
        self.at = 0;
        // At least as much as there is: a value that spans many blocks is looked at again from its beginning each time,
        // and stays linear in cost.
        let old = self.buffer.len();
        let wanted = old.max(BLOCK);
        let read = self.reader.by_ref().take(wanted as u64).read_to_end(&mut self.buffer);
        match read {
            Ok(read) => Ok(read > 0),
            // What was read before the fault is in the buffer.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::UnexpectedEof | ErrorKind::InvalidData | ErrorKind::InvalidInput
                ) =>
            {
                self.fault = Some(error.to_string());
                Ok(self.buffer.len() > old)
            }
            Err(error) => Err(IngestError::Damaged {
                file: self.file.to_owned(),
                place: format!("byte {}", self.before + self.buffer.len() as u64),
                reason: error.to_string(),
            }),
        }
    }

    fn events(&mut self, plan: Plan, part: &mut Part) -> Result<Pause, IngestError> {
        let mut expect = Expectation::Event;
        loop {
            let progress = scan(&self.buffer, self.at, expect, usize::MAX, plan.largest, part);
            self.at = progress.at;
            expect = progress.expect;
            if progress.pause != Pause::More || !self.more()? {
                return Ok(progress.pause);
            }
        }
    }

    fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }
}
