//! Tables of `nsys stats`: any bytes are read or refused, and every row of a table is read or counted.

use std::io::BufReader;

use ingest::nsys::stats::{read, sniff};

/// What must hold for any input; whether it was read.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let whole = read(bytes, "stats.csv");
    let piecewise = read(BufReader::with_capacity(7, bytes), "stats.csv");
    assert_eq!(format!("{whole:?}"), format!("{piecewise:?}"));
    let _ = sniff(bytes);
    let Ok(file) = whole else { return false };
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count() + 1;
    let rows: u64 = file.tables.iter().map(|table| table.rows).sum();
    assert!(rows as usize + file.tables.len() <= lines);
    true
}
