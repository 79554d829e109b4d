//! Comma-separated text, record by record, as Nsight tools write it.
//!
//! Our own splitter and not a library's, because these files need three things at once: lines of other programs before
//! the table (in which a quote opens nothing), rows of differing lengths, and a bound on how much a record may take, so
//! that a file without a line break ends in an error and not in all of the memory.

use std::borrow::Cow;
use std::io::{BufRead, Read};

use crate::IngestError;

/// The longest record that is read. The widest rows seen have 1,315 fields in 24 kB; one with a value for each part of
/// the chip and each source line may be a hundred times as long.
pub(crate) const LONGEST_RECORD: usize = 16 << 20;

/// Lines of a reader, and records where a quoted field goes on over several lines.
pub(crate) struct Records<'f, R> {
    reader: R,
    file: &'f str,
    /// The longest record that is read.
    limit: usize,
    /// Lines read so far.
    lines: u64,
    text: Vec<u8>,
    fields: Vec<Field>,
    terminated: bool,
}

/// Bounds of a field in its record.
#[derive(Clone, Copy)]
struct Field {
    start: usize,
    end: usize,
    /// Whether a quote in it is written as two.
    doubled: bool,
}

/// How a line splits into fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// All fields are whole.
    Whole,
    /// The last field opens a quote that nothing closes.
    Open,
    /// Something stands behind a closing quote.
    Malformed,
}

impl<'f, R: BufRead> Records<'f, R> {
    pub(crate) fn new(reader: R, file: &'f str) -> Self {
        Self { reader, file, limit: LONGEST_RECORD, lines: 0, text: Vec::new(), fields: Vec::new(), terminated: true }
    }

    /// The file, as messages name it.
    pub(crate) fn file(&self) -> &'f str {
        self.file
    }

    /// Number of the last line of the current record, counted from one.
    pub(crate) fn line(&self) -> u64 {
        self.lines
    }

    /// Whether the current line ends in a line break. Only the last line of a file may not.
    pub(crate) fn is_terminated(&self) -> bool {
        self.terminated
    }

    /// The current record as text.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Goes to the next line; `false` at the end of the file.
    pub(crate) fn next_line(&mut self) -> Result<bool, IngestError> {
        self.text.clear();
        self.fields.clear();
        if !self.append_line()? {
            return Ok(false);
        }
        if self.lines == 1 {
            if self.text.starts_with(b"\xff\xfe") || self.text.starts_with(b"\xfe\xff") {
                return Err(IngestError::WrongKind {
                    file: self.file.to_owned(),
                    pointer: String::new(),
                    expected: "UTF-8 text",
                    found: "UTF-16 text".to_owned(),
                });
            }
            if self.text.starts_with(b"\xef\xbb\xbf") {
                self.text.drain(..3);
            }
        }
        Ok(true)
    }

    /// Splits the current line, and goes on with the lines below while a quoted field is open.
    pub(crate) fn split_record(&mut self) -> Result<Shape, IngestError> {
        let shape = self.split_line();
        if shape != Shape::Open {
            return Ok(shape);
        }
        loop {
            let before = self.text.len();
            self.text.push(b'\n');
            if !self.append_line()? {
                self.text.truncate(before);
                return Ok(Shape::Open);
            }
            // Within an open field every quote opens or closes, so an even number leaves it open.
            let quotes = self.text[before..].iter().filter(|byte| **byte == b'"').count();
            if quotes % 2 == 1 {
                return Ok(self.split_line());
            }
        }
    }

    /// Splits the current line by itself.
    pub(crate) fn split_line(&mut self) -> Shape {
        self.fields.clear();
        split(&self.text, &mut self.fields)
    }

    /// Number of fields.
    pub(crate) fn len(&self) -> usize {
        self.fields.len()
    }

    /// Field `index` as it stands between its quotes. A quote in it may be doubled; no number has one.
    pub(crate) fn raw(&self, index: usize) -> Option<&[u8]> {
        let field = self.fields.get(index)?;
        Some(&self.text[field.start..field.end])
    }

    /// Field `index` as text. Bytes that are no UTF-8 become replacement characters.
    pub(crate) fn field(&self, index: usize) -> Option<Cow<'_, str>> {
        let text = String::from_utf8_lossy(self.raw(index)?);
        Some(if self.fields[index].doubled { Cow::Owned(text.replace("\"\"", "\"")) } else { text })
    }

    fn append_line(&mut self) -> Result<bool, IngestError> {
        let room = (self.limit + 1).saturating_sub(self.text.len());
        let read = (&mut self.reader).take(room as u64).read_until(b'\n', &mut self.text).map_err(|error| {
            IngestError::Unreadable { file: self.file.to_owned(), line: self.lines + 1, reason: error.to_string() }
        })?;
        let ended = read > 0 && self.text.last() == Some(&b'\n');
        if !ended && self.text.len() > self.limit {
            let line = self.lines + 1;
            return Err(IngestError::LineTooLong { file: self.file.to_owned(), line, limit: self.limit });
        }
        if read == 0 {
            return Ok(false);
        }
        self.lines += 1;
        self.terminated = ended;
        if ended {
            self.text.pop();
            if self.text.last() == Some(&b'\r') {
                self.text.pop();
            }
        }
        Ok(true)
    }
}

