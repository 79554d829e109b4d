//! The files of a deep run besides what the tools leave.

use std::ffi::OsString;

use collect::run::RunFolder;
use report::pages::run::Setting;
use types::{Environment, Hardware, KernelReport, Metrics, PassRecord, UserError};

use super::plan;
use super::request::{DeepRequest, wrong_key};
use super::tools::Tools;
use crate::pipeline::folder::bundle::{self, Bundle};
use crate::pipeline::folder::documents::document;
use crate::pipeline::trace::Placed;
use crate::pipeline::{folder::assumptions, model::analytic, recorded::provenance};

/// What the run is about.
pub(super) struct About<'a> {
    pub(super) request: &'a DeepRequest,
    pub(super) hardware: Option<&'a Hardware>,
    pub(super) timelines: &'a [Placed],
}

/// What is known before anything runs.
pub(super) fn prepare(
    folder: &mut RunFolder,
    request: &DeepRequest,
    tools: &Tools,
    config_yaml: &str,
) -> Result<(), UserError> {
    folder.write_file("config.yaml", config_yaml.as_bytes())?;
    folder.write_json("env.json", &tools.environment)?;
    folder.write_json("plan.json", &plan::of(request, tools))?;
    match &request.inputs {
        Some(inputs) => inputs.write(folder)?,
        None => provenance::write(folder, &provenance::of_command(request.target.argv()))?,
    }
    folder.end_step("prepare")?;
    Ok(())
}

/// Passes that a run which goes on has made before.
pub(super) fn earlier_passes(folder: &RunFolder) -> Vec<PassRecord> {
    document::<KernelReport>(folder.path(), "kernels.json").map(|report| report.passes).unwrap_or_default()
}

/// Pages for people.
pub(super) fn write(
    folder: &mut RunFolder,
    metrics: &Metrics,
    kernels: &KernelReport,
    environment: &Environment,
    subject: &About<'_>,
) -> Result<(), UserError> {
    let About { request, hardware, timelines } = subject;
    let mut assumptions = assumptions::of_trace(metrics, *hardware);
    let control = |control: &Option<String>| control.clone().unwrap_or_else(|| "not used".to_owned());
    assumptions.profiling.extend([
        Setting::new("ncu clock control", control(&kernels.counters.clock_control)),
        Setting::new("ncu cache control", control(&kernels.counters.cache_control)),
        Setting::new("stages with profiled kernels", list(request.stages.iter())),
        Setting::new("kernels per stage", request.top_kernels),
    ]);
    assumptions.repeat_command = Some(repeated(&request.arguments));
    let operator_rows = request.operator_rows.map(|rows| rows as usize);
    let written = analytic::write_traced(folder, metrics, request.subject.model.as_ref(), *hardware);
    bundle::write(
        folder,
        &Bundle { metrics, environment, assumptions, kernels: Some(kernels), operator_rows, timelines },
    )?;
    written.map_err(|error| wrong_key("static_analysis", &error))
}

/// What was typed, without the folder of this run.
fn repeated(arguments: &[String]) -> String {
    let mut words: Vec<OsString> = vec!["llm-perf".into()];
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "--" => {
                words.push(word.into());
                words.extend(rest.by_ref().map(OsString::from));
            }
            "--out" => drop(rest.next()),
            word if word.starts_with("--out=") => {}
            word => words.push(word.into()),
        }
    }
    collect::command_line(&words)
}

fn list(items: impl Iterator<Item = impl ToString>) -> String {
    items.map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_given_back_without_its_folder() {
        let typed = ["deep", "--out", "run", "--out=b", "--model", "x y", "--", "prog", "--out", "kept"];
        let typed = typed.map(str::to_owned);
        assert_eq!(repeated(&typed), "llm-perf deep --model 'x y' -- prog --out kept");
    }
}
