//! `capacity`: what a server is likely to make of a load, simulated event by event.

mod document;
mod fleet;
mod from;
mod highest;
mod layouts;
mod load;
mod measured;
mod room;

use std::path::PathBuf;
use std::sync::Arc;

use collect::run::RunRequest;
pub use forecast::serving::{Backend, Engine, MeasuredStep, Router, SGLANG, VLLM};
use forecast::serving::{DRAWS, Rules, Server, StepPrices, Uncertainty};
use meter::WorkloadSettings;
pub use report::pages::capacity::{layouts_terminal, terminal};
use types::{AttentionKind, Capacity, LoadArrivals, LogitsKind, Objective, UserError, Workload};

pub use fleet::{Disaggregate, FleetSettings, servers};
pub use from::{ServedRun, ServerCommand, served};
pub use layouts::{Layout, Watch, keep_layouts, layouts, missing};
pub use load::PlannedLoad;
pub use room::EngineSettings;

use crate::pipeline::device::calibration;
use crate::pipeline::device::calibration::CalibratedDevice as Device;
use crate::pipeline::device::hardware::{self, DEFAULT_DEVICE};
use crate::pipeline::folder::run::run;
use crate::pipeline::model::LoadedModel;
use crate::pipeline::progress::Progress;
use document::{Certainty, Subject};

/// The document inside a run folder.
pub const JSON: &str = "capacity.json";
/// The page to read first.
pub const PAGE: &str = "capacity.md";

/// What to simulate.
#[derive(Clone, Debug)]
pub struct CapacityRequest {
    /// How the model is stored and shared; lengths and batch come from the load.
    pub workload: WorkloadSettings,
    /// The device by name.
    pub hardware: Option<String>,
    /// A calibration to use in place of the stored one.
    pub calibration: Option<PathBuf>,
    /// Folder with a user's own devices.
    pub config_dir: Option<PathBuf>,
    /// The engine and its settings.
    pub engine: EngineSettings,
    /// The load.
    pub load: Arc<PlannedLoad>,
    /// Servers that share it.
    pub fleet: FleetSettings,
    /// Options of a measured server's command that the simulation does not know.
    pub ignored_options: Vec<String>,
    /// Steps of a measured server.
    pub steps: Arc<[MeasuredStep]>,
    /// Whether they correct the forecast.
    pub steps_apply: bool,
    /// The latencies that are acceptable.
    pub objective: Option<Objective>,
    /// Price of one device for an hour.
    pub price: Option<f64>,
    /// Power of one device.
    pub watts: Option<f64>,
    /// Version of llm-perf.
    pub tool_version: String,
}

/// How many simulations intervals rest on.
#[derive(Clone, Copy)]
struct Effort {
    /// Of the load.
    load: u64,
    /// Of the highest load.
    highest: u64,
}

