//! Traces of the torch profiler.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Read;

use llm_perf_ingest::torch::{Category, TorchSettings, Trace, read};
use testkit::need::reference;
use types::Nanos;
use types::timeline::WorkKind;

fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    flate2::read::MultiGzDecoder::new(packed).read_to_end(&mut bytes).unwrap();
    bytes
}

fn third_party(name: &str) -> Vec<u8> {
    std::fs::read(reference("third-party/kineto").join(name)).unwrap()
}

fn trace(bytes: &[u8]) -> Trace {
    read("trace.json", bytes, &TorchSettings { threads: 1, ..TorchSettings::default() }).unwrap()
}

fn kernel_total(trace: &Trace) -> (usize, Nanos) {
    let kernels = || trace.timeline.work.iter().filter(|work| work.kind == WorkKind::Kernel);
    (kernels().count(), kernels().map(|kernel| kernel.duration).sum())
}

pub(crate) fn kernel_and_operator_totals_equal_those_of_tracelens() {
    let packed = third_party("h100-qwen1.5-0.5b.json.gz");
    let kernels = third_party("h100-qwen1.5-0.5b.tracelens-csvs/kernel_summary.csv");
    let operators = third_party("h100-qwen1.5-0.5b.tracelens-csvs/ops_summary.csv");
    let trace = trace(&unpacked(&packed));
    assert_eq!(trace.census.count(Category::PythonFunction), 4_262);
    assert_eq!(trace.census.count(Category::Memory), 2_450);

    // One row per operator, kernel name and stream; durations in microseconds.
    let mut expected: BTreeMap<String, (u64, i64)> = BTreeMap::new();
    for row in rows(&kernels) {
        let entry = expected.entry(row[2].clone()).or_default();
        entry.0 += row[5].parse::<u64>().unwrap();
        entry.1 += (row[4].parse::<f64>().unwrap() * 1e3).round() as i64;
    }
    let mut found: BTreeMap<String, (u64, i64)> = BTreeMap::new();
    for work in trace.timeline.work.iter().filter(|work| work.kind == WorkKind::Kernel) {
        let entry = found.entry(trace.timeline.name(work.name).to_owned()).or_default();
        entry.0 += 1;
        entry.1 += work.duration.get();
    }
    assert_eq!(found, expected);

    // One row per operator that launches something itself: device time in microseconds, as doubles, and calls.
    let by_call = trace.timeline.operators.iter().filter_map(|operator| Some((operator.call?, operator)));
    let by_call: HashMap<_, _> = by_call.collect();
    let mut found: BTreeMap<&str, (HashSet<_>, i64)> = BTreeMap::new();
    for work in &trace.timeline.work {
        if let Some(operator) = work.operator.and_then(|call| by_call.get(&call)) {
            let entry = found.entry(trace.timeline.name(operator.name)).or_default();
            entry.0.insert(operator.call);
            entry.1 += work.duration.get();
        }
    }
    let rows = rows(&operators);
    assert_eq!(rows.len(), found.len());
    for row in rows {
        let (calls, nanoseconds) = &found[row[0].as_str()];
        assert_eq!(calls.len().to_string(), row[5], "{}", row[0]);
        let expected = row[1].parse::<f64>().unwrap() * 1e3;
        // TraceLens subtracts times that are doubles of 1.4e12 us, which are a quarter of a nanosecond apart.
        let tolerance = 0.5 * calls.len() as f64;
        assert!((*nanoseconds as f64 - expected).abs() <= tolerance, "{}: {nanoseconds}, {expected}", row[0]);
    }
}

pub(crate) fn traces_of_other_ages_are_read() {
    let packed = third_party("hta-rank-missing.json.gz");
    let old = trace(&unpacked(&packed));
    // 2,424 operators, and six annotations `nccl:all_to_all` that say what was sent.
    assert_eq!((old.timeline.operators.len(), old.timeline.ranges.len()), (2_430, 43));
    assert_eq!((old.timeline.threads[0].rank, old.timeline.quality.len()), (None, 0));
    assert_eq!(old.timeline.operators[0].start, Nanos::new(1_661_203_462_598_738_000));
    let packed = third_party("hta-triton.json.gz");
    let triton = trace(&unpacked(&packed));
    assert_eq!((triton.timeline.devices.len(), triton.timeline.quality.len()), (8, 0));
    assert_eq!(kernel_total(&triton), (1, Nanos::new(1_760)));
}

/// The fields of the rows of a CSV file with quotes, the header left out.
fn rows(text: &[u8]) -> Vec<Vec<String>> {
    let fields = |line: &str| {
        let (mut fields, mut field, mut quoted) = (Vec::new(), String::new(), false);
        for character in line.chars() {
            match character {
                '"' => quoted = !quoted,
                ',' if !quoted => fields.push(std::mem::take(&mut field)),
                other => field.push(other),
            }
        }
        fields.push(field);
        fields
    };
    std::str::from_utf8(text).unwrap().lines().skip(1).map(fields).collect()
}
