//! `analyze`: what a model costs on a workload and the least time devices need for it.

use std::path::{Path, PathBuf};

use collect::run::{Outcome, RunFolder, RunRequest};
use meter::{
    MeterError, Roofline, RooflineError, Subject, WorkloadError, WorkloadSettings, layer_pages, matrix_dtypes, predict,
    summarise,
};
use network::Class;
use types::{
    AnalyticReport, Coverage, Exit, Failure, Hardware, LayerPage, RunManifest, Seconds, TargetOperatorList, Workload,
};

use crate::CollectError;
use crate::hardware::{self, DeviceError};
use crate::model::{AboutModel, LoadedModel};

/// The device a prediction is for when nobody names one.
pub const DEFAULT_DEVICE: &str = "h200";

/// Where the report stands inside a run folder.
const FOLDER: &str = "static_analysis/analytic_model";

/// The page to read first, inside a run folder.
pub const SUMMARY: &str = "static_analysis/analytic_model/summary.md";

/// What to analyse.
#[derive(Clone, Debug)]
pub struct AnalyzeSettings {
    /// The workload.
    pub workload: WorkloadSettings,
    /// Devices by name, the one the report is for first.
    pub devices: Vec<String>,
    /// Folder with a user's own devices.
    pub config_dir: Option<PathBuf>,
    /// Cost of launching one operation, in microseconds, where known.
    pub launch_us: Option<f64>,
    /// A TorchInfo snapshot to hold the network against.
    pub torchinfo: Option<PathBuf>,
    /// Version of llm-perf.
    pub tool_version: String,
}

/// The outcome.
#[derive(Clone, Debug)]
pub struct Analysis {
    /// The report.
    pub report: AnalyticReport,
    /// The page of every module class.
    pub pages: Vec<LayerPage>,
}

