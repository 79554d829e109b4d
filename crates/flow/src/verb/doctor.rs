//! `doctor`: can we profile here, and what to do where we cannot.

use std::path::PathBuf;

use collect::calibrate::{self, CalibrationSettings, Store};
use collect::doctor::{Probe, diagnose};
use types::Diagnosis;

use crate::pipeline::hardware::DeviceError;
use crate::pipeline::machine::capture_with_facts;

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
pub fn examine(request: &Request, progress: &mut dyn FnMut(&str)) -> Result<Diagnosis, DeviceError> {
    if request.calibrate {
        let store = Store::of_this_user()?;
        store.prepare()?;
        let calibration = calibrate::measure(&CalibrationSettings::default(), progress)?;
        let path = store.write(&calibration)?;
        progress(&format!("kept in {}", path.display()));
    }
    let capture = capture_with_facts(request.config_dir.as_deref())?;
    Ok(diagnose(&Probe::gather(capture, &request.output_root)))
}
