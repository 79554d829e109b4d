//! What a driver told, as the analysis takes it, and the metrics that come of it.

use std::path::Path;

use analysis::trace::{InputLeast, PlainRuns};
use analysis::{InputWork, ProfileRecords};
use collect::tool::torch::PassName;
use meter::{Roofline, matrix_dtypes, predict};
use report::profile::Setting;
use types::{
    Clock, ClockId, ClockKind, DType, Device, DeviceId, Environment, FlopCheck, Flops, Hardware, InputFacts, Metrics,
    Nanos, PeakMemory, ProfileSettings as RunCounts, QualityCounter, RunHeader, Severity, Stage, TracedWorkload,
    Workload,
};

use super::ask::Asked;
use super::session::Session;
use super::{TorchModel, TorchRequest};
use crate::import::{self, Subject, SubjectWorkload};
use crate::profile::{ProfileError, Progress, outside_stages, peak, processor, workload_of};
use crate::workload::BareRun;
use crate::{modelled, work};

/// Everything a run told, and what it was asked.
#[derive(Clone, Copy)]
pub(super) struct Told<'a> {
    pub(super) model: &'a TorchModel,
    pub(super) request: &'a TorchRequest,
    pub(super) asked: &'a Asked,
    pub(super) session: &'a Session,
    /// The device whose rates the user says apply.
    pub(super) named: Option<&'a Hardware>,
}

/// What comes of it.
pub(super) struct Processed {
    pub(super) metrics: Metrics,
    /// The workload of the first input, where the model is known.
    pub(super) workload: Option<Workload>,
    pub(super) hardware: Option<Hardware>,
    pub(super) missing: Vec<String>,
}

