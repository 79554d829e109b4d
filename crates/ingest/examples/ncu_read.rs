//! Reads one page of Nsight Compute and prints its totals: what `benches/ncu.py` measures.
//!
//!     cargo run --release -p llm-perf-ingest --example ncu_read -- page.csv [COUNTER...]
//!
//! With counters named, only those are kept.

use std::error::Error;
use std::fs::File;
use std::io::BufReader;

use llm_perf_ingest::ncu::{NcuFile, read_counters};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: ncu_read FILE [COUNTER...]")?;
    let wanted: Vec<String> = arguments.collect();
    let reader = BufReader::with_capacity(1 << 16, File::open(&path)?);
    match read_counters(reader, &path, |name| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name))? {
        NcuFile::Raw(page) => {
            let rows = page.table.work.len();
            let numbers =
                page.table.columns().iter().map(|column| (0..rows).filter_map(|row| column.number(row)).count());
            let time = (0..rows).filter_map(|row| page.table.number(row, "gpu__time_duration.sum")).sum::<f64>();
            println!("works {rows}");
            println!("counters {}", page.table.columns().len());
            println!("numbers {}", numbers.sum::<usize>());
            println!("kernel_ns {time}");
            println!("lost {}", page.quality.len());
        }
        NcuFile::Details(page) => {
            let metrics = page.works.iter().flat_map(|work| &work.sections).map(|section| section.metrics.len());
            println!("works {}", page.works.len());
            println!("metrics {}", metrics.sum::<usize>());
            println!("rules {}", page.works.iter().map(|work| work.rules.len()).sum::<usize>());
            println!("lost {}", page.quality.len());
        }
        NcuFile::Nothing(nothing) => println!("nothing profiled: {nothing:?}"),
    }
    Ok(())
}