/// Why there is no analysis.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnalyzeError {
    /// The workload.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// Metering.
    #[error(transparent)]
    Meter(#[from] MeterError),
    /// A device.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A device without the rate that is needed.
    #[error(transparent)]
    Rate(#[from] RooflineError),
    /// The launch cost is no time.
    #[error("the launch cost must be a number of microseconds from 0 to 1,000,000, got {0}")]
    Launch(f64),
    /// A TorchInfo snapshot.
    #[error(transparent)]
    TorchInfo(#[from] ingest::IngestError),
    /// A file cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: std::io::Error,
    },
    /// The report could not be written as YAML.
    #[error(transparent)]
    Report(#[from] report::ReportError),
    /// The run folder.
    #[error(transparent)]
    Collect(#[from] CollectError),
}

impl Failure for AnalyzeError {
    fn exit(&self) -> Exit {
        match self {
            Self::Device(error) => error.exit(),
            Self::Collect(error) => error.exit(),
            Self::Report(_) => Exit::Failed,
            _ => Exit::Usage,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Device(error) => error.hint(),
            Self::Collect(error) => error.hint(),
            Self::TorchInfo(error) => error.hint(),
            Self::Rate(error) => error.hint(),
            _ => None,
        }
    }
}

/// Analyses; nothing is written.
pub fn analyze(model: &LoadedModel, settings: &AnalyzeSettings) -> Result<Analysis, AnalyzeError> {
    let launch = launch(settings.launch_us)?;
    let network = &model.network;
    let target = settings.torchinfo.as_deref().map(target_operators).transpose()?;
    let workload = settings.workload.resolve(network, model.dtype)?;
    let devices = devices(settings)?;
    let mut analysis = lay_out(model.about(), network, &workload, &devices, launch, &settings.tool_version)?;
    analysis.report.coverage = target.map(|target| coverage(target, network));
    Ok(analysis)
}

/// The launch cost as a time.
pub(crate) fn launch(microseconds: Option<f64>) -> Result<Option<Seconds>, AnalyzeError> {
    match microseconds {
        Some(microseconds) if !(0.0..=1e6).contains(&microseconds) => Err(AnalyzeError::Launch(microseconds)),
        launch => Ok(launch.map(|microseconds| Seconds::new(microseconds / 1e6))),
    }
}

/// Meters `workload` and lays it out for `devices`, of which there is at least one.
pub(crate) fn lay_out(
    about: AboutModel<'_>,
    network: &network::Model,
    workload: &Workload,
    devices: &[Hardware],
    launch: Option<Seconds>,
    tool_version: &str,
) -> Result<Analysis, AnalyzeError> {
    let prediction = predict(network, workload)?;
    let rooflines = devices
        .iter()
        .map(|device| Roofline::new(device, matrix_dtypes(&prediction), launch)?.linked(workload.parallel.devices()))
        .collect::<Result<Vec<_>, _>>()?;
    let subject = Subject {
        model_id: about.id,
        config_path: about.config_path,
        config: about.config,
        model: network,
        workload,
        prediction: &prediction,
        tool_version,
    };
    let mut report = summarise(&subject, &rooflines[0], &rooflines);
    report.model.hf_revision = about.revision.map(str::to_owned);
    report.model.notes = about.notes.to_owned();
    Ok(Analysis { report, pages: layer_pages(&subject, &rooflines[0]) })
}

/// The report in a few lines, for a terminal.
pub fn table(report: &AnalyticReport) -> String {
    report::analytic::terminal(report)
}

/// Writes an analysis into a run folder of its own.
pub fn keep(
    analysis: &Analysis,
    config_yaml: &str,
    request: RunRequest,
) -> Result<(PathBuf, RunManifest), AnalyzeError> {
    let report = &analysis.report;
    let request =
        RunRequest { model: Some(report.model.model_id.clone()), device: Some(report.device.id.clone()), ..request };
    let mut folder = RunFolder::create(request)?;
    let path = folder.path().to_owned();
    let written = folder
        .write_file("config.yaml", config_yaml.as_bytes())
        .map_err(AnalyzeError::from)
        .and_then(|()| write(&mut folder, analysis))
        .and_then(|()| Ok(folder.end_step("analyze")?));
    match written {
        Ok(()) => Ok((path, folder.finish(Outcome::Complete)?)),
        Err(error) => {
            // What the folder says matters less than why it could not be filled.
            let _ = folder.fail(error.to_string());
            Err(error)
        }
    }
}

/// Writes the report and its pages; the step is for the caller to end.
pub(crate) fn write(folder: &mut RunFolder, analysis: &Analysis) -> Result<(), AnalyzeError> {
    let Analysis { report, pages } = analysis;
    folder.write_json(&format!("{FOLDER}/report.json"), report)?;
    folder.write_file(&format!("{FOLDER}/report.yaml"), report::analytic::yaml(report)?.as_bytes())?;
    folder.write_file(SUMMARY, report::analytic::summary_markdown(report).as_bytes())?;
    for page in pages {
        let name = report::analytic::file_name(&page.class);
        let text = report::analytic::layer_markdown(page);
        folder.write_file(&format!("{FOLDER}/{}/{name}", report.layer_docs_dir), text.as_bytes())?;
    }
    Ok(())
}

fn devices(settings: &AnalyzeSettings) -> Result<Vec<Hardware>, DeviceError> {
    let default = [DEFAULT_DEVICE.to_owned()];
    let names = if settings.devices.is_empty() { &default[..] } else { &settings.devices };
    names.iter().map(|name| hardware::find(settings.config_dir.as_deref(), name)).collect()
}

/// Reads `torchinfo-unique-layers.json`, or the one in a folder.
fn target_operators(path: &Path) -> Result<TargetOperatorList, AnalyzeError> {
    let file = if path.is_dir() { path.join("torchinfo-unique-layers.json") } else { path.to_owned() };
    let text =
        std::fs::read_to_string(&file).map_err(|reason| AnalyzeError::Unreadable { path: file.clone(), reason })?;
    let mut snapshot = ingest::torchinfo::read(&file.display().to_string(), &text)?;
    let folder = file.parent().unwrap_or(Path::new(""));
    let beside =
        |name: &str| Some(folder.join(name)).filter(|path| path.is_file()).map(|path| path.display().to_string());
    for operator in &mut snapshot.operators {
        operator.default_category_id = meter::Category::ALL
            .into_iter()
            .find(|category| category.match_classes().contains(&operator.class_name.as_str()))
            .map_or_else(String::new, |category| category.id().to_owned());
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
