//! `profile`: run a model on inputs, time its stages, and lay the result beside what the hardware allows.

mod artifacts;
mod error;
mod inputs;
mod measure;
mod passes;
mod records;

use std::path::PathBuf;

use analysis::ProfileRecords;
use collect::calibrate::{self, Store};
use collect::run::{Outcome, RunFolder};
use engine::{Checkpoint, Session, Tokenizer};
use meter::Roofline;
use serde::Deserialize;
use types::{
    Clock, ClockId, ClockKind, ComputeUnit, DType, Device, DeviceId, Hardware, InputSet, Metrics, PeakUsed,
    ProfileSettings as RunCounts, RunHeader, Workload,
};

use crate::RunRequest;
use crate::analyze;
use crate::model::{AboutModel, LoadedModel};

pub use error::ProfileError;
use inputs::Input;
pub use inputs::{DatasetSettings, SamplingSettings};
use measure::Runner;

/// The `infer` part of a configuration: how a page becomes a prompt and a prompt becomes text.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct InferSettings {
    /// Side of the global view.
    pub base_size: u64,
    /// Side of a tile.
    pub image_size: u64,
    /// Whether large pages are cut into tiles.
    pub crop_mode: bool,
    /// Fewest tiles of a page.
    pub min_tiles: u64,
    /// Most tiles of a page.
    pub max_tiles: u64,
    /// What the model is asked; `<image>` stands for the page.
    pub prompt: String,
    /// Tokens generated at most.
    pub max_new_tokens: u64,
    /// Zero takes the most likely token each time.
    pub temperature: f64,
    /// Share of probability kept when sampling.
    pub top_p: f64,
    /// No run of this many tokens comes twice; zero switches it off.
    pub no_repeat_ngram_size: u64,
    /// How attention is computed; the engine has one way of its own.
    pub attention: String,
}

/// Where weights come from: the `model.weights` and `model.seed` of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct WeightSettings {
    /// `synthetic`, or a checkpoint.
    pub weights: String,
    /// Seed of synthetic weights.
    pub seed: u64,
}

/// What to profile.
#[derive(Clone, Debug)]
pub struct ProfileRequest {
    /// What runs the model; `native` is all there is.
    pub engine: String,
    /// Where it runs; `cpu` is all there is, and `auto` means it.
    pub device: String,
    /// Where weights come from.
    pub weights: WeightSettings,
    /// How a page becomes text.
    pub infer: InferSettings,
    /// Which images.
    pub dataset: DatasetSettings,
    /// Whether prefill computes the logits of the last position only.
    pub last_logits_only: bool,
    /// Whether decoded texts are kept.
    pub keep_predictions: bool,
    /// Version of llm-perf.
    pub tool_version: String,
    /// Folder with a user's own devices.
    pub config_dir: Option<PathBuf>,
}

