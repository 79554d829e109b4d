//! `deep`: a timeline first, then hardware counters of the kernels that matter in it, joined to stages and to the model.
//!
//! A run is a list of passes, each of which starts the program once: by itself, under Nsight Systems, and once for each
//! stage under Nsight Compute. Every pass is a step of the run folder, so that what was collected survives whatever
//! follows, and a run that was stopped goes on behind its last step.

mod artifacts;
mod child;
mod collected;
mod counters;
mod error;
mod overhead;
mod passes;
mod plan;
mod request;
mod tools;
mod workload;

use std::path::PathBuf;

use analysis::sampled::{Choice, choose};
use analysis::trace::Counted;
use collect::run::{Outcome, RunFolder, StoredRun};
use collect::tool::Shortfall;
use collect::tool::ncu::{ChipMetrics, known_metrics};
use types::{DeepPlan, KernelReport, Metrics, QualityCounter, RunHeader, Stage};

use crate::RunRequest;
use crate::hardware;
use crate::import::{Subject, SubjectWorkload, Summary, read_collected, read_trace, summarise};

pub use collect::tool::ncu::Preset as NcuPreset;
pub use collect::tool::nsys::Preset as NsysPreset;
pub use error::DeepError;
pub use plan::plan;
pub use request::{DeepRequest, Mode};
pub use types::Collector;

use collected::{Collected, empty_report, header, report, with_overhead};
use overhead::{BASELINE, BASELINE_AGAIN};
use tools::Tools;

/// Folders whose unlisted files a stopped step has left.
const SCRATCH: [&str; 4] = ["logs", "nsys", "ncu", "trace"];

/// The outcome.
#[derive(Debug)]
pub struct Deep {
    /// Everything measured, counted and derived.
    pub metrics: Metrics,
    /// Kernels with their counters.
    pub kernels: KernelReport,
    /// The run folder.
    pub folder: PathBuf,
    /// Why the run is partial; empty when it is not.
    pub missing: Vec<String>,
}

/// The plan of a run that was stopped.
pub fn stored_plan(run: &StoredRun) -> Result<DeepPlan, DeepError> {
    let name = run.path().display().to_string();
    let refuse = |reason: String| DeepError::NotResumable { run: name.clone(), reason };
    if run.manifest().verb != "deep" {
        return Err(refuse(format!("it was made by `{}`", run.manifest().verb)));
    }
    let text = std::fs::read(run.path().join("plan.json")).map_err(|error| refuse(format!("plan.json: {error}")))?;
    serde_json::from_slice(&text).map_err(|error| refuse(format!("plan.json: {error}")))
}

/// Makes a run. What can fail cheaply fails before the folder is made; after that an error leaves a folder that says so
/// and holds what was collected.
pub fn deep(
    request: &DeepRequest,
    run: RunRequest,
    config_yaml: &str,
    progress: &mut dyn FnMut(&str),
) -> Result<Deep, DeepError> {
    let named = named_hardware(request)?;
    name_filter(&request.ncu.ncu_cli.kernel_exclude)?;
    progress("looking at the machine");
    let tools = Tools::find(request)?;
    let run = RunRequest {
        model: request.subject.model.as_ref().map(|model| model.id.clone()),
        device: Some("cuda:0".to_owned()),
        ..run
    };
    let mut folder = RunFolder::create(run)?;
    let prepared = artifacts::prepare(&mut folder, request, &tools, config_yaml);
    ended(folder, prepared, |folder| filled(folder, request, &tools, named.as_ref(), progress))
}

/// Goes on with a run that was stopped, behind its last finished pass.
pub fn resume(request: &DeepRequest, run: &StoredRun, progress: &mut dyn FnMut(&str)) -> Result<Deep, DeepError> {
    let named = named_hardware(request)?;
    name_filter(&request.ncu.ncu_cli.kernel_exclude)?;
    progress("looking at the machine");
    let tools = Tools::find(request)?;
    let folder = RunFolder::resume(run, &SCRATCH)?;
    ended(folder, Ok(()), |folder| filled(folder, request, &tools, named.as_ref(), progress))
}

fn named_hardware(request: &DeepRequest) -> Result<Option<types::Hardware>, DeepError> {
    let subject = &request.subject;
    let find = |name: &str| hardware::find(subject.config_dir.as_deref(), name);
    Ok(subject.hardware.as_deref().map(find).transpose()?)
}

