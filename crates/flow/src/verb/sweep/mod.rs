//! `analyze --sweep`: what a model costs at every point of a grid of workloads and devices.

mod grid;

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use collect::run::{RunFolder, RunRequest};
use forecast::Forecaster;
use meter::{Estimate, Estimator, Message, MeterError, Roofline, WorkloadSettings, basic_assumptions, model_spec};
use network::Model;
use rayon::prelude::*;
pub use report::pages::sweep::terminal as table;
use serde_json::{Map, Value};
use types::{
    Bytes, Hardware, Origin, SchemaTag, Seconds, Sweep, SweepAxis, SweepDevice, SweepFigures, SweepForecast,
    SweepPoint, UserError, Workload,
};

use crate::pipeline::device::calibration::CalibratedDevice;
use crate::pipeline::device::hardware;
use crate::pipeline::folder::run::{EndedRun, run};
use crate::pipeline::model::LoadedModel;
use crate::pipeline::model::analytic;

use grid::Grid;
pub use grid::no_workload_key;

/// The document inside a run folder.
pub const JSON: &str = "sweep.json";
/// One line per point.
pub const CSV: &str = "sweep.csv";
/// The chart.
pub const CHART: &str = "sweep.svg";
/// The page for a browser.
pub const HTML: &str = "report.html";
/// The page to read first.
pub const PAGE: &str = "sweep.md";

/// What to sweep.
#[derive(Clone, Debug)]
pub struct SweepSettings {
    /// The workload as configured.
    pub workload: Map<String, Value>,
    /// What varies, each key beginning with `workload.`.
    pub axes: Vec<SweepAxis>,
    /// Devices by name.
    pub devices: Vec<String>,
    /// Folder with a user's own devices.
    pub config_dir: Option<PathBuf>,
    /// Cost of launching one operation, in microseconds, where known.
    pub launch_us: Option<f64>,
    /// Version of llm-perf.
    pub tool_version: String,
}

/// A sweep that is ready to run: all that can fail cheaply has been checked.
#[derive(Debug)]
pub struct Plan<'a> {
    model: &'a LoadedModel,
    settings: &'a SweepSettings,
    grid: Grid,
    devices: Vec<CalibratedDevice>,
    launch: Option<Seconds>,
}

/// What a run tells and asks while it runs, from several threads.
pub struct Watch<'a> {
    /// Called with the number of points just done.
    pub done: &'a (dyn Fn(u64) + Sync),
    /// Asked before each workload.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

/// Checks the settings.
pub fn plan<'a>(model: &'a LoadedModel, settings: &'a SweepSettings) -> Result<Plan<'a>, UserError> {
    let launch = analytic::launch(settings.launch_us)?;
    let devices = hardware::named(settings.config_dir.as_deref(), &settings.devices)?;
    let devices: Vec<CalibratedDevice> = devices.into_iter().map(CalibratedDevice::stored).collect();
    let grid = Grid::new(&settings.workload, &settings.axes, devices.len() as u64)?;
    Ok(Plan { model, settings, grid, devices, launch })
}