/// What a run tells while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress<'a> {
    /// Something takes a while.
    Doing(&'a str),
    /// One more inference of so many is done.
    Inference {
        /// Done so far.
        done: u64,
        /// In all.
        total: u64,
        /// The input.
        input: &'a str,
    },
    /// Something a user should know.
    Note(&'a str),
}

/// The outcome.
#[derive(Debug)]
pub struct Profile {
    /// Everything measured and derived.
    pub metrics: Metrics,
    /// The inputs.
    pub inputs: InputSet,
    /// The run folder.
    pub folder: PathBuf,
    /// Why the run is partial; empty when it is not.
    pub missing: Vec<String>,
}

/// Runs, measures, analyses and writes everything into a run folder.
///
/// What can fail cheaply fails before the folder is made; after that an error leaves a folder that says so. `stop` is
/// asked between inferences.
pub fn profile(
    model: LoadedModel,
    request: &ProfileRequest,
    run: RunRequest,
    config_yaml: &str,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<Profile, ProfileError> {
    check(&model, request)?;
    let mut inputs = inputs::find(&request.dataset)?;
    let usable: Vec<usize> =
        inputs.iter().enumerate().filter(|(_, input)| input.content.is_some()).map(|(index, _)| index).collect();
    if usable.is_empty() {
        let problem = inputs.iter().find_map(|input| input.facts.problem.clone()).unwrap_or_default();
        return Err(ProfileError::NoUsableImages { count: inputs.len(), problem });
    }
    let run = RunRequest { model: Some(model.id.clone()), device: Some(DeviceId::cpu().to_string()), ..run };
    let mut folder = RunFolder::create(run)?;
    let path = folder.path().to_owned();
    match filled(&mut folder, model, request, &mut inputs, &usable, config_yaml, progress, stop) {
        Ok((metrics, set, missing)) => {
            folder.finish(Outcome::from_missing(missing.clone()))?;
            Ok(Profile { metrics, inputs: set, folder: path, missing })
        }
        Err(error) => {
            // What the folder says matters less than why the run failed.
            let _ = folder.fail(error.to_string());
            Err(error)
        }
    }
}

fn check(model: &LoadedModel, request: &ProfileRequest) -> Result<(), ProfileError> {
    if !model.network.takes_pictures() {
        return Err(ProfileError::NoPages { model: model.id.clone() });
    }
    let one_of = |key: &'static str, expected: &'static str, found: &str, allowed: &[&str]| {
        if allowed.contains(&found) {
            return Ok(());
        }
        Err(ProfileError::Setting { key, expected, found: format!("`{found}`") })
    };
    one_of("engine", "`native`, the only one there is", &request.engine, &["native"])?;
    one_of("device", "`cpu` or `auto`: models run on the processor only", &request.device, &["cpu", "auto"])?;
    one_of(
        "infer.attention",
        "`eager`: the engine computes attention in one way",
        &request.infer.attention,
        &["eager"],
    )?;
    if let Some(dtype) = model.wanted_dtype.filter(|dtype| *dtype != DType::Fp32) {
        let expected = "float32 or null: the processor computes in single precision";
        return Err(ProfileError::Setting { key: "model.dtype", expected, found: dtype.to_string() });
    }
    let sampling = &request.dataset.sampling;
    for (key, found) in [("dataset.sampling.epochs", sampling.epochs), ("dataset.sampling.repeats", sampling.repeats)] {
        if found == 0 {
            return Err(ProfileError::Setting { key, expected: "at least 1", found: found.to_string() });
        }
    }
    let infer = &request.infer;
    for (key, size) in [("infer.base_size", infer.base_size), ("infer.image_size", infer.image_size)] {
        if size == 0 || !size.is_multiple_of(16) || size > 4096 {
            let expected = "a multiple of the patch size 16, up to 4096";
            return Err(ProfileError::Setting { key, expected, found: size.to_string() });
        }
    }
    if infer.max_new_tokens == 0 || infer.max_new_tokens > 100_000 {
        let found = infer.max_new_tokens.to_string();
        return Err(ProfileError::Setting { key: "infer.max_new_tokens", expected: "1 to 100,000", found });
    }
    Ok(())
}

#[allow(clippy::too_many_arguments, reason = "the parts of one run, taken apart nowhere else")]
fn filled(
    folder: &mut RunFolder,
    model: LoadedModel,
    request: &ProfileRequest,
    inputs: &mut [Input],
    usable: &[usize],
    config_yaml: &str,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<(Metrics, InputSet, Vec<String>), ProfileError> {
    let environment = crate::environment::capture(request.config_dir.as_deref())?;
    folder.write_file("config.yaml", config_yaml.as_bytes())?;
    folder.write_json("env.json", &environment)?;
    folder.end_step("prepare")?;

    let processor = processor(progress)?;
    progress(Progress::Doing("loading weights"));
    let checkpoint = match request.weights.weights.as_str() {
        "synthetic" => Checkpoint::Synthetic { seed: request.weights.seed },
        path => Checkpoint::Safetensors(path.into()),
    };
    // The processor computes in single precision: candle's bfloat16 products widen on every call.
    let dtype = DType::Fp32;
    let LoadedModel { id, config_path, config, network, revision, notes, .. } = model;
    let vocabulary = config.vocabulary().unwrap_or_default();
    let session = Session::load(network, &checkpoint, dtype)?;
    let tokenizer = tokenizer(&checkpoint, vocabulary)?;
    let runner = Runner {
        session: &session,
        tokenizer: &tokenizer,
        infer: &request.infer,
        last_logits_only: request.last_logits_only,
    };
    let measured = passes::measure(&runner, request, inputs, usable, progress, stop)?;
    let roofline = Roofline::new(&processor, [dtype], None).ok();
    let network = session.model();

    let mut work = Vec::new();
    let mut operators = Vec::new();
    let mut workload: Option<Workload> = None;
    for one in &measured.inputs {
        let (one_workload, one_work) =
            records::work(network, &one.prepared.facts, one.kind, one.prepared.sides, dtype, request.last_logits_only)?;
        workload.get_or_insert(one_workload);
        work.extend(one_work);
        operators.extend(records::operators(network, roofline.as_ref(), &one.traced.prefill, &one.traced.decode));
    }
    let sampling = &request.dataset.sampling;
    let records = ProfileRecords {
        run: RunHeader {
            id: folder.id().to_owned(),
            engine: "native".to_owned(),
            model: Some(id.clone()),
            device: Some(DeviceId::cpu()),
            weights: Some(request.weights.weights.clone()),
        },
        devices: vec![Device {
            id: DeviceId::cpu(),
            name: processor.name.clone(),
            uuid: None,
            hardware: Some(processor.id.clone()),
            memory_bytes: Some(processor.memory_bytes),
        }],
        clocks: vec![Clock {
            id: ClockId(0),
            kind: ClockKind::HostMonotonic,
            unix_ns_at_zero: None,
            uncertainty_ns: None,
        }],
        samples: measured.samples.clone(),
        inputs: measured.inputs.iter().map(|one| one.prepared.facts.clone()).collect(),
        work,
        operators,
        classes: records::classes(network),
        routing: Vec::new(),
        profiled: measured.profiled,
        peak: peak(&processor, dtype),
        logits_all_positions: !request.last_logits_only,
        load_ns: session.load_time(),
        settings: RunCounts {
            repeats: sampling.repeats,
            epochs: sampling.epochs,
            warmup_rounds: sampling.warmup_rounds,
            batch: 1,
            seed: Some(sampling.seed),
        },
        quality: vec![records::outside_stages(&measured.samples, measured.wall)],
    };
    let metrics = analysis::profile(&records);
    folder.write_json("metrics.json", &metrics)?;
    folder.end_step("measure")?;

    let set = inputs::document(&request.dataset, inputs);
    let bundle = artifacts::Bundle { metrics: &metrics, environment: &environment, inputs: &set, request };
    artifacts::write(folder, &bundle)?;
    if request.keep_predictions {
        artifacts::write_predictions(folder, &measured.texts)?;
    }
    if let Some(workload) = &workload {
        let about = AboutModel {
            id: &id,
            config_path: &config_path,
            config: &config,
            revision: revision.as_deref(),
            notes: &notes,
        };
        let devices = std::slice::from_ref(&processor);
        analyze::write(folder, &analyze::lay_out(about, network, workload, devices, None, &request.tool_version)?)?;
    }
    folder.end_step("report")?;
    let missing = inputs.iter().filter_map(|input| input.facts.problem.clone()).collect();
    Ok((metrics, set, missing))
}

/// The run in a few lines, for a terminal.
pub fn terminal(metrics: &Metrics) -> String {
    report::profile::terminal(metrics)
}

/// How far two runs are apart, stage by stage, for a terminal.
pub fn distance(first: &Metrics, second: &Metrics) -> String {
    report::profile::difference_terminal(&analysis::distance(first, second))
}

/// This machine's processor with its measured rates; measured now when they were not.
fn processor(progress: &mut dyn FnMut(Progress<'_>)) -> Result<Hardware, ProfileError> {
    let settings = calibrate::Settings::default();
    let store = Store::of_this_user()?;
    let mut told = false;
    let ensured = calibrate::ensure(&store, &settings, &mut |what| {
        if !told {
            progress(Progress::Note("the processor's own rates are not known yet; measuring them, about a second"));
            told = true;
        }
        progress(Progress::Doing(what));
    })?;
    if let Some(note) = &ensured.note {
        progress(Progress::Note(note));
    }
    Ok(calibrate::hardware(&ensured.calibration))
}

fn peak(hardware: &Hardware, dtype: DType) -> Option<PeakUsed> {
    let peak = hardware.peak(dtype, ComputeUnit::Matrix)?;
    let source = hardware.sources.get(&peak.source).map_or_else(|| peak.source.clone(), |source| source.title.clone());
    Some(PeakUsed { flops: peak.flops, bytes_per_second: hardware.bytes_per_second, dtype, source })
}

/// The checkpoint's own tokenizer, or one that needs no file.
fn tokenizer(checkpoint: &Checkpoint, vocabulary: u64) -> Result<Tokenizer, ProfileError> {
    let beside = match checkpoint {
        Checkpoint::Safetensors(path) if path.is_dir() => Some(path.clone()),
        Checkpoint::Safetensors(path) => path.parent().map(PathBuf::from),
        Checkpoint::Synthetic { .. } => None,
    };
    Ok(match beside.filter(|folder| folder.join("tokenizer.json").is_file()) {
        Some(folder) => Tokenizer::from_folder(&folder)?,
        None => Tokenizer::bytes(vocabulary)?,
    })
}
