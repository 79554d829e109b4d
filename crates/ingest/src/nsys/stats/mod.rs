//! `nsys stats --format csv`: summaries of kernels. The reports on calls, copies and ranges are recognised, and their rows
//! counted: the database they are made from says all of it.
//!
//! Times are whole nanoseconds, as the tool prints them unless it is told otherwise. One file may hold several reports
//! one after another, with the tool's own lines between them.

mod header;
mod row;
mod sum;

use std::io::BufRead;

use types::{QualityCounter, Severity};

pub use header::StatsKind;
pub use sum::{KernelSum, StatsTable};

use crate::IngestError;
use crate::csv::{Records, Shape};
use header::Header;
use row::Row;

const EXPECTED: &str = "CSV of `nsys stats` (cuda_gpu_kern_sum, cuda_api_sum, cuda_gpu_mem_time_sum, \
                        cuda_gpu_mem_size_sum, nvtx_pushpop_sum, nvtx_sum, nvtx_gpu_proj_sum or cuda_gpu_trace)";

/// What a file of `nsys stats` holds.
#[derive(Clone, Debug, PartialEq)]
pub struct StatsFile {
    /// Reports, in the order of the file.
    pub tables: Vec<StatsTable>,
    /// What the tool says the trace does not contain, such as `CUDA kernel data`.
    pub skipped: Vec<String>,
    /// What could not be read.
    pub quality: Vec<QualityCounter>,
}

/// Rows by what became of them.
#[derive(Default)]
struct Tally {
    read: u64,
    unreadable: u64,
    cut: u64,
    rounded: u64,
}

/// The first report that `head`, the first bytes of a file, holds.
pub fn sniff(head: &[u8]) -> Option<StatsKind> {
    let mut records = Records::new(head, "");
    while records.next_line().ok()? {
        if let Some(header) = Header::recognise(&mut records) {
            return Some(header.kind);
        }
    }
    None
}

/// Reads what `nsys stats` printed. `file` is only used in messages.
pub fn read(reader: impl BufRead, file: &str) -> Result<StatsFile, IngestError> {
    let mut records = Records::new(reader, file);
    let mut tally = Tally::default();
    let (mut tables, mut skipped): (Vec<StatsTable>, Vec<String>) = (Vec::new(), Vec::new());
    let mut current: Option<Header> = None;
    let mut found = None;
    while records.next_line()? {
        let text = records.text();
        if text.trim_ascii().is_empty() || text.starts_with(b"Processing [") {
            current = None;
        } else if let Some(missing) = skipped_report(text) {
            skipped.push(missing);
            current = None;
        } else if let Some(header) = Header::recognise(&mut records) {
            if !records.is_terminated() {
                let reason = "the file ends within a header".to_owned();
                return Err(IngestError::NotCsv { file: file.to_owned(), line: records.line(), reason });
            }
            tables.push(StatsTable { kind: header.kind, rows: 0, kernels: Vec::new() });
            current = Some(header);
        } else if let (Some(header), Some(table)) = (&current, tables.last_mut()) {
            let shape = records.split_record()?;
            if shape == Shape::Open || !records.is_terminated() {
                tally.cut += 1;
                continue;
            }
            let mut row = Row { header, records: &records, rounded: 0 };
            if shape == Shape::Whole && records.len() == header.len() && add(table, &mut row) {
                tally.read += 1;
                tally.rounded += row.rounded;
            } else {
                tally.unreadable += 1;
            }
        } else if found.is_none() {
            found = Some(describe(records.text()));
        }
    }
    if tables.is_empty() && skipped.is_empty() {
        let file = file.to_owned();
        return Err(match found {
            None => IngestError::Empty { file, expected: EXPECTED },
            Some(found) => {
                IngestError::WrongKind { file, pointer: String::new(), expected: EXPECTED, found: found.to_owned() }
            }
        });
    }
    Ok(StatsFile { tables, skipped, quality: tally.counters() })
}

/// Adds a row; `false` where a field it needs cannot be read.
fn add<R: BufRead>(table: &mut StatsTable, row: &mut Row<'_, '_, R>) -> bool {
    if table.kind == StatsKind::Kernels {
        let Some(kernel) = row.kernel() else { return false };
        table.kernels.push(kernel);
    }
    table.rows += 1;
    true
}

/// `SKIPPED: x.sqlite does not contain CUDA kernel data.` The path before it stays out of our records.
fn skipped_report(line: &[u8]) -> Option<String> {
    let line = std::str::from_utf8(line.strip_prefix(b"SKIPPED:")?).ok()?;
    let (_, missing) = line.rsplit_once("does not contain ")?;
    Some(missing.trim().trim_end_matches('.').to_owned())
}

/// What a line that is no table's tells about its file.
fn describe(line: &[u8]) -> &'static str {
    let has = |part: &[u8]| line.windows(part.len()).any(|window| window == part);
    if has(b"** ") || has(b"Total Time (ns)") {
        "a report that is unknown or not CSV (use `--format csv`)"
    } else {
        "text without the header of a known report"
    }
}

impl Tally {
    fn counters(&self) -> Vec<QualityCounter> {
        let rows = self.read + self.unreadable + self.cut;
        let counters = [
            QualityCounter::some("nsys_stats_rows_unreadable", Severity::Error, self.unreadable),
            QualityCounter::some("nsys_stats_rows_cut_off", Severity::Error, self.cut),
            QualityCounter::some("nsys_stats_times_rounded", Severity::Info, self.rounded),
        ];
        // A row has several times, so that more of them may be rounded than there are rows.
        let of_rows = |counter: QualityCounter| if counter.value > rows { counter } else { counter.of(rows) };
        counters.into_iter().flatten().map(of_rows).collect()
    }
}
