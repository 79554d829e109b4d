//! What a traced run is of, resolved once: device, workload, modelled work and peak rates.

pub(crate) mod devices;
mod fit;
pub(crate) mod imported;
pub(crate) mod modelled;
mod steps;
pub(crate) mod work;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use analysis::{Fit, InputWork, Observed, Subject, observe};
use meter::{Roofline, matrix_dtypes, predict};
use types::view::WorkModules;
use types::{
    DType, DeviceId, Facts, Hardware, PeakUsed, QualityCounter, Remark, RunHeader, Severity, TracedWorkload, UserError,
};

use crate::pipeline::device::hardware;
use crate::pipeline::model::LoadedModel;
use crate::pipeline::model::workload::{self, WorkloadRequest};
use crate::pipeline::trace::Traces;

/// Model, workload and device of a traced run, as far as the user says.
#[derive(Debug)]
pub struct NamedSubject {
    /// The model that ran.
    pub model: Option<LoadedModel>,
    /// What it is called, where it is none that can be modelled.
    pub name: Option<String>,
    /// The workload.
    pub workload: WorkloadRequest,
    /// The device; otherwise the files may name it.
    pub hardware: Option<String>,
    /// Folder with a user's own devices.
    pub config_dir: Option<PathBuf>,
}

impl NamedSubject {
    /// The device that was named.
    pub(crate) fn named_hardware(&self) -> Result<Option<Hardware>, UserError> {
        let find = |name: &str| hardware::find(self.config_dir.as_deref(), name);
        self.hardware.as_deref().map(find).transpose()
    }

    /// Name of the model.
    pub(crate) fn model_id(&self) -> Option<String> {
        self.model.as_ref().map(|model| model.id.clone()).or_else(|| self.name.clone())
    }
}

/// What is known of a traced run without its files.
pub(crate) struct TracedRun<'a> {
    pub(crate) run_id: &'a str,
    /// What ran it; absent: what the files say.
    pub(crate) engine: Option<String>,
    pub(crate) weights: Option<String>,
    pub(crate) model: Option<&'a LoadedModel>,
    pub(crate) workload: WorkloadSource<'a>,
    /// The device, where it is known without the files.
    pub(crate) named: Option<&'a Hardware>,
    pub(crate) config_dir: Option<&'a Path>,
    /// Whether the run is worth its times even where its device has no rate for the element type.
    pub(crate) rate_may_lack: bool,
}

/// Where the workload of a trace comes from.
pub(crate) enum WorkloadSource<'a> {
    /// From what the user said and the shapes show.
    Request(&'a WorkloadRequest),
    /// From whoever ran it.
    Runner(Box<TracedWorkload>),
}

/// A subject, and what was found on the way to it.
pub(crate) struct ResolvedSubject {
    pub(crate) subject: Subject,
    /// The catalogue's entry for the device.
    pub(crate) hardware: Option<Hardware>,
    /// For each timeline, the names of its devices.
    pub(crate) devices: Vec<BTreeMap<u32, DeviceId>>,
    /// What the user named and the trace contradicts.
    pub(crate) quality: Vec<QualityCounter>,
    /// The modules of the device work of its one timeline.
    pub(crate) modules: WorkModules,
}