/// Ends the run as what came of it.
fn ended(
    mut folder: RunFolder,
    prepared: Result<(), DeepError>,
    fill: impl FnOnce(&mut RunFolder) -> Result<(Metrics, KernelReport, Vec<String>), DeepError>,
) -> Result<Deep, DeepError> {
    let path = folder.path().to_owned();
    match prepared.and_then(|()| fill(&mut folder)) {
        Ok((metrics, kernels, missing)) => {
            folder.finish(Outcome::from_missing(missing.clone()))?;
            Ok(Deep { metrics, kernels, folder: path, missing })
        }
        Err(error) => {
            // What was collected before is there and listed; what the folder says matters less than why it ended.
            let reasons = vec![error.to_string()];
            let has_timeline = folder.has_step("timeline");
            let outcome = if has_timeline { Outcome::Partial(reasons) } else { Outcome::Failed(reasons) };
            let _ = folder.finish(outcome);
            Err(error)
        }
    }
}

fn filled(
    folder: &mut RunFolder,
    request: &DeepRequest,
    tools: &Tools,
    named: Option<&types::Hardware>,
    progress: &mut dyn FnMut(&str),
) -> Result<(Metrics, KernelReport, Vec<String>), DeepError> {
    // A run that goes on knows its earlier passes from what it wrote down.
    let mut all = Collected { passes: artifacts::earlier_passes(folder), ..Collected::default() };
    if !folder.has_step(BASELINE) {
        progress("running the program by itself");
        let record = passes::baseline(folder, request, BASELINE)?;
        all.add(record, request);
        artifacts::write_passes(folder, &empty_report(folder, request, &all))?;
        folder.end_step(BASELINE)?;
    }
    if !folder.has_step("timeline") {
        progress("recording the timeline");
        let (record, missing) = passes::timeline(folder, request, tools, progress)?;
        all.add(record, request);
        all.missing.extend(missing);
        artifacts::write_passes(folder, &empty_report(folder, request, &all))?;
        folder.end_step("timeline")?;
    }
    if !folder.has_step(BASELINE_AGAIN) && overhead::runs_again(request, &all.passes) {
        progress("running the program by itself once more");
        match passes::baseline(folder, request, BASELINE_AGAIN) {
            Ok(record) => {
                all.add(record, request);
                artifacts::write_passes(folder, &empty_report(folder, request, &all))?;
                folder.end_step(BASELINE_AGAIN)?;
            }
            Err(error @ DeepError::Baseline { .. }) => all.missing.push(format!("{BASELINE_AGAIN}: {error}")),
            Err(error) => return Err(error),
        }
    }
    progress("reading the timeline");
    let (first, _) = analysed(folder, request, named, &[], &[], progress)?;
    if first.metrics.kernels.is_empty() {
        return Err(DeepError::NoKernels);
    }
    let leave_out = name_filter(&request.ncu.ncu_cli.kernel_exclude)?;
    let choices: Vec<Choice> = match first.placed.as_slice() {
        [only] => choose(&only.timeline, &only.attribution, &request.stages, request.top_kernels as usize, &|name| {
            leave_out.iter().any(|pattern| pattern.is_match(name))
        }),
        _ => Vec::new(),
    };
    folder.write_json("metrics.json", &with_overhead(first.metrics.clone(), &all))?;
    folder.end_step("kernels")?;
    if let Some(counter) = child::launches(request, &all.passes, &first.placed) {
        progress("kernels are launched by a child of the program, where reading counters takes long");
        all.quality.push(counter);
    }
    count(folder, request, tools, &choices, &mut all, progress)?;
    progress("joining counters, timeline and model");
    let (found, missing) = analysed(folder, request, named, &all.counted, &all.quality, progress)?;
    all.missing.extend(missing);
    report(folder, request, tools, found, &choices, all)
}

