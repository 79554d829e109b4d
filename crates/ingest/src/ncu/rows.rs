//! The rows of a table behind its header, with all that is not one of them sorted out.

use std::io::BufRead;

use super::header::Header;
use super::log::Log;
use super::tally::Tally;
use crate::IngestError;
use crate::csv::{Records, Shape};

/// The rest of a page: what both kinds of page share while they are read.
pub(super) struct Rows<'a, 'f, R> {
    pub(super) records: &'a mut Records<'f, R>,
    pub(super) log: Log,
    pub(super) tally: Tally,
}

/// What comes next.
pub(super) enum Next {
    /// A row with all its fields, now current in the records.
    Row,
    /// A header, because the tool or a script wrote several tables one after another.
    Header(Header),
    /// Nothing.
    End,
}

impl<R: BufRead> Rows<'_, '_, R> {
    /// Goes to the next row whose number of fields is right for `is_width`.
    pub(super) fn next(&mut self, header: &Header, is_width: impl Fn(usize) -> bool) -> Result<Next, IngestError> {
        while self.records.next_line()? {
            let text = self.records.text();
            if text.is_empty() || self.log.take(text) {
                continue;
            }
            // The tool puts all fields in quotes, so a line that starts without one is another program's.
            if header.is_quoted && !text.starts_with(b"\"") {
                self.tally.foreign += 1;
                continue;
            }
            if let Some(header) = Header::recognise(self.records) {
                return Ok(Next::Header(header));
            }
            let shape = self.records.split_record()?;
            // Without a line break behind it, a row is only known to be whole when its last field has both quotes.
            let is_ended = self.records.is_terminated() || self.records.text().ends_with(b"\"");
            match shape {
                Shape::Whole if is_ended && is_width(self.records.len()) => return Ok(Next::Row),
                Shape::Open => self.tally.cut += 1,
                _ if !self.records.is_terminated() => self.tally.cut += 1,
                _ => self.tally.unreadable += 1,
            }
        }
        Ok(Next::End)
    }

    /// Takes the current row for one that cannot be read after all.
    pub(super) fn refuse(&mut self) {
        self.tally.unreadable += 1;
    }
}
