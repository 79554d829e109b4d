//! `doctor --calibrate --device`: times of single operations on a device, measured or read, fitted and kept.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsString;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;

use collect::calibrate::Store;
use collect::process::{Interrupt, Limits, Process};
use collect::tool::torch::{self, CALIBRATE, interpreter};
use collect::{Command, Output, environment};
use forecast::{Family, MeasuredPoint, fit, read_points};
use serde::Deserialize;
use types::{CalibratedGroup, DeviceCalibration, Hardware, LaunchCost, UserError};

use crate::pipeline::device::calibration::{THREADS, read_text, unfit_run};
use crate::pipeline::device::hardware;
use crate::pipeline::recorded::run_points::{self, RunPoints};
use crate::pipeline::scratch::scratch_folder;

/// What to calibrate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CalibrateRequest {
    /// A catalogue name with `points`, or `cuda:N` to measure.
    pub device: String,
    /// Tables of measured points.
    pub points: Vec<PathBuf>,
    /// Runs whose operators are points.
    pub from: Vec<OsString>,
    /// Folder that holds runs, for those given by name.
    pub root: PathBuf,
    /// Measure for ten seconds, not forty-five.
    pub quick: bool,
    /// The interpreter to measure with.
    pub python: Option<String>,
    /// `--config-dir`, for its device files.
    pub config_dir: Option<PathBuf>,
}

/// A calibration and where it is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredCalibration {
    /// The document.
    pub calibration: DeviceCalibration,
    /// The file.
    pub path: PathBuf,
    /// What was left out, and why.
    pub notes: Vec<String>,
}

/// What the program that measures says it measured on.
#[derive(Debug, Default, Deserialize)]
struct Facts {
    device_name: Option<String>,
    driver: Option<String>,
    clocks_mhz: Option<[f64; 2]>,
    /// Whether the same operations took another time at the end than at the beginning, and by which share.
    moved: bool,
    drift: f64,
    libraries: BTreeMap<String, String>,
    launch: Option<LaunchCost>,
    sustained: Option<f64>,
    #[serde(default)]
    skipped: BTreeMap<String, u64>,
}

/// How long measuring may take beyond what it was asked for: starting torch takes seconds, compiling a kernel may.
const PATIENCE: Duration = Duration::from_secs(120);

/// Bytes of its output that are kept for a message.
const OUTPUT_KEPT: usize = 1 << 16;

/// Calibrates and keeps; `progress` is told what is being done.
pub fn calibrate(request: &CalibrateRequest, progress: &mut dyn FnMut(&str)) -> Result<StoredCalibration, UserError> {
    let store = Store::of_this_user()?;
    store.prepare()?;
    let config_dir = request.config_dir.as_deref();
    if !request.from.is_empty() {
        return from_runs(request, &store, progress);
    }
    let measures = request.device.starts_with("cuda");
    let (device, mut points, facts) = if measures {
        measure(request, config_dir, progress)?
    } else {
        (hardware::find(config_dir, &request.device)?, Vec::new(), Facts::default())
    };
    for path in &request.points {
        points.extend(read_points(&path.display().to_string(), &read_text(path)?, &device)?);
    }
    progress(&format!("fitting {} points", points.len()));
    let (groups, mut notes) = fit_what_can_be(&points, &device, measures)?;
    notes.extend(facts.skipped.iter().map(|(what, count)| format!("not measured, {count} times: {what}")));
    let calibration = DeviceCalibration {
        device: device.id.clone(),
        device_name: facts.device_name,
        driver: facts.driver,
        clocks_mhz: facts.clocks_mhz,
        libraries: facts.libraries,
        files: request.points.iter().map(|path| path.display().to_string()).collect(),
        launch: facts.launch,
        sustained: facts.sustained,
        ..calibrated_now(groups)
    };
    let calibration =
        if device.id == hardware::PROCESSOR { of_this_processor(calibration, &device) } else { calibration };
    let path = store.write_device(&calibration)?;
    Ok(StoredCalibration { calibration, path, notes })
}

