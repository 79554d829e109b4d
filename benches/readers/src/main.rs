//! Reads one capture with one reader and prints its totals: what `benches/readers.py` measures.
//!
//!     readers nsys|rusqlite EXPORT.sqlite
//!     readers kineto|serde_json|sonic_rs TRACE.json
//!
//! All readers of a format print the same totals, so that none is fast by reading less.

mod json;
mod sqlite;

use std::error::Error;
use std::fs::File;

use types::timeline::{Timeline, WorkKind};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(reader), Some(path)) = (arguments.next(), arguments.next()) else {
        return Err("usage: readers nsys|rusqlite|kineto|serde_json|sonic_rs FILE".into());
    };
    if reader == "rusqlite" {
        return sqlite::read(&path);
    }
    // SAFETY: a file to be measured, which nothing changes while it is read.
    let bytes = unsafe { memmap2::Mmap::map(&File::open(&path)?)? };
    match reader.as_str() {
        "nsys" => print(&ingest::nsys::sqlite::read(&path, &bytes)?),
        "kineto" => {
            let mut settings = ingest::torch::TorchSettings::default();
            settings.threads = 1;
            print(&ingest::torch::read(&path, &bytes, &settings)?.timeline);
        }
        "serde_json" => json::print(&json::with_serde_json(&bytes)?),
        "sonic_rs" => json::print(&json::with_sonic_rs(&bytes)?),
        _ => return Err(format!("there is no reader {reader}").into()),
    }
    Ok(())
}

fn print(timeline: &Timeline) {
    let kernels = || timeline.work.iter().filter(|work| work.kind == WorkKind::Kernel);
    println!("kernels {}", kernels().count());
    println!("kernel_ns {}", kernels().map(|kernel| kernel.duration.get()).sum::<i64>());
    println!("calls {}", timeline.calls.len());
    println!("operators {}", timeline.operators.len());
    println!("ranges {}", timeline.ranges.len());
}
