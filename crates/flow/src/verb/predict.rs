//! `hardware NAME --predict`: the time of every shape of a table, from the calibration of a device.

use std::fmt::Write as _;
use std::path::Path;

use forecast::{Estimator, read_shapes};

pub use crate::pipeline::device::calibration::CalibrationError;

use crate::pipeline::device::calibration::{read_text, stored};
use crate::pipeline::device::hardware;

/// The table in `shapes` with the columns `microseconds`, `low`, `high` and `basis`.
pub fn predict(config_dir: Option<&Path>, device: &str, shapes: &Path) -> Result<String, CalibrationError> {
    let device = hardware::find(config_dir, device)?;
    let table = read_shapes(&shapes.display().to_string(), &read_text(shapes)?)?;
    let calibration = stored(&device)?.ok_or_else(|| CalibrationError::NotCalibrated { device: device.id.clone() })?;
    let estimator = Estimator::new(&calibration, &device)?;
    let mut text = format!("{},microseconds,low,high,basis\n", table.header.join(","));
    for (cells, shape) in &table.rows {
        let estimate = estimator.estimate(shape)?;
        let (time, low, high) = (estimate.microseconds, estimate.low, estimate.high);
        let _ = writeln!(text, "{},{time},{low:.4},{high:.4},{}", cells.join(","), estimate.basis.name());
    }
    Ok(text)
}