/// All metrics of a run.
pub(super) fn metrics(
    told: &Told<'_>,
    run_id: &str,
    trace: Option<&Path>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Processed, ProfileError> {
    let Told { model, request, session, .. } = *told;
    let device = told.device(progress)?;
    let dtype = told.dtype();
    let inputs = told.inputs();
    let mut missing = Vec::new();
    let (mut work, mut least) = (Vec::new(), Vec::new());
    let mut workloads = Vec::new();
    let mut unmodelled = model.known.as_ref().err().cloned();
    for facts in &inputs {
        match told.work(facts, dtype, device.hardware.as_ref()) {
            Ok(Some(modelled)) => {
                work.extend(modelled.work);
                least.extend(modelled.least);
                workloads.push((facts.name.clone(), modelled.workload));
            }
            Ok(None) => {}
            Err(reason) => unmodelled = Some(reason),
        }
    }
    let mut quality = vec![outside_stages(&told.samples(), session.wall())];
    quality.extend(unmodelled.as_ref().map(|reason| not_modelled(reason, inputs.len())));
    quality.extend((session.strange > 0).then(|| strange_lines(session.strange)));
    let plain = PlainRuns {
        samples: told.samples(),
        profiled: session.samples(|pass| pass == PassName::Profile, None),
        inputs: inputs.clone(),
        work,
        least,
        traced_input: session.trace.as_ref().map(|trace| trace.input.clone()),
        logits_all_positions: !request.profile.last_logits_only && model.vocabulary.is_some(),
        load_ns: session.loaded.as_ref().map_or(Nanos::ZERO, |loaded| loaded.load_ns),
        settings: told.settings(),
    };
    let first = workloads.first().map(|(_, workload)| workload.clone());
    let recorded = trace.filter(|_| session.trace.is_some());
    if trace.is_some() && session.trace.is_none() {
        missing.push("there is no recorded pass, so operators and kernels are not known".to_owned());
    }
    if request.torch.check_flops && session.flops.is_empty() {
        let why = session.notes.iter().find(|note| note.contains("FLOP counter"));
        missing.push(why.cloned().unwrap_or_else(|| "torch counted no FLOPs".to_owned()));
    }
    let mut metrics = match recorded {
        Some(file) => {
            let of_trace = session.trace.as_ref().map(|trace| trace.input.as_str());
            let workload = workloads.iter().find(|(name, _)| Some(name.as_str()) == of_trace);
            let traced = TracedWorkload {
                workload: workload.map(|(_, workload)| workload.clone()),
                evidence: vec![
                    "as the driver ran it".to_owned(),
                    "attention counted in full, whichever kernel ran".into(),
                ],
                missing: unmodelled.iter().cloned().collect(),
            };
            let (parts, source) = import::read_trace(file, super::TRACE)?;
            missing.extend(parts.missing.iter().cloned());
            let subject = Subject {
                run_id,
                engine: Some("torch".to_owned()),
                weights: Some(request.profile.weights.weights.clone()),
                model: model.known.as_ref().ok(),
                workload: SubjectWorkload::Known(Box::new(traced)),
                named: device.hardware.as_ref(),
                config_dir: request.profile.config_dir.as_deref(),
                plain: Some(plain),
            };
            let mut tell = |what: &str| progress(Progress::Doing(what));
            import::summarise(&subject, parts, vec![source], &mut tell)?.metrics
        }
        None => analysis::profile(&ProfileRecords {
            run: RunHeader {
                id: run_id.to_owned(),
                engine: "torch".to_owned(),
                model: None,
                device: None,
                weights: Some(request.profile.weights.weights.clone()),
            },
            devices: Vec::new(),
            clocks: vec![Clock {
                id: ClockId(0),
                kind: ClockKind::HostMonotonic,
                unix_ns_at_zero: None,
                uncertainty_ns: None,
            }],
            samples: plain.samples,
            inputs: plain.inputs,
            work: plain.work,
            operators: Vec::new(),
            classes: Default::default(),
            routing: Vec::new(),
            profiled: plain.profiled,
            peak: device.hardware.as_ref().zip(dtype).and_then(|(hardware, dtype)| peak(hardware, dtype)),
            logits_all_positions: plain.logits_all_positions,
            load_ns: plain.load_ns,
            settings: plain.settings,
            quality: Vec::new(),
        }),
    };
    metrics.quality.extend(quality);
    metrics.run.model = Some(model.id.clone());
    metrics.run.device = Some(device.entry.id.clone());
    if metrics.devices.is_empty() {
        metrics.devices = vec![device.entry];
    }
    if metrics.peak.is_none() {
        metrics.peak = device.hardware.as_ref().zip(dtype).and_then(|(hardware, dtype)| peak(hardware, dtype));
    }
    if let (None, Some(hardware), Some(dtype)) = (&metrics.peak, &device.hardware, dtype) {
        metrics.quality.push(no_rate(hardware, dtype, metrics.stages.len()));
    }
    metrics.memory = told.memory();
    metrics.flop_checks = told.flop_checks(&workloads);
    Ok(Processed { metrics, workload: first, hardware: device.hardware, missing })
}

/// What the meter says of one input.
struct Modelled {
    workload: Workload,
    work: Vec<InputWork>,
    least: Vec<InputLeast>,
}

/// The device a run ran on.
struct RanOn {
    entry: Device,
    hardware: Option<Hardware>,
}

impl Told<'_> {
    fn samples(&self) -> Vec<types::Sample> {
        self.session.samples(|pass| pass != PassName::Profile, None)
    }

    /// Element type of the arithmetic; absent where torch's is none of ours.
    fn dtype(&self) -> Option<DType> {
        self.session.loaded.as_ref().and_then(|loaded| loaded.dtype.parse().ok())
    }

    fn device(&self, progress: &mut dyn FnMut(Progress<'_>)) -> Result<RanOn, ProfileError> {
        let said = self.session.device.as_ref();
        let text = said.map_or("cpu", |device| device.id.as_str());
        let id = device_id(text);
        if id == DeviceId::cpu() {
            let processor = match self.named {
                Some(named) => named.clone(),
                None => processor(progress)?,
            };
            let entry = Device {
                id,
                name: processor.name.clone(),
                uuid: None,
                hardware: Some(processor.id.clone()),
                memory_bytes: Some(processor.memory_bytes),
            };
            return Ok(RanOn { entry, hardware: Some(processor) });
        }
        let name = said.and_then(|device| device.name.clone()).unwrap_or_else(|| text.to_owned());
        let catalogue = crate::hardware::catalogue(self.request.profile.config_dir.as_deref())?;
        let hardware = self.named.cloned().or_else(|| catalogue.find(&name).ok().cloned());
        let entry = Device {
            id,
            name,
            uuid: said.and_then(|device| device.uuid.clone()),
            hardware: hardware.as_ref().map(|hardware| hardware.id.clone()),
            memory_bytes: said.and_then(|device| device.memory_bytes),
        };
        Ok(RanOn { entry, hardware })
    }

    /// Inputs as they were fed: what was prepared here, put right by what the driver made of it.
    fn inputs(&self) -> Vec<InputFacts> {
        let facts = |event: &collect::tool::torch::InputEvent| {
            let prepared = self.asked.prepared.iter().find(|one| one.facts.name == event.name);
            let generated = self.session.samples.iter().filter(|sample| sample.input == event.name);
            InputFacts {
                name: event.name.clone(),
                width: prepared.and_then(|one| one.facts.width),
                height: prepared.and_then(|one| one.facts.height),
                crop_grid: prepared.and_then(|one| one.facts.crop_grid),
                prompt_tokens: event.prompt_tokens,
                image_tokens: event.image_tokens,
                generated_tokens: generated.map(|sample| sample.generated).max().unwrap_or_default(),
            }
        };
        self.session.inputs.iter().map(facts).collect()
    }

    /// What was run, input by input.
    pub(super) fn ran(&self) -> BareRun {
        let mut ran = BareRun {
            samples: self.samples(),
            workloads: Vec::new(),
            not_modelled: self.model.known.as_ref().err().cloned(),
        };
        for facts in self.inputs() {
            match self.workload(&facts, self.dtype()) {
                Ok(workload) => ran.workloads.extend(workload),
                Err(reason) => ran.not_modelled = Some(reason),
            }
        }
        ran
    }

    /// The workload of one input; `None` where the model is not known, an error says why not.
    fn workload(&self, facts: &InputFacts, dtype: Option<DType>) -> Result<Option<Workload>, String> {
        let Ok(known) = &self.model.known else { return Ok(None) };
        let Some(dtype) = dtype else {
            return Err("the element type torch ran in is none the analytic model knows".to_owned());
        };
        let Some(prepared) = self.asked.prepared.iter().find(|one| one.facts.name == facts.name) else {
            return Ok(None);
        };
        let mut workload = workload_of(facts, prepared, dtype, self.request.profile.last_logits_only);
        let fed = self.session.inputs.iter().find(|input| input.name == facts.name).and_then(|input| input.pixels);
        if let Some(image) = fed.and_then(|pixels| known.network.resized(pixels)) {
            if image.image_tokens != facts.image_tokens {
                let (ran, modelled) = (facts.image_tokens, image.image_tokens);
                return Err(format!("a picture became {ran} tokens, and {modelled} by the analytic model"));
            }
            workload.image = Some(image);
        }
        Ok(Some(workload))
    }

    /// The workload of one input and its modelled work; `None` where the model is not known, an error says why not.
    fn work(
        &self,
        facts: &InputFacts,
        dtype: Option<DType>,
        hardware: Option<&Hardware>,
    ) -> Result<Option<Modelled>, String> {
        let (Ok(known), Some(workload)) = (&self.model.known, self.workload(facts, dtype)?) else { return Ok(None) };
        let prediction = predict(&known.network, &workload).map_err(|error| error.to_string())?;
        let of_stage = |(stage, work)| InputWork { input: facts.name.clone(), stage, work };
        let work = work::per_stage(&known.network, &prediction).into_iter().map(of_stage).collect();
        let roofline = hardware.and_then(|hardware| Roofline::new(hardware, matrix_dtypes(&prediction), None).ok());
        let modelled = modelled::run(&known.network, &prediction, roofline.as_ref());
        let least = [(Stage::Prefill, &modelled.prefill), (Stage::Decode, &modelled.decode)];
        let least = least.into_iter().filter_map(|(stage, operators)| {
            let least = operators.iter().map(|operator| operator.roofline).sum::<Option<Nanos>>()?;
            Some(InputLeast { input: facts.name.clone(), stage, least })
        });
        Ok(Some(Modelled { work, least: least.collect(), workload }))
    }

    fn settings(&self) -> RunCounts {
        let sampling = &self.request.profile.dataset.sampling;
        let passes = self.request.profile.infer.passes();
        RunCounts {
            repeats: sampling.repeats.saturating_mul(passes),
            epochs: sampling.epochs,
            warmup_rounds: sampling.warmup_rounds.saturating_mul(passes),
            batch: self.session.inputs.first().and_then(|input| u32::try_from(input.batch).ok()).unwrap_or(1),
            seed: Some(sampling.seed),
            weights_dtype: self.dtype(),
        }
    }

    fn memory(&self) -> Option<PeakMemory> {
        let parameters = self.session.loaded.as_ref().map(|loaded| loaded.parameter_bytes);
        let [allocated, reserved] = match self.session.memory {
            Some(memory) => memory.map(Some),
            None => [None, None],
        };
        let memory = PeakMemory { parameter_bytes: parameters, allocated_bytes: allocated, reserved_bytes: reserved };
        (memory != PeakMemory::default()).then_some(memory)
    }

    /// The analytic model held against torch's counter.
    fn flop_checks(&self, workloads: &[(String, Workload)]) -> Vec<FlopCheck> {
        let modelled = |input: &str, stage: Stage| -> Option<Flops> {
            let known = self.model.known.as_ref().ok()?;
            let (_, workload) = workloads.iter().find(|(name, _)| name == input)?;
            // The counter saw one step.
            let workload = Workload { max_new_tokens: 2, decode_steps: 1, ..workload.clone() };
            let prediction = predict(&known.network, &workload).ok()?;
            match stage {
                Stage::Decode => Some(prediction.decode?.total().flops_matrix),
                _ => Some(prediction.prefill.total().flops_matrix),
            }
        };
        let check = |counted: &super::session::CountedFlops| {
            let flops_modelled = modelled(&counted.input, counted.stage);
            let difference = flops_modelled
                .filter(|_| counted.flops > 0)
                .map(|flops| flops.get() as f64 / counted.flops as f64 - 1.0);
            FlopCheck {
                input: counted.input.clone(),
                stage: counted.stage,
                flops_modelled,
                flops_counted: Flops::new(counted.flops.into()),
                difference,
                notes: counted.notes.clone(),
            }
        };
        self.session.flops.iter().map(check).collect()
    }
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
    environment
}

/// How the model was run, for `assumptions.md`.
pub(super) fn assumptions(told: &Told<'_>) -> Vec<Setting> {
    let Told { session, request, asked, .. } = *told;
    let mut lines =
        vec![Setting::new("stage times", "passes without instruments, the device synchronised at stage edges")];
    if request.torch.profiler.enabled {
        lines.push(Setting::new("operators and kernels", "one more pass over the first input, under torch.profiler"));
    }
    if let Some(loaded) = &session.loaded {
        lines.push(Setting::new("class", loaded.model_class.clone()));
        lines.extend(loaded.attention.clone().map(|attention| Setting::new("attention", attention)));
        let stages = loaded.stages.iter().map(|(path, stage)| Setting::new(format!("stage {stage}"), path.clone()));
        lines.extend(stages);
    }
    if asked.tokenizer.is_some() {
        let whose = if asked.own_tokenizer { "the model's own" } else { "none on disk: bytes as tokens" };
        lines.push(Setting::new("tokenizer", whose));
    }
    lines.push(Setting::new("network", "not used: what is not on disk is not there"));
    let trusted = if request.torch.trust_remote_code { "allowed" } else { "refused" };
    lines.push(Setting::new("Python code of the model's folder", trusted));
    lines.extend(session.notes.iter().map(|note| Setting::new("model", note.clone())));
    lines
}

/// Decoded text of each input.
pub(super) fn texts(told: &Told<'_>) -> Result<Vec<(String, String)>, ProfileError> {
    let text = |(input, tokens): &(String, Vec<i64>)| {
        let text = match &told.asked.tokenizer {
            Some(tokenizer) => tokenizer.decode(tokens)?,
            None => String::new(),
        };
        Ok((input.clone(), text))
    };
    told.session.generated.iter().map(text).collect()
}

fn not_modelled(reason: &str, inputs: usize) -> QualityCounter {
    QualityCounter {
        counter: "inputs_without_modelled_work".to_owned(),
        value: inputs as u64,
        share: None,
        severity: Severity::Info,
        remedy: format!("MFU, MBU and the least time are not known: {reason}"),
    }
}

fn no_rate(hardware: &Hardware, dtype: DType, stages: usize) -> QualityCounter {
    QualityCounter {
        counter: "stages_without_peak".to_owned(),
        value: stages as u64,
        share: Some(1.0),
        severity: Severity::Info,
        remedy: format!(
            "MFU and MBU are not known: {} has no matrix rate in {dtype}; model.dtype=bfloat16 runs in one it has",
            hardware.name
        ),
    }
}

fn strange_lines(count: u64) -> QualityCounter {
    QualityCounter {
        counter: "driver_lines_not_understood".to_owned(),
        value: count,
        share: None,
        severity: Severity::Warning,
        remedy: "the model wrote to the driver's own channel; logs/torch-events.jsonl has the lines".to_owned(),
    }
}
