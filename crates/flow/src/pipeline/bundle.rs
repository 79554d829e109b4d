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
}

/// Writes every page the run has something for.
pub(crate) fn write(folder: &mut RunFolder, bundle: &Bundle<'_>) -> Result<(), CollectError> {
    let Bundle { metrics, environment, assumptions, kernels } = bundle;
    let is_command = metrics.conditions.command.is_some();
    let has_trace = metrics.conditions.trace.is_some();
    let report = match is_command {
        true => report::profile::command_markdown(metrics, environment),
        false => report::profile::report_markdown(metrics, environment),
    };
    folder.write_file("report.md", report.as_bytes())?;
    if !is_command {
        folder.write_file("operators.md", report::profile::operators_markdown(metrics).as_bytes())?;
    }
    if has_trace {
        let page = match kernels {
            Some(kernels) => report::deep::kernels_markdown(metrics, kernels),
            None => report::profile::kernels_markdown(metrics),
        };
        folder.write_file("kernels.md", page.as_bytes())?;
    }
    if has_trace || !is_command {
        let summary = match kernels {
            Some(kernels) => report::deep::stakeholder_markdown(metrics, kernels, environment),
            None => report::profile::stakeholder_markdown(metrics, environment),
        };
        folder.write_file("stakeholder_summary.md", summary.as_bytes())?;
    }
    folder.write_file("assumptions.md", report::profile::assumptions_markdown(assumptions).as_bytes())
}
