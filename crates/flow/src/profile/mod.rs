//! `profile`: run a model on inputs, time its stages, and lay the result beside what the hardware allows.

mod artifacts;
mod inputs;
mod measure;
mod records;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use analysis::ProfileRecords;
use collect::calibrate::{self, Store};
use collect::run::{Outcome, RunFolder};
use engine::{Checkpoint, EngineError, InputError, Session, Tokenizer};
use meter::{MeterError, Roofline};
use serde::Deserialize;
use types::{
    Clock, ClockId, ClockKind, ComputeUnit, DType, Device, DeviceId, Hardware, InputSet, Metrics, PeakUsed,
    ProfileSettings as RunCounts, RunHeader, Workload,
};

use crate::analyze::{self, AnalyzeError};
use crate::hardware::DeviceError;
use crate::model::{AboutModel, LoadedModel};
use crate::{CollectError, RunRequest};

use inputs::Input;
pub use inputs::{DatasetSettings, SamplingSettings};
use measure::{Inference, Prepared, Runner, Turn};

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

/// Why there is no profile.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// A model this verb cannot run yet.
    #[error("{model} takes no pages; this version profiles models that read pages")]
    NoPages {
        /// The model.
        model: String,
    },
    /// No dataset of that name ships with the program.
    #[error("no dataset `builtin:{name}` ships with the program; there is `builtin:pages`")]
    NoDataset {
        /// What was asked for.
        name: String,
    },
    /// A dataset without images.
    #[error("no image under {root} matches {patterns}")]
    NoImages {
        /// The folder.
        root: String,
        /// The patterns.
        patterns: String,
    },
    /// Images, but none that can be read.
    #[error("none of the {count} images can be used; the first: {problem}")]
    NoUsableImages {
        /// How many there are.
        count: usize,
        /// What is wrong with the first.
        problem: String,
    },
    /// A pattern that is none.
    #[error("dataset.{key}: `{pattern}` is no pattern: {reason}")]
    Pattern {
        /// Which key.
        key: &'static str,
        /// The pattern.
        pattern: String,
        /// What is wrong.
        reason: String,
    },
    /// A file cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: std::io::Error,
    },
    /// What ships with the program is broken.
    #[error("the pages that ship with the program are broken: {reason}")]
    Shipped {
        /// How.
        reason: String,
    },
    /// A setting out of range.
    #[error("{key} must be {expected}, is {found}")]
    Setting {
        /// The key.
        key: &'static str,
        /// What it must be.
        expected: &'static str,
        /// What it is.
        found: String,
    },
    /// The user stopped the run.
    #[error("stopped by the user after {done} of {total} inferences")]
    Stopped {
        /// Done.
        done: u64,
        /// Planned.
        total: u64,
    },
    /// An input.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The model of the work.
    #[error(transparent)]
    Meter(#[from] MeterError),
    /// The analytic report.
    #[error(transparent)]
    Analyze(#[from] AnalyzeError),
    /// A device.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A document could not be written down.
    #[error(transparent)]
    Report(#[from] report::ReportError),
    /// The machine or the run folder.
    #[error(transparent)]
    Collect(#[from] CollectError),
}

impl ProfileError {
    /// The next step, where there is one that the message does not already say.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoImages { .. } => {
                Some("PNG and JPEG are read; --inputs takes a folder, a file or a pattern".to_owned())
            }
            Self::NoPages { .. } => {
                Some("`llm-perf analyze` models it; `llm-perf models` lists what can be run".to_owned())
            }
            Self::Collect(error) => error.hint(),
            Self::Analyze(error) => error.hint(),
            _ => None,
        }
    }

    /// Whether the request was wrong, rather than the run failing.
    pub fn is_wrong_usage(&self) -> bool {
        match self {
            Self::NoPages { .. }
            | Self::NoDataset { .. }
            | Self::NoImages { .. }
            | Self::Pattern { .. }
            | Self::Setting { .. }
            | Self::Unreadable { .. } => true,
            Self::Collect(error) => error.is_wrong_usage(),
            Self::Analyze(error) => error.is_wrong_usage(),
            _ => false,
        }
    }
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
    let measured = measure_all(&runner, request, inputs, usable, progress, stop)?;
    let roofline = Roofline::new(&processor, [dtype], None).ok();
    let network = session.model();

    let mut work = Vec::new();
    let mut operators = Vec::new();
    let mut workload: Option<Workload> = None;
    for one in &measured.inputs {
        let (one_workload, one_work) =
            records::work(network, &one.prepared.facts, one.prepared.sides, dtype, request.last_logits_only)?;
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
        samples: measured.samples,
        inputs: measured.inputs.iter().map(|one| one.prepared.facts.clone()).collect(),
        work,
        operators,
        classes: records::classes(network),
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
        quality: Vec::new(),
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

/// One measured input.
struct MeasuredInput {
    prepared: Prepared,
    traced: Inference,
}

/// Everything the passes gave.
struct Measured {
    inputs: Vec<MeasuredInput>,
    samples: Vec<types::Sample>,
    profiled: Vec<types::Sample>,
    /// Name and text of each input.
    texts: Vec<(String, String)>,
}

fn measure_all(
    runner: &Runner<'_>,
    request: &ProfileRequest,
    inputs: &mut [Input],
    usable: &[usize],
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<Measured, ProfileError> {
    let sampling = &request.dataset.sampling;
    let Plan { epochs, prepared } = prepare_all(runner, sampling, inputs, usable, progress)?;
    let planned: usize = epochs.iter().map(Vec::len).sum();
    let distinct = prepared.len() as u64;
    let rounds = u64::from(sampling.repeats) * planned as u64 + u64::from(sampling.warmup_rounds) * distinct;
    let total = rounds + distinct;
    let mut done = 0;
    let mut samples = Vec::new();
    let mut warm = BTreeSet::new();
    let mut step = |input: &Prepared, turn: Turn, traced: bool, done: &mut u64| {
        if stop() {
            return Err(ProfileError::Stopped { done: *done, total });
        }
        let inference = runner.infer(input, turn, traced)?;
        *done += 1;
        progress(Progress::Inference { done: *done, total, input: &input.facts.name });
        Ok(inference)
    };
    for (epoch, chosen) in (0..).zip(&epochs) {
        for index in chosen {
            let input = &prepared[index];
            if warm.insert(*index) {
                for repeat in 0..sampling.warmup_rounds {
                    samples.extend(step(input, Turn { epoch, repeat, warmup: true }, false, &mut done)?.samples);
                }
            }
            for repeat in 0..sampling.repeats {
                samples.extend(step(input, Turn { epoch, repeat, warmup: false }, false, &mut done)?.samples);
            }
        }
    }
    let mut measured = Measured { inputs: Vec::new(), samples, profiled: Vec::new(), texts: Vec::new() };
    for (_, mut input) in prepared {
        let traced = step(&input, Turn { epoch: 0, repeat: 0, warmup: false }, true, &mut done)?;
        input.facts.generated_tokens = traced.tokens.len() as u64;
        measured.profiled.extend(traced.samples.iter().cloned());
        measured.texts.push((input.facts.name.clone(), runner.text(&traced.tokens)?));
        measured.inputs.push(MeasuredInput { prepared: input, traced });
    }
    Ok(measured)
}

/// What is run: the inputs of every epoch, by index, and each of them prepared.
struct Plan {
    epochs: Vec<Vec<usize>>,
    prepared: BTreeMap<usize, Prepared>,
}

/// The inputs of every epoch, prepared. One that turns out to be broken is left out, and the choice made again.
fn prepare_all(
    runner: &Runner<'_>,
    sampling: &SamplingSettings,
    inputs: &mut [Input],
    usable: &[usize],
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Plan, ProfileError> {
    let mut usable = usable.to_vec();
    let mut prepared = BTreeMap::new();
    loop {
        let epochs: Vec<Vec<usize>> =
            (0..sampling.epochs).map(|epoch| inputs::choose(sampling, &usable, epoch)).collect();
        let chosen: BTreeSet<usize> = epochs.iter().flatten().copied().collect();
        let mut broken = BTreeSet::new();
        for index in chosen.iter().filter(|index| !prepared.contains_key(*index)).copied().collect::<Vec<_>>() {
            progress(Progress::Doing("preparing pages"));
            match runner.prepare(&inputs[index]) {
                Ok(one) => {
                    prepared.insert(index, one);
                }
                Err(ProfileError::Input(error)) => {
                    inputs[index].facts.problem = Some(error.to_string());
                    broken.insert(index);
                }
                Err(error) => return Err(error),
            }
        }
        usable.retain(|index| !broken.contains(index));
        if usable.is_empty() {
            let problem = inputs.iter().find_map(|input| input.facts.problem.clone()).unwrap_or_default();
            return Err(ProfileError::NoUsableImages { count: inputs.len(), problem });
        }
        if broken.is_empty() {
            prepared.retain(|index, _| chosen.contains(index));
            for index in prepared.keys() {
                inputs[*index].facts.used = true;
            }
            return Ok(Plan { epochs, prepared });
        }
    }
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
