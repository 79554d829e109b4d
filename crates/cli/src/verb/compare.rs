//! `llm-perf compare`: what changed between runs, and how certain that is.

use std::ffi::OsString;
use std::path::PathBuf;

use flow::compare::{self, CompareRequest, GateLimits};
use types::{Comparison, Exit, GateOutcome, UserError};

use crate::context::Context;

/// Compare two runs and show which differences are significant
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Baseline run: its name or a prefix of it, `latest`, its folder, or a metrics.json
    #[arg(value_name = "BASE", required_unless_present = "base", conflicts_with_all = ["base", "with"])]
    first: Option<OsString>,
    /// Run to compare with the baseline
    #[arg(value_name = "WITH", required_unless_present_any = ["with", "tried"])]
    second: Option<OsString>,
    /// Compare the baseline of BASE with a remedy that it tried (see `profile --try`), such as cuda-graph
    #[arg(long = "try", value_name = "REMEDY", requires = "first", conflicts_with = "second")]
    tried: Option<String>,
    /// Several baseline runs: repetitions of the same measurement
    #[arg(long, value_name = "RUN", num_args = 1.., requires = "with")]
    base: Vec<OsString>,
    /// Several runs to compare with the baseline: repetitions of the same measurement
    #[arg(long, value_name = "RUN", num_args = 1.., requires = "base")]
    with: Vec<OsString>,
    /// Exit with code 4 if anything is significantly slower by more than a limit: 5%, or limits by name such as
    /// decode=5%,memory=2%
    #[arg(long, value_name = "LIMITS", value_parser = limits, allow_hyphen_values = true)]
    fail_over: Option<GateLimits>,
    /// Number of operators, kernels and modules to show
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Print Markdown
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Also write the comparison to a file, as Markdown
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Folder that contains the runs
    #[arg(long, value_name = "DIR", default_value = flow::runs::DEFAULT_ROOT)]
    root: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, UserError> {
    let side = |one: &Option<OsString>, several: &[OsString]| match one {
        Some(run) => vec![run.clone()],
        None => several.to_vec(),
    };
    let (base, with) = (side(&arguments.first, &arguments.base), side(&arguments.second, &arguments.with));
    let request = CompareRequest {
        root: arguments.root.clone(),
        base,
        with,
        tried: arguments.tried.clone(),
        fail_over: arguments.fail_over.clone(),
    };
    let comparison = compare::compare(&request)?;
    if let Some(file) = &arguments.out {
        let page = compare::markdown(&comparison, arguments.top);
        compare::write_page(file, &page)?;
        context.messages.note(format_args!("written: {}", file.display()));
    }
    let text = if arguments.markdown { compare::markdown } else { compare::terminal };
    context.messages.print_answer(arguments.json, &comparison, || text(&comparison, arguments.top))?;
    Ok(exit(&comparison, context))
}

/// A gate that could not be judged says so also where only a machine reads the output.
fn exit(comparison: &Comparison, context: &Context) -> Exit {
    let Some(gate) = &comparison.gate else { return Exit::Done };
    match gate.outcome {
        GateOutcome::Passed => Exit::Done,
        GateOutcome::Failed => Exit::GateFailed,
        GateOutcome::Undecided => {
            context.messages.warning(format_args!(
                "the gate is undecided: {}",
                gate.reasons.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
            ));
            Exit::Partial
        }
    }
}

/// `5%`, `decode=5%,memory=2%`, or both.
fn limits(text: &str) -> Result<GateLimits, String> {
    let mut limits = GateLimits::default();
    for part in text.split(',') {
        match part.split_once('=') {
            Some((name, limit)) if !name.trim().is_empty() => {
                limits.named.insert(name.trim().to_owned(), percentage(limit)?);
            }
            Some(_) => return Err("expected NAME=LIMIT, such as decode=5%".to_owned()),
            None if limits.all.is_some() => return Err("expected only one limit without a name".to_owned()),
            None => limits.all = Some(percentage(part.trim())?),
        }
    }
    Ok(limits)
}

/// `5%` as 0.05. A bare number could be either, so it is refused.
fn percentage(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    match number {
        Some(number) if number.is_finite() && number >= 0.0 => Ok(number / 100.0),
        Some(_) => Err("expected a limit of 0% or more, such as 5%".to_owned()),
        None => Err("expected a percentage, such as 5%".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_for_everything_or_by_name() {
        let both = limits("5%,decode=2%").unwrap();
        assert_eq!((both.all, both.named["decode"]), (Some(0.05), 0.02));
        assert_eq!(limits("memory = 2%,decode=5%").unwrap().all, None);
        for nonsense in ["5%,6%", "=5%", "decode", "decode=", "decode=5", ""] {
            assert!(limits(nonsense).is_err(), "{nonsense}");
        }
    }

    #[test]
    fn a_limit_is_a_percentage() {
        assert_eq!(percentage("5%"), Ok(0.05));
        assert_eq!(percentage("2.5 %"), Ok(0.025));
        assert_eq!(percentage("0%"), Ok(0.0));
        for nonsense in ["5", "-5%", "%", "five%", "NaN%", "inf%", ""] {
            assert!(percentage(nonsense).is_err(), "{nonsense}");
        }
    }
}