/// Adds what runs recorded to the stored calibration of their device, or makes one of it.
fn from_runs(
    request: &CalibrateRequest,
    store: &Store,
    progress: &mut dyn FnMut(&str),
) -> Result<StoredCalibration, UserError> {
    let mut read = Vec::new();
    for selector in &request.from {
        progress(&format!("reading {}", selector.display()));
        read.push(run_points::read(&request.root, selector, request.config_dir.as_deref())?);
    }
    let first = &read[0];
    let (device, driver) = (&first.device, &first.driver);
    let stored = store.read_device(&device.id)?;
    for run in &read {
        together(run, device, driver.as_deref(), "the first run")?;
        if let Some(stored) = &stored {
            together(run, device, stored.driver.as_deref(), "the stored calibration")?;
        }
    }
    let mut notes: Vec<String> = Vec::new();
    let known: BTreeSet<&String> = stored.iter().flat_map(|stored| &stored.runs).collect();
    let mut points: Vec<MeasuredPoint> = stored.iter().flat_map(forecast::measured_points).collect();
    let measured: HashSet<Vec<u64>> = points.iter().map(|point| point.shape.key()).collect();
    let (mut added, mut runs) = (HashSet::new(), Vec::new());
    for run in &read {
        if known.contains(&run.run) {
            notes.push(format!("run {} is already part of the calibration", run.run));
            continue;
        }
        // What was timed alone is better known than what ran between other kernels.
        let fresh = run.points.iter().filter(|point| !measured.contains(&point.shape.key()));
        let before = points.len();
        points.extend(fresh.cloned());
        added.extend(points[before..].iter().map(|point| point.shape.key()));
        notes.push(format!("run {}: {} points of {}", run.run, points.len() - before, run.device_name));
        if run.impossible > 0 {
            notes.push(format!(
                "run {}: {} operators were faster than the device allows and are left out",
                run.run, run.impossible
            ));
        }
        runs.push(run.run.clone());
    }
    progress(&format!("fitting {} points", points.len()));
    let (mut groups, left_out) = fit_what_can_be(&points, device, true)?;
    notes.extend(left_out);
    let earlier: HashSet<Vec<u64>> = stored.iter().flat_map(forecast::run_keys).collect();
    for group in &mut groups {
        group.run_points = forecast::places(group, |key| added.contains(key) || earlier.contains(key));
    }
    let mut calibration = stored.unwrap_or_else(|| DeviceCalibration {
        device: device.id.clone(),
        device_name: Some(first.device_name.clone()),
        driver: driver.clone(),
        libraries: first.libraries.clone(),
        ..DeviceCalibration::default()
    });
    calibration.runs.extend(runs);
    let DeviceCalibration { measured_at, tool_version, groups, .. } = calibrated_now(groups);
    let calibration = DeviceCalibration { measured_at, tool_version, groups, ..calibration };
    let path = store.write_device(&calibration)?;
    Ok(StoredCalibration { calibration, path, notes })
}

/// A calibration of these curves, and nothing else.
fn calibrated_now(groups: Vec<CalibratedGroup>) -> DeviceCalibration {
    let (measured_at, tool_version) = (environment::now(), env!("CARGO_PKG_VERSION").to_owned());
    DeviceCalibration { measured_at, tool_version, groups, ..DeviceCalibration::default() }
}

/// Refuses points of another device or driver than `of` is of.
fn together(run: &RunPoints, device: &Hardware, driver: Option<&str>, of: &str) -> Result<(), UserError> {
    if run.device.id != device.id {
        let reason = format!("it ran on {}, but {of} is for {}", run.device.id, device.id);
        return Err(unfit_run(&run.run, &reason, "use one command per device"));
    }
    let said =
        |driver: Option<&str>| driver.map_or("an unknown driver".to_owned(), |driver| format!("driver {driver}"));
    if run.driver.as_deref() != driver {
        let reason = format!("it ran with {}, but {of} is for {}", said(run.driver.as_deref()), said(driver));
        return Err(unfit_run(&run.run, &reason, "calibrate each driver separately, or set LLM_PERF_DATA_DIR"));
    }
    Ok(())
}

/// The same, said to be of this processor: its name and threads decide whether it applies.
fn of_this_processor(mut calibration: DeviceCalibration, processor: &Hardware) -> DeviceCalibration {
    calibration.device_name = Some(processor.name.clone());
    calibration.libraries.insert(THREADS.to_owned(), processor.sm_count.to_string());
    calibration
}

