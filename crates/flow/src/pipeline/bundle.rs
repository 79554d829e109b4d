//! The pages of a run, for people; `metrics.json` is beside them already.

use collect::run::RunFolder;
use report::profile::Assumptions;
use types::{Environment, KernelReport, Metrics};

use crate::CollectError;

/// What the pages are made of.
pub(crate) struct Bundle<'a> {
    pub(crate) metrics: &'a Metrics,
    pub(crate) environment: &'a Environment,
    pub(crate) assumptions: Assumptions,
    /// Kernels with their counters, where they were read.
    pub(crate) kernels: Option<&'a KernelReport>,
    /// Rows of each table of operators, where the user says how many.
    pub(crate) operator_rows: Option<usize>,
}

/// Writes every page the run has something for.
pub(crate) fn write(folder: &mut RunFolder, bundle: &Bundle<'_>) -> Result<(), CollectError> {
    let Bundle { metrics, environment, assumptions, kernels, operator_rows } = bundle;
    let view = analysis::view::run(metrics);
    let counters = kernels.map(analysis::view::counters);
    let is_command = metrics.conditions.command.is_some();
    let has_trace = metrics.conditions.trace.is_some();
    let report = match is_command {
        true => report::profile::command_markdown(&view, environment),
        false => report::profile::report_markdown(&view, environment),
    };
    folder.write_file("report.md", report.as_bytes())?;
    if !is_command {
        folder.write_file("operators.md", report::profile::operators_markdown(&view, *operator_rows).as_bytes())?;
    }
    if has_trace {
        let page = match &counters {
            Some(counters) => report::deep::kernels_markdown(&view, counters),
            None => report::profile::kernels_markdown(&view),
        };
        folder.write_file("kernels.md", page.as_bytes())?;
    }
    if has_trace || !is_command {
        let summary = match &counters {
            Some(counters) => report::deep::stakeholder_markdown(&view, counters, environment),
            None => report::profile::stakeholder_markdown(&view, environment),
        };
        folder.write_file("stakeholder_summary.md", summary.as_bytes())?;
    }
    folder.write_file("assumptions.md", report::profile::assumptions_markdown(assumptions).as_bytes())
}
