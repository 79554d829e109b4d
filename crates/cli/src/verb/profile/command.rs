//! `llm-perf profile -- COMMAND`: any program, measured from outside.

use std::path::Path;

use config::{OverrideSource, Overrides};
use flow::StopRequest;
use flow::command::{self, CommandRequest};
use flow::profile::Progress;
use types::{Exit, UserError};

use super::Arguments;
use super::place::RunPlace;
use super::runs::RunArguments;
use crate::context::Context;
use crate::resolution::{self, ModelFlags};
use crate::subject;

/// Parts of the configuration that say nothing of a command.
const UNUSED: [&str; 5] = ["infer", "pipeline", "inputs", "engine", "device"];

/// Runs of each of several commands, as many as tell a change of a few percent.
const SEVERAL: u32 = 10;

pub(super) fn run(arguments: &Arguments, given: &Overrides, context: &Context) -> Result<Exit, UserError> {
    arguments.target.refuse_run(given, &UNUSED)?;
    let mut overrides = Overrides::default();
    // A command may take hours, or never end by itself, so it is run once unless the user says otherwise.
    let RunArguments { lines, runs, warmup, prepare, cleanup, csv, .. } = &*arguments.runs;
    let runs = runs.unwrap_or(if lines.len() > 1 { SEVERAL } else { 1 });
    overrides.set("dataset.sampling.warmup_rounds", warmup.unwrap_or(0), OverrideSource::Verb);
    overrides.set("dataset.sampling.repeats", runs, OverrideSource::Verb);
    let model = arguments.target.model.as_deref();
    let hardware = arguments.target.hardware.as_deref();
    overrides.append(&ModelFlags { model, hardware, ..ModelFlags::default() }.overrides(given));
    let config = resolution::compose(&overrides, context)?.without(&UNUSED);
    let subject = subject::named(&config, model, context)?;
    let config = if model.is_some() { config } else { config.without(&["model", "workload"]) };
    let targets = match lines.as_slice() {
        [] => vec![arguments.target.command()?],
        lines => lines.iter().map(|line| command::shell_target(line)).collect::<Result<_, _>>()?,
    };
    let request = CommandRequest {
        targets,
        prepare: prepare.clone(),
        cleanup: cleanup.clone(),
        end: arguments.runs.end()?,
        warmup_rounds: config.get("dataset.sampling.warmup_rounds")?,
        repeats: config.get("dataset.sampling.repeats")?,
        recording: arguments.recording.recording()?,
        subject,
    };
    let place = RunPlace::of(arguments)?;
    let run = place.request(&config, given)?;
    refuse_csv_without_folder(csv.as_deref())?;
    let interrupt = StopRequest::catch();
    let profile = context.progress(|display| {
        let (mut show, stop) = (|progress: Progress<'_>| display.show(&progress), || interrupt.is_set());
        command::profile(&request, run, &config.to_yaml(), &mut show, &stop)
    })?;
    if let Some(file) = csv {
        std::fs::write(file, command::csv(&profile.value)).map_err(|error| {
            UserError::failed(format!("cannot write {}", file.display())).because(error.to_string())
        })?;
    }
    context.messages.print_answer(arguments.json, &profile.value, || command::terminal(&profile.value))?;
    Ok(context.messages.finish(&profile.missing, &place.kept(&profile.folder)))
}

/// A file that cannot be written is better known before the runs than after them.
fn refuse_csv_without_folder(file: Option<&Path>) -> Result<(), UserError> {
    let Some(file) = file else { return Ok(()) };
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let problem = if file.is_dir() { Some("it is a folder") } else { None };
    match problem.or_else(|| (!folder.is_dir()).then_some("its folder does not exist")) {
        None => Ok(()),
        Some(problem) => Err(UserError::usage(format!("--csv {}: {problem}", file.display()))
            .hint("name a file in an existing folder, such as --csv times.csv")),
    }
}
