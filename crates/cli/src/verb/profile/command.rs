//! `llm-perf profile -- COMMAND`: any program, measured from outside.

use config::{OverrideSource, Overrides};
use flow::command::{self, CommandRequest};
use flow::import::NamedSubject;
use flow::profile::Progress;
use types::Exit;

use super::Arguments;
use crate::context::Context;
use crate::error::CliError;
use crate::interrupt::Interrupt;
use crate::resolution::{self, ModelFlags};

/// Parts of the configuration that say nothing of a command.
const UNUSED: [&str; 5] = ["infer", "pipeline", "inputs", "engine", "device"];

pub(super) fn run(arguments: &Arguments, given: &Overrides, context: &Context) -> Result<Exit, CliError> {
    arguments.target.refuse_run(given, &UNUSED)?;
    let mut overrides = Overrides::default();
    // A command may take hours, or never end by itself, so it is run once unless the user says otherwise.
    overrides.set("dataset.sampling.warmup_rounds", 0, OverrideSource::Verb);
    overrides.set("dataset.sampling.repeats", 1, OverrideSource::Verb);
    let model = arguments.target.model.as_deref();
    overrides.append(&ModelFlags { model, ..ModelFlags::default() }.overrides(given));
    let config = resolution::compose(&overrides, context)?.without(&UNUSED);
    let subject = NamedSubject {
        model: model.is_some().then(|| resolution::model::load(&config)).transpose()?,
        workload: resolution::workload::request(&config, model.is_some())?,
        hardware: resolution::hardware(&config)?,
        config_dir: context.config_dir.clone(),
    };
    let config = if model.is_some() { config } else { config.without(&["model", "workload"]) };
    let request = CommandRequest {
        target: arguments.target.command()?,
        warmup_rounds: config.get("dataset.sampling.warmup_rounds")?,
        repeats: config.get("dataset.sampling.repeats")?,
        recording: arguments.recording.recording()?,
        subject,
    };
    let run = resolution::run_request("profile", &config, given, arguments.out.as_deref())?;
    let interrupt = Interrupt::catch();
    let profile = context.progress(|display| {
        let (mut show, stop) = (|progress: Progress<'_>| display.show(&progress), || interrupt.is_set());
        Ok::<_, CliError>(command::profile(&request, run, &config.to_yaml(), &mut show, &stop)?)
    })?;
    context.messages.print_answer(arguments.json, &profile.metrics, || command::terminal(&profile.metrics))?;
    Ok(context.messages.finish(&profile.missing, &[("report", profile.folder.join("report.md"))]))
}
