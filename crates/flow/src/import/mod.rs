//! `import`: traces of other tools, made into a run.
//!
//! Files are opened and mapped here, read by `ingest`, joined and summed up by `analysis`. What the files say of the
//! machine they came from beyond its devices (paths, names, environment) stays in them.

mod artifacts;
mod devices;
mod error;
pub(crate) mod parts;
mod source;
mod workload;

use std::path::{Path, PathBuf};

use analysis::alignment::ModelledRun;
use analysis::attribution::{self, Attribution};
use analysis::trace::{Observed, PlacedTimeline, PlainRuns, TraceRecords, observe};
use collect::run::{Outcome, RunFolder};
use meter::{Roofline, matrix_dtypes, predict};
use types::timeline::Timeline;
use types::{
    Clock, ClockId, DType, Hardware, Metrics, PeakUsed, QualityCounter, RunHeader, TraceFacts, TraceSource,
    TracedWorkload,
};

use crate::model::LoadedModel;
use crate::modelled;
use crate::{RunRequest, hardware};

pub(crate) use artifacts::assumptions;
pub use error::ImportError;
pub use source::STANDARD_INPUT;
pub use workload::WorkloadRequest;

pub(crate) use parts::Parts;
use parts::{Kind, Part};
use source::Source;

/// What to import.
#[derive(Debug)]
pub struct ImportRequest {
    /// The files of one run; `-` is standard input.
    pub files: Vec<PathBuf>,
    /// The model that ran, where the user says.
    pub model: Option<LoadedModel>,
    /// The workload, as far as the user says.
    pub workload: WorkloadRequest,
    /// The device, where the user says; otherwise the files may.
    pub hardware: Option<String>,
    /// Folder with a user's own devices.
    pub config_dir: Option<PathBuf>,
}

/// The outcome.
#[derive(Debug)]
pub struct Import {
    /// Everything the files tell.
    pub metrics: Metrics,
    /// The run folder.
    pub folder: PathBuf,
    /// Why the run is partial; empty when it is not.
    pub missing: Vec<String>,
}

/// A timeline and where its rows belong.
pub(crate) struct Placed {
    pub(crate) timeline: Timeline,
    pub(crate) attribution: Attribution,
    rank: Option<u32>,
}

/// Reads the files, analyses them and writes everything into a run folder.
///
/// Files that cannot be opened or are of an unknown kind are found before the folder is made; after that an error leaves
/// a folder that says so.
pub fn import(
    request: &ImportRequest,
    run: RunRequest,
    config_yaml: &str,
    progress: &mut dyn FnMut(&str),
) -> Result<Import, ImportError> {
    let named =
        request.hardware.as_deref().map(|name| hardware::find(request.config_dir.as_deref(), name)).transpose()?;
    let sources = request.files.iter().map(|path| Source::open(path)).collect::<Result<Vec<_>, _>>()?;
    let kinds = sources.iter().map(parts::kind).collect::<Result<Vec<_>, _>>()?;
    let device = named.as_ref().map(|hardware| hardware.id.clone());
    let run = RunRequest { model: request.model.as_ref().map(|model| model.id.clone()), device, ..run };
    let mut folder = RunFolder::create(run)?;
    let path = folder.path().to_owned();
    match filled(&mut folder, request, &sources, &kinds, named.as_ref(), config_yaml, progress) {
        Ok((metrics, missing)) => {
            folder.finish(Outcome::from_missing(missing.clone()))?;
            Ok(Import { metrics, folder: path, missing })
        }
        Err(error) => {
            // What the folder says matters less than why the import failed.
            let _ = folder.fail(error.to_string());
            Err(error)
        }
    }
}

