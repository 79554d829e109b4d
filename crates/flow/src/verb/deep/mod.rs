//! `deep`: a timeline first, then hardware counters of the kernels that matter in it, joined to stages and to the model.
//!
//! A run is a list of passes, each of which starts the program once: by itself, under Nsight Systems, and once for each
//! stage under Nsight Compute. Every pass is a step of the run folder, so that what was collected survives whatever
//! follows, and a run that was stopped goes on behind its last step.

mod artifacts;
mod child;
mod collected;
mod counters;
mod overhead;
mod pass_name;
mod passes;
mod plan;
mod regions;
mod request;
mod tools;
mod workload;

use analysis::sampled::{Choice, choose};
use collect::run::{RunFolder, StoredRun};
use collect::tool::Shortfall;
use collect::tool::ncu::{ChipMetrics, known_metrics};
pub use report::pages::deep::plan_terminal;
use types::{DeepPlan, Document, Hardware, KernelReport, Metrics, RunHeader, Stage, UserError};

use crate::RunRequest;
use crate::pipeline::folder::run::{EndedRun, conclude};
use crate::pipeline::subject::{ResolvedSubject, TracedRun, WorkloadSource, resolve};
use crate::pipeline::trace::Traces;
use crate::pipeline::trace::regions::RegionChoice;

pub use collect::tool::ncu::Preset as NcuPreset;
pub use collect::tool::nsys::Preset as NsysPreset;
pub use plan::plan;
pub use request::{DeepRequest, Mode};
pub use types::Collector;

use collected::{Collected, Recorded, header, metrics, report};
use pass_name::{BASELINE, BASELINE_AGAIN, OPERATORS, TIMELINE, TIMELINE_NSYS};
use request::wrong_key;
use tools::Tools;

/// Folders whose unlisted files a stopped step has left.
const SCRATCH: [&str; 4] = ["logs", "nsys", "ncu", "trace"];

/// Everything measured, counted and derived, and kernels with their counters.
pub type Documents = (Metrics, KernelReport);

/// The plan of a run that was stopped.
pub fn stored_plan(run: &StoredRun) -> Result<DeepPlan, UserError> {
    let refuse = |reason: String| {
        UserError::usage(format!("cannot resume run {}: {reason}", run.path().display())).hint("start a new run")
    };
    if run.manifest().verb != "deep" {
        return Err(refuse(format!("it is a `{}` run", run.manifest().verb)));
    }
    let text = run.read("plan.json").map_err(|error| refuse(format!("plan.json: {error}")))?;
    let plan = DeepPlan::from_json(&text).map_err(|error| refuse(format!("plan.json: {error}")))?;
    if plan.arguments.iter().any(|word| word.contains(collect::MASK)) {
        Err(refuse("a secret on its command line was masked; next time, keep it with `--keep-arguments`".to_owned()))
    } else {
        Ok(plan)
    }
}

/// Makes a run. What can fail cheaply fails before the folder is made; after that an error leaves a folder that says so
/// and holds what was collected.
pub fn deep(
    request: &DeepRequest,
    run: RunRequest,
    config_yaml: &str,
    progress: &mut dyn FnMut(&str),
) -> Result<EndedRun<Documents>, UserError> {
    let (named, tools) = ready(request, progress)?;
    let run = RunRequest { model: request.subject.model_id(), device: Some("cuda:0".to_owned()), ..run };
    conclude(RunFolder::create(run)?, is_worth_keeping, |folder| {
        artifacts::prepare(folder, request, &tools, config_yaml)?;
        fill(folder, request, &tools, named.as_ref(), progress)
    })
}

/// Goes on with a run that was stopped, behind its last finished pass.
pub fn resume(
    request: &DeepRequest,
    run: &StoredRun,
    progress: &mut dyn FnMut(&str),
) -> Result<EndedRun<Documents>, UserError> {
    let (named, tools) = ready(request, progress)?;
    let folder = RunFolder::resume(run, &SCRATCH)?;
    conclude(folder, is_worth_keeping, |folder| fill(folder, request, &tools, named.as_ref(), progress))
}

/// What a run needs before it has a folder: the device that is named, and the tools of the machine.
fn ready(request: &DeepRequest, progress: &mut dyn FnMut(&str)) -> Result<(Option<Hardware>, Tools), UserError> {
    let named = request.subject.named_hardware()?;
    name_filter(&request.ncu.ncu_cli.kernel_exclude)?;
    progress("inspecting the machine");
    Ok((named, Tools::find(request)?))
}