/// Resolves the subject of a traced run.
pub(crate) fn resolve(run: &TracedRun<'_>, traces: &Traces) -> Result<ResolvedSubject, UserError> {
    let placed = traces.placed.as_slice();
    let found = devices::find(traces, run.named, run.config_dir)?;
    let observed = match placed {
        [only] => observe(&only.timeline, &only.attribution),
        [] => Observed { missing: vec![Remark::new("workload.no-timeline", Facts::new())], ..Observed::default() },
        _ => Observed { missing: vec![Remark::new("workload.several-ranks", Facts::new())], ..Observed::default() },
    };
    // Whoever ran the model itself knows which it was.
    let fit = match (&run.workload, run.model, placed) {
        (WorkloadSource::Request(_), Some(model), [only]) => fit::of(model, &only.timeline),
        _ => Fit::default(),
    };
    let mut traced = match (&run.workload, run.model) {
        (WorkloadSource::Runner(known), _) => TracedWorkload::clone(known),
        (WorkloadSource::Request(request), Some(model)) => workload::choose(model, request, &observed)?,
        (WorkloadSource::Request(_), None) => {
            TracedWorkload { workload: None, evidence: observed.evidence.clone(), missing: Vec::new() }
        }
    };
    if let (WorkloadSource::Request(request), Some(workload)) = (&run.workload, &mut traced.workload) {
        workload::share_out(workload, request, &fit, &mut traced.evidence);
    }
    let inputs: Vec<_> = workload::input(traced.workload.as_ref(), &observed).into_iter().collect();
    let prediction = match (run.model, &traced.workload, placed.len()) {
        // How several ranks share the work is not known.
        (Some(model), Some(workload), 1) if fit.misfits.is_empty() => {
            Some((&model.network, predict(&model.network, workload)?))
        }
        _ => None,
    };
    let hardware = found.hardware.as_ref();
    let dtype = traced.workload.as_ref().map(|workload| workload.dtype);
    let peak = match hardware.zip(dtype) {
        None => None,
        Some((hardware, dtype)) if run.rate_may_lack => PeakUsed::of(hardware, dtype),
        Some((hardware, dtype)) => Some(peak(hardware, dtype)?),
    };
    let input = inputs.first().map_or("", |input| &input.name);
    let work = prediction.as_ref().map(|(network, prediction)| work::per_stage(network, prediction));
    let of_stage = |(stage, work)| InputWork { input: input.to_owned(), stage, work };
    let modelled = prediction.as_ref().map(|(network, prediction)| {
        let roofline = hardware
            .zip(traced.workload.as_ref())
            .and_then(|(hardware, workload)| Roofline::of(hardware, matrix_dtypes(prediction), workload, None).ok());
        modelled::run(network, prediction, roofline.as_ref())
    });
    let modules = match (&modelled, placed) {
        (Some(model), [only]) => analysis::alignment::modules(&only.timeline, &only.attribution, model),
        _ => WorkModules::default(),
    };
    let caveats = match run.model {
        Some(model) if !fit.misfits.is_empty() => vec![fit::caveat(model, &fit)],
        Some(model) => model.caveats(match &run.workload {
            // Whoever ran the model knows its element type, and so does a user who names one.
            WorkloadSource::Runner(_) => Some(model.dtype),
            WorkloadSource::Request(request) if request.overridden.iter().any(|key| key == "dtype") => {
                Some(model.dtype)
            }
            WorkloadSource::Request(_) => observed.dtype,
        }),
        None => Vec::new(),
    };
    let subject = Subject {
        caveats,
        run: RunHeader {
            id: run.run_id.to_owned(),
            engine: run.engine.clone().unwrap_or_else(|| traces.engine()),
            // A model that did not run names nothing.
            model: run.model.filter(|_| fit.misfits.is_empty()).map(|model| model.id.clone()),
            device: found.devices.first().map(|device| device.id.clone()),
            weights: run.weights.clone(),
        },
        devices: found.devices,
        work: work.into_iter().flatten().map(of_stage).collect(),
        inputs,
        modelled,
        peak,
        hardware: hardware.cloned(),
        multiprocessors: hardware.map(|hardware| u64::from(hardware.sm_count)),
        workload: Some(traced.clone()),
        ..Subject::default()
    };
    let quality = found.quality.into_iter().chain(differing_workload(&traced, &observed));
    let quality = quality.chain(run.model.and_then(|model| fit::misfit(model, &fit))).collect();
    Ok(ResolvedSubject { subject, hardware: found.hardware, devices: found.names, quality, modules })
}

fn peak(hardware: &Hardware, dtype: DType) -> Result<PeakUsed, UserError> {
    PeakUsed::of(hardware, dtype).ok_or_else(|| {
        UserError::usage(format!("{} has no {dtype} matrix peak", hardware.name))
            .hint("choose another element type with workload.dtype=NAME")
    })
}

/// A workload that was named and is not what the shapes show.
fn differing_workload(traced: &TracedWorkload, observed: &Observed) -> Option<QualityCounter> {
    let workload = traced.workload.as_ref()?;
    let mut differing = Vec::new();
    let mut hold = |what: &str, named: u64, shown: Option<u64>| {
        if let Some(shown) = shown.filter(|shown| *shown != named) {
            differing.push(Facts::new().with("what", what).with("named", named).with("shown", shown));
        }
    };
    hold("prompt tokens", workload.seq_len, observed.prompt_tokens);
    hold("decode steps", workload.decode_steps, observed.decode_steps);
    hold("batch", workload.batch, observed.batch);
    let counter = QualityCounter::some("workload_differs_from_trace", Severity::Warning, differing.len() as u64);
    counter.map(|counter| counter.facts(Facts::new().with("differences", differing)))
}
