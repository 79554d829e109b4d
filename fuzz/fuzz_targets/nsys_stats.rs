//! Tables of `nsys stats`: any bytes are read or refused, and every row of a table is read or counted.
#![no_main]

use std::io::BufReader;

use ingest::nsys::stats::{read, sniff};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let whole = read(bytes, "stats.csv");
    let piecewise = read(BufReader::with_capacity(7, bytes), "stats.csv");
    assert_eq!(format!("{whole:?}"), format!("{piecewise:?}"));
    let _ = sniff(bytes);
    if let Ok(file) = whole {
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count() + 1;
        let rows: u64 = file.tables.iter().map(|table| table.rows).sum();
        assert!(rows as usize + file.tables.len() <= lines);
    }
});
