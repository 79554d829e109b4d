//! `llm-perf runs`: what was run, how it ended, and the files of one run.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::path::PathBuf;

use types::{Exit, RunDetail, RunList, RunListing, UserError, Verification};

use crate::context::Context;
use crate::screen::{ScreenTable, terminal_width};
use flow::printable;
use flow::runs::RunPurpose;

/// Longest path of a file that is printed whole.
const PATH: usize = 255;

/// List the runs, or show, verify or delete one
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Run: its name or a prefix of it, `latest`, or its folder [default: list all]
    #[arg(value_name = "RUN")]
    run: Option<OsString>,
    /// Folder that contains the runs
    #[arg(long, value_name = "DIR", default_value = flow::runs::DEFAULT_ROOT)]
    root: PathBuf,
    /// Check the files of the run against its manifest; exit with code 1 if one is missing or changed
    #[arg(long, requires = "run")]
    verify: bool,
    /// Delete the run
    #[arg(long, requires = "run", conflicts_with_all = ["verify", "json"])]
    delete: bool,
    /// Delete all but the newest N runs in the folder
    #[arg(long, value_name = "N", conflicts_with_all = ["run", "json"])]
    keep: Option<usize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, UserError> {
    match &arguments.run {
        Some(selector) if arguments.delete => {
            let run = flow::runs::find(&arguments.root, selector, RunPurpose::Show)?;
            flow::runs::delete(&run)?;
            context.messages.note(format_args!("deleted: {}", run.path().display()));
            Ok(Exit::Done)
        }
        None if arguments.keep.is_some() => keep(arguments, context),
        None => list(arguments, context),
        Some(selector) => show(arguments, selector, context),
    }
}

/// Deletes what is beyond the newest; a run that cannot be deleted is said, and the others go.
fn keep(arguments: &Arguments, context: &Context) -> Result<Exit, UserError> {
    let mut exit = Exit::Done;
    for run in flow::runs::beyond(&arguments.root, arguments.keep.unwrap_or_default())? {
        match flow::runs::delete(&run) {
            Ok(()) => context.messages.note(format_args!("deleted: {}", run.path().display())),
            Err(error) => {
                context.messages.warning(error);
                exit = Exit::Partial;
            }
        }
    }
    Ok(exit)
}

fn list(arguments: &Arguments, context: &Context) -> Result<Exit, UserError> {
    let found = flow::runs::list(&arguments.root)?;
    if found.runs.is_empty() {
        let absent = if arguments.root.exists() { "" } else { " (the folder does not exist)" };
        context
            .messages
            .note(format_args!("no runs in {}{absent}; `llm-perf profile` creates one", printable(&found.root)));
        context.messages.note("use `--root DIR` to list another folder");
    }
    context.messages.print_answer(arguments.json, &found, || list_text(&found, terminal_width()))
}

fn show(arguments: &Arguments, selector: &OsStr, context: &Context) -> Result<Exit, UserError> {
    let run = flow::runs::find(&arguments.root, selector, RunPurpose::Show)?;
    let mut detail = run.detail();
    if arguments.verify {
        let size = detail.run.bytes.map(|bytes| format!(", {bytes}")).unwrap_or_default();
        context.messages.note(format_args!("checking {}{size}", files(detail.files.len() as u64)));
        detail.verification = Some(flow::runs::verify(&run)?);
    }
    context.messages.print_answer(arguments.json, &detail, || detail_text(&detail, terminal_width()))?;
    Ok(if detail.verification.is_none_or(|verification| verification.is_clean()) { Exit::Done } else { Exit::Failed })
}

fn list_text(list: &RunList, width: Option<usize>) -> String {
    if list.runs.is_empty() {
        return String::new();
    }
    let mut table = ScreenTable::new("RUN | STATUS | VERB | MODEL | DEVICE | STARTED | NOTE");
    for run in &list.runs {
        let text = |field: &Option<String>| field.clone().unwrap_or_else(|| "-".to_owned());
        let started = run.started_at.as_deref().map_or_else(|| "-".to_owned(), date);
        let reasons = run.reasons.join("; ");
        let (verb, model, device) = (text(&run.verb), text(&run.model), text(&run.device));
        table.row([run.id.as_str(), run.state.name(), &verb, &model, &device, &started, &reasons]);
    }
    table.text(width)
}

