//! `llm-perf profile -- COMMAND`: any program, measured from outside.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use flow::RunRequest;
use flow::command::{self, CommandRequest};
use types::Exit;

use super::{Arguments, Display, stop_on_interrupt};
use crate::arguments::Context;
use crate::config::Composer;
use crate::error::CliError;

/// Parts of the configuration that say nothing of a command.
const UNUSED: [&str; 8] =
    ["~model", "~infer", "~workload", "~pipeline", "~runner", "~inputs", "~engine", "~device"];

/// How often a command is run unless the user says otherwise: it may take hours, or never end by itself.
const ONCE: [&str; 2] = ["dataset.sampling.warmup_rounds=0", "dataset.sampling.repeats=1"];

pub(super) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, CliError> {
    let given = &arguments.overrides;
    let target = arguments.target.target(given, context)?;
    let composer = Composer::new(context.config_dir.as_deref())?;
    let mut overrides: Vec<String> = UNUSED.into_iter().chain(ONCE).map(str::to_owned).collect();
    overrides.extend(given.iter().cloned());
    let config = composer.compose(&overrides)?;
    let request = CommandRequest {
        target,
        warmup_rounds: config.get("dataset.sampling.warmup_rounds")?,
        repeats: config.get("dataset.sampling.repeats")?,
        recording: arguments.recording.recording()?,
        config_dir: context.config_dir.clone(),
    };
    let run = RunRequest {
        root: config.get::<PathBuf>("run.output_root")?,
        out: arguments.out.clone(),
        ..RunRequest::new("profile", std::env::args().collect())
    };
    let stopped = stop_on_interrupt();
    let display = Display::new(context);
    let mut show = |progress: flow::profile::Progress<'_>| display.show(&progress);
    let stop = || stopped.load(Ordering::Relaxed);
    let profile = command::profile(&request, run, &config.to_yaml(), &mut show, &stop);
    display.clear();
    let profile = profile?;
    if arguments.json {
        context.messages.print_json(&profile.metrics)?;
    } else {
        context.messages.print(&command::terminal(&profile.metrics))?;
    }
    for missing in &profile.missing {
        context.messages.warning(missing);
    }
    context.messages.note(format!("report: {}", profile.folder.join("report.md").display()));
    Ok(if profile.missing.is_empty() { Exit::Done } else { Exit::Partial })
}