fn split(text: &[u8], fields: &mut Vec<Field>) -> Shape {
    let mut start = 0;
    loop {
        let end = if text.get(start) == Some(&b'"') {
            let mut doubled = false;
            let mut at = start + 1;
            loop {
                match text[at..].iter().position(|byte| *byte == b'"') {
                    None => return Shape::Open,
                    Some(step) if text.get(at + step + 1) == Some(&b'"') => {
                        doubled = true;
                        at += step + 2;
                    }
                    Some(step) => {
                        at += step;
                        break;
                    }
                }
            }
            fields.push(Field { start: start + 1, end: at, doubled });
            at + 1
        } else {
            let rest = &text[start..];
            let end = start + rest.iter().position(|byte| *byte == b',').unwrap_or(rest.len());
            fields.push(Field { start, end, doubled: false });
            end
        };
        match text.get(end) {
            None => return Shape::Whole,
            Some(b',') => start = end + 1,
            Some(_) => return Shape::Malformed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(text: &str) -> Result<Vec<(Shape, Vec<String>)>, IngestError> {
        let mut records = Records::new(text.as_bytes(), "x.csv");
        let mut all = Vec::new();
        while records.next_line()? {
            let shape = records.split_record()?;
            all.push((
                shape,
                (0..records.len()).filter_map(|index| Some(records.field(index)?.into_owned())).collect(),
            ));
        }
        Ok(all)
    }

    #[test]
    fn fields_keep_commas_quotes_and_line_breaks() {
        let all = records("\"a,b\",\"say \"\"hi\"\"\",c\r\n\"two\nlines\",,\"\"\n").unwrap();
        assert_eq!(all[0], (Shape::Whole, vec!["a,b".into(), "say \"hi\"".into(), "c".into()]));
        assert_eq!(all[1], (Shape::Whole, vec!["two\nlines".into(), String::new(), String::new()]));
        assert_eq!(all.len(), 2);
    }

    #[test]
    fn a_comma_at_the_end_makes_an_empty_field() {
        assert_eq!(records("\"a\",\n").unwrap()[0].1, ["a", ""]);
    }

    #[test]
    fn a_quote_that_nothing_closes_is_told_apart_from_text_behind_a_quote() {
        assert_eq!(records("1,\"abc").unwrap()[0].0, Shape::Open);
        assert_eq!(records("1,\"abc\"d,2\n").unwrap()[0].0, Shape::Malformed);
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_first_field() {
        assert_eq!(records("\u{feff}ID,x\n").unwrap()[0].1, ["ID", "x"]);
        let mut wide = Records::new(&b"\xff\xfeI\0D\0"[..], "x.csv");
        let error = wide.next_line().unwrap_err();
        assert_eq!(error.to_string(), "x.csv: the document is UTF-16 text, expected UTF-8 text");
    }

    #[test]
    fn a_line_without_end_is_refused_by_number_and_not_read_into_memory() {
        let endless = b"ID\n".chain(std::io::repeat(b'x'));
        let mut records = Records::new(std::io::BufReader::new(endless), "x.csv");
        assert!(records.next_line().unwrap());
        let error = records.next_line().unwrap_err();
        assert_eq!(error.to_string(), "x.csv, line 2: longer than 16777216 bytes");
        assert!(records.text.capacity() <= 3 * LONGEST_RECORD);
    }

    #[test]
    fn an_open_quote_before_endless_lines_is_refused_too() {
        let lines = "x\n".repeat(100);
        let mut records = Records::new(b"\"".chain(lines.as_bytes()), "x.csv");
        records.limit = 64;
        assert!(records.next_line().unwrap());
        let error = records.split_record().unwrap_err();
        assert_eq!(error.to_string(), "x.csv, line 33: longer than 64 bytes");
    }
}