fn detail_text(detail: &RunDetail, width: Option<usize>) -> String {
    let mut text = facts(detail).text(width);
    if !detail.steps.is_empty() {
        let mut table = ScreenTable::new("STEP | ENDED");
        detail.steps.iter().for_each(|step| table.row([step.name.as_str(), &date(&step.ended_at)]));
        let _ = write!(text, "\n{}", table.text(width));
    }
    if detail.files.is_empty() {
        text.push_str("\nno files\n");
    } else {
        let mut table = ScreenTable::new(">SIZE | FILE | DOCUMENT").widest(PATH);
        for file in &detail.files {
            table.row([&file.bytes.to_string(), &file.path, file.document.as_deref().unwrap_or_default()]);
        }
        let _ = write!(text, "\n{}", table.text(width));
    }
    if let Some(verification) = &detail.verification {
        let _ = write!(text, "\n{}", verification_text(verification, width));
    }
    text
}

fn facts(detail: &RunDetail) -> ScreenTable {
    let RunListing { id, path, state, reasons, verb, model, device, started_at, ended_at, file_count, bytes } =
        &detail.run;
    let mut table = ScreenTable::default();
    table.row(["run", id]);
    table.row(["status", state.name()]);
    reasons.iter().for_each(|reason| table.row(["", reason]));
    let size = file_count.zip(*bytes).map(|(count, bytes)| format!("{}, {bytes}", files(count)));
    let command = flow::command_line(&detail.command);
    let rows = [
        ("verb", verb.clone()),
        ("model", model.clone()),
        ("device", device.clone()),
        ("started", started_at.clone()),
        ("ended", ended_at.clone()),
        ("command", Some(command)),
        ("version", Some(detail.tool_version.clone())),
        ("folder", Some(path.clone())),
        ("size", size),
    ];
    for (name, value) in rows {
        table.row([name, value.as_deref().unwrap_or("-")]);
    }
    table
}

fn verification_text(verification: &Verification, width: Option<usize>) -> String {
    let checked = files(verification.checked);
    let mut text = match verification.problems.len() {
        0 => format!("{checked} checked, all match the manifest\n"),
        1 => format!("{checked} checked, 1 does not match the manifest\n"),
        count => format!("{checked} checked, {count} do not match the manifest\n"),
    };
    let mut table = ScreenTable::default().widest(PATH);
    for problem in &verification.problems {
        table.row(["", problem.kind.name(), &problem.path, &problem.detail]);
    }
    for path in &verification.unlisted {
        table.row(["", "unlisted", path, ""]);
    }
    text.push_str(&table.text(width));
    text
}

fn files(count: u64) -> String {
    if count == 1 { "1 file".to_owned() } else { format!("{count} files") }
}

/// `2025-11-15 03:47:12` of an RFC 3339 time, in the time zone it was written in; anything else as it is.
fn date(time: &str) -> String {
    match (time.get(..10), time.get(10..11), time.get(11..19)) {
        (Some(day), Some("T"), Some(clock)) => format!("{day} {clock}"),
        _ => time.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_shortened_only_when_it_is_one() {
        assert_eq!(date("2025-11-15T03:47:12.123+01:00"), "2025-11-15 03:47:12");
        assert_eq!(date("yesterday"), "yesterday");
        assert_eq!(date("ääääääääääääääääääää"), "ääääääääääääääääääää");
    }

    #[test]
    fn words_are_quoted_as_a_shell_needs_them() {
        let shown = flow::command_line(["workload.batch=4", "[1, 2]", "it's", ""]);
        assert_eq!(shown, r"workload.batch=4 '[1, 2]' 'it'\''s' ''");
    }
}