impl Plan<'_> {
    /// Points in total.
    pub fn points(&self) -> u64 {
        self.grid.workloads() * self.devices.len() as u64
    }

    /// Computes every point, several at a time.
    ///
    /// A point that cannot be modelled says so; where none can be, that is an error.
    pub fn run(&self, watch: &Watch<'_>) -> Result<Sweep, UserError> {
        let stopped = AtomicBool::new(false);
        let estimator = OnceLock::new();
        let forecasters = self
            .devices
            .iter()
            .map(|one| Forecaster::new(&self.model.network, &one.hardware, one.calibration.as_ref()))
            .collect::<Result<Vec<_>, _>>()?;
        let numbers: Vec<u64> = (0..self.grid.workloads()).collect();
        let points: Vec<SweepPoint> = numbers
            .into_par_iter()
            .flat_map_iter(|number| {
                if stopped.load(Ordering::Relaxed) || (watch.stop)() {
                    stopped.store(true, Ordering::Relaxed);
                    return Vec::new();
                }
                let points = self.points_of(number, &estimator, &forecasters);
                (watch.done)(points.len() as u64);
                points
            })
            .collect();
        if let Some(point) = points.first()
            && points.iter().all(|point| point.figures.is_none())
        {
            let first = point.error.clone().unwrap_or_default();
            let count = points.len();
            return Err(UserError::usage(format!("none of the {count} points can be modelled; the first: {first}")));
        }
        let LoadedModel { id, config_path, config, network, revision, notes, .. } = self.model;
        let mut model = model_spec(id, config_path, config, network);
        model.hf_revision.clone_from(revision);
        model.notes.clone_from(notes);
        let shared = points.iter().filter_map(|point| point.figures.as_ref()).any(|figures| figures.devices > 1);
        Ok(Sweep {
            schema: SchemaTag::new(),
            tool_version: self.settings.tool_version.clone(),
            origin: Origin::Modelled,
            model,
            workload: self.settings.workload.clone(),
            axes: self.settings.axes.clone(),
            hardware: self.devices.iter().map(device).collect(),
            points_planned: self.points(),
            stopped: stopped.into_inner(),
            points,
            assumptions: basic_assumptions(self.launch.is_some(), shared),
        })
    }

    /// The points of one workload, device by device.
    fn points_of<'m>(
        &'m self,
        number: u64,
        estimator: &OnceLock<Estimator<'m>>,
        forecasters: &[Forecaster<'_>],
    ) -> Vec<SweepPoint> {
        let settings = self.grid.settings(number);
        let estimated = self.grid.workload(number).and_then(|workload| self.estimate(&workload, estimator));
        let first = number * self.devices.len() as u64;
        let points = self.devices.iter().zip(forecasters).zip(first..).map(|((device, forecaster), point)| {
            let hardware = &device.hardware;
            let figures = match &estimated {
                Ok((workload, estimate)) => figures(workload, estimate, hardware, self.launch)
                    .map(|figures| SweepFigures { forecast: likely(forecaster, workload, estimate), ..figures }),
                Err(error) => Err(error.clone()),
            };
            let (figures, error) = match figures {
                Ok(figures) => (Some(figures), None),
                Err(error) => (None, Some(error)),
            };
            SweepPoint { point, hardware: hardware.id.clone(), settings: settings.clone(), figures, error }
        });
        points.collect()
    }

    fn estimate<'m>(
        &'m self,
        settings: &WorkloadSettings,
        estimator: &OnceLock<Estimator<'m>>,
    ) -> Result<(Workload, Estimate), String> {
        let network: &'m Model = &self.model.network;
        let workload = settings.resolve(network, self.model.dtype).map_err(|error| error.to_string())?;
        let text = |error: MeterError| error.to_string();
        let estimator = match estimator.get() {
            Some(estimator) => estimator,
            None => {
                let made = Estimator::new(network, &workload).map_err(text)?;
                estimator.get_or_init(|| made)
            }
        };
        let estimate = estimator.estimate(&workload).map_err(text)?;
        Ok((workload, estimate))
    }
}

fn figures(
    workload: &Workload,
    estimate: &Estimate,
    hardware: &Hardware,
    launch: Option<Seconds>,
) -> Result<SweepFigures, String> {
    let devices = workload.parallel.devices();
    let roofline = Roofline::of(hardware, estimate.matrix_dtypes(), workload, launch)
        .and_then(|roofline| roofline.linked(devices))
        .map_err(|error| error.to_string())?;
    let sent = |messages: &[Message]| messages.iter().map(Message::sent).sum::<Bytes>();
    let times = estimate.times(&roofline);
    let footprint = estimate.footprint();
    let decode_ms = times.decode.map(|decode| decode.total.as_millis());
    let step_ms = decode_ms.map(|time| time / workload.decode_steps as f64);
    let ttft_ms = times.prefill.total.as_millis();
    Ok(SweepFigures {
        devices,
        seq_len: workload.seq_len,
        ttft_ms,
        time_per_output_token_ms: step_ms,
        decode_tokens_per_second: step_ms.filter(|ms| *ms > 0.0).map(|ms| workload.batch as f64 / ms * 1e3),
        total_time_ms: ttft_ms + decode_ms.unwrap_or(0.0),
        prefill_bound: times.prefill.bound().name().to_owned(),
        decode_bound: times.decode.map(|decode| decode.bound().name().to_owned()),
        weights_bytes: footprint.weights,
        activations_peak_bytes: footprint.activations,
        kv_bytes: footprint.kv(),
        total_bytes: footprint.total(),
        fits: footprint.fits(hardware.memory_bytes),
        sequences_that_fit: footprint.sequences(hardware.memory_bytes),
        prefill_sent_bytes: sent(&estimate.prefill_messages),
        step_sent_bytes: times.decode.map(|_| sent(&estimate.step_messages)),
        forecast: None,
    })
}

