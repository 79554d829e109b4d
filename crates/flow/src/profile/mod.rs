//! `profile`: run a model on inputs, time its stages, and lay the result beside what the hardware allows.

mod artifacts;
mod bench;
mod error;
mod files;
pub(crate) mod inputs;
mod measure;
pub(crate) mod passes;
pub(crate) mod prepare;
mod processor;
mod records;
mod settings;

use std::path::PathBuf;

use analysis::ProfileRecords;
use collect::run::{Outcome, RunFolder};
use meter::Roofline;
use network::Model;
use network::config::ModelConfig;
use report::profile::Setting;
use serde::Deserialize;
use types::{
    Clock, ClockId, ClockKind, DType, Device, DeviceId, Environment, InputSet, Metrics, ProfileSettings as RunCounts,
    RunHeader, Stage, Workload,
};

use crate::RunRequest;
use crate::analyze;
use crate::model::{AboutModel, LoadedModel};
use crate::workload::BareRun;

pub(crate) use artifacts::{Bundle, Ran, write as write_bundle, write_predictions};
use bench::Bench;
pub use error::ProfileError;
use inputs::Inputs;
pub use inputs::{DatasetSettings, SamplingSettings};
pub(crate) use processor::{peak, processor};
pub(crate) use records::{outside_stages, workload_of};
pub use settings::{DecodingSettings, Feed, InferSettings, PageSettings, PictureSettings, PromptSettings};

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
    /// What the model is fed, and how it writes.
    pub infer: InferSettings,
    /// Which files, and how often each is run.
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
    /// One more inference of so many begins, or gets to a stage.
    Inference {
        /// Done so far.
        done: u64,
        /// In all.
        total: u64,
        /// What it is for.
        pass: Pass,
        /// The input.
        input: &'a str,
        /// The stage that begins; absent before the first, and where stages are too short to tell of.
        stage: Option<Stage>,
    },
    /// Something a user should know.
    Note(&'a str),
}

/// What an inference is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// To warm up.
    WarmUp,
    /// For its times.
    Measuring,
    /// For its operators.
    Tracing,
}

impl Pass {
    /// What a person calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::WarmUp => "warming up",
            Self::Measuring => "measuring",
            Self::Tracing => "recording operators",
        }
    }
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
    /// Which of several ranks' part this is, where rank 0 writes the reports; absent for a whole run.
    pub part_of_rank: Option<u32>,
}

