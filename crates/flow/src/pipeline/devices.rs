//! Devices of imported timelines: what they are called in the run, and which of the catalogue they are.

use std::collections::BTreeMap;
use std::path::Path;

use types::{Device, DeviceId, Hardware};

use super::error::ImportError;
use super::hardware;
use super::trace::Traces;

/// The devices of a run.
pub(super) struct Devices {
    /// Every device, in order.
    pub(super) devices: Vec<Device>,
    /// For each timeline, its devices by the ordinals it uses.
    pub(super) names: Vec<BTreeMap<u32, DeviceId>>,
    /// The catalogue's entry for the first device, where it has one.
    pub(super) hardware: Option<Hardware>,
}

/// Finds the devices. Ranks count their devices from zero each, so that two ranks may mean two devices by one ordinal.
///
/// Pages of counters and tables of kernels count only where there is no timeline: their kernels are then the run's.
pub(super) fn find(
    traces: &Traces,
    named: Option<&Hardware>,
    config_dir: Option<&Path>,
) -> Result<Devices, ImportError> {
    let catalogue = hardware::catalogue(config_dir)?;
    let known = |name: &str| named.or_else(|| catalogue.find(name).ok()).map(|hardware| hardware.id.clone());
    let mut devices: Vec<Device> = Vec::new();
    let mut names = Vec::new();
    for one in &traces.placed {
        let mut of_timeline = BTreeMap::new();
        for ordinal in analysis::time::devices(&one.timeline) {
            let described = one.timeline.devices.iter().find(|device| device.id == DeviceId::cuda(ordinal));
            let same =
                |device: &&Device| described.is_some_and(|found| found.uuid.is_some() && found.uuid == device.uuid);
            let id = match devices.iter().find(same) {
                Some(device) => device.id.clone(),
                None => free(&devices, ordinal),
            };
            if devices.iter().all(|device| device.id != id) {
                let name = described
                    .map_or_else(|| named.map_or_else(unnamed, |named| named.name.clone()), |found| found.name.clone());
                devices.push(Device {
                    hardware: known(&name),
                    name,
                    uuid: described.and_then(|found| found.uuid.clone()),
                    memory_bytes: described.and_then(|found| found.memory_bytes),
                    id: id.clone(),
                });
            }
            of_timeline.insert(ordinal, id);
        }
        names.push(of_timeline);
    }
    if traces.placed.is_empty() {
        for (id, name) in traces.counted_devices() {
            let name = name.or_else(|| named.map(|named| named.name.clone())).unwrap_or_else(unnamed);
            devices.push(Device { hardware: known(&name), name, uuid: None, memory_bytes: None, id });
        }
    }
    let first = devices.first().and_then(|device| device.hardware.as_deref()).and_then(|id| catalogue.find(id).ok());
    let hardware = named.or(first).cloned();
    Ok(Devices { devices, names, hardware })
}

fn unnamed() -> String {
    "a device the trace does not name".to_owned()
}

/// The ordinal's own name, or the next that is free.
fn free(devices: &[Device], ordinal: u32) -> DeviceId {
    let taken = |id: &DeviceId| devices.iter().any(|device| device.id == *id);
    (ordinal..).map(DeviceId::cuda).find(|id| !taken(id)).unwrap_or_else(|| DeviceId::cuda(ordinal))
}
