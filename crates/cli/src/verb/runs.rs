//! `llm-perf runs`: what was run, how it ended, and the files of one run.

use std::fmt::Write as _;
use std::path::PathBuf;

use types::{Exit, FileProblemKind, RunDetail, RunList, RunListing, RunState, Verification};

use crate::context::Context;
use crate::error::CliError;
use flow::runs::RunPurpose;
use flow::{Table, printable};

/// Longest path of a file that is printed whole.
const PATH: usize = 255;

/// List earlier runs, or the files of one
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A run: its name, the start of it, `latest`, or the path of its folder
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// Folder that contains the runs
    #[arg(long, value_name = "DIR", default_value = flow::runs::DEFAULT_ROOT)]
    root: PathBuf,
    /// Check every file of the run against its manifest; exit with code 1 if one is missing or changed
    #[arg(long, requires = "run")]
    verify: bool,
    /// Delete the run
    #[arg(long, requires = "run", conflicts_with_all = ["verify", "json"])]
    delete: bool,
    /// Delete all but the newest N runs of the folder
    #[arg(long, value_name = "N", conflicts_with_all = ["run", "json"])]
    keep: Option<usize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  llm-perf runs                       every run, newest first
  llm-perf runs latest                the files of the newest run
  llm-perf runs 20251115 --verify     check the files of one run, named by the start of its name
  llm-perf runs latest:command        the newest run of a command; other kinds are the verbs
  llm-perf runs 20251115 --delete     delete one run
  llm-perf runs --keep 20             delete all but the newest 20
  llm-perf runs results/baseline      a run that was written with --out
  llm-perf runs --json | jq -r '.runs[] | select(.state == \"complete\") | .path'";

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, CliError> {
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
fn keep(arguments: &Arguments, context: &Context) -> Result<Exit, CliError> {
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

fn list(arguments: &Arguments, context: &Context) -> Result<Exit, CliError> {
    let found = flow::runs::list(&arguments.root)?;
    if found.runs.is_empty() {
        let absent = if arguments.root.exists() { "" } else { " (the folder does not exist)" };
        context.messages.note(format_args!("no runs in {}{absent}; `llm-perf profile` creates one", printable(&found.root)));
        context.messages.note("`--root DIR` lists another folder");
    }
    context.messages.print_answer(arguments.json, &found, || list_text(&found))?;
    Ok(Exit::Done)
}

fn show(arguments: &Arguments, selector: &str, context: &Context) -> Result<Exit, CliError> {
    let run = flow::runs::find(&arguments.root, selector, RunPurpose::Show)?;
    let mut detail = run.detail();
    if arguments.verify {
        let size = detail.run.bytes.map(|bytes| format!(", {bytes}")).unwrap_or_default();
        context.messages.note(format_args!("checking {}{size}", files(detail.files.len() as u64)));
        detail.verification = Some(run.verify()?);
    }
    context.messages.print_answer(arguments.json, &detail, || detail_text(&detail))?;
    Ok(if detail.verification.is_none_or(|verification| verification.is_clean()) { Exit::Done } else { Exit::Failed })
}

fn list_text(list: &RunList) -> String {
    if list.runs.is_empty() {
        return String::new();
    }
    let mut table = Table::new("RUN | STATUS | VERB | MODEL | DEVICE | STARTED | NOTE");
    for run in &list.runs {
        let text = |field: &Option<String>| field.clone().unwrap_or_else(|| "-".to_owned());
        let started = run.started_at.as_deref().map_or_else(|| "-".to_owned(), date);
        let reasons = run.reasons.join("; ");
        let (verb, model, device) = (text(&run.verb), text(&run.model), text(&run.device));
        table.row([run.id.as_str(), state(run.state), &verb, &model, &device, &started, &reasons]);
    }
    table.to_string()
}

fn detail_text(detail: &RunDetail) -> String {
    let mut text = facts(detail).to_string();
    if !detail.steps.is_empty() {
        let mut table = Table::new("STEP | ENDED");
        detail.steps.iter().for_each(|step| table.row([step.name.as_str(), &date(&step.ended_at)]));
        let _ = write!(text, "\n{table}");
    }
    if detail.files.is_empty() {
        text.push_str("\nno files\n");
    } else {
        let mut table = Table::new(">SIZE | FILE | DOCUMENT").widest(PATH);
        for file in &detail.files {
            table.row([&file.bytes.to_string(), &file.path, file.document.as_deref().unwrap_or_default()]);
        }
        let _ = write!(text, "\n{table}");
    }
    if let Some(verification) = &detail.verification {
        let _ = write!(text, "\n{}", verification_text(verification));
    }
    text
}

fn facts(detail: &RunDetail) -> Table {
    let RunListing {
        id,
        path,
        state: run_state,
        reasons,
        verb,
        model,
        device,
        started_at,
        ended_at,
        file_count,
        bytes,
    } = &detail.run;
    let mut table = Table::default();
    table.row(["run", id]);
    table.row(["status", state(*run_state)]);
    reasons.iter().for_each(|reason| table.row(["", reason]));
    let size = file_count.zip(*bytes).map(|(count, bytes)| format!("{}, {bytes}", files(count)));
    let command = detail.command.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ");
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

fn verification_text(verification: &Verification) -> String {
    let checked = files(verification.checked);
    let mut text = match verification.problems.len() {
        0 => format!("{checked} checked, all as listed\n"),
        count => format!("{checked} checked, {count} not as listed\n"),
    };
    let mut table = Table::default().widest(PATH);
    for problem in &verification.problems {
        let kind = match problem.kind {
            FileProblemKind::Missing => "missing",
            FileProblemKind::Changed => "changed",
            FileProblemKind::Unreadable => "unreadable",
            FileProblemKind::Refused => "refused",
        };
        table.row(["", kind, &problem.path, &problem.detail]);
    }
    for path in &verification.unlisted {
        table.row(["", "unlisted", path, ""]);
    }
    let _ = write!(text, "{table}");
    text
}

fn files(count: u64) -> String {
    if count == 1 { "1 file".to_owned() } else { format!("{count} files") }
}

fn state(state: RunState) -> &'static str {
    match state {
        RunState::Complete => "complete",
        RunState::Partial => "partial",
        RunState::Failed => "failed",
        RunState::Running => "running",
        RunState::Interrupted => "interrupted",
        RunState::Unreadable => "unreadable",
    }
}

/// `2025-11-15 03:47:12` of an RFC 3339 time, in the time zone it was written in; anything else as it is.
fn date(time: &str) -> String {
    match (time.get(..10), time.get(10..11), time.get(11..19)) {
        (Some(day), Some("T"), Some(clock)) => format!("{day} {clock}"),
        _ => time.to_owned(),
    }
}

/// A word as a shell would read it back.
fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-./=:@,+%~".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
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
        assert_eq!(shell_word("workload.batch=4"), "workload.batch=4");
        assert_eq!(shell_word("[1, 2]"), "'[1, 2]'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
        assert_eq!(shell_word(""), "''");
    }
}
