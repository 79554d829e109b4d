//! `profile --engine torch`: a model in the user's own PyTorch, measured from outside.
//!
//! A driver of ours runs it in the user's interpreter ([`collect::tool::torch`]): first without instruments, for the times
//! of stages, then once under torch.profiler, whose trace goes the way of every imported one. Inputs are prepared here, as
//! for the native engine, and work is modelled by the same meter.

mod ask;
mod ranks;
mod records;
mod session;
mod subject;

use std::path::{Path, PathBuf};

use analysis::ProfileRecords;
use collect::CollectError;
use collect::rank::Rank;
use collect::run::{Outcome, RunFolder};
use collect::tool::plain::Launch;
use collect::tool::torch::{DRIVER, DriverFiles, interpreter, launch};
use serde::Deserialize;
use types::{DType, Environment, InputSet, Metrics, Sample};

use crate::RunRequest;
use crate::analyze;
use crate::profile::{
    self, Bundle, Profile, ProfileError, ProfileRequest, Progress, Ran, inputs, write_bundle, write_predictions,
};
use crate::workload::BareRun;

pub use subject::{TorchModel, TorchName, TorchSource, has_weights};

use ask::Asked;
use records::Told;

/// The `pipeline.torch_profiler` part of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ProfilerSettings {
    /// Whether there is a recorded pass.
    pub enabled: bool,
    /// What is recorded.
    pub activities: Vec<String>,
    /// Input shapes of operators.
    pub record_shapes: bool,
    /// Allocations of operators.
    pub profile_memory: bool,
    /// Source lines of operators.
    pub with_stack: bool,
    /// Modules of operators.
    pub with_modules: bool,
    /// Torch's own estimate of FLOPs.
    pub with_flops: bool,
    /// Rounds first, nothing kept.
    pub warmup_rounds: u32,
    /// Rounds recorded.
    pub active_rounds: u32,
    /// Whether the trace is kept.
    pub export_trace: bool,
}

/// What PyTorch is told besides model and inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TorchSettings {
    /// The interpreter; absent: the first that has torch.
    pub python: Option<String>,
    /// Whether a model's own code may run.
    pub trust_remote_code: bool,
    /// Depth to which modules get ranges.
    pub module_ranges: u32,
    /// Whether the analytic model is held against torch's counter.
    pub check_flops: bool,
    /// Which attention; absent: the library's choice.
    pub attention: Option<String>,
    /// Element type as torch calls it; absent: as the config says.
    pub dtype: Option<String>,
    /// The recorded pass.
    pub profiler: ProfilerSettings,
    /// Device of the catalogue whose rates apply; absent: found from the device.
    pub hardware: Option<String>,
}

/// What to profile.
#[derive(Clone, Debug)]
pub struct TorchRequest {
    /// What every engine is told.
    pub profile: ProfileRequest,
    /// What this one is told besides.
    pub torch: TorchSettings,
}