/// Runs, measures, analyses and writes everything into a run folder.
///
/// What can fail cheaply fails before the folder is made; after that an error leaves a folder that says so. `stop` is
/// asked between inferences.
pub fn profile(
    mut model: LoadedModel,
    request: &ProfileRequest,
    run: RunRequest,
    config_yaml: &str,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<Profile, ProfileError> {
    check(&model, request)?;
    engine::rehearse(&model.network)?;
    fit_to_pictures(&mut model, &request.infer);
    let mut inputs = inputs::find(&request.dataset, &request.infer)?;
    inputs.usable()?;
    progress(Progress::Doing("looking at the machine"));
    let environment = crate::environment::capture(request.config_dir.as_deref())?;
    check_memory(&model, &environment)?;
    let run = RunRequest { model: Some(model.id.clone()), device: Some(DeviceId::cpu().to_string()), ..run };
    let mut folder = RunFolder::create(run)?;
    let path = folder.path().to_owned();
    let given = Given { request, environment: &environment, config_yaml };
    match filled(&mut folder, model, &given, &mut inputs, progress, stop) {
        Ok((metrics, set)) => {
            let missing = inputs.problems();
            folder.finish(Outcome::from_missing(missing.clone()))?;
            Ok(Profile { metrics, inputs: set, folder: path, missing, part_of_rank: None })
        }
        Err(error) => {
            // What the folder says matters less than why the run failed.
            let _ = folder.fail(error.to_string());
            Err(error)
        }
    }
}

/// Runs warm-up and repeats of every input, with the ranges of its stages and nothing recorded.
pub(crate) fn bare(
    mut model: LoadedModel,
    request: &ProfileRequest,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<BareRun, ProfileError> {
    check(&model, request)?;
    fit_to_pictures(&mut model, &request.infer);
    let mut inputs = inputs::find(&request.dataset, &request.infer)?;
    inputs.usable()?;
    progress(Progress::Doing("loading weights"));
    let kept = kept(&model);
    let bench = Bench::load(model.network, model.config.vocabulary(), request, kept)?;
    let plan = bench.plan(request, &mut inputs)?;
    let measured = passes::measure(&bench.runner(request), request, plan, false, progress, stop)?;
    let workload = |input: &prepare::Prepared| workload_of(&input.facts, input, COMPUTED, request.last_logits_only);
    let workloads = measured.untraced.iter().map(workload).collect();
    Ok(BareRun { samples: measured.samples, workloads, not_modelled: None })
}

/// What a run is given besides its model and inputs.
struct Given<'a> {
    request: &'a ProfileRequest,
    environment: &'a Environment,
    config_yaml: &'a str,
}

/// The element type that the engine computes in, and so of everything it is fed. Weights may be kept in another.
const COMPUTED: DType = DType::Fp32;

/// The element type weights are kept in: as asked for, else that of the arithmetic.
fn kept(model: &LoadedModel) -> DType {
    model.wanted_dtype.unwrap_or(COMPUTED)
}

fn check(model: &LoadedModel, request: &ProfileRequest) -> Result<(), ProfileError> {
    let one_of = |key: &'static str, expected: &'static str, found: &str, allowed: &[&str]| {
        if allowed.contains(&found) {
            return Ok(());
        }
        Err(ProfileError::Setting { key, expected, found: format!("`{found}`") })
    };
    one_of("engine", "`native`, the only one there is", &request.engine, &["native"])?;
    one_of("device", "`cpu` or `auto`: models run on the processor only", &request.device, &["cpu", "auto"])?;
    let dtype = kept(model);
    if !matches!(dtype, DType::Fp32 | DType::Bf16) {
        let expected = "float32, bfloat16 or null: weights are kept in one of the two";
        return Err(ProfileError::Setting { key: "model.dtype", expected, found: dtype.to_string() });
    }
    check_counts(request)?;
    request.infer.check_attention()
}

/// What every engine needs of the settings.
pub(crate) fn check_counts(request: &ProfileRequest) -> Result<(), ProfileError> {
    let sampling = &request.dataset.sampling;
    for (key, found) in [("dataset.sampling.epochs", sampling.epochs), ("dataset.sampling.repeats", sampling.repeats)] {
        if found == 0 {
            return Err(ProfileError::Setting { key, expected: "at least 1", found: found.to_string() });
        }
    }
    request.infer.check()
}

/// A network that takes pictures of any size is modelled at the size it is fed.
pub(crate) fn fit_to_pictures(model: &mut LoadedModel, infer: &InferSettings) {
    if let (ModelConfig::ShallowResnet(config), InferSettings::Pictures(pictures)) = (&mut model.config, infer) {
        config.image_size = pictures.image_size;
        model.network = Model::new(&model.config);
    }
}

/// A model that does not fit would not fail: the system would end the program, or swap for hours.
fn check_memory(model: &LoadedModel, environment: &Environment) -> Result<(), ProfileError> {
    let memory = &environment.memory;
    let Some(available) = [memory.available_bytes, memory.limit_bytes].into_iter().flatten().min() else {
        return Ok(());
    };
    let elements = model.network.blueprint().params().map(|(_, entry)| entry.shape.elements()).sum();
    let dtype = kept(model);
    let needed = dtype.bytes_for(elements);
    if needed > available {
        let halved = dtype == DType::Fp32 && DType::Bf16.bytes_for(elements) <= available;
        return Err(ProfileError::Memory { model: model.id.clone(), needed, dtype, available, halved });
    }
    Ok(())
}

fn filled(
    folder: &mut RunFolder,
    model: LoadedModel,
    given: &Given<'_>,
    inputs: &mut Inputs,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<(Metrics, InputSet), ProfileError> {
    let Given { request, environment, config_yaml } = *given;
    folder.write_file("config.yaml", config_yaml.as_bytes())?;
    folder.write_json("env.json", environment)?;
    folder.end_step("prepare")?;

    let processor = processor(progress)?;
    progress(Progress::Doing("loading weights"));
    let kept = kept(&model);
    let LoadedModel { id, config_path, config, network, revision, mut notes, .. } = model;
    let bench = Bench::load(network, config.vocabulary(), request, kept)?;
    let session = &bench.session;
    let network = session.model();

    progress(Progress::Doing("preparing inputs"));
    let sampling = &request.dataset.sampling;
    let plan = bench.plan(request, inputs)?;
    let runner = bench.runner(request);
    let measured = passes::measure(&runner, request, plan, true, progress, stop)?;

    let roofline = Roofline::new(&processor, [COMPUTED], None).ok();
    let mut work = Vec::new();
    let mut operators = Vec::new();
    let mut workload: Option<Workload> = None;
    for one in &measured.inputs {
        let (one_workload, one_work) = records::work(network, &one.prepared, kept, request.last_logits_only)?;
        workload.get_or_insert(one_workload);
        work.extend(one_work);
        operators.extend(records::operators(network, roofline.as_ref(), &one.traced.prefill, &one.traced.decode));
    }
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
        routing: records::routing(measured.inputs.iter().flat_map(|one| &one.traced.routing)),
        profiled: measured.profiled,
        peak: peak(&processor, COMPUTED),
        logits_all_positions: !request.last_logits_only && network.takes_tokens(),
        load_ns: session.load_time(),
        settings: RunCounts {
            repeats: sampling.repeats.saturating_mul(request.infer.passes()),
            epochs: sampling.epochs,
            warmup_rounds: sampling.warmup_rounds.saturating_mul(request.infer.passes()),
            batch: request.infer.batch(),
            seed: Some(sampling.seed),
            weights_dtype: Some(kept),
        },
        quality: vec![records::outside_stages(&measured.samples, measured.wall)],
    };
    let metrics = analysis::profile(&records);
    folder.write_json("metrics.json", &metrics)?;
    folder.end_step("measure")?;

    let set = inputs.document();
    let profiling = vec![
        Setting::new("stage times", "passes without instruments"),
        Setting::new("operators", "one more pass over each input, every operation timed"),
    ];
    let ran = Ran { computed: COMPUTED.to_string(), profiling };
    write_bundle(folder, &Bundle { metrics: &metrics, environment, inputs: &set, request, ran })?;
    if request.keep_predictions {
        write_predictions(folder, &measured.texts)?;
    }
    if let Some(workload) = &workload {
        if kept != COMPUTED {
            let apart = if notes.is_empty() { "" } else { "; " };
            notes += &format!("{apart}weights are kept in {kept} in this run, and modelled here in {COMPUTED}");
        }
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
    Ok((metrics, set))
}

/// The run in a few lines, for a terminal.
pub fn terminal(metrics: &Metrics) -> String {
    report::profile::terminal(metrics)
}

/// How far two runs are apart, stage by stage, for a terminal.
pub fn distance(first: &Metrics, second: &Metrics) -> String {
    crate::compare::stages(first, second)
}
