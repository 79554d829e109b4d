//! `llm-perf validate`: whether files are what their `schema` field says.

use std::fmt::Write as _;
use std::path::PathBuf;

use types::{Exit, FileValidation, UserError, ValidationReport, ValidationVerdict};

use crate::context::Context;
use flow::printable;

/// Check JSON and YAML documents against their schemas
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Files to check; `-` reads stdin
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, UserError> {
    let report = flow::validate::validate_files(&arguments.files);
    context.messages.print_answer(arguments.json, &report, || report.files.iter().map(file_text).collect())?;
    Ok(exit(&report))
}

fn exit(report: &ValidationReport) -> Exit {
    let any = |verdict| report.files.iter().any(|file| file.verdict == verdict);
    if any(ValidationVerdict::Undecided) {
        Exit::Usage
    } else if any(ValidationVerdict::Invalid) {
        Exit::Failed
    } else {
        Exit::Done
    }
}

fn file_text(file: &FileValidation) -> String {
    let document = file.document.as_deref().unwrap_or_default();
    let outcome = match (&file.error, file.violations.len()) {
        (Some(error), _) => printable(error).into_owned(),
        (None, 0) => format!("valid {document}"),
        (None, 1) => format!("1 violation of {document}"),
        (None, count) => format!("{count} violations of {document}"),
    };
    let mut text = format!("{}: {outcome}\n", printable(&file.file));
    for violation in &file.violations {
        let place = if violation.pointer.is_empty() { "(document)" } else { &violation.pointer };
        let _ = writeln!(text, "  {}: {}", printable(place), printable(&violation.message));
    }
    if let Some(hint) = &file.hint {
        let _ = writeln!(text, "  hint: {hint}");
    }
    text
}