/// Runs, measures, analyses and writes everything into a run folder.
pub fn profile(
    mut model: TorchModel,
    request: &TorchRequest,
    run: RunRequest,
    config_yaml: &str,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<Profile, ProfileError> {
    profile::check_counts(&request.profile)?;
    check(request)?;
    if let Ok(known) = &mut model.known {
        profile::fit_to_pictures(known, &request.profile.infer);
    }
    let model = &model;
    let named = request.torch.hardware.as_deref();
    let named = named.map(|name| crate::hardware::find(request.profile.config_dir.as_deref(), name)).transpose()?;
    let mut inputs = inputs::find(&request.profile.dataset, &request.profile.infer)?;
    inputs.usable()?;
    progress(Progress::Doing("looking for an interpreter with torch"));
    let python = interpreter(request.torch.python.as_deref())?;
    progress(Progress::Doing("looking at the machine"));
    let environment = crate::environment::capture(request.profile.config_dir.as_deref())?;
    let device = Some(request.profile.device.clone());
    let rank = Rank::of_this_process();
    let given = Given { model, request, environment, config_yaml, python, named, rank };
    if let Some(rank) = rank {
        let Some(out) = run.out.clone() else {
            let expected = "a folder that all ranks share: they meet there";
            return Err(ProfileError::Setting { key: "--out", expected, found: "not set".to_owned() });
        };
        if rank.rank > 0 {
            let samples = ranks::leave_part(&out, rank, &given, &mut inputs, progress, stop)?;
            return Ok(part(model, rank.rank, samples, inputs.document(), out));
        }
    }
    let mut folder = RunFolder::create(RunRequest { model: Some(model.id.clone()), device, ..run })?;
    let path = folder.path().to_owned();
    match filled(&mut folder, &given, &mut inputs, progress, stop) {
        Ok((metrics, set, mut missing)) => {
            missing.extend(inputs.problems());
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

/// Runs warm-up and repeats with ranges around stages, and nothing recorded or kept.
pub fn bare(
    model: &TorchModel,
    request: &TorchRequest,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<BareRun, ProfileError> {
    let scratch = scratch()?;
    let (launch, asked) = prepare(model, request, scratch.path())?;
    let (session, ended) = session::run(&launch, progress, stop)?;
    if let Some((kind, message)) = session.trouble(ended) {
        let traceback = session.failure.and_then(|failure| failure.traceback);
        return Err(ProfileError::driver(kind, message, traceback));
    }
    Ok(Told { model, request, asked: &asked, session: &session, named: None }.ran())
}

/// Writes what the interpreter is given into `folder`; what comes back starts it.
pub fn prepared(model: &TorchModel, request: &TorchRequest, folder: &Path) -> Result<Launch, ProfileError> {
    Ok(prepare(model, request, folder)?.0)
}

/// Writes what the interpreter is given into `folder`, for a run with ranges around stages: the driver, what it is asked and
/// the inputs. What comes back starts it, and says what it is asked.
fn prepare(model: &TorchModel, request: &TorchRequest, folder: &Path) -> Result<(Launch, Asked), ProfileError> {
    profile::check_counts(&request.profile)?;
    check(request)?;
    let mut inputs = inputs::find(&request.profile.dataset, &request.profile.infer)?;
    inputs.usable()?;
    let python = interpreter(request.torch.python.as_deref())?;
    let failed = |action, path: &Path| {
        let path = path.to_owned();
        move |reason| CollectError::Io { action, path, reason }
    };
    std::fs::create_dir_all(folder).map_err(failed("create folder", folder))?;
    let mut asked = ask::ask(model, request, &mut inputs, folder, None)?;
    asked.request.nvtx = true;
    let [driver, question] = ["driver.py", "request.json"].map(|name| folder.join(name));
    std::fs::write(&driver, DRIVER).map_err(failed("write", &driver))?;
    std::fs::write(&question, question_text(&asked)).map_err(failed("write", &question))?;
    let files = DriverFiles { driver, request: question, stdout: None, stderr: None };
    Ok((launch(&python, &files, true), asked))
}

/// What a run is given.
struct Given<'a> {
    model: &'a TorchModel,
    request: &'a TorchRequest,
    environment: Environment,
    config_yaml: &'a str,
    python: PathBuf,
    named: Option<types::Hardware>,
    /// Which process of several this is.
    rank: Option<Rank>,
}

/// What a rank other than the first has to show: its own times. The report is rank 0's.
fn part(model: &TorchModel, rank: u32, samples: Vec<Sample>, inputs: InputSet, folder: PathBuf) -> Profile {
    let mut metrics = analysis::profile(&ProfileRecords { samples, ..ProfileRecords::empty() });
    metrics.run.engine = "torch".to_owned();
    metrics.run.model = Some(model.id.clone());
    Profile { metrics, inputs, folder, missing: Vec::new(), part_of_rank: Some(rank) }
}

fn check(request: &TorchRequest) -> Result<(), ProfileError> {
    let device = &request.profile.device;
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let known = matches!(device.as_str(), "cpu" | "auto" | "cuda") || device.strip_prefix("cuda:").is_some_and(number);
    if !known {
        let expected = "`cpu`, `cuda:N` or `auto`";
        return Err(ProfileError::Setting { key: "device", expected, found: format!("`{device}`") });
    }
    if let Some(decoding) = request.profile.infer.decoding().filter(|decoding| decoding.temperature > 0.0) {
        let (expected, found) = ("0: this engine takes the likeliest token", decoding.temperature.to_string());
        return Err(ProfileError::Setting { key: "infer.temperature", expected, found });
    }
    Ok(())
}

/// What torch calls an element type.
pub fn element_type(name: &str) -> Result<String, ProfileError> {
    let found: DType = name.parse().map_err(crate::model::ModelError::from)?;
    let torch = match found {
        DType::Fp32 => "float32",
        DType::Bf16 => "bfloat16",
        DType::Fp16 => "float16",
        other => {
            let expected = "float32, bfloat16 or float16";
            return Err(ProfileError::Setting { key: "model.dtype", expected, found: other.to_string() });
        }
    };
    Ok(torch.to_owned())
}

fn scratch() -> Result<tempfile::TempDir, ProfileError> {
    let folder = std::env::temp_dir();
    tempfile::tempdir().map_err(|reason| ProfileError::Unreadable { path: folder, reason })
}

fn question_text(asked: &Asked) -> String {
    serde_json::to_string_pretty(&asked.request).unwrap_or_default() + "\n"
}

fn filled(
    folder: &mut RunFolder,
    given: &Given<'_>,
    inputs: &mut inputs::Inputs,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<(Metrics, InputSet, Vec<String>), ProfileError> {
    let Given { model, request, .. } = *given;
    folder.write_file("config.yaml", given.config_yaml.as_bytes())?;
    folder.write_json("env.json", &given.environment)?;
    let scratch = scratch()?;
    let wanted = &request.torch.profiler;
    let trace = match (wanted.enabled, wanted.export_trace) {
        (false, _) => None,
        (true, true) => Some(absolute(folder.prepare(TRACE)?)),
        (true, false) => Some(scratch.path().join("torch.json.gz")),
    };
    progress(Progress::Doing("preparing inputs"));
    let asked = ask::ask(model, request, inputs, scratch.path(), trace.clone())?;
    folder.write_file("logs/torch-driver.py", DRIVER.as_bytes())?;
    folder.write_file("logs/torch-request.json", question_text(&asked).as_bytes())?;
    let [stdout, stderr] = ["logs/torch.stdout", "logs/torch.stderr"];
    let files = DriverFiles {
        driver: folder.path().join("logs/torch-driver.py"),
        request: folder.path().join("logs/torch-request.json"),
        stdout: Some(folder.prepare(stdout)?),
        stderr: Some(folder.prepare(stderr)?),
    };
    let launch = launch(&given.python, &files, true);
    folder.write_file("logs/torch.argv", format!("{}\n", launch.command).as_bytes())?;
    folder.end_step("prepare")?;

    progress(Progress::Doing("starting Python"));
    let ran = session::run(&launch, progress, stop);
    for file in [stdout, stderr] {
        folder.adopt(file)?;
    }
    let (session, ended) = ran?;
    folder.write_file("logs/torch-events.jsonl", session.lines.as_bytes())?;
    let trouble = session.trouble(ended);
    let measured = session.samples(|pass| pass == collect::tool::torch::PassName::Measure, None);
    if let Some((kind, message)) = trouble.clone().filter(|_| measured.is_empty()) {
        let traceback = session.failure.clone().and_then(|failure| failure.traceback);
        return Err(ProfileError::driver(kind, message, traceback));
    }
    let mut missing: Vec<String> = trouble.into_iter().map(|(_, message)| message).collect();
    if wanted.export_trace && session.trace.is_some() {
        folder.adopt(TRACE)?;
    }
    folder.end_step("measure")?;

    let told = Told { model, request, asked: &asked, session: &session, named: given.named.as_ref() };
    let processed = records::metrics(&told, folder.id(), trace.as_deref(), progress)?;
    missing.extend(processed.missing);
    let mut metrics = processed.metrics;
    if let Some(rank) = given.rank {
        missing.extend(ranks::gather(folder, rank, &mut metrics, progress, stop)?);
    }
    folder.write_json("metrics.json", &metrics)?;
    folder.end_step("analyse")?;

    progress(Progress::Doing("writing reports"));
    let environment = records::environment(&given.environment, &session);
    folder.write_json("env.json", &environment)?;
    let set = inputs.document();
    let ran = Ran { computed: records::computed(&session), profiling: records::assumptions(&told) };
    let bundle = Bundle { metrics: &metrics, environment: &environment, inputs: &set, request: &request.profile, ran };
    write_bundle(folder, &bundle)?;
    folder.write_file("kernels.md", report::profile::kernels_markdown(&metrics).as_bytes())?;
    if request.profile.keep_predictions {
        write_predictions(folder, &records::texts(&told)?)?;
    }
    if let (Ok(known), Some(workload), Some(hardware)) = (&model.known, &processed.workload, &processed.hardware) {
        let devices = std::slice::from_ref(hardware);
        let version = &request.profile.tool_version;
        // A device without the rate that is needed has no roofline; the measurement stands without it.
        if let Ok(analysis) = analyze::lay_out(known.about(), &known.network, workload, devices, None, version) {
            analyze::write(folder, &analysis)?;
        }
    }
    folder.end_step("report")?;
    Ok((metrics, set, missing))
}

/// Where the trace stands in a run folder.
const TRACE: &str = "trace/torch.json.gz";

fn absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}