/// The groups; where they were measured here, one that has too few points is left out and said.
fn fit_what_can_be(
    points: &[MeasuredPoint],
    device: &Hardware,
    measured: bool,
) -> Result<(Vec<CalibratedGroup>, Vec<String>), UserError> {
    if !measured {
        return Ok((fit(points, device)?, Vec::new()));
    }
    let mut by_group: BTreeMap<String, Vec<MeasuredPoint>> = BTreeMap::new();
    for point in points {
        by_group.entry(point.shape.group()).or_default().push(point.clone());
    }
    let (mut groups, mut notes) = (Vec::new(), Vec::new());
    for points in by_group.into_values() {
        match fit(&points, device) {
            Ok(fitted) => groups.extend(fitted),
            Err(error) => notes.push(error.to_string()),
        }
    }
    // Forecasts of models are mostly GEMMs; what was stored before is worth more than this.
    if !groups.iter().any(|group| group.op == Family::Gemm.name()) {
        let (device, points) = (&device.id, points.len());
        return Err(UserError::failed(format!(
            "only {points} points of {device} were measured, too few for a GEMM curve; nothing was stored"
        ))
        .hint("stop other jobs and try again without `--quick`"));
    }
    Ok((groups, notes))
}

/// Runs the program that measures, in the user's interpreter.
fn measure(
    request: &CalibrateRequest,
    config_dir: Option<&Path>,
    progress: &mut dyn FnMut(&str),
) -> Result<(Hardware, Vec<MeasuredPoint>, Facts), UserError> {
    let failed = |reason: &dyn Display| UserError::failed(format!("cannot calibrate {}: {reason}", request.device));
    let python = interpreter(request.python.as_deref())?;
    let folder = scratch_folder().map_err(|error| failed(&error))?;
    let [program, question, points, facts] =
        ["calibrate.py", "request.json", "points.csv", "facts.json"].map(|name| folder.path().join(name));
    let seconds = if request.quick { 10 } else { 45 };
    let asked = serde_json::json!({"device": request.device, "seconds": seconds, "points": points, "facts": facts});
    for (path, text) in [(&program, CALIBRATE.to_owned()), (&question, asked.to_string())] {
        std::fs::write(path, text).map_err(|error| failed(&error))?;
    }
    progress(&format!("measuring {} for about {seconds} s with {}", request.device, python.display()));
    let command: Command =
        torch::command(&python, &program, &question).with_output(Output::Kept(OUTPUT_KEPT), Output::Kept(OUTPUT_KEPT));
    let limits = Limits { time: Some(Duration::from_secs(seconds) + PATIENCE), ..Limits::default() };
    let outcome = Process::start(&command)?.wait(&limits, Interrupt::Forwarded)?;
    if !outcome.succeeded() {
        return Err(failed(&format_args!("{} {}", python.display(), outcome.ending)).quoting(outcome.last_lines(8)));
    }
    let answer = std::fs::read_to_string(&facts).map_err(|error| failed(&error))?;
    let facts: Facts = serde_json::from_slice(answer.as_bytes()).map_err(|error| failed(&error))?;
    if facts.moved {
        return Err(UserError::failed(format!(
            "the times of reference operations on {} changed by {:+.1}% during the measurement; nothing was stored",
            request.device,
            facts.drift * 100.0
        ))
        .hint("stop other jobs and let the device cool down, or lock its clocks with `nvidia-smi -lgc`"));
    }
    let device = hardware::find(config_dir, facts.device_name.as_deref().unwrap_or_default())?;
    let points = read_points("measured points", &read_text(&points)?, &device)?;
    Ok((device, points, facts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measurement_without_gemms_replaces_nothing() {
        let device = hardware::find(None, "h200").unwrap();
        let rows: Vec<_> = (20..26).map(|power| format!("h2d,uint8,{},{}", 1 << power, 1 << (power - 15))).collect();
        let table = format!("op,dtype,bytes,microseconds\n{}\n", rows.join("\n"));
        let points = read_points("points", &table, &device).unwrap();
        let error = fit_what_can_be(&points, &device, true).unwrap_err();
        assert_eq!(
            error.to_string(),
            "only 6 points of h200 were measured, too few for a GEMM curve; nothing was stored"
        );
    }
}
