//! Parquet tables as a user writes them, held against the metrics of the same run.

#[path = "support/scratch.rs"]
#[allow(dead_code, reason = "an import needs less of it than a profile")]
mod scratch;
#[allow(dead_code, reason = "an import needs less of it than a profile")]
mod support;

use std::fs;
use std::path::{Path, PathBuf};

use scratch::{Output, Scratch};
use serde_json::Value;
use tables::{Table, TableColumns};

const NO_RANK: &str = "rank=__HIVE_DEFAULT_PARTITION__";

fn fixture(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../ingest/tests/fixtures").join(name).display().to_string()
}

fn read(folder: &Path, table: Table) -> TableColumns {
    let path = folder.join(table.file_name());
    tables::read(table, fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))).unwrap()
}

fn sum(table: &TableColumns, column: &str) -> i64 {
    (0..table.rows()).filter_map(|row| table.integer(row, column)).sum()
}

fn total(metrics: &Value, list: &str, key: &str) -> i64 {
    metrics[list].as_array().unwrap().iter().map(|row| row[key].as_i64().unwrap()).sum()
}

/// The tables hold what the metrics sum up.
fn assert_equal(folder: &Path, metrics: &Value) {
    let kernels = read(folder, Table::Kernels);
    let sums = read(folder, Table::KernelSums);
    assert_eq!(sum(&sums, "calls"), total(metrics, "kernels", "calls"));
    assert_eq!(sum(&sums, "total_ns"), total(metrics, "kernels", "total_ns"));
    let meant = (0..kernels.rows()).filter(|row| kernels.flag(*row, "set_aside") == Some(false));
    assert_eq!(meant.count() as i64, sum(&sums, "calls"));
    let order = |row| (kernels.integer(row, "device"), kernels.integer(row, "start_ns"));
    assert!((1..kernels.rows()).all(|row| order(row - 1) <= order(row)), "sorted by device and start");
    let devices = read(folder, Table::DeviceTime);
    for column in ["span_ns", "busy_ns", "idle_ns", "compute_ns", "communication_exposed_ns", "copies_exposed_ns"] {
        assert_eq!(sum(&devices, column), total(metrics, "device_time", column), "{column}");
    }
    assert_eq!(sum(&read(folder, Table::Idle), "ns"), sum(&devices, "idle_ns"));
}

#[test]
fn an_import_writes_tables_that_its_metrics_agree_with() {
    for trace in ["torch/dsocr-h200.json.gz", "nsys/dsocr-h200.sqlite.gz"] {
        let scratch = Scratch::new();
        let import = ["import", &fixture(trace), "--tables", "tables", "--job", "one", "--out", "run"];
        let output = Output::of(scratch.command(&import));
        assert_eq!(output.code, 0, "{}", output.stderr);
        let folder = scratch.path("tables").join("job=one").join(NO_RANK);
        let metrics = scratch.json("run", "metrics.json");
        assert_equal(&folder, &metrics);
        let runs = read(&folder, Table::Runs);
        assert_eq!((runs.rows(), runs.text(0, "job"), runs.integer(0, "rank")), (1, Some("one"), None));
        let digest = metrics["trace"]["sources"][0]["blake3"].as_str().unwrap();
        assert_eq!(runs.text(0, "sha256"), Some(format!("blake3:{digest}").as_str()));

        // Exported from the run, they are the same, but for the name of the job.
        let output = Output::of(scratch.command(&["export", "run", "--format", "parquet", "--out", "exported"]));
        assert_eq!(output.code, 0, "{}", output.stderr);
        let jobs: Vec<PathBuf> =
            fs::read_dir(scratch.path("exported")).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(jobs.len(), 1);
        let exported = jobs[0].join(NO_RANK);
        assert_equal(&exported, &metrics);
        for table in Table::ALL.into_iter().filter(|table| *table != Table::Runs) {
            let content = |folder: &Path| fs::read(folder.join(table.file_name())).ok();
            assert_eq!(content(&folder), content(&exported), "{}", table.name());
        }
    }
}

#[test]
fn a_rank_is_replaced_by_its_own_trace_and_by_no_other() {
    let scratch = Scratch::new();
    let import = |trace: &str, out: &str| {
        Output::of(scratch.command(&["import", &fixture(trace), "--tables", "tables", "--job", "one", "--out", out]))
    };
    assert_eq!(import("torch/dsocr-h200.json.gz", "a").code, 0);
    assert_eq!(import("torch/dsocr-h200.json.gz", "b").code, 0);
    let refused = import("nsys/dsocr-h200.sqlite.gz", "c");
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("already exists, from another trace"), "{}", refused.stderr);
    assert!(refused.stderr.contains("--job NAME"), "{}", refused.stderr);
    let left: Vec<_> = fs::read_dir(scratch.path("tables").join("job=one")).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing half-written stays");
    let name = Output::of(scratch.command(&[
        "import",
        &fixture("torch/dsocr-h200.json.gz"),
        "--tables",
        "t",
        "--job",
        "../x",
    ]));
    assert_eq!(name.code, 2);
    assert!(name.stderr.contains("invalid job name"), "{}", name.stderr);
}

/// Runs a command to its end; the most kilobytes of memory it had that no file stands behind.
fn anonymous_peak(mut command: std::process::Command) -> u64 {
    let mut child = command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        let held = fs::read_to_string(&status).unwrap_or_default();
        let held =
            held.lines().find_map(|line| line.strip_prefix("RssAnon:")?.trim().strip_suffix(" kB")?.parse().ok());
        peak = peak.max(held.unwrap_or_default());
        if let Some(ended) = child.try_wait().unwrap() {
            assert!(ended.success(), "{ended}");
            return peak;
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

#[test]
fn rows_that_spill_to_files_are_the_same_rows_in_less_memory() {
    let scratch = Scratch::new();
    testkit::fleet::write(&scratch.path("ranks"), [1, 8, 8_000], &[]).unwrap();
    let import = |memory: &str, out: &str| {
        let tables = format!("{out}-tables");
        let arguments = ["import", "ranks/rank0.json", "--memory", memory, "--tables", &tables, "--out", out];
        let mut command = scratch.command(&arguments);
        // The run folder lies in the scratch folder, which may be in memory; this one is on a disk.
        command.env("TMPDIR", env!("CARGO_TARGET_TMPDIR"));
        let peak = anonymous_peak(command);
        let mut metrics = scratch.json(out, "metrics.json");
        metrics["run"]["id"] = Value::Null;
        (metrics, scratch.path(&tables).join("job=ranks").join("rank=0"), peak)
    };
    let (spilled, kept) = (import("0B", "spilled"), import("1GB", "kept"));
    assert_eq!(spilled.0, kept.0);
    assert_equal(&spilled.1, &spilled.0);
    for table in Table::ALL.into_iter().filter(|table| *table != Table::Runs) {
        let content = |folder: &Path| fs::read(folder.join(table.file_name())).ok();
        assert_eq!(content(&spilled.1), content(&kept.1), "{}", table.name());
    }
    // 64,000 kernels have lists of 30 MB; the program and its small allocations take 10.
    assert!(spilled.2 < kept.2 * 2 / 3, "{} kB of {} kB", spilled.2, kept.2);
}