/// A run whose timeline was recorded is partial where it fails later.
fn is_worth_keeping(folder: &RunFolder) -> bool {
    folder.has_step(TIMELINE)
}

fn fill(
    folder: &mut RunFolder,
    request: &DeepRequest,
    tools: &Tools,
    named: Option<&Hardware>,
    progress: &mut dyn FnMut(&str),
) -> Result<(Documents, Vec<String>), UserError> {
    // A run that goes on knows its earlier passes from what it wrote down.
    let mut all = Collected { passes: artifacts::earlier_passes(folder), ..Collected::default() };
    if !folder.has_step(BASELINE) {
        progress("running the program without a profiler");
        let record = passes::baseline(folder, request, BASELINE)??;
        all.keep(folder, request, record, BASELINE)?;
    }
    if !folder.has_step(TIMELINE) {
        progress("recording the timeline");
        let (record, missing) = passes::timeline(folder, request, tools, progress)?;
        all.missing.extend(missing);
        all.keep(folder, request, record, TIMELINE)?;
    }
    if !folder.has_step(BASELINE_AGAIN) && overhead::runs_again(request, &all.passes) {
        progress("running the program without a profiler again");
        match passes::baseline(folder, request, BASELINE_AGAIN)? {
            Ok(record) => all.keep(folder, request, record, BASELINE_AGAIN)?,
            Err(error) => all.missing.push(format!("{BASELINE_AGAIN}: {error}")),
        }
    }
    progress("reading the timeline");
    let mut traces = timeline(folder, request, progress)?;
    let sees_nothing = traces.placed.iter().all(|placed| placed.timeline.work.is_empty());
    if !folder.path().join(passes::DATABASE).is_file() && (sees_nothing || request.collector == Collector::Both) {
        let name = if sees_nothing { TIMELINE } else { TIMELINE_NSYS };
        let (record, missing) = passes::with_nsys(folder, request, tools, name, progress)?;
        all.missing.extend(missing);
        all.keep(folder, request, record, TIMELINE_NSYS)?;
        if sees_nothing {
            traces = timeline(folder, request, progress)?;
        }
    }
    let operators = operators(folder, request, &mut all, progress)?;
    let resolved = subject(folder, request, named, &traces)?;
    if let [only] = traces.placed.as_mut_slice() {
        only.modules = resolved.modules.clone();
    }
    all.missing.extend(traces.missing.iter().cloned());
    let recorded = Recorded { traces: &traces, operators: operators.as_ref() };
    let first = metrics(&resolved, &recorded, &all);
    if first.breakdown.kernels.is_empty() {
        return Err(passes::no_kernels());
    }
    let leave_out = name_filter(&request.ncu.ncu_cli.kernel_exclude)?;
    let choices: Vec<Choice> = match traces.placed.as_slice() {
        [only] => choose(&only.timeline, &only.attribution, &request.stages, request.top_kernels as usize, &|name| {
            leave_out.iter().any(|pattern| pattern.is_match(name))
        }),
        _ => Vec::new(),
    };
    folder.write_json("metrics.json", &first)?;
    folder.end_step("kernels")?;
    if let Some(counter) = child::launches(request, &all.passes, &traces.placed) {
        progress("kernels are launched by a child process, so reading counters is slow");
        all.quality.push(counter);
    }
    count(folder, request, tools, &choices, &mut all, progress)?;
    progress("joining counters, timeline and model");
    report(folder, request, tools, &resolved, &recorded, &choices, all)
}

/// The trace of torch.profiler, where one is asked for and was left; what went wrong is a reason, not an end.
fn operators(
    folder: &mut RunFolder,
    request: &DeepRequest,
    all: &mut Collected,
    progress: &mut dyn FnMut(&str),
) -> Result<Option<Traces>, UserError> {
    if !request.operators {
        return Ok(None);
    }
    if !folder.has_step(OPERATORS) {
        progress("recording operators with torch.profiler");
        match passes::operators(folder, request)? {
            Ok(record) => all.keep(folder, request, record, OPERATORS)?,
            Err(reason) => {
                all.missing.push(reason);
                return Ok(None);
            }
        }
    }
    let file = folder.path().join(passes::OPERATOR_TRACE);
    match Traces::of_file(&file, passes::OPERATOR_TRACE, request.subject.model_id().as_deref(), progress) {
        Ok(traces) => Ok(Some(traces)),
        Err(error) => {
            all.missing.push(format!("operators: {error}"));
            Ok(None)
        }
    }
}

