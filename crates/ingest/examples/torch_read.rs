//! Reads one torch profiler trace and prints its totals: what `benches/ingest.py` measures.
//!
//!     cargo run --release -p llm-perf-ingest --example torch_read -- trace.json [threads]

use std::error::Error;
use std::fs::File;

use llm_perf_ingest::torch::{TorchSettings, read};
use types::timeline::WorkKind;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: torch_read FILE [THREADS]")?;
    let mut settings = TorchSettings::default();
    if let Some(threads) = arguments.next() {
        settings.threads = threads.parse()?;
    }
    // SAFETY: a file to be measured, which nothing changes while it is read.
    let bytes = unsafe { memmap2::Mmap::map(&File::open(&path)?)? };
    let trace = read(&path, &bytes, &settings)?;
    let timeline = &trace.timeline;
    let kernels = || timeline.work.iter().filter(|work| work.kind == WorkKind::Kernel);
    println!("events {}", trace.census.events());
    println!("kernels {}", kernels().count());
    println!("kernel_ns {}", kernels().map(|kernel| kernel.duration.get()).sum::<i64>());
    println!("operators {}", timeline.operators.len());
    println!("names {}", timeline.names.len());
    println!("signatures {}", timeline.signatures.len());
    println!("counters {}", timeline.quality.len());
    Ok(())
}
