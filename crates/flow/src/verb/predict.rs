//! `hardware NAME --predict`: the time of every shape of a table, from the calibration of a device.

use std::fmt::Write as _;
use std::path::Path;

use forecast::{Estimator, read_shapes};
use types::UserError;

use crate::pipeline::device::calibration::{read_text, stored};
use crate::pipeline::device::hardware;

/// The table in `shapes` with the columns `microseconds`, `low`, `high` and `basis`.
pub fn predict(config_dir: Option<&Path>, device: &str, shapes: &Path) -> Result<String, UserError> {
    let device = hardware::find(config_dir, device)?;
    let table = read_shapes(&shapes.display().to_string(), &read_text(shapes)?)?;
    let calibration = stored(&device)?.ok_or_else(|| {
        let device = &device.id;
        UserError::usage(format!("{device} is not calibrated")).hint(format!(
            "on a machine with this device, run `llm-perf doctor --calibrate --device cuda:0`; with measured points, \
             run `llm-perf doctor --calibrate --device {device} --points FILE`"
        ))
    })?;
    let estimator = Estimator::new(&calibration, &device)?;
    let mut text = format!("{},microseconds,low,high,basis\n", table.header.join(","));
    for (cells, shape) in &table.rows {
        let estimate = estimator.estimate(shape)?;
        let (time, low, high) = (estimate.microseconds, estimate.low, estimate.high);
        let _ = writeln!(text, "{},{time},{low:.4},{high:.4},{}", cells.join(","), estimate.basis.name());
    }
    Ok(text)
}