fn filled(
    folder: &mut RunFolder,
    request: &ImportRequest,
    sources: &[Source],
    kinds: &[Kind],
    named: Option<&Hardware>,
    config_yaml: &str,
    progress: &mut dyn FnMut(&str),
) -> Result<(Metrics, Vec<String>), ImportError> {
    folder.write_file("config.yaml", config_yaml.as_bytes())?;
    folder.end_step("prepare")?;
    let mut parts = Parts::default();
    let mut files = Vec::new();
    for (source, kind) in sources.iter().zip(kinds) {
        progress(&format!("reading {}", source.name));
        let (part, sha256) = parts::read(source, kind)?;
        files.push(TraceSource {
            path: source.name.clone(),
            format: part.format().to_owned(),
            tool: part.tool(),
            bytes: source.size(),
            sha256,
            rank: part.rank(),
        });
        same_file_twice(&files)?;
        if let (Part::Nothing(reason), [only]) = (&part, sources) {
            let (file, hint) = (only.name.clone(), reason.hint().to_owned());
            return Err(ImportError::NothingInside { file, reason: parts::nothing(*reason).to_owned(), hint });
        }
        parts.add(&source.name, part)?;
        parts.missing.extend(parts::unfinished(source, kind));
    }
    if parts.is_empty() {
        let file = files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>().join(", ");
        let reason = "no timeline, no counters and no kernels".to_owned();
        let hint = "add a trace, a page of counters, or the table cuda_gpu_kern_sum".to_owned();
        return Err(ImportError::NothingInside { file, reason, hint });
    }
    analysed(folder, request, named, parts, files, progress)
}

/// The run in a few lines, for a terminal.
pub fn terminal(metrics: &Metrics) -> String {
    report::profile::import_terminal(metrics)
}

fn same_file_twice(files: &[TraceSource]) -> Result<(), ImportError> {
    for (index, file) in files.iter().enumerate() {
        if let Some(first) = files[..index].iter().find(|other| other.sha256 == file.sha256) {
            let why = "they have the same content".to_owned();
            return Err(ImportError::NotOneRun { one: first.path.clone(), other: file.path.clone(), why });
        }
    }
    Ok(())
}

fn analysed(
    folder: &mut RunFolder,
    request: &ImportRequest,
    named: Option<&Hardware>,
    parts: Parts,
    files: Vec<TraceSource>,
    progress: &mut dyn FnMut(&str),
) -> Result<(Metrics, Vec<String>), ImportError> {
    let missing = parts.missing.clone();
    let subject = Subject {
        run_id: folder.id(),
        engine: None,
        weights: None,
        model: request.model.as_ref(),
        workload: SubjectWorkload::Found(&request.workload),
        named,
        config_dir: request.config_dir.as_deref(),
        plain: None,
    };
    let Summary { metrics, hardware, .. } = summarise(&subject, parts, files, progress)?;
    folder.write_json("metrics.json", &metrics)?;
    folder.end_step("import")?;
    progress("writing reports");
    artifacts::write(folder, &metrics, hardware.as_ref())?;
    folder.end_step("report")?;
    Ok((metrics, missing))
}

/// What traces are of, besides what is in them.
pub(crate) struct Subject<'a> {
    pub(crate) run_id: &'a str,
    /// What ran it; absent: what the files say.
    pub(crate) engine: Option<String>,
    pub(crate) weights: Option<String>,
    pub(crate) model: Option<&'a LoadedModel>,
    pub(crate) workload: SubjectWorkload<'a>,
    /// The device, where it is known without the files.
    pub(crate) named: Option<&'a Hardware>,
    pub(crate) config_dir: Option<&'a Path>,
    /// Passes without instruments.
    pub(crate) plain: Option<PlainRuns>,
}

/// Where the workload of a trace comes from.
pub(crate) enum SubjectWorkload<'a> {
    /// From what the user said and the shapes show.
    Found(&'a WorkloadRequest),
    /// From whoever ran it.
    Known(Box<TracedWorkload>),
}

/// What traces tell, the device they are of, and what it rests on.
pub(crate) struct Summary {
    pub(crate) metrics: Metrics,
    pub(crate) hardware: Option<Hardware>,
    /// The timelines, with the place of every row.
    pub(crate) placed: Vec<Placed>,
    /// What the model does, operation by operation; absent where the model or the workload is not known.
    pub(crate) modelled: Option<ModelledRun>,
}

