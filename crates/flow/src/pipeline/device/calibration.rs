//! The calibration of a device: found, judged and kept.

use std::path::{Path, PathBuf};

use collect::calibrate::Store;
use collect::document;
use collect::environment::{InstalledDriver, installed_driver};
use forecast::ForecastError;
use ingest::compressed::Compression;
use types::{DeviceCalibration, Exit, Failure, Hardware};

use crate::CollectError;
use crate::pipeline::device::hardware::{DeviceError, PROCESSOR};

/// Why there is no calibration, or no prediction.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CalibrationError {
    /// A device.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Points or shapes.
    #[error(transparent)]
    Points(#[from] ForecastError),
    /// The machine.
    #[error(transparent)]
    Collect(#[from] CollectError),
    /// A table cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Unreadable {
        /// The table.
        path: PathBuf,
        /// What the system said.
        reason: std::io::Error,
    },
    /// A device that was not calibrated.
    #[error("{device} is not calibrated")]
    NotCalibrated {
        /// Its catalogue name.
        device: String,
    },
    /// A calibration that does not apply here.
    #[error("the calibration of {device} does not apply here: {reason}")]
    DoesNotApply {
        /// Its catalogue name.
        device: String,
        /// Why.
        reason: String,
    },
    /// Measuring did not end well.
    #[error("cannot calibrate {device}: {reason}")]
    Failed {
        /// As given.
        device: String,
        /// What it said.
        reason: String,
        /// Its last words.
        output: Vec<String>,
    },
    /// A run that points cannot be taken from.
    #[error("cannot calibrate from run {run}: {reason}")]
    UnfitRun {
        /// Its id.
        run: String,
        /// Why.
        reason: String,
        /// What to do about it.
        fix: String,
    },
    /// Too little was measured.
    #[error("only {points} points of {device} were measured, too few for a GEMM curve; nothing was stored")]
    NoGemm {
        /// Its catalogue name.
        device: String,
        /// All of them.
        points: usize,
    },
    /// The device became faster or slower meanwhile.
    #[error(
        "the times of reference operations on {device} changed by {:+.1}% during the measurement; nothing was stored",
        .drift * 100.0
    )]
    RatesMoved {
        /// As given.
        device: String,
        /// Share by which the same operations took longer at the end, as a median.
        drift: f64,
    },
}

impl Failure for CalibrationError {
    fn exit(&self) -> Exit {
        match self {
            Self::Device(error) => error.exit(),
            Self::Points(error) => error.exit(),
            Self::Collect(error) => error.exit(),
            Self::Unreadable { .. } | Self::NotCalibrated { .. } => Exit::Usage,
            Self::DoesNotApply { .. }
            | Self::UnfitRun { .. }
            | Self::Failed { .. }
            | Self::NoGemm { .. }
            | Self::RatesMoved { .. } => Exit::Failed,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Device(error) => error.hint(),
            Self::Points(error) => error.hint(),
            Self::Collect(error) => error.hint(),
            Self::NotCalibrated { device } => Some(format!(
                "on a machine with this device, run `llm-perf doctor --calibrate --device cuda:0`; with measured \
                 points, run `llm-perf doctor --calibrate --device {device} --points FILE`"
            )),
            Self::DoesNotApply { .. } => {
                Some("calibrate again: `llm-perf doctor --calibrate --device cuda:0`".to_owned())
            }
            Self::UnfitRun { fix, .. } => Some(fix.clone()),
            Self::NoGemm { .. } => Some("stop other jobs and try again without `--quick`".to_owned()),
            Self::RatesMoved { .. } => Some(
                "stop other jobs and let the device cool down, or lock its clocks with `nvidia-smi -lgc`".to_owned(),
            ),
            Self::Unreadable { .. } | Self::Failed { .. } => None,
        }
    }

    fn quoted(&self) -> &[String] {
        match self {
            Self::Failed { output, .. } => output,
            _ => &[],
        }
    }
}

/// The stored calibration of `hardware`; `None` where there is none, an error where it must not be used here.
pub(crate) fn stored(hardware: &Hardware) -> Result<Option<DeviceCalibration>, CalibrationError> {
    let Some(calibration) = Store::of_this_user()?.read_device(&hardware.id)? else { return Ok(None) };
    let driver = installed_driver();
    match other_driver(&calibration, hardware, driver.as_ref()).or_else(|| other_processor(&calibration, hardware)) {
        Some(reason) => Err(CalibrationError::DoesNotApply { device: hardware.id.clone(), reason }),
        None => Ok(Some(calibration)),
    }
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

/// The text of a table, compressed or not.
pub(crate) fn read_text(path: &Path) -> Result<String, CalibrationError> {
    let unreadable = |reason| CalibrationError::Unreadable { path: path.to_owned(), reason };
    let bytes = document::read(path).map_err(unreadable)?;
    let bytes = match Compression::of(&bytes) {
        Some(compression) => {
            document::read_from(compression.decoder(&bytes[..]), document::MOST).map_err(unreadable)?
        }
        None => bytes,
    };
    String::from_utf8(bytes).map_err(|error| unreadable(std::io::Error::other(error)))
}

#[cfg(test)]
mod tests {
    use types::SchemaTag;

    use super::*;
    use crate::pipeline::device::hardware::find;

    #[test]
    fn a_calibration_of_another_driver_is_refused_where_the_device_is() {
        let h200 = find(None, "h200").unwrap();
        let calibration = DeviceCalibration {
            schema: SchemaTag::new(),
            device: "h200".into(),
            device_name: None,
            driver: Some("550.54.15".into()),
            clocks_mhz: None,
            libraries: Default::default(),
            measured_at: String::new(),
            tool_version: String::new(),
            files: vec![],
            runs: vec![],
            launch: None,
            sustained: None,
            groups: vec![],
        };
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
