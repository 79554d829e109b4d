//! The analytic model of a workload on devices, and the files it becomes.

use std::path::{Path, PathBuf};

use collect::run::RunFolder;
use meter::{
    MeterError, Roofline, RooflineError, Subject, WorkloadError, layer_pages, matrix_dtypes, predict, summarise,
};
use report::words::Spoken;
use types::{AnalyticReport, Exit, Failure, Hardware, LayerPage, Metrics, Seconds, Workload};

use crate::CollectError;
use crate::pipeline::device::calibration::stored;
use crate::pipeline::device::hardware::DeviceError;
use crate::pipeline::model::{AboutModel, LoadedModel};

/// The device a prediction is for when nobody names one.
pub const DEFAULT_DEVICE: &str = "h200";

/// Where the report stands inside a run folder.
const FOLDER: &str = "static_analysis/analytic_model";

/// The page to read first, inside a run folder.
pub const SUMMARY: &str = "static_analysis/analytic_model/summary.md";
/// The report itself.
pub(crate) const REPORT: &str = "static_analysis/analytic_model/report.json";
/// The same as YAML.
pub(crate) const REPORT_YAML: &str = "static_analysis/analytic_model/report.yaml";

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
    /// A forecast.
    #[error(transparent)]
    Forecast(#[from] forecast::ForecastError),
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
    /// A run that is not of what is predicted.
    #[error("cannot compare the prediction with {}: {reason}", path.display())]
    OtherRun {
        /// Its metrics.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The report could not be written as YAML.
    #[error(transparent)]
    Report(#[from] report::ReportError),
    /// The run folder.
    #[error(transparent)]
    Collect(#[from] CollectError),
}

impl Analysis {
    /// The same beside the run that measured its workload.
    pub(crate) fn beside(self, metrics: &Metrics) -> Self {
        let (mut report, wrong) = analysis::beside_run(self.report, metrics);
        report.notes.extend(wrong.map(|remark| remark.spoken().text));
        Self { report, pages: self.pages }
    }
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
            Self::OtherRun { .. } => Some(
                "set --model, workload.seq_len, workload.decode_steps and workload.batch to those of the run"
                    .to_owned(),
            ),
            _ => None,
        }
    }
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
        .map(|device| {
            Roofline::of(device, matrix_dtypes(&prediction), workload, launch)?.linked(workload.parallel.devices())
        })
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
    forecast_beside(&mut report, &subject, &devices[0])?;
    Ok(Analysis { report, pages: layer_pages(&subject, &rooflines[0]) })
}

/// Puts the forecast beside the roofline, from the device's calibration where there is one that applies.
fn forecast_beside(
    report: &mut AnalyticReport,
    subject: &Subject<'_>,
    hardware: &Hardware,
) -> Result<(), AnalyzeError> {
    let (calibration, note) = match stored(hardware) {
        Ok(calibration) => (calibration, None),
        // A calibration that cannot be used is told, and the prior stands in.
        Err(error) => (None, Some(error.to_string())),
    };
    let subject = forecast::Subject {
        model: subject.model,
        workload: subject.workload,
        prediction: subject.prediction,
        hardware,
        calibration: calibration.as_ref(),
        note: note.as_deref(),
    };
    Ok(forecast::forecast(report, &subject)?)
}

/// Writes the analytic model of a traced run beside what was measured, where model, workload and device are known.
pub(crate) fn write_traced(
    folder: &mut RunFolder,
    metrics: &Metrics,
    model: Option<&LoadedModel>,
    hardware: Option<&Hardware>,
) -> Result<(), AnalyzeError> {
    let workload = metrics.conditions.trace.as_ref().and_then(|facts| facts.workload.as_ref()?.workload.as_ref());
    let (Some(model), Some(workload), Some(hardware)) = (model, workload, hardware) else { return Ok(()) };
    let devices = std::slice::from_ref(hardware);
    let version = env!("CARGO_PKG_VERSION");
    // The device may lack a rate the model needs; then there is no analytic model, and the reports say so.
    match lay_out(model.about(), &model.network, workload, devices, None, version) {
        Ok(analysis) => write(folder, &analysis.beside(metrics)),
        Err(_) => Ok(()),
    }
}

/// The report of a run folder; a run has one where its model is known.
pub(crate) fn read(folder: &Path) -> Option<AnalyticReport> {
    serde_json::from_slice(&std::fs::read(folder.join(REPORT)).ok()?).ok()
}

/// Writes the report and its pages; the step is for the caller to end.
pub(crate) fn write(folder: &mut RunFolder, analysis: &Analysis) -> Result<(), AnalyzeError> {
    let Analysis { report, pages } = analysis;
    folder.write_json(REPORT, report)?;
    folder.write_file(REPORT_YAML, report::yaml(report)?.as_bytes())?;
    folder.write_file(SUMMARY, report::pages::analytic::summary_page(report).markdown().as_bytes())?;
    for page in pages {
        let name = report::pages::analytic::file_name(&page.class);
        let text = report::pages::analytic::layer_page(page).markdown();
        folder.write_file(&format!("{FOLDER}/{}/{name}", report.layer_docs_dir), text.as_bytes())?;
    }
    Ok(())
}