/// Reads the counters of every choice, or says why there are none.
fn count(
    folder: &mut RunFolder,
    request: &DeepRequest,
    tools: &Tools,
    choices: &[Choice],
    all: &mut Collected,
    progress: &mut dyn FnMut(&str),
) -> Result<(), DeepError> {
    if !request.ncu.enabled {
        return Ok(());
    }
    let tool = match &tools.ncu {
        Ok(tool) => tool,
        Err(Shortfall { found, next_step, .. }) => {
            all.missing.push(format!("hardware counters: {found}; {next_step}"));
            return Ok(());
        }
    };
    let chip = chip(request, tools, all, progress);
    let mut program = None;
    for choice in choices {
        let step = plan::counters(choice.stage);
        let pass = if folder.has_step(&step) {
            counters::read(folder, choice.stage)?
        } else {
            let stage = choice.stage.map_or("the run", Stage::name);
            let kernels = choice.kernels.len();
            progress(&format!("counting {kernels} kernel{} of {stage}", if kernels == 1 { "" } else { "s" }));
            let program = match &mut program {
                Some(ready) => ready,
                none => match counters::replayed(folder, request) {
                    Ok(ready) => none.insert(ready),
                    Err(error @ DeepError::Prepare { .. }) => {
                        all.missing.push(format!("hardware counters: {error}"));
                        return Ok(());
                    }
                    Err(error) => return Err(error),
                },
            };
            counters::count(folder, request, program, tool, chip.as_ref(), choice, progress)?
        };
        if let Some(record) = pass.record {
            all.add(record, request);
        }
        all.counted.extend(pass.counted);
        all.quality.extend(pass.quality);
        all.launches.push((choice.stage, pass.launches));
        let everywhere = match pass.missing {
            Some((why, everywhere)) => {
                all.missing.push(why);
                everywhere
            }
            None => {
                artifacts::write_passes(folder, &empty_report(folder, request, all))?;
                if !folder.has_step(&step) {
                    folder.end_step(&step)?;
                }
                false
            }
        };
        if everywhere {
            break;
        }
    }
    Ok(())
}

/// The metrics of the chip; without the list everything is asked for.
fn chip(
    request: &DeepRequest,
    tools: &Tools,
    all: &mut Collected,
    progress: &mut dyn FnMut(&str),
) -> Option<ChipMetrics> {
    let tool = tools.ncu.as_ref().ok()?;
    progress("asking which counters the chip has");
    let chip = known_metrics(tool, &tools.gpu).ok().filter(|chip| !chip.is_empty())?;
    (_, all.lacking) = chip.split(&request.ncu.ncu_cli.metrics);
    Some(chip)
}

/// Reads the timeline and makes metrics of it and of what was counted.
fn analysed(
    folder: &RunFolder,
    request: &DeepRequest,
    named: Option<&types::Hardware>,
    counted: &[Counted],
    quality: &[QualityCounter],
    progress: &mut dyn FnMut(&str),
) -> Result<(Summary, Vec<String>), DeepError> {
    let database = folder.path().join(passes::DATABASE);
    let (mut parts, files) = if database.is_file() {
        let (parts, file) = read_trace(&database, passes::DATABASE)?;
        (parts, vec![file])
    } else {
        let listed = folder.manifest().files.iter().map(|file| file.path.clone());
        let names: Vec<String> = listed.filter(|path| path.starts_with("trace/") && path.ends_with(".wire")).collect();
        read_collected(folder.path(), &names)?
    };
    parts.counted = counted.to_vec();
    parts.quality.extend(quality.iter().cloned());
    let missing = parts.missing.clone();
    let RunHeader { id, engine, weights, .. } = header(folder, request);
    let subject = Subject {
        run_id: &id,
        engine: Some(engine),
        weights,
        model: request.subject.model.as_ref(),
        workload: match workload::known(folder, request) {
            Some(known) => SubjectWorkload::Known(Box::new(known)),
            None => SubjectWorkload::Found(&request.subject.workload),
        },
        named,
        config_dir: request.subject.config_dir.as_deref(),
        plain: None,
    };
    let mut summary = summarise(&subject, parts, files, progress)?;
    if let Some(facts) = &mut summary.metrics.trace {
        facts.recorded_here = true;
    }
    Ok((summary, missing))
}

/// Names of kernels, exact or `regex:PATTERN`.
fn name_filter(names: &[String]) -> Result<Vec<regex::Regex>, DeepError> {
    let pattern = |name: &String| {
        let text = match name.strip_prefix("regex:") {
            Some(pattern) => pattern.to_owned(),
            None => format!("^{}$", regex::escape(name)),
        };
        let key = "pipeline.ncu.ncu_cli.kernel_exclude".to_owned();
        regex::Regex::new(&text).map_err(|error| DeepError::Preset { key, reason: error.to_string() })
    };
    names.iter().map(pattern).collect()
}

/// The plan in a few lines, for a terminal.
pub fn plan_terminal(plan: &DeepPlan) -> String {
    report::deep::plan_terminal(plan)
}

/// The run in a few lines, for a terminal.
pub fn terminal(metrics: &Metrics, kernels: &KernelReport) -> String {
    report::deep::terminal(metrics, kernels)
}
