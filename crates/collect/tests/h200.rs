//! Captures from a real H200: what could be found out there is filled in, and the documents still read.

use types::{Calibration, Diagnosis, Environment, Verdict};

const ENVIRONMENT: &str = include_str!("fixtures/h200/env.json");
const DIAGNOSIS: &str = include_str!("fixtures/h200/doctor.json");
const CALIBRATION: &str = include_str!("fixtures/h200/calibration.json");

#[test]
fn every_field_of_the_gpu_is_filled() {
    let environment: serde_json::Value = serde_json::from_str(ENVIRONMENT).unwrap();
    let gpu = environment["gpus"][0].as_object().unwrap();
    let unknown: Vec<_> = gpu.iter().filter(|(_, value)| value.is_null()).map(|(key, _)| key).collect();
    assert_eq!(unknown, Vec::<&String>::new());
    for part in ["tools", "frameworks"] {
        let unknown = environment[part].as_object().unwrap().values().filter(|value| value.is_null()).count();
        assert_eq!(unknown, 0, "{part}");
    }
    let read: Environment = serde_json::from_str(ENVIRONMENT).unwrap();
    assert_eq!(read.gpus[0].hardware.as_deref(), Some("h200"));
    assert_eq!(read.tools.driver.as_deref(), Some("580.159.04"));
}

#[test]
fn only_what_was_really_missing_is_called_missing() {
    let read: Diagnosis = serde_json::from_str(DIAGNOSIS).unwrap();
    assert!(read.ready);
    let not_ok: Vec<_> = read
        .checks
        .iter()
        .filter(|check| !matches!(check.verdict, Verdict::Ok | Verdict::Skipped))
        .map(|check| (check.id.as_str(), check.verdict, check.next_step.is_some()))
        .collect();
    // The copy of nsys inside Nsight Compute lacks a library, and the processor had not been calibrated yet.
    assert_eq!(not_ok, [("nsys", Verdict::Warning, true), ("calibration", Verdict::Missing, true)]);
}

#[test]
fn the_calibrated_rates_of_sixteen_threads_are_plausible() {
    let read: Calibration = serde_json::from_str(CALIBRATION).unwrap();
    assert_eq!(read.threads, 16);
    let single = read.matrix.iter().find(|rate| rate.dtype == types::DType::Fp32).unwrap();
    assert!((1e11..1e13).contains(&single.flops.get()), "{}", single.flops);
    assert!((1e10..1e12).contains(&read.bytes_per_second.get()), "{}", read.bytes_per_second);
    assert!(!single.samples_ns.is_empty());
}
