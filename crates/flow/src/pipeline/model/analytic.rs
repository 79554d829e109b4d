//! The analytic model of a workload on devices, and the files it becomes.

use collect::run::RunFolder;
use meter::{Roofline, Subject, layer_pages, matrix_dtypes, predict, summarise};
use report::words::Spoken;
use types::{AnalyticReport, Caveat, CaveatKind, Facts, Hardware, LayerPage, Metrics, Seconds, UserError, Workload};

use crate::pipeline::device::calibration::stored;
use crate::pipeline::model::{AboutModel, LoadedModel};

/// Where the report stands inside a run folder.
const FOLDER: &str = "static_analysis/analytic_model";

/// The page to read first, inside a run folder.
pub(crate) const SUMMARY: &str = "static_analysis/analytic_model/summary.md";
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

impl Analysis {
    /// The same beside the run that measured its workload.
    pub(crate) fn beside(self, metrics: &Metrics) -> Self {
        let (mut report, wrong) = analysis::beside_run(self.report, metrics);
        report.notes.extend(wrong.map(|remark| remark.spoken().text));
        Self { report, pages: self.pages }
    }
}

/// The launch cost as a time.
pub(crate) fn launch(microseconds: Option<f64>) -> Result<Option<Seconds>, UserError> {
    match microseconds {
        Some(microseconds) if !(0.0..=1e6).contains(&microseconds) => Err(UserError::usage(format!(
            "the launch cost must be a number of microseconds from 0 to 1,000,000, got {microseconds}"
        ))),
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
) -> Result<Analysis, UserError> {
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
    report.model.dtype = about.dtype;
    report.caveats = about.caveats.into_iter().chain(widened(&rooflines[0])).collect();
    report.say();
    forecast_beside(&mut report, &subject, &devices[0])?;
    Ok(Analysis { report, pages: layer_pages(&subject, &rooflines[0]) })
}

/// That a device computes in a wider type than weights are stored in.
fn widened(roofline: &Roofline<'_>) -> Option<Caveat> {
    let (stored, computed) = roofline.widened()?;
    let facts = Facts::new().with("device", &roofline.hardware().name);
    let facts = facts
        .with("stored", stored.iter().map(|dtype| dtype.name()).collect::<Vec<_>>().join(" or "))
        .with("computed", computed.to_string());
    Some(Caveat::new(CaveatKind::WidenedWeights, facts))
}

/// Puts the forecast beside the roofline, from the device's calibration where there is one that applies.
fn forecast_beside(report: &mut AnalyticReport, subject: &Subject<'_>, hardware: &Hardware) -> Result<(), UserError> {
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
) -> Result<(), UserError> {
    let workload = metrics.conditions.trace.as_ref().and_then(|facts| facts.workload.as_ref()?.workload.as_ref());
    write_known(folder, metrics, model.zip(workload).zip(hardware))
}

/// Writes the analytic model of a workload on a device beside what was measured, where all of them are known.
pub(crate) fn write_known(
    folder: &mut RunFolder,
    metrics: &Metrics,
    known: Option<((&LoadedModel, &Workload), &Hardware)>,
) -> Result<(), UserError> {
    let Some(((model, workload), hardware)) = known else { return Ok(()) };
    let devices = std::slice::from_ref(hardware);
    // The device may lack a rate the model needs; then there is no analytic model, and the reports say so.
    match lay_out(model.about(), &model.network, workload, devices, None, env!("CARGO_PKG_VERSION")) {
        Ok(analysis) => write(folder, &analysis.beside(metrics)),
        Err(_) => Ok(()),
    }
}

/// Writes the report and its pages; the step is for the caller to end.
pub(crate) fn write(folder: &mut RunFolder, analysis: &Analysis) -> Result<(), UserError> {
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
