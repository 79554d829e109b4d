//! Nsight Compute: the raw and the details page as CSV, and the log of a run that profiled nothing.
//!
//! Numbers are turned into base units here, once. Ranges are given as the stack that was open at each launch; which
//! kernels belong to which region is for others to work out.

mod details;
mod header;
mod limit;
mod log;
mod nvtx;
mod raw;
mod rows;
mod tally;
mod texts;
mod unit;
mod value;

use std::io::BufRead;

use types::QualityCounter;
use types::counter::{CounterTable, DetailedWork};

pub use log::{MessageLevel, ToolMessage};

use crate::IngestError;
use crate::csv::Records;
use header::Header;
use log::Log;
use rows::Rows;
use tally::Tally;

const EXPECTED: &str = "CSV of Nsight Compute (`ncu --csv --page raw` or `--page details`)";

/// Kinds of output of Nsight Compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NcuKind {
    /// The raw page.
    Raw,
    /// The details page.
    Details,
    /// Lines of a log; a page may follow.
    Log,
}

/// What a file of Nsight Compute holds.
#[derive(Clone, Debug)]
pub enum NcuFile {
    /// A raw page.
    Raw(RawPage),
    /// A details page.
    Details(DetailsPage),
    /// No page: nothing was profiled.
    Nothing(Vec<ToolMessage>),
}

/// A raw page: every counter of every work.
#[derive(Clone, Debug)]
pub struct RawPage {
    /// Works and their counters.
    pub table: CounterTable,
    /// What the tool warned of.
    pub messages: Vec<ToolMessage>,
    /// What could not be read.
    pub quality: Vec<QualityCounter>,
}

/// A details page: every section and rule of every work.
#[derive(Clone, Debug)]
pub struct DetailsPage {
    /// Works in the order of the file.
    pub works: Vec<DetailedWork>,
    /// What the tool warned of.
    pub messages: Vec<ToolMessage>,
    /// What could not be read.
    pub quality: Vec<QualityCounter>,
}

/// What kind of output `head`, the first bytes of a file, starts. `None` where nothing in it is Nsight Compute's, which
/// may be because a profiled program wrote more than that before the page.
pub fn sniff(head: &[u8]) -> Option<NcuKind> {
    let mut records = Records::new(head, "");
    let mut log = Log::default();
    while records.next_line().ok()? {
        if let Some(header) = Header::recognise(&mut records) {
            // A header that goes on behind the head has not shown its last columns; a raw page has hundreds.
            return Some(if header.has("Metric Name") { NcuKind::Details } else { NcuKind::Raw });
        }
        log.take(records.text());
    }
    log.is_of_tool.then_some(NcuKind::Log)
}

/// Reads what Nsight Compute wrote. `file` is only used in messages.
pub fn read(reader: impl BufRead, file: &str) -> Result<NcuFile, IngestError> {
    read_counters(reader, file, |_| true)
}

/// The same, keeping only the counters of a raw page that `keep` says yes to.
pub fn read_counters(reader: impl BufRead, file: &str, keep: impl Fn(&str) -> bool) -> Result<NcuFile, IngestError> {
    let mut records = Records::new(reader, file);
    let mut log = Log::default();
    let mut has_text = false;
    while records.next_line()? {
        let text = records.text();
        has_text |= !text.trim_ascii().is_empty();
        if log.take(text) {
            continue;
        }
        let Some(header) = Header::recognise(&mut records) else { continue };
        if !records.is_terminated() {
            let reason = "the file ends within its header".to_owned();
            return Err(IngestError::NotCsv { file: file.to_owned(), line: records.line(), reason });
        }
        let is_details = header.has("Metric Name");
        if is_details && !header.has("Metric Value") || !header.has("ID") {
            return Err(IngestError::WrongKind {
                file: file.to_owned(),
                pointer: String::new(),
                expected: EXPECTED,
                found: "a summary over kernels (--print-summary)".to_owned(),
            });
        }
        let rows = Rows { records: &mut records, log, tally: Tally::default() };
        return if is_details {
            details::read(rows, header).map(NcuFile::Details)
        } else {
            raw::read(rows, header, &keep).map(NcuFile::Raw)
        };
    }
    match (log.is_of_tool, has_text) {
        (true, _) => Ok(NcuFile::Nothing(log.into_messages())),
        (false, false) => Err(IngestError::Empty { file: file.to_owned(), expected: EXPECTED }),
        (false, true) => Err(IngestError::WrongKind {
            file: file.to_owned(),
            pointer: String::new(),
            expected: EXPECTED,
            found: "text without an ncu header or `==PROF==` lines".to_owned(),
        }),
    }
}

/// A raw and a details page in one file.
fn mixed<R: BufRead>(records: &Records<'_, R>) -> IngestError {
    IngestError::NotCsv {
        file: records.file().to_owned(),
        line: records.line(),
        reason: "a page of another kind starts here".to_owned(),
    }
}
