//! What a driver answered, as subject and evidence.

use std::collections::BTreeMap;
use std::path::Path;

use analysis::{Evidence, InputRoofline, InputWork, PlainRuns, RankRuns, Subject};
use collect::tool::torch::PassName;
use meter::{Roofline, matrix_dtypes, predict};
use report::pages::run::Setting;
use types::view::WorkModules;
use types::{
    Caveat, Clock, ClockId, ClockKind, DType, Device, DeviceId, Environment, Facts, FlopCheck, Flops, Hardware,
    InputFacts, Metrics, Nanos, PeakMemory, PeakUsed, QualityCounter, Remark, RunHeader, Severity, Stage,
    TracedWorkload, UserError, Workload,
};

use super::torch_plan::TRACE;
use crate::pipeline::device::hardware;
use crate::pipeline::device::processor::{of_processor, processor};
use crate::pipeline::model::partly_modelled;
use crate::pipeline::progress::Progress;
use crate::pipeline::subject::{ResolvedSubject, TracedRun, WorkloadSource, resolve};
use crate::pipeline::subject::{modelled, work};
use crate::pipeline::trace::Traces;
use crate::runner::native::records::{disturbed, outside_stages};
use crate::runner::torch::driver_run::DriverRun;
use crate::runner::torch::session::{CountedFlops, Session};

/// What comes of a driver's session.
pub(super) struct Processed {
    pub(super) metrics: Metrics,
    /// The workload of the first input, where the model is known.
    pub(super) workload: Option<Workload>,
    pub(super) hardware: Option<Hardware>,
    pub(super) missing: Vec<String>,
    /// The modules of the device work of the profiled pass.
    pub(super) modules: WorkModules,
}

