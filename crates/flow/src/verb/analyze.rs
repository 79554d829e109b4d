//! `analyze`: what a model costs on a workload and its roofline time on devices.

use std::path::{Path, PathBuf};

use collect::run::StoredRun;
use meter::WorkloadSettings;
use network::Class;
pub use report::pages::analytic::terminal as table;
use types::{Coverage, Document, Exit, Metrics, TargetOperatorList, UserError};

pub use crate::pipeline::device::hardware::DEFAULT_DEVICE;
pub use crate::pipeline::model::analytic::Analysis;

use crate::RunRequest;
use crate::pipeline::device::hardware;
use crate::pipeline::folder::run::run;
use crate::pipeline::model::LoadedModel;
use crate::pipeline::model::analytic::{launch, lay_out, write};

/// The page for a browser.
pub const HTML: &str = "report.html";

/// What to analyse.
#[derive(Debug)]
pub struct AnalyzeSettings {
    /// The workload.
    pub workload: WorkloadSettings,
    /// Devices by name, the one the report is for first.
    pub devices: Vec<String>,
    /// Folder with a user's own devices.
    pub config_dir: Option<PathBuf>,
    /// Cost of launching one operation, in microseconds, where known.
    pub launch_us: Option<f64>,
    /// A TorchInfo snapshot to compare the network with.
    pub torchinfo: Option<PathBuf>,
    /// A run that measured the same.
    pub measured: Option<StoredRun>,
    /// Version of llm-perf.
    pub tool_version: String,
}

/// Analyses; nothing is written.
pub fn analyze(model: &LoadedModel, settings: &AnalyzeSettings) -> Result<Analysis, UserError> {
    let launch = launch(settings.launch_us)?;
    let network = &model.network;
    let target = settings.torchinfo.as_deref().map(target_operators).transpose()?;
    let workload = settings.workload.resolve(network, model.dtype)?;
    let devices = hardware::named(settings.config_dir.as_deref(), &settings.devices)?;
    let mut analysis = lay_out(model.about(), network, &workload, &devices, launch, &settings.tool_version)?;
    analysis.report.coverage = target.map(|target| coverage(target, network));
    match &settings.measured {
        Some(run) => beside(analysis, run),
        None => Ok(analysis),
    }
}

/// The analysis beside a run, which must have measured that model on that workload.
fn beside(analysis: Analysis, run: &StoredRun) -> Result<Analysis, UserError> {
    let path = run.path().join("metrics.json");
    let text = collect::document::read(&path).map_err(UserError::unreadable(&path))?;
    let other = |reason: String| {
        UserError::usage(format!("cannot compare the prediction with {}: {reason}", path.display()))
            .hint("set --model, workload.seq_len, workload.decode_steps and workload.batch to those of the run")
    };
    let metrics = Metrics::from_json(&text).map_err(|error| other(error.to_string()))?;
    let (model, workload) = (&analysis.report.model.model_id, &analysis.report.workload);
    if metrics.run.model.as_ref() != Some(model) {
        let ran = metrics.run.model.as_deref().unwrap_or("an unnamed model");
        return Err(other(format!("it is a run of {ran}, but the prediction is for {model}")));
    }
    if analysis::measured_total(&metrics, workload).is_none() {
        let inputs = metrics.conditions.inputs.iter().map(|input| {
            let steps = input.generated_tokens.saturating_sub(1);
            format!("{} tokens, {steps} decode steps, batch {}", input.prompt_tokens, input.batch)
        });
        let ran = inputs.collect::<std::collections::BTreeSet<_>>().into_iter().collect::<Vec<_>>().join("; ");
        let (tokens, steps, batch) = (workload.seq_len, workload.decode_steps, workload.batch);
        return Err(other(format!(
            "the prediction is for {tokens} tokens, {steps} decode steps, batch {batch}; the run measured {}",
            if ran.is_empty() { "no known input" } else { &ran }
        )));
    }
    Ok(analysis.beside(&metrics))
}

/// Writes an analysis into a run folder of its own; where that is.
pub fn keep(analysis: &Analysis, config_yaml: &str, request: RunRequest) -> Result<PathBuf, UserError> {
    let report = &analysis.report;
    let request =
        RunRequest { model: Some(report.model.model_id.clone()), device: Some(report.device.id.clone()), ..request };
    let ended = run(request, |folder| {
        folder.write_file("config.yaml", config_yaml.as_bytes())?;
        write(folder, analysis)?;
        let html = report::html::analytic_page(report, Some(folder.manifest()));
        folder.write_file(HTML, html.as_bytes())?;
        folder.end_step("analyze")?;
        Ok(((), Vec::new()))
    })?;
    Ok(ended.folder)
}

/// Reads `torchinfo-unique-layers.json`, or the one in a folder.
fn target_operators(path: &Path) -> Result<TargetOperatorList, UserError> {
    let file = if path.is_dir() { path.join("torchinfo-unique-layers.json") } else { path.to_owned() };
    let text = collect::document::read_text(&file).map_err(UserError::unreadable(&file))?;
    let mut snapshot = ingest::torchinfo::read(&file.display().to_string(), &text)
        .map_err(|error| UserError::from(error).exiting(Exit::Usage))?;
    let folder = file.parent().unwrap_or(Path::new(""));
    let beside =
        |name: &str| Some(folder.join(name)).filter(|path| path.is_file()).map(|path| path.display().to_string());
    for operator in &mut snapshot.operators {
        operator.default_category_id = meter::Category::ALL
            .into_iter()
            .find(|category| category.match_classes().contains(&operator.class_name.as_str()))
            .map_or_else(String::new, |category| category.name().to_owned());
    }
    Ok(TargetOperatorList {
        snapshot_id: snapshot.snapshot_id,
        source_artifact_dir: folder.display().to_string(),
        layers_md_path: beside("torchinfo-unique-layers.md"),
        layers_json_path: file.display().to_string(),
        stages_json_path: beside("torchinfo-stages.json"),
        operators: snapshot.operators,
    })
}

/// Which classes of `target` the network is made of.
fn coverage(target: TargetOperatorList, network: &network::Model) -> Coverage {
    let modelled: Vec<&str> = network.blueprint().modules().map(|(_, entry)| entry.class).collect();
    let covers = |name: &str| {
        let canonical = Class::find(name).map_or(name, |class| class.name);
        modelled.contains(&canonical)
    };
    let uncovered: Vec<String> = target
        .operators
        .iter()
        .filter(|operator| !covers(&operator.class_name))
        .map(|operator| operator.class_name_qualified.clone())
        .collect();
    Coverage { covered: (target.operators.len() - uncovered.len()) as u64, uncovered, target }
}
