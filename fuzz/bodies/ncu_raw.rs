//! A raw page of Nsight Compute: any bytes are read or refused, numbers are finite, and the size of the reader's buffer
//! changes nothing.

use std::io::BufReader;

use ingest::IngestError;
use ingest::ncu::{NcuFile, read, sniff};

/// All that was read, without the index of counters, whose order is not fixed.
fn shown(file: &Result<NcuFile, IngestError>) -> String {
    match file {
        Ok(NcuFile::Raw(page)) => {
            format!("{:?} {:?} {:?} {:?}", page.table.work, page.table.columns(), page.messages, page.quality)
        }
        other => format!("{other:?}"),
    }
}

/// What must hold for any input; whether it was read.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let whole = read(bytes, "page.csv");
    let piecewise = read(BufReader::with_capacity(7, bytes), "page.csv");
    assert_eq!(shown(&whole), shown(&piecewise));
    let _ = sniff(bytes);
    let Ok(NcuFile::Raw(page)) = whole else { return false };
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count() + 1;
    assert!(page.table.work.len() <= lines);
    for column in page.table.columns() {
        let numbers = (0..page.table.work.len()).filter_map(|row| column.number(row));
        assert!(numbers.into_iter().all(f64::is_finite));
    }
    true
}