/// The metrics of a session, with the trace of its profiled pass and the other ranks where there are any.
pub(super) fn metrics(
    run: &DriverRun<'_>,
    run_id: &str,
    trace: Option<&Path>,
    ranks: Option<RankRuns>,
    mut missing: Vec<String>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Processed, UserError> {
    let device = device(run, progress)?;
    let modelled = ModelledInputs::of(run, device.hardware.as_ref());
    missing.extend(unanswered(run, trace.is_some()));
    let traces = traces(run, trace, progress)?;
    missing.extend(traces.iter().flat_map(|traces| traces.missing.iter().cloned()));
    let traced = traces.as_ref().map(|traces| resolved(run, run_id, &modelled, &device, traces)).transpose()?;
    let (of_trace, names, modules) = match traced {
        Some(ResolvedSubject { subject, devices, modules, .. }) => (subject, devices, modules),
        None => (Subject::default(), Vec::new(), WorkModules::default()),
    };
    let subject = subject(run, run_id, &modelled, &device, of_trace);
    let mut evidence = Evidence { ranks, missing, ..evidence(run, &modelled, traces.as_ref(), &names) };
    if let (None, Some(hardware), Some(dtype)) = (&subject.peak, &device.hardware, run.dtype()) {
        evidence.quality.push(no_rate(hardware, dtype));
    }
    let metrics = crate::pipeline::metrics::metrics(&subject, &evidence);
    let workload = modelled.workloads.into_iter().next().map(|(_, workload)| workload);
    Ok(Processed { metrics, workload, hardware: device.hardware, missing: evidence.missing, modules })
}

/// What the driver was asked for and did not do.
fn unanswered(run: &DriverRun<'_>, wants_trace: bool) -> Vec<String> {
    let session = run.session;
    let mut missing = Vec::new();
    if wants_trace && session.trace.is_none() {
        missing.push("no profiled pass, so operators and kernels are unknown".to_owned());
    }
    if run.request.torch.check_flops && session.flops.is_empty() {
        let why = session.notes.iter().find(|note| note.contains("FLOP counter"));
        missing.push(why.cloned().unwrap_or_else(|| "torch counted no FLOPs".to_owned()));
    }
    missing
}

/// The trace of the profiled pass, read.
fn traces(
    run: &DriverRun<'_>,
    file: Option<&Path>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Option<Traces>, UserError> {
    let Some(file) = file.filter(|_| run.session.trace.is_some()) else { return Ok(None) };
    let id = run.model.known.as_ref().ok().map(|model| model.id.as_str());
    Ok(Some(Traces::of_file(file, TRACE, id, &mut |what| progress(Progress::Doing(what)))?))
}

/// What the trace says of the subject.
fn resolved(
    run: &DriverRun<'_>,
    run_id: &str,
    modelled: &ModelledInputs,
    device: &RunDevice,
    traces: &Traces,
) -> Result<ResolvedSubject, UserError> {
    let input = run.session.trace.as_ref();
    let workload = modelled.workloads.iter().find(|(name, _)| Some(name) == input);
    let evidence = [Remark::new("workload.driver", Facts::new()), Remark::new("workload.attention", Facts::new())];
    let workload = TracedWorkload {
        workload: workload.map(|(_, workload)| workload.clone()),
        evidence: evidence.to_vec(),
        missing: modelled.unmodelled.iter().map(Remark::said).collect(),
    };
    let traced = TracedRun {
        run_id,
        engine: None,
        weights: None,
        model: run.model.known.as_ref().ok(),
        workload: WorkloadSource::Runner(Box::new(workload)),
        named: device.hardware.as_ref(),
        config_dir: run.request.profile.config_dir.as_deref(),
        rate_may_lack: true,
    };
    resolve(&traced, traces)
}

fn subject(
    run: &DriverRun<'_>,
    run_id: &str,
    modelled: &ModelledInputs,
    device: &RunDevice,
    of_trace: Subject,
) -> Subject {
    let DriverRun { model, request, .. } = *run;
    let partly = model.known.as_ref().ok().and_then(|model| partly_modelled(&model.config));
    let peak = device.hardware.as_ref().zip(run.dtype());
    let batch = run.session.inputs.first().and_then(|input| u32::try_from(input.batch).ok());
    Subject {
        run: RunHeader {
            id: run_id.to_owned(),
            engine: "torch".to_owned(),
            model: Some(model.id.clone()),
            device: Some(device.entry.id.clone()),
            weights: Some(request.profile.weights.weights.clone()),
        },
        devices: if of_trace.devices.is_empty() { vec![device.entry.clone()] } else { of_trace.devices },
        caveats: device.unreliable.clone().into_iter().chain(partly).collect(),
        settings: Some(request.profile.counts(batch.unwrap_or(1), run.dtype())),
        inputs: run.inputs(),
        logits_all_positions: !request.profile.infer.last_logits_only() && model.vocabulary.is_some(),
        work: modelled.work.clone(),
        roofline: modelled.roofline.clone(),
        peak: peak.and_then(|(hardware, dtype)| PeakUsed::of(hardware, dtype)),
        ..of_trace
    }
}

fn evidence<'a>(
    run: &DriverRun<'_>,
    modelled: &ModelledInputs,
    traces: Option<&'a Traces>,
    names: &'a [BTreeMap<u32, DeviceId>],
) -> Evidence<'a> {
    let session = run.session;
    let host_clock =
        || Clock { id: ClockId(0), kind: ClockKind::HostMonotonic, unix_ns_at_zero: None, uncertainty_ns: None };
    let mut evidence = match traces {
        Some(traces) => traces.evidence(names),
        None => Evidence { clocks: vec![host_clock()], ..Evidence::default() },
    };
    if let Some(trace) = &mut evidence.trace {
        trace.input.clone_from(&session.trace);
    }
    evidence.plain = Some(PlainRuns {
        samples: run.samples(),
        profiled: session.samples(|pass| pass == PassName::Profile, None),
        load_ns: Some(session.loaded.as_ref().map_or(Nanos::ZERO, |loaded| loaded.load_ns)),
    });
    let unmodelled = modelled.unmodelled.as_ref();
    evidence.quality.push(outside_stages(&run.samples(), session.wall()));
    evidence.quality.extend(unmodelled.map(|reason| not_modelled(Remark::said(reason), run.inputs().len())));
    evidence.quality.extend(strange_lines(session.strange));
    evidence.memory = memory(session);
    evidence.flop_checks = flop_checks(run, &modelled.workloads);
    evidence.tries = session.tries(run.question.request.tries.as_ref());
    evidence.disturbance = session.disturbance();
    evidence.quality.extend(disturbed(&evidence.disturbance));
    evidence
}