/// Reads the counters of every choice, or says why there are none.
fn count(
    folder: &mut RunFolder,
    request: &DeepRequest,
    tools: &Tools,
    choices: &[Choice],
    all: &mut Collected,
    progress: &mut dyn FnMut(&str),
) -> Result<(), UserError> {
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
    if counters::replays_ranges(request) {
        let wrong = |(key, error): (&str, analysis::region::SelectionError)| {
            wrong_key(&format!("pipeline.ncu.ncu_cli.{key}"), &error)
        };
        all.region_choice = Some(RegionChoice::new(&request.ncu).map_err(wrong)?);
    }
    let chip = chip(request, tools, all, progress);
    let mut program = None;
    for choice in choices {
        let step = plan::counters(choice.stage);
        let pass = if folder.has_step(&step) {
            counters::read(folder, request, choice.stage)?
        } else {
            let stage = choice.stage.map_or("the run", Stage::name);
            let kernels = choice.kernels.len();
            progress(&format!("counting {kernels} kernel{} of {stage}", if kernels == 1 { "" } else { "s" }));
            let program = match &mut program {
                Some(ready) => ready,
                none => match counters::replayed(folder, request)? {
                    Ok(ready) => none.insert(ready),
                    Err(why) => {
                        all.missing.push(format!("hardware counters: {why}"));
                        return Ok(());
                    }
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
        all.ranges.extend(pass.ranges);
        let everywhere = match pass.missing {
            Some((why, everywhere)) => {
                all.missing.push(why);
                everywhere
            }
            None => {
                all.write(folder, request)?;
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
    progress("querying the counters of the GPU");
    let chip = known_metrics(tool, &tools.gpu).ok().filter(|chip| !chip.is_empty())?;
    (_, all.lacking) = chip.split(&request.ncu.ncu_cli.metrics);
    Some(chip)
}

/// Reads the timeline that the run folder holds.
fn timeline(folder: &RunFolder, request: &DeepRequest, progress: &mut dyn FnMut(&str)) -> Result<Traces, UserError> {
    let model = request.subject.model_id();
    let listed = folder.manifest().files.iter().map(|file| file.path.clone());
    let names: Vec<String> = listed.filter(|path| path.starts_with("trace/") && path.ends_with(".wire")).collect();
    let database = folder.path().join(passes::DATABASE);
    if !names.is_empty() {
        let traces = Traces::of_collector(folder.path(), &names, model.as_deref(), progress)?;
        if !database.is_file() || traces.placed.iter().any(|placed| !placed.timeline.work.is_empty()) {
            return Ok(traces);
        }
    }
    Traces::of_file(&database, passes::DATABASE, model.as_deref(), progress)
}

/// What was run, as far as request and timeline tell.
fn subject(
    folder: &RunFolder,
    request: &DeepRequest,
    named: Option<&Hardware>,
    traces: &Traces,
) -> Result<ResolvedSubject, UserError> {
    let RunHeader { id, engine, weights, .. } = header(folder, request);
    let run = TracedRun {
        run_id: &id,
        engine: Some(engine),
        weights,
        model: request.subject.model.as_ref(),
        workload: match workload::known(folder, request) {
            Some(known) => WorkloadSource::Runner(Box::new(known)),
            None => WorkloadSource::Request(&request.subject.workload),
        },
        named,
        config_dir: request.subject.config_dir.as_deref(),
        // What was recorded is worth its times, whatever the device's rates are.
        rate_may_lack: true,
    };
    let mut resolved = resolve(&run, traces)?;
    if resolved.subject.run.model.is_none() {
        resolved.subject.run.model = request.subject.name.clone();
    }
    Ok(resolved)
}

/// Names of kernels, exact or `regex:PATTERN`.
fn name_filter(names: &[String]) -> Result<Vec<regex::Regex>, UserError> {
    let pattern = |name: &String| {
        let text = match name.strip_prefix("regex:") {
            Some(pattern) => pattern.to_owned(),
            None => format!("^{}$", regex::escape(name)),
        };
        regex::Regex::new(&text).map_err(|error| wrong_key("pipeline.ncu.ncu_cli.kernel_exclude", &error))
    };
    names.iter().map(pattern).collect()
}

/// The run in a few lines, for a terminal.
pub fn terminal(metrics: &Metrics, kernels: &KernelReport) -> String {
    report::pages::deep::terminal(&analysis::view::run(metrics), kernels)
}
