//! Reads one SQLite export of nsys and prints its totals: what `benches/nsys.py` measures.
//!
//!     cargo run --release -p llm-perf-ingest --example nsys_read -- trace.sqlite

use std::collections::HashMap;
use std::error::Error;
use std::fs::File;

use llm_perf_ingest::nsys::sqlite::read;
use types::timeline::WorkKind;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: nsys_read FILE")?;
    // SAFETY: a file to be measured, which nothing changes while it is read.
    let bytes = unsafe { memmap2::Mmap::map(&File::open(&path)?)? };
    let timeline = read(&path, &bytes)?;
    let mut sums = HashMap::new();
    for kernel in timeline.work.iter().filter(|work| work.kind == WorkKind::Kernel) {
        let sum: &mut (u64, i64) = sums.entry((kernel.name, kernel.queue)).or_default();
        *sum = (sum.0 + 1, sum.1 + kernel.duration.get());
    }
    println!("kernels {}", sums.values().map(|sum| sum.0).sum::<u64>());
    println!("kernel_ns {}", sums.values().map(|sum| sum.1).sum::<i64>());
    println!("kernel_names {}", sums.len());
    println!("calls {}", timeline.calls.len());
    println!("ranges {}", timeline.ranges.len());
    println!("names {}", timeline.names.len());
    println!("counters {}", timeline.quality.len());
    Ok(())
}
