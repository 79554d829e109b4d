//! A details page of Nsight Compute, the bytes being its rows: each row is read, refused and counted, or the page is.

use ingest::ncu::{NcuFile, read};

const HEADER: &[u8] =
    b"\"ID\",\"Process ID\",\"Kernel Name\",\"Block Size\",\"Grid Size\",\"Device\",\"CC\",\"Section Name\",\
\"Body Item Label\",\"Metric Name\",\"Metric Unit\",\"Metric Value\",\"Rule Name\",\"Rule Type\",\"Rule Description\",\
\"Estimated Speedup Type\",\"Estimated Speedup\"\n";

/// What must hold for any input; whether it was read.
pub(crate) fn check(rows: &[u8]) -> bool {
    let Ok(NcuFile::Details(page)) = read(&[HEADER, rows].concat()[..], "page.csv") else { return false };
    let lines = rows.iter().filter(|byte| **byte == b'\n').count() + 1;
    let metrics = page.works.iter().flat_map(|work| &work.sections).map(|section| section.metrics.len());
    let read: usize = metrics.chain(page.works.iter().map(|work| work.rules.len())).sum();
    // A row is read or lost; a number of a row that is read may be left out, and is counted too.
    let of_rows = page.quality.iter().filter(|counter| !counter.counter.starts_with("ncu_numbers_"));
    let lost: u64 = of_rows.map(|counter| counter.value).sum();
    assert!(read as u64 + lost <= lines as u64);
    for metric in page.works.iter().flat_map(|work| &work.sections).flat_map(|section| &section.metrics) {
        assert!(metric.value.as_ref().and_then(|value| value.number()).is_none_or(f64::is_finite));
    }
    true
}
