//! Times the region report of a raw page, part by part: what `docs/benchmarks.md` says of it.
//!
//!     python3 benches/make_regions.py page.csv
//!     cargo run --release -p llm-perf-report --example regions_cost -- page.csv

use std::error::Error;
use std::fs::File;
use std::io::BufReader;
use std::time::{Duration, Instant};

use analysis::region::{KernelSelection, RegionCapture, RegionInputs, RegionSettings, TIME, roll_up};
use ingest::ncu::{NcuFile, read_counters};
use llm_perf_report::pages::regions::{kernels_csv, overview_page, region_page, sections_text};
use types::{RegionReport, RegionSelection, ReplayMode, SchemaTag};

const METRICS: [&str; 4] = [
    TIME,
    "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "lts__cycles_elapsed.sum",
];

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: regions_cost PAGE.csv")?;
    let started = Instant::now();
    let reader = BufReader::with_capacity(1 << 16, File::open(&path)?);
    let NcuFile::Raw(page) = read_counters(reader, &path, |name| METRICS.contains(&name))? else {
        return Err("not a raw page".into());
    };
    let read = started.elapsed();
    let started = Instant::now();
    let metrics = METRICS.map(str::to_owned);
    let kernels = KernelSelection::default();
    let settings = RegionSettings {
        include: &[],
        exclude: &[],
        kernels: &kernels,
        metrics: &metrics,
        sections: &[],
        aggregate: true,
        hardware: None,
    };
    let captures = vec![RegionCapture { table: &page.table, details: &[], include: &[] }];
    let rolled = roll_up(&RegionInputs { captures, survey: None }, &settings);
    let rolling = started.elapsed();
    let started = Instant::now();
    let report = RegionReport {
        schema: SchemaTag::new(),
        run: "bench".to_owned(),
        tool: "Nsight Compute".to_owned(),
        replay_mode: ReplayMode::Kernel,
        target: path,
        device: None,
        generated_at: String::new(),
        config_fingerprint: String::new(),
        scope: RegionReport::AGGREGATE.to_owned(),
        selection: RegionSelection::default(),
        captures: Vec::new(),
        metrics: rolled.metrics.clone(),
        totals: rolled.totals.clone(),
        regions: rolled.regions.iter().map(|region| region.region.clone()).collect(),
        outside: rolled.outside,
        notes: Vec::new(),
        quality: rolled.quality.clone(),
    };
    let view = analysis::view::regions(&report);
    let mut bytes = serde_json::to_string_pretty(&report)?.len() + overview_page(&view).markdown().len();
    for (region, shown) in rolled.regions.iter().zip(&view.regions) {
        bytes += region_page(&report, shown).markdown().len() + sections_text(&region.region).len();
        let launches = analysis::view::launches(region, &[&page.table], &rolled.metrics);
        bytes += kernels_csv(&launches, &rolled.metrics).len();
    }
    let written = started.elapsed();
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    println!("kernels {}", page.table.work.len());
    println!("regions {}", report.regions.len());
    println!("bytes {bytes}");
    println!("read_ms {:.1}", milliseconds(read));
    println!("roll_ms {:.1}", milliseconds(rolling));
    println!("write_ms {:.1}", milliseconds(written));
    println!("report_ms {:.1}", milliseconds(rolling + written));
    Ok(())
}
