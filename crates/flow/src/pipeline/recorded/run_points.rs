//! A run as calibration data: the operators it recorded with their shapes, and what they ran on.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use collect::document;
use forecast::{MeasuredPoint, points_of_operators};
use report::words::Spoken;
use types::{Document, Environment, Hardware, Metrics, UserError};

use crate::pipeline::device::calibration::unfit_run;
use crate::pipeline::device::hardware;
use crate::pipeline::recorded::earlier::{self, RunPurpose};

/// Points below which a run teaches nothing that is worth another fit.
const FEWEST: usize = 5;

/// Points of one run.
#[derive(Debug)]
pub(crate) struct RunPoints {
    /// The run's id.
    pub(crate) run: String,
    /// What it ran on.
    pub(crate) device: Hardware,
    /// Name the driver gives that.
    pub(crate) device_name: String,
    /// Version of the driver; absent for an imported trace, which does not say.
    pub(crate) driver: Option<String>,
    /// Versions of the libraries whose kernels ran.
    pub(crate) libraries: BTreeMap<String, String>,
    /// The points.
    pub(crate) points: Vec<MeasuredPoint>,
    /// Operators whose times cannot be.
    pub(crate) impossible: u64,
}

/// Reads the run that `selector` names, among those in `root`.
pub(crate) fn read(root: &Path, selector: &OsStr, config_dir: Option<&Path>) -> Result<RunPoints, UserError> {
    let stored = earlier::find(root, selector, RunPurpose::Calibrate)?;
    let metrics: Metrics = json(&stored.path().join("metrics.json"))?;
    let run = metrics.run.id.clone();
    let unfit = |reason: &str, fix: &str| unfit_run(&run, reason, fix);
    if let Some(reason) = analysis::disturbed(&metrics) {
        return Err(unfit(&reason.spoken().text, "stop other jobs and profile again"));
    }
    let names: Vec<(&String, &String)> =
        metrics.devices.iter().filter_map(|device| Some((device.hardware.as_ref()?, &device.name))).collect();
    let (device, device_name) = match names.as_slice() {
        [] => {
            let fix = "add a hardware file for it; see docs/reference/hardware.md";
            return Err(unfit("its device is not in the catalogue", fix));
        }
        [(first, name), rest @ ..] if rest.iter().all(|(other, _)| other == first) => {
            (hardware::find(config_dir, first)?, (*name).clone())
        }
        several => {
            let list: Vec<&str> = several.iter().map(|(id, _)| id.as_str()).collect();
            return Err(unfit(
                &format!("it ran on several devices: {}", list.join(", ")),
                "pass runs of a single device",
            ));
        }
    };
    let (points, impossible) = points_of_operators(&metrics.breakdown.operator_groups.by_shape, &device);
    if points.len() < FEWEST {
        let reason = format!(
            "only {} of its operators have shapes and device times; at least {FEWEST} are needed",
            points.len()
        );
        let fix = "record both with `llm-perf profile --engine torch` on a GPU, or with the torch profiler and \
                   record_shapes=True";
        return Err(unfit(&reason, fix));
    }
    // The environment of an imported trace is that of the machine it was imported on.
    let environment = stored.path().join("env.json");
    let recorded = stored.manifest().verb != "import" && environment.exists();
    let environment: Option<Environment> = recorded.then(|| json(&environment)).transpose()?;
    let libraries = environment.iter().flat_map(|environment| {
        let torch = environment.frameworks.torch.clone().map(|version| ("torch".to_owned(), version));
        let cuda = environment.frameworks.torch_cuda.clone().map(|version| ("cuda".to_owned(), version));
        torch.into_iter().chain(cuda)
    });
    Ok(RunPoints {
        libraries: libraries.collect(),
        driver: environment.as_ref().and_then(|environment| environment.tools.driver.clone()),
        run,
        device,
        device_name,
        points,
        impossible,
    })
}

fn json<D: Document>(path: &Path) -> Result<D, UserError> {
    let unreadable = UserError::unreadable(path);
    let bytes = document::read(path).map_err(&unreadable)?;
    D::from_json(&bytes).map_err(|error| unreadable(std::io::Error::other(error)))
}
