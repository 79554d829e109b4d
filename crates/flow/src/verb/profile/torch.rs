//! `profile --engine torch`: a model in the user's own PyTorch, measured from outside.
//!
//! A driver of ours runs it in the user's interpreter: first without a profiler, for the times of stages, then once under
//! torch.profiler, whose trace goes the way of every imported one. Inputs are prepared here, as for the native engine, and
//! work is modelled by the same meter.

use std::path::PathBuf;

use analysis::{Evidence, PlainRuns, Subject};
use collect::rank::Rank;
use collect::run::RunFolder;
use collect::tool::torch::{self, DRIVER, PassName, TRIES, interpreter};
use types::{Metrics, RunHeader, Sample, UserError};

pub use crate::runner::torch::{
    ProfilerSettings, TorchModel, TorchName, TorchRequest, TorchSettings, TorchSource, element_type, has_weights,
};

use super::files::{ProfileFiles, write, write_predictions};
use super::torch_plan::{TRACE, TorchProfile};
use super::{ranks, torch_evidence};
use crate::RunRequest;
use crate::pipeline::folder::run::{EndedRun, run};
use crate::pipeline::progress::Progress;
use crate::pipeline::recorded::provenance;
use crate::pipeline::{device::hardware, device::machine, model::analytic};
use crate::runner::error::{driver as driver_failed, wrong_setting};
use crate::runner::inputs::{self, Inputs};
use crate::runner::torch::driver_run::DriverRun;
use crate::runner::torch::{check, question, question_text, scratch, session};

/// Runs, measures, analyses and writes everything into a run folder. Of several ranks only rank 0 writes the reports; the others tell
/// which rank they are.
pub fn profile(
    mut model: TorchModel,
    request: &TorchRequest,
    run_request: RunRequest,
    config_yaml: &str,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<(EndedRun<Metrics>, Option<u32>), UserError> {
    check(request)?;
    if let Ok(known) = &mut model.known {
        request.profile.infer.fit(known);
    }
    let model = &model;
    let config_dir = request.profile.config_dir.as_deref();
    let named = request.torch.hardware.as_deref();
    let named = named.map(|name| hardware::find(config_dir, name)).transpose()?;
    let mut inputs = inputs::find(&request.profile.dataset, &request.profile.infer)?;
    inputs.usable()?;
    progress(Progress::Doing("looking for an interpreter with torch"));
    let python = interpreter(request.torch.python.as_deref())?;
    progress(Progress::Doing("inspecting the machine"));
    let environment = machine::capture(config_dir)?;
    let rank = Rank::of_this_process();
    let given = TorchProfile { model, request, environment, config_yaml, python, named, rank };
    if let Some(rank) = rank {
        if request.profile.tries.is_some() {
            let expected = "omitted: remedies can only be tried in a single-process run";
            return Err(wrong_setting("--try", expected, "set"));
        }
        let Some(out) = run_request.out.clone() else {
            let expected = "a folder that all ranks share";
            return Err(wrong_setting("--out", expected, "not set"));
        };
        if rank.rank > 0 {
            let samples = ranks::leave_part(&out, rank, &given, &mut inputs, progress, stop)?;
            return Ok((EndedRun { value: part(model, samples), folder: out, missing: Vec::new() }, Some(rank.rank)));
        }
    }
    let device = Some(request.profile.device.clone());
    let run_request = RunRequest { model: Some(model.id.clone()), device, ..run_request };
    Ok((run(run_request, |folder| fill(folder, &given, &mut inputs, progress, stop))?, None))
}

/// What a rank other than the first has to show: its own times. The report is rank 0's.
fn part(model: &TorchModel, samples: Vec<Sample>) -> Metrics {
    let run = RunHeader { engine: "torch".to_owned(), model: Some(model.id.clone()), ..RunHeader::default() };
    let plain = PlainRuns { samples, ..PlainRuns::default() };
    let evidence = Evidence { plain: Some(plain), ..Evidence::default() };
    crate::pipeline::metrics::metrics(&Subject { run, ..Subject::default() }, &evidence)
}

fn fill(
    folder: &mut RunFolder,
    given: &TorchProfile<'_>,
    inputs: &mut Inputs,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<(Metrics, Vec<String>), UserError> {
    let TorchProfile { model, request, .. } = *given;
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
    let question = question::ask(model, request, inputs, scratch.path(), trace.clone())?;
    folder.write_file("logs/torch-driver.py", DRIVER.as_bytes())?;
    folder.write_file("logs/torch-request.json", question_text(&question).as_bytes())?;
    if question.request.tries.is_some() {
        folder.write_file("logs/torch_tries.py", TRIES.as_bytes())?;
    }
    let [driver, request_file] =
        ["logs/torch-driver.py", "logs/torch-request.json"].map(|name| folder.path().join(name));
    let command = folder.log_command("torch", torch::command(&given.python, &driver, &request_file))?;
    folder.end_step("prepare")?;

    progress(Progress::Doing("starting Python"));
    let ran = session::run(&command, progress, stop);
    folder.adopt_logs("torch", Some(collect::process::MOST_LOG))?;
    let (session, ending) = ran?;
    folder.write_file("logs/torch-events.jsonl", session.lines.as_bytes())?;
    let trouble = session.trouble(ending);
    let measured = session.samples(|pass| pass == PassName::Measure, None);
    if let Some((kind, message)) = trouble.clone().filter(|_| measured.is_empty()) {
        let traceback = session.failure.clone().and_then(|failure| failure.traceback);
        return Err(driver_failed(kind, message, traceback));
    }
    let mut missing: Vec<String> = trouble.into_iter().map(|(_, message)| message).collect();
    if wanted.export_trace && session.trace.is_some() {
        folder.adopt(TRACE)?;
    }
    folder.end_step("measure")?;

    let run = DriverRun { model, request, question: &question, session: &session, named: given.named.as_ref() };
    let gathered = given.rank.map(|rank| ranks::gather(folder, rank, progress, stop)).transpose()?;
    let (ranks, lacking) = gathered.unzip();
    missing.extend(lacking.into_iter().flatten());
    missing.extend(inputs.problems());
    let processed = torch_evidence::metrics(&run, folder.id(), trace.as_deref(), ranks, missing, progress)?;
    let metrics = &processed.metrics;
    folder.write_json("metrics.json", metrics)?;
    provenance::write_modules(folder, &processed.modules)?;
    folder.end_step("analyse")?;

    progress(Progress::Doing("writing reports"));
    let environment = torch_evidence::environment(&given.environment, &session);
    folder.write_json("env.json", &environment)?;
    let fed = inputs.fed();
    let files = ProfileFiles {
        metrics,
        environment: &environment,
        inputs: &fed,
        request: &request.profile,
        computed: torch_evidence::computed(&session),
        profiling: torch_evidence::assumptions(&run),
        operator_rows: Some(wanted.top_k as usize),
    };
    let known = model.known.as_ref().ok().zip(processed.workload.as_ref()).zip(processed.hardware.as_ref());
    analytic::write_known(folder, metrics, known)?;
    write(folder, &files)?;
    if request.profile.keep_predictions {
        write_predictions(folder, &torch_evidence::texts(&run)?)?;
    }
    folder.end_step("report")?;
    Ok((processed.metrics, processed.missing))
}

fn absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}