/// What the meter says of all inputs.
#[derive(Default)]
struct ModelledInputs {
    work: Vec<InputWork>,
    roofline: Vec<InputRoofline>,
    workloads: Vec<(String, Workload)>,
    /// Why it says nothing of some or all.
    unmodelled: Option<String>,
}

impl ModelledInputs {
    fn of(run: &DriverRun<'_>, hardware: Option<&Hardware>) -> Self {
        let mut all = Self { unmodelled: run.model.known.as_ref().err().cloned(), ..Self::default() };
        for facts in run.inputs() {
            if let Err(reason) = all.add(run, facts, hardware) {
                all.unmodelled = Some(reason);
            }
        }
        all
    }

    /// Takes in one input, where the model is known; an error says why not.
    fn add(&mut self, run: &DriverRun<'_>, facts: InputFacts, hardware: Option<&Hardware>) -> Result<(), String> {
        let (Ok(known), Some(workload)) = (&run.model.known, run.workload(&facts, run.dtype())?) else { return Ok(()) };
        let prediction = predict(&known.network, &workload).map_err(|error| error.to_string())?;
        let of_stage = |(stage, work)| InputWork { input: facts.name.clone(), stage, work };
        self.work.extend(work::per_stage(&known.network, &prediction).into_iter().map(of_stage));
        let roofline =
            hardware.and_then(|hardware| Roofline::of(hardware, matrix_dtypes(&prediction), &workload, None).ok());
        let modelled = modelled::run(&known.network, &prediction, roofline.as_ref());
        let passes = [(Stage::Prefill, &modelled.prefill), (Stage::Decode, &modelled.decode)];
        self.roofline.extend(passes.into_iter().filter_map(|(stage, operators)| {
            let time = operators.iter().map(|operator| operator.roofline).sum::<Option<Nanos>>()?;
            Some(InputRoofline { input: facts.name.clone(), stage, time })
        }));
        self.workloads.push((facts.name, workload));
        Ok(())
    }
}

/// The device a run ran on.
struct RunDevice {
    entry: Device,
    hardware: Option<Hardware>,
    /// That its rates were measured on a busy machine.
    unreliable: Option<Caveat>,
}

fn device(run: &DriverRun<'_>, progress: &mut dyn FnMut(Progress<'_>)) -> Result<RunDevice, UserError> {
    let told = run.session.device.as_ref();
    let text = told.map_or("cpu", |device| device.id.as_str());
    let id = device_id(text);
    if id == DeviceId::cpu() {
        let (processor, unreliable) = match run.named {
            Some(named) => (named.clone(), None),
            None => processor(progress)?,
        };
        return Ok(RunDevice { entry: of_processor(&processor), hardware: Some(processor), unreliable });
    }
    let name = told.and_then(|device| device.name.clone()).unwrap_or_else(|| text.to_owned());
    let catalogue = hardware::catalogue(run.request.profile.config_dir.as_deref())?;
    let hardware = run.named.cloned().or_else(|| catalogue.find(&name).ok().cloned());
    let entry = Device {
        uuid: told.and_then(|device| device.uuid.clone()),
        hardware: hardware.as_ref().map(|hardware| hardware.id.clone()),
        memory_bytes: told.and_then(|device| device.memory_bytes),
        ..Device::new(id, name)
    };
    Ok(RunDevice { entry, hardware, unreliable: None })
}

fn memory(session: &Session) -> Option<PeakMemory> {
    let [allocated_bytes, reserved_bytes] = session.memory.map_or([None; 2], |memory| memory.map(Some));
    let parameter_bytes = session.loaded.as_ref().map(|loaded| loaded.parameter_bytes);
    let memory = PeakMemory { parameter_bytes, allocated_bytes, reserved_bytes };
    (memory != PeakMemory::default()).then_some(memory)
}