/// Joins, sums up and models: everything between reading files and writing pages.
pub(crate) fn summarise(
    subject: &Subject<'_>,
    parts: Parts,
    files: Vec<TraceSource>,
    progress: &mut dyn FnMut(&str),
) -> Result<Summary, ImportError> {
    progress("attributing device work");
    let model = subject.model;
    let settings =
        attribution::AttributionSettings { model: model.map(|model| model.id.clone()), ..Default::default() };
    let placed: Vec<Placed> = parts
        .timelines
        .into_iter()
        .map(|(_, timeline)| {
            let attribution = attribution::attribute(&timeline, &settings);
            Placed { rank: parts::rank(&timeline), timeline, attribution }
        })
        .collect();
    progress("summing up");
    let found = devices::find(&placed, subject.named, subject.config_dir)?;
    let observed = match placed.as_slice() {
        [only] => observe(&only.timeline, &only.attribution),
        [] => Observed { missing: vec!["the files have no timeline".to_owned()], ..Observed::default() },
        _ => Observed { missing: vec!["several ranks may share one prompt".to_owned()], ..Observed::default() },
    };
    let traced = match (&subject.workload, model) {
        (SubjectWorkload::Known(known), _) => TracedWorkload::clone(known),
        (SubjectWorkload::Found(request), Some(model)) => workload::choose(model, request, &observed)?,
        (SubjectWorkload::Found(_), None) => {
            TracedWorkload { workload: None, evidence: observed.evidence.clone(), missing: Vec::new() }
        }
    };
    let input = workload::input(traced.workload.as_ref(), &observed);
    let prediction = match (model, &traced.workload, placed.len()) {
        // How several ranks share the work is not known.
        (Some(model), Some(workload), 1) => Some((&model.network, predict(&model.network, workload)?)),
        _ => None,
    };
    let work = prediction.as_ref().map(|(network, prediction)| crate::work::per_stage(network, prediction));
    let dtype = traced.workload.as_ref().map(|workload| workload.dtype);
    let hardware = found.hardware.as_ref();
    let peak = match (hardware.zip(dtype), &subject.plain) {
        (None, _) => None,
        (Some((hardware, dtype)), None) => Some(peak(hardware, dtype)?),
        // A run that was measured is worth its times even where its device has no such rate.
        (Some((hardware, dtype)), Some(_)) => peak(hardware, dtype).ok(),
    };
    let modelled = prediction.as_ref().map(|(network, prediction)| {
        let roofline = hardware.and_then(|hardware| Roofline::new(hardware, matrix_dtypes(prediction), None).ok());
        modelled::run(network, prediction, roofline.as_ref())
    });
    let mut quality = parts.quality;
    quality.extend(differing_workload(&traced, &observed));
    let timelines = placed.iter().zip(found.names).map(|(one, devices)| PlacedTimeline {
        timeline: &one.timeline,
        attribution: &one.attribution,
        rank: one.rank,
        devices,
    });
    let records = TraceRecords {
        run: RunHeader {
            id: subject.run_id.to_owned(),
            engine: subject.engine.clone().unwrap_or_else(|| engine(&files)),
            model: model.map(|model| model.id.clone()),
            device: found.devices.first().map(|device| device.id.clone()),
            weights: subject.weights.clone(),
        },
        devices: found.devices,
        clocks: clocks(&placed),
        timelines: timelines.collect(),
        counted: parts.counted,
        listed: parts.listed,
        facts: TraceFacts { sources: files, workload: Some(traced), ..TraceFacts::default() },
        input,
        work: work.unwrap_or_default(),
        modelled,
        multiprocessors: hardware.map(|hardware| u64::from(hardware.sm_count)),
        peak,
        quality,
        plain: subject.plain.clone(),
    };
    let metrics = analysis::trace::trace(&records);
    let TraceRecords { modelled, .. } = records;
    Ok(Summary { metrics, hardware: found.hardware, placed, modelled })
}

