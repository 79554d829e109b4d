//! `doctor`: can we profile here, and what to do where we cannot.

use std::path::PathBuf;

use collect::calibrate::{self, CalibrationSettings, Store};
use collect::doctor::{Probe, diagnose};
use types::{Calibration, DeviceCalibration, Diagnosis, LaunchCost, UserError};

use crate::pipeline::device::calibration::THREADS;
use crate::pipeline::device::machine::capture_with_facts;

/// What to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Folder runs go to.
    pub output_root: PathBuf,
    /// Measure this processor first, and keep the rates.
    pub calibrate: bool,
    /// `--config-dir`, for its device files.
    pub config_dir: Option<PathBuf>,
}

/// Looks; `progress` is told what is being measured.
pub fn examine(request: &Request, progress: &mut dyn FnMut(&str)) -> Result<Diagnosis, UserError> {
    if request.calibrate {
        let store = Store::of_this_user()?;
        store.prepare()?;
        let calibration = calibrate::measure(&CalibrationSettings::default(), progress)?;
        let path = store.write(&calibration)?;
        progress(&format!("stored in {}", path.display()));
        keep_points(&store, &calibration, progress)?;
    }
    let capture = capture_with_facts(request.config_dir.as_deref())?;
    Ok(diagnose(&Probe::gather(capture, &request.output_root)))
}

/// A call of an operator costs a processor no launch: its time is in the operation's own.
const NO_LAUNCH: LaunchCost = LaunchCost { eager_us: 0.0, graph_us: 0.0, synchronise_us: 0.0, plan_us: None };

/// Measures single operations too and keeps what is fitted to them, for forecasts.
fn keep_points(store: &Store, rates: &Calibration, progress: &mut dyn FnMut(&str)) -> Result<(), UserError> {
    let hardware = calibrate::hardware(rates);
    let table = calibrate::points(&CalibrationSettings::default(), progress)?;
    let fitted = forecast::read_points("measured points", &table, &hardware)
        .and_then(|points| forecast::fit(&points, &hardware));
    let groups = match fitted {
        Ok(groups) => groups,
        Err(error) => {
            progress(&format!("stored no points to forecast from: {error}"));
            return Ok(());
        }
    };
    let path = store.write_device(&DeviceCalibration {
        device: hardware.id.clone(),
        device_name: Some(rates.cpu_model.clone()),
        libraries: [(THREADS.to_owned(), rates.threads.to_string())].into(),
        measured_at: rates.measured_at.clone(),
        tool_version: rates.tool_version.clone(),
        launch: Some(NO_LAUNCH),
        groups,
        ..DeviceCalibration::default()
    })?;
    progress(&format!("stored in {}", path.display()));
    Ok(())
}