/// The analytic model beside torch's counter.
fn flop_checks(run: &DriverRun<'_>, workloads: &[(String, Workload)]) -> Vec<FlopCheck> {
    let modelled = |input: &str, stage: Stage| -> Option<Flops> {
        let known = run.model.known.as_ref().ok()?;
        let (_, workload) = workloads.iter().find(|(name, _)| name == input)?;
        // The counter saw one step.
        let workload = Workload { max_new_tokens: 2, decode_steps: 1, ..workload.clone() };
        let prediction = predict(&known.network, &workload).ok()?;
        match stage {
            Stage::Decode => Some(prediction.decode?.total().flops_matrix),
            _ => Some(prediction.prefill.total().flops_matrix),
        }
    };
    let check = |counted: &CountedFlops| {
        let flops_modelled = modelled(&counted.input, counted.stage);
        let difference =
            flops_modelled.filter(|_| counted.flops > 0).map(|flops| flops.get() as f64 / counted.flops as f64 - 1.0);
        FlopCheck {
            input: counted.input.clone(),
            stage: counted.stage,
            flops_modelled,
            flops_counted: Flops::new(counted.flops.into()),
            difference,
            notes: counted.notes.clone(),
        }
    };
    run.session.flops.iter().map(check).collect()
}

/// A device as torch names it.
pub(super) fn device_id(text: &str) -> DeviceId {
    let number = text.strip_prefix("cuda:").and_then(|number| number.parse().ok());
    number.map_or_else(DeviceId::cpu, DeviceId::cuda)
}

/// Element type of the arithmetic, in words.
pub(super) fn computed(session: &Session) -> String {
    session.loaded.as_ref().map_or_else(|| "not known".to_owned(), |loaded| loaded.dtype.clone())
}

/// The environment with what the driver says of itself.
pub(super) fn environment(found: &Environment, session: &Session) -> Environment {
    let mut environment = found.clone();
    if let Some(versions) = &session.versions {
        let frameworks = &mut environment.frameworks;
        frameworks.torch = Some(versions.torch.clone());
        frameworks.torch_cuda = versions.cuda.clone();
        if let Some(python) = &mut frameworks.python {
            python.version = Some(versions.python.clone());
        }
    }
    if let Some(loaded) = &session.loaded {
        environment.frameworks.transformers = loaded.transformers.clone();
    }
    environment.with_names()
}

/// How the model was run, for `assumptions.md`.
pub(super) fn assumptions(run: &DriverRun<'_>) -> Vec<Setting> {
    let DriverRun { session, request, question, .. } = *run;
    let mut lines = vec![Setting::new(
        "stage times",
        "passes without a profiler, with the device synchronised at stage boundaries",
    )];
    if request.torch.profiler.enabled {
        lines.push(Setting::new("operators and kernels", "one more pass over the first input, with torch.profiler"));
    }
    if let Some(loaded) = &session.loaded {
        lines.push(Setting::new("class", loaded.model_class.clone()));
        lines.extend(loaded.attention.clone().map(|attention| Setting::new("attention", attention)));
        let stages = loaded.stages.iter().map(|(path, stage)| Setting::new(format!("stage {stage}"), path.clone()));
        lines.extend(stages);
    }
    if question.tokenizer.is_some() {
        let whose = if question.own_tokenizer { "the model's own" } else { "none on disk: bytes are used as tokens" };
        lines.push(Setting::new("tokenizer", whose));
    }
    lines.push(Setting::new("network", "not used: all files must be on disk"));
    let trusted = if request.torch.trust_remote_code { "allowed" } else { "refused" };
    lines.push(Setting::new("Python code in the model folder", trusted));
    lines.extend(session.notes.iter().map(|note| Setting::new("model", note.clone())));
    lines
}

/// Decoded text of each input.
pub(super) fn texts(run: &DriverRun<'_>) -> Result<Vec<(String, String)>, UserError> {
    let text = |(input, tokens): &(String, Vec<i64>)| {
        let text = match &run.question.tokenizer {
            Some(tokenizer) => tokenizer.decode(tokens)?,
            None => String::new(),
        };
        Ok((input.clone(), text))
    };
    run.session.generated.iter().map(text).collect()
}

fn not_modelled(reason: Remark, inputs: usize) -> QualityCounter {
    let counter = QualityCounter::new("inputs_without_modelled_work", Severity::Info, inputs as u64);
    counter.facts(Facts::new().with("reason", reason))
}

fn no_rate(hardware: &Hardware, dtype: DType) -> QualityCounter {
    let facts = Facts::new().with("device", &hardware.name).with("dtype", dtype.to_string());
    QualityCounter::new("stages_without_peak", Severity::Info, 1).of(1).facts(facts)
}

fn strange_lines(count: u64) -> Option<QualityCounter> {
    QualityCounter::some("driver_lines_not_understood", Severity::Warning, count)
}