/// One trace of our own, read.
pub(crate) fn read_trace(path: &Path, name: &str) -> Result<(Parts, TraceSource), ImportError> {
    let source = Source::open(path)?;
    let kind = parts::kind(&source)?;
    let (part, sha256) = parts::read(&source, &kind)?;
    let file = TraceSource {
        path: name.to_owned(),
        format: part.format().to_owned(),
        tool: part.tool(),
        bytes: source.size(),
        sha256,
        rank: part.rank(),
    };
    let mut parts = Parts::default();
    parts.add(name, part)?;
    Ok((parts, file))
}

/// The files that a collector has left in a run's folder, one for each process, as one timeline. Names are relative to the
/// folder.
pub(crate) fn read_collected(folder: &Path, names: &[String]) -> Result<(Parts, Vec<TraceSource>), ImportError> {
    let sources = names.iter().map(|name| Source::open(&folder.join(name))).collect::<Result<Vec<_>, _>>()?;
    let contents: Vec<_> = names.iter().zip(&sources).map(|(name, source)| (name.as_str(), source.bytes())).collect();
    let timeline = ingest::wire::read_all(&contents)?;
    let file = |(name, source): (&String, &Source)| TraceSource {
        path: name.clone(),
        format: timeline.format.name().to_owned(),
        tool: timeline.tool.clone(),
        bytes: source.size(),
        sha256: source.digest(),
        rank: None,
    };
    let files = names.iter().zip(&sources).map(file).collect();
    let mut parts = Parts::default();
    parts.add("trace", Part::Timeline(Box::new(timeline)))?;
    Ok((parts, files))
}

/// The timelines in files: one for each, but for files of the collector, which make one together.
pub(crate) fn timelines(paths: &[PathBuf]) -> Result<Vec<Timeline>, ImportError> {
    let sources = paths.iter().map(|path| Source::open(path)).collect::<Result<Vec<_>, _>>()?;
    let collected = |source: &&Source| source.bytes().starts_with(b"LLMPERFW");
    let contents: Vec<_> = sources.iter().filter(collected).map(|it| (it.name.as_str(), it.bytes())).collect();
    let mut timelines = Vec::new();
    if !contents.is_empty() {
        timelines.push(ingest::wire::read_all(&contents)?);
    }
    for source in sources.iter().filter(|source| !collected(source)) {
        if let (Part::Timeline(timeline), _) = parts::read(source, &parts::kind(source)?)? {
            timelines.push(*timeline);
        }
    }
    Ok(timelines)
}

fn engine(files: &[TraceSource]) -> String {
    let mut formats: Vec<_> = files.iter().map(|file| file.format.as_str()).collect();
    formats.dedup();
    formats.join(" + ")
}

fn clocks(placed: &[Placed]) -> Vec<Clock> {
    let numbered = (0u32..).zip(placed);
    numbered.map(|(number, one)| Clock { id: ClockId(number), ..one.timeline.clock.clone() }).collect()
}

fn peak(hardware: &Hardware, dtype: DType) -> Result<PeakUsed, ImportError> {
    let no_rate = || ImportError::NoRate { device: hardware.name.clone(), dtype };
    crate::profile::peak(hardware, dtype).ok_or_else(no_rate)
}

/// A workload that was named and is not what the shapes show.
fn differing_workload(traced: &TracedWorkload, observed: &Observed) -> Option<QualityCounter> {
    let workload = traced.workload.as_ref()?;
    let mut differing = Vec::new();
    let mut hold = |what: &str, named: u64, shown: Option<u64>| {
        if let Some(shown) = shown.filter(|shown| *shown != named) {
            differing.push(format!("{what}: {named} named, {shown} in the trace"));
        }
    };
    hold("prompt tokens", workload.seq_len, observed.prompt_tokens);
    hold("decode steps", workload.decode_steps, observed.decode_steps);
    hold("batch", workload.batch, observed.batch);
    (!differing.is_empty()).then(|| QualityCounter {
        counter: "workload_differs_from_trace".to_owned(),
        value: differing.len() as u64,
        share: None,
        severity: types::Severity::Warning,
        remedy: format!(
            "utilisation counts with what was named ({}); leave it out to use the trace's",
            differing.join("; ")
        ),
    })
}
