//! Devices of imported timelines: what they are called in the run, and which of the catalogue they are.

use std::collections::BTreeMap;
use std::path::Path;

use meter::hardware::Catalogue;
use types::timeline::Timeline;
use types::{Device, DeviceId, Facts, Hardware, QualityCounter, Severity, UserError};

use crate::pipeline::device::hardware;
use crate::pipeline::trace::Traces;

/// The devices of a run.
pub(super) struct Devices {
    /// Every device, in order.
    pub(super) devices: Vec<Device>,
    /// For each timeline, its devices by the ordinals it uses.
    pub(super) names: Vec<BTreeMap<u32, DeviceId>>,
    /// The catalogue's entry for the first device, where it has one.
    pub(super) hardware: Option<Hardware>,
    /// The device that was named, where the trace says it is another.
    pub(super) quality: Vec<QualityCounter>,
}

/// Finds the devices. Ranks count their devices from zero each, so that two ranks may mean two devices by one ordinal.
///
/// Pages of counters and tables of kernels count only where there is no timeline: their kernels are then the run's.
pub(super) fn find(traces: &Traces, named: Option<&Hardware>, config_dir: Option<&Path>) -> Result<Devices, UserError> {
    let catalogue = hardware::catalogue(config_dir)?;
    let mut quality = Vec::new();
    let mut devices: Vec<Device> = Vec::new();
    let mut names = Vec::new();
    for one in &traces.placed {
        let mut of_timeline = BTreeMap::new();
        for ordinal in used(&one.timeline) {
            let described = described(&one.timeline.devices, ordinal);
            let same =
                |device: &&Device| described.is_some_and(|found| found.uuid.is_some() && found.uuid == device.uuid);
            let id = match devices.iter().find(same) {
                Some(device) => device.id.clone(),
                None => free(&devices, ordinal, named_by(&one.timeline, described)),
            };
            if devices.iter().all(|device| device.id != id) {
                let identify =
                    |found: &Device| catalogue.identify(&found.name, found.memory_bytes, found.multiprocessors);
                let shown = described.and_then(identify);
                quality.extend(named.zip(described).and_then(|(named, found)| differing(named, found, shown)));
                let said = described.map(|found| found.name.clone()).filter(|name| !name.is_empty());
                let entry = named.or(shown);
                devices.push(Device {
                    hardware: entry.map(|hardware| hardware.id.clone()),
                    name: said.or_else(|| entry.map(|hardware| hardware.name.clone())).unwrap_or_else(unnamed),
                    multiprocessors: described.and_then(|found| found.multiprocessors),
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
            let entry = named.or_else(|| catalogue.find(name.as_deref()?).ok());
            let name = name.or_else(|| entry.map(|hardware| hardware.name.clone())).unwrap_or_else(unnamed);
            devices.push(Device { hardware: entry.map(|hardware| hardware.id.clone()), ..Device::new(id, name) });
        }
    }
    let first = devices.first().and_then(|device| device.hardware.as_deref()).and_then(|id| catalogue.find(id).ok());
    let hardware = named.or(first).cloned();
    quality.truncate(1);
    Ok(Devices { devices, names, hardware, quality })
}

/// Ordinals of the devices that have work; where launches were recorded and their work was not, the first.
fn used(timeline: &Timeline) -> Vec<u32> {
    let ordinals = analysis::time::devices(timeline);
    if ordinals.is_empty() && analysis::time::kernel_launches(timeline) > 0 {
        // Which of several unlike devices it was is not known.
        return described(&timeline.devices, u32::MAX).map(|_| 0).into_iter().collect();
    }
    ordinals
}

/// The catalogue's entry for the first device of a timeline.
pub(crate) fn of_timeline(catalogue: &Catalogue, timeline: &Timeline) -> Option<Hardware> {
    let first =
        analysis::time::devices(timeline).into_iter().find_map(|ordinal| described(&timeline.devices, ordinal))?;
    catalogue.identify(&first.name, first.memory_bytes, first.multiprocessors).cloned()
}

/// What the trace says of the device with that ordinal. ROCm numbers devices by their place in the machine in events, and
/// by their place among the visible ones in the list of properties: where all that are listed are alike, it is one of them.
fn described(listed: &[Device], ordinal: u32) -> Option<&Device> {
    let alike = |one: &Device, other: &Device| {
        (&one.name, one.memory_bytes, one.multiprocessors) == (&other.name, other.memory_bytes, other.multiprocessors)
    };
    let first = listed.first().filter(|first| listed.iter().all(|device| alike(first, device)));
    listed.iter().find(|device| device.id == DeviceId::cuda(ordinal)).or(first)
}

/// A device that was named and is not the one the trace describes.
fn differing(named: &Hardware, found: &Device, shown: Option<&Hardware>) -> Option<QualityCounter> {
    let agrees = match shown {
        Some(shown) => shown.id == named.id,
        // The catalogue does not know what the trace names; memory and multiprocessors may still contradict.
        None => {
            let larger = |memory: types::Bytes| memory.as_f64() > 1.05 * named.memory_bytes.as_f64();
            !found.memory_bytes.is_some_and(larger) && found.multiprocessors.is_none_or(|count| count == named.sm_count)
        }
    };
    let recorded_on = Some(found.name.as_str()).filter(|name| !name.is_empty());
    let facts = Facts::new().with("named", &named.name).with_known("recorded_on", recorded_on);
    (!agrees).then(|| QualityCounter::new("hardware_differs_from_trace", Severity::Warning, 1).facts(facts))
}

fn unnamed() -> String {
    "a device not named in the trace".to_owned()
}

/// How a device is called: HIP is no CUDA, and ROCm counts processors among the devices of a machine.
fn named_by(timeline: &Timeline, described: Option<&Device>) -> fn(u32) -> DeviceId {
    let is_amd = described.is_some_and(|device| device.name.starts_with("AMD "));
    let is_hip = || timeline.names.iter().any(|(_, name)| name.starts_with("hipLaunch"));
    if is_amd || is_hip() { DeviceId::gpu } else { DeviceId::cuda }
}

/// The ordinal's own name, or the next that is free; from zero after the last.
fn free(devices: &[Device], ordinal: u32, name: fn(u32) -> DeviceId) -> DeviceId {
    let taken = |id: &DeviceId| devices.iter().any(|device| device.id == *id);
    let all = (ordinal..=u32::MAX).chain(0..ordinal);
    all.map(name).find(|id| !taken(id)).unwrap_or_else(|| name(ordinal))
}
