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
use types::{InputSet, Metrics, RunHeader, Sample, UserError};

pub use crate::runner::torch::{
    ProfilerSettings, TorchModel, TorchName, TorchRequest, TorchSettings, TorchSource, element_type, has_weights,
};

use super::files::{ProfileFiles, write, write_predictions};
use super::torch_plan::{TRACE, TorchProfile};
use super::{Profile, ranks, torch_evidence};
use crate::RunRequest;
use crate::pipeline::folder::run::{EndedRun, run};
use crate::pipeline::progress::Progress;
use crate::pipeline::recorded::provenance;
use crate::pipeline::{device::hardware, device::machine, model::analytic};
use crate::runner::error::{driver as driver_failed, wrong_setting};
use crate::runner::inputs::{self, Inputs};
use crate::runner::torch::driver_run::DriverRun;
use crate::runner::torch::{check, question, question_text, scratch, session};

/// Runs, measures, analyses and writes everything into a run folder.
pub fn profile(
    mut model: TorchModel,
    request: &TorchRequest,
    run_request: RunRequest,
    config_yaml: &str,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<Profile, UserError> {
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
            return Ok(part(model, rank.rank, samples, inputs.document(), out));
        }
    }
    let device = Some(request.profile.device.clone());
    let run_request = RunRequest { model: Some(model.id.clone()), device, ..run_request };
    let EndedRun { value: (metrics, inputs), folder, missing } = run(run_request, |folder| {
        let (metrics, set, missing) = fill(folder, &given, &mut inputs, progress, stop)?;
        Ok(((metrics, set), missing))
    })?;
    Ok(Profile { metrics, inputs, folder, missing, part_of_rank: None })
}

/// What a rank other than the first has to show: its own times. The report is rank 0's.
fn part(model: &TorchModel, rank: u32, samples: Vec<Sample>, inputs: InputSet, folder: PathBuf) -> Profile {
    let run = RunHeader { engine: "torch".to_owned(), model: Some(model.id.clone()), ..RunHeader::default() };
    let plain = PlainRuns { samples, ..PlainRuns::default() };
    let evidence = Evidence { plain: Some(plain), ..Evidence::default() };
    let metrics = crate::pipeline::metrics::metrics(&Subject { run, ..Subject::default() }, &evidence);
    Profile { metrics, inputs, folder, missing: Vec::new(), part_of_rank: Some(rank) }
}

fn fill(
    folder: &mut RunFolder,
    given: &TorchProfile<'_>,
    inputs: &mut Inputs,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<(Metrics, InputSet, Vec<String>), UserError> {
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
    let ranks = match given.rank {
        Some(rank) => {
            let (ranks, lacking) = ranks::gather(folder, rank, progress, stop)?;
            missing.extend(lacking);
            Some(ranks)
        }
        None => None,
    };
    missing.extend(inputs.problems());
    let processed = torch_evidence::metrics(&run, folder.id(), trace.as_deref(), ranks, missing, progress)?;
    let missing = processed.missing;
    let metrics = processed.metrics;
    folder.write_json("metrics.json", &metrics)?;
    provenance::write_modules(folder, &processed.modules)?;
    folder.end_step("analyse")?;

    progress(Progress::Doing("writing reports"));
    let environment = torch_evidence::environment(&given.environment, &session);
    folder.write_json("env.json", &environment)?;
    let fed = inputs.fed();
    let files = ProfileFiles {
        metrics: &metrics,
        environment: &environment,
        inputs: &fed,
        request: &request.profile,
        computed: torch_evidence::computed(&session),
        profiling: torch_evidence::assumptions(&run),
        operator_rows: Some(wanted.top_k as usize),
    };
    if let (Ok(known), Some(workload), Some(hardware)) = (&model.known, &processed.workload, &processed.hardware) {
        let devices = std::slice::from_ref(hardware);
        let version = &request.profile.tool_version;
        // A device without the rate that is needed has no roofline; the measurement stands without it.
        if let Ok(analysis) = analytic::lay_out(known.about(), &known.network, workload, devices, None, version) {
            analytic::write(folder, &analysis.beside(&metrics))?;
        }
    }
    write(folder, &files)?;
    if request.profile.keep_predictions {
        write_predictions(folder, &torch_evidence::texts(&run)?)?;
    }
    folder.end_step("report")?;
    Ok((metrics, fed.document, missing))
}

fn absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}
