//! The processor a model runs on, and what it was measured to do.

use collect::calibrate::{self, Store};
use types::{Caveat, CaveatKind, Device, DeviceId, Facts, Hardware, UserError};

use crate::pipeline::progress::Progress;

/// This machine's processor with its measured rates, measured now when they were not, and whether to trust them.
pub(crate) fn processor(progress: &mut dyn FnMut(Progress<'_>)) -> Result<(Hardware, Option<Caveat>), UserError> {
    let settings = calibrate::CalibrationSettings::default();
    let store = Store::of_this_user()?;
    let mut told = false;
    let ensured = calibrate::ensure(&store, &settings, &mut |what| {
        if !told {
            progress(Progress::Note("this CPU is not calibrated yet; measuring its rates (about a second)"));
            told = true;
        }
        progress(Progress::Doing(what));
    })?;
    if let Some(note) = &ensured.note {
        progress(Progress::Note(note));
    }
    let unreliable = calibrate::warning(&ensured.calibration);
    let facts = |reason: String| Facts::new().with("reason", reason);
    let caveat = unreliable.map(|reason| Caveat::new(CaveatKind::UnreliableCalibration, facts(reason)));
    Ok((calibrate::hardware(&ensured.calibration), caveat))
}

/// The processor as the device of a run.
pub(crate) fn of_processor(processor: &Hardware) -> Device {
    Device {
        hardware: Some(processor.id.clone()),
        memory_bytes: Some(processor.memory_bytes),
        ..Device::new(DeviceId::cpu(), processor.name.clone())
    }
}
