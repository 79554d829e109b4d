//! The calibration of a device: found, judged and kept.

use std::path::Path;

use collect::calibrate::Store;
use collect::document;
use collect::environment::{InstalledDriver, installed_driver};
use ingest::compressed::Compression;
use types::{DeviceCalibration, Document, Hardware, UserError};

use crate::pipeline::device::hardware::PROCESSOR;

/// The stored calibration of `hardware`; `None` where there is none, an error where it must not be used here.
pub(crate) fn stored(hardware: &Hardware) -> Result<Option<DeviceCalibration>, UserError> {
    let Some(calibration) = Store::of_this_user()?.read_device(&hardware.id)? else { return Ok(None) };
    let driver = installed_driver();
    match other_driver(&calibration, hardware, driver.as_ref()).or_else(|| other_processor(&calibration, hardware)) {
        Some(reason) => {
            Err(UserError::failed(format!("the calibration of {} does not apply here: {reason}", hardware.id))
                .hint("calibrate again: `llm-perf doctor --calibrate --device cuda:0`"))
        }
        None => Ok(Some(calibration)),
    }
}

/// A device, and what forecasts on it rest on.
#[derive(Debug)]
pub(crate) struct CalibratedDevice {
    pub(crate) hardware: Hardware,
    pub(crate) calibration: Option<DeviceCalibration>,
    pub(crate) basis: String,
}

impl CalibratedDevice {
    /// With the stored calibration; one that cannot be used is told, and the prior stands in.
    pub(crate) fn stored(hardware: Hardware) -> Self {
        match stored(&hardware) {
            Ok(calibration) => Self::with(hardware, calibration),
            Err(error) => {
                let device = Self::with(hardware, None);
                Self { basis: format!("{}; {error}", device.basis), ..device }
            }
        }
    }

    /// With a calibration, or none.
    pub(crate) fn with(hardware: Hardware, calibration: Option<DeviceCalibration>) -> Self {
        Self { basis: forecast::basis(calibration.as_ref()), hardware, calibration }
    }
}

/// The calibration in a file, which must be of `hardware`.
pub(crate) fn of_file(path: &Path, hardware: &Hardware) -> Result<DeviceCalibration, UserError> {
    let unusable = |reason: String| {
        UserError::usage(format!("--calibration {} cannot be used: {reason}", path.display()))
            .hint("name a file that `llm-perf doctor --calibrate` wrote for the device of --hardware")
    };
    let text = read_text(path)?;
    let calibration = DeviceCalibration::from_json(text.as_bytes()).map_err(|error| unusable(error.to_string()))?;
    if calibration.device != hardware.id {
        return Err(unusable(format!("it is of {}, and the device is {}", calibration.device, hardware.id)));
    }
    Ok(calibration)
}

/// The key under which the calibration of a processor says how many threads it is of.
pub(crate) const THREADS: &str = "threads";

/// Whether a calibration of `cpu` is of this processor with as many threads.
fn other_processor(calibration: &DeviceCalibration, hardware: &Hardware) -> Option<String> {
    let here = (Some(&hardware.name), hardware.sm_count.to_string());
    let made = (calibration.device_name.as_ref(), calibration.libraries.get(THREADS).cloned().unwrap_or_default());
    let other = hardware.id == PROCESSOR && made != here;
    other.then(|| "it was measured on another CPU or with another number of threads".to_owned())
}

/// Why a calibration is not one of this machine's driver. On a machine without the device it holds for wherever it was made.
fn other_driver(
    calibration: &DeviceCalibration,
    hardware: &Hardware,
    here: Option<&InstalledDriver>,
) -> Option<String> {
    let (made, here) = (calibration.driver.as_ref()?, here?);
    let is_here = here.devices.iter().any(|name| hardware.nvml_names.contains(name));
    let other = is_here && *made != here.version;
    other.then(|| format!("it was measured with driver {made}, but this machine has {}", here.version))
}

/// A run that nothing can be calibrated from, and what to do about it.
pub(crate) fn unfit_run(run: &str, reason: &str, fix: &str) -> UserError {
    UserError::failed(format!("cannot calibrate from run {run}: {reason}")).hint(fix)
}

/// The text of a table, compressed or not.
pub(crate) fn read_text(path: &Path) -> Result<String, UserError> {
    let unreadable = UserError::unreadable(path);
    let bytes = document::read(path).map_err(&unreadable)?;
    let bytes = match Compression::of(&bytes) {
        Some(compression) => {
            document::read_from(compression.decoder(&bytes[..]), document::MOST).map_err(&unreadable)?
        }
        None => bytes,
    };
    String::from_utf8(bytes).map_err(|error| unreadable(std::io::Error::other(error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::device::hardware::find;

    #[test]
    fn a_calibration_of_another_driver_is_refused_where_the_device_is() {
        let h200 = find(None, "h200").unwrap();
        let driver = Some("550.54.15".into());
        let calibration = DeviceCalibration { device: "h200".into(), driver, ..DeviceCalibration::default() };
        let here =
            |version: &str, device: &str| InstalledDriver { version: version.into(), devices: vec![device.into()] };
        let judge = |driver: Option<&InstalledDriver>| other_driver(&calibration, &h200, driver);
        let name = h200.nvml_names[0].as_str();
        assert!(judge(Some(&here("570.86.15", name))).unwrap().contains("550.54.15"));
        assert_eq!(judge(Some(&here("550.54.15", name))), None);
        assert_eq!(judge(Some(&here("570.86.15", "NVIDIA T4"))), None, "the device is elsewhere");
        assert_eq!(judge(None), None);
    }
}