/// The forecast of a point; absent where the device lacks a rate it needs, which the roofline told.
fn likely(forecaster: &Forecaster<'_>, workload: &Workload, estimate: &Estimate) -> Option<SweepForecast> {
    let quick = forecaster.forecast(workload, estimate).ok()?;
    Some(SweepForecast {
        origin: quick.origin,
        ttft_ms: quick.ttft_ms,
        time_per_output_token_ms: quick.time_per_output_token_ms,
    })
}

fn device(CalibratedDevice { hardware, basis, .. }: &CalibratedDevice) -> SweepDevice {
    SweepDevice {
        id: hardware.id.clone(),
        name: hardware.name.clone(),
        memory_bytes: hardware.memory_bytes,
        bytes_per_second: hardware.bytes_per_second,
        interconnect_bytes_per_second: hardware.interconnect_bytes_per_second,
        forecast_basis: Some(basis.clone()),
    }
}

/// Runs a plan inside a run folder, which says at every moment how far that is. Gives back why it is partial, if it is.
pub fn keep(
    plan: &Plan<'_>,
    config_yaml: &str,
    request: RunRequest,
    watch: &Watch<'_>,
) -> Result<EndedRun<Sweep>, UserError> {
    let device = match plan.devices.as_slice() {
        [one] => Some(one.hardware.id.clone()),
        _ => None,
    };
    let request = RunRequest { model: Some(plan.model.id.clone()), device, ..request };
    run(request, |folder| {
        let sweep = fill(folder, plan, config_yaml, watch)?;
        let missing = missing(&sweep);
        Ok((sweep, missing))
    })
}

fn fill(folder: &mut RunFolder, plan: &Plan<'_>, config_yaml: &str, watch: &Watch<'_>) -> Result<Sweep, UserError> {
    folder.write_file("config.yaml", config_yaml.as_bytes())?;
    folder.end_step("prepare")?;
    let sweep = plan.run(watch)?;
    folder.write_json(JSON, &sweep)?;
    folder.write_file(CSV, report::pages::sweep::csv(&sweep).as_bytes())?;
    folder.write_file(CHART, report::html::sweep_chart(&sweep).as_bytes())?;
    folder.write_file(PAGE, report::pages::sweep::page(&sweep, CSV, CHART).markdown().as_bytes())?;
    let html = report::html::sweep_page(&sweep, Some(folder.manifest()));
    folder.write_file(HTML, html.as_bytes())?;
    folder.end_step("sweep")?;
    Ok(sweep)
}

/// What a sweep lacks of what was asked for.
pub fn missing(sweep: &Sweep) -> Vec<String> {
    let mut missing = Vec::new();
    if sweep.stopped {
        missing.push(format!("stopped after {} of {} points", sweep.points.len(), sweep.points_planned));
    }
    let mut failures: Vec<&str> = sweep.failures().filter_map(|point| point.error.as_deref()).collect();
    let count = failures.len();
    failures.dedup();
    failures.truncate(3);
    if count > 0 {
        missing.push(format!(
            "{count} of {} points could not be modelled: {}",
            sweep.points.len(),
            failures.join("; ")
        ));
    }
    missing
}
