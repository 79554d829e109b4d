//! A details page of Nsight Compute, the bytes being its rows: each row is read, refused and counted, or the page is.
#![no_main]

use ingest::ncu::{NcuFile, read};
use libfuzzer_sys::fuzz_target;

const HEADER: &[u8] =
    b"\"ID\",\"Process ID\",\"Kernel Name\",\"Block Size\",\"Grid Size\",\"Device\",\"CC\",\"Section Name\",\
\"Body Item Label\",\"Metric Name\",\"Metric Unit\",\"Metric Value\",\"Rule Name\",\"Rule Type\",\"Rule Description\",\
\"Estimated Speedup Type\",\"Estimated Speedup\"\n";

fuzz_target!(|rows: &[u8]| {
    if let Ok(NcuFile::Details(page)) = read(&[HEADER, rows].concat()[..], "page.csv") {
        let lines = rows.iter().filter(|byte| **byte == b'\n').count() + 1;
        let metrics = page.works.iter().flat_map(|work| &work.sections).map(|section| section.metrics.len());
        let read: usize = metrics.chain(page.works.iter().map(|work| work.rules.len())).sum();
        let lost: u64 = page.quality.iter().map(|counter| counter.value).sum();
        assert!(read as u64 + lost <= lines as u64);
        for metric in page.works.iter().flat_map(|work| &work.sections).flat_map(|section| &section.metrics) {
            assert!(metric.value.as_ref().and_then(|value| value.number()).is_none_or(f64::is_finite));
        }
    }
});