/// Simulates; nothing is written.
pub fn capacity(
    model: &LoadedModel,
    request: &CapacityRequest,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Capacity, UserError> {
    let device = device(request)?;
    let effort = Effort { load: DRAWS, highest: highest::OTHERS };
    let (capacity, unmet) = simulated(model, request, &device, effort, progress)?;
    match unmet {
        Some(error) => Err(error),
        None => Ok(capacity),
    }
}

/// The forecast on `device`, and why no load holds the objective, where none does.
fn simulated(
    model: &LoadedModel,
    request: &CapacityRequest,
    device: &Device,
    effort: Effort,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<(Capacity, Option<UserError>), UserError> {
    let workload = workload(model, request)?;
    let room = request.engine.room(model, &workload, &device.hardware, request.load.piece)?;
    let Rules { max_num_seqs, max_num_batched_tokens, .. } = room.rules;
    let engine = request.engine.engine.with(request.engine.backend).limited(max_num_seqs, max_num_batched_tokens);
    let mut prices = StepPrices::new(&model.network, &workload, engine, &device.hardware, device.calibration.as_ref())?
        .ok_or_else(|| room::not_served(model))?;
    let residuals = prices.residuals(&request.steps)?;
    if request.steps_apply {
        prices.correct(residuals);
    }
    let (fleet, uncertainty) =
        (request.fleet.fleet(&room)?, Uncertainty::of(device.calibration.is_some(), prices.host_is_measured));
    let mut server = Server { prices, engine, rules: room.rules, fleet, uncertainty };
    fleet::refuse_too_many(&server.fleet, request.load.asked.len())?;
    progress(Progress::Doing("simulating the load"));
    let objective = request.objective.unwrap_or_default();
    let found = server.forecast(&objective, effort.load, |index| request.load.draw(index))?;
    if found.likely.answers.iter().all(Option::is_none) {
        let shortest = request.load.asked.iter().map(|asked| asked.input + asked.output).min().unwrap_or(0);
        let tokens = room.rules.kv_blocks * room.rules.block_size;
        return Err(UserError::usage(format!(
            "no request of the load fits the KV cache of {} on {}: it holds {tokens} tokens, the shortest request has {shortest}",
            model.id, device.hardware.id
        ))
        .hint("shorten prompts and outputs, or give the server more KV blocks or devices"));
    }
    // Requests of a file that all come at once have no rate to change.
    let varies = request.load.about.rate().is_some() || !matches!(request.load.about, LoadArrivals::File { .. });
    let (highest, unmet) = match request.objective.as_ref().filter(|_| varies) {
        Some(objective) => {
            progress(Progress::Doing("searching for the highest load within the target"));
            match highest::highest(&mut server, &request.load, objective, effort.highest) {
                Ok(found) => (Some(found), None),
                Err(error) => (None, Some(error)),
            }
        }
        None => (None, None),
    };
    let certainty = Certainty::of(&mut server)?;
    let fleet = server.fleet;
    let subject = Subject { model, workload: &workload, device, request, room, certainty, residuals, fleet };
    Ok((subject.document(&found, highest), unmet))
}

/// Writes a forecast into a run folder of its own; where that is.
pub fn keep(capacity: &Capacity, config_yaml: &str, request: RunRequest) -> Result<PathBuf, UserError> {
    let request = RunRequest {
        model: Some(capacity.model.model_id.clone()),
        device: Some(capacity.server.hardware.clone()),
        ..request
    };
    let ended = run(request, |folder| {
        folder.write_file("config.yaml", config_yaml.as_bytes())?;
        folder.write_json(JSON, capacity)?;
        folder.write_file(PAGE, report::pages::capacity::page(capacity).markdown().as_bytes())?;
        let html = report::html::capacity_page(capacity, Some(folder.manifest()));
        folder.write_file("report.html", html.as_bytes())?;
        folder.end_step("capacity")?;
        Ok(((), Vec::new()))
    })?;
    Ok(ended.folder)
}

impl CapacityRequest {
    /// The device by name.
    fn device(&self) -> &str {
        self.hardware.as_deref().unwrap_or(DEFAULT_DEVICE)
    }
}

/// The device of a request, with the calibration that is named or stored.
fn device(request: &CapacityRequest) -> Result<Device, UserError> {
    let hardware = hardware::find(request.config_dir.as_deref(), request.device())?;
    Ok(match &request.calibration {
        Some(path) => {
            let calibration = calibration::of_file(path, &hardware)?;
            Device::with(hardware, Some(calibration))
        }
        None => Device::stored(hardware),
    })
}

/// How the model is stored and shared by the server.
fn workload(model: &LoadedModel, request: &CapacityRequest) -> Result<Workload, UserError> {
    let settings = WorkloadSettings {
        batch: 1,
        attention: AttentionKind::Flash,
        logits: LogitsKind::Last,
        text_tokens: Some(512),
        seq_len: None,
        max_new_tokens: Some(64),
        decode_steps: None,
        ..request.workload.clone()
    };
    let workload = settings.resolve(&model.network, model.dtype)?;
    let parallel = workload.parallel;
    if parallel.devices() > parallel.tensor.max(1) {
        return Err(UserError::usage("only tensor parallelism is simulated in a server")
            .hint("set workload.parallel.tensor alone"));
    }
    Ok(workload)
}
