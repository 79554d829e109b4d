//! What an export says about itself and the machine: version, clock, devices.
//!
//! The tables read here also hold the host's name, the user, paths and the whole environment of the process. Columns and
//! keys are therefore named one by one, and a version has to look like one.

use std::collections::HashMap;

use types::timeline::Timeline;
use types::{Bytes, Clock, ClockId, ClockKind, Device, DeviceId, Nanos};

use super::schema::{ANALYSIS, DEVICE_NUMBERS, DEVICES, DIAGNOSTICS, EXPORT, NEWEST, NEWEST_MAJOR, SESSION};
use crate::IngestError;
use crate::nsys::database::{Database, Losses};

/// Severity of an error in `DIAGNOSTIC_EVENT`.
const ERROR: i64 = 3;

/// What is known beside the events.
#[derive(Debug)]
pub(crate) struct Machine {
    /// The tool and its version.
    pub(crate) tool: Option<String>,
    pub(crate) clock: Clock,
    pub(crate) devices: Vec<Device>,
    /// The machine's number of a device by process and the process's own number.
    pub(crate) device_numbers: HashMap<(u32, u32), u32>,
    /// Errors the tool met while it recorded.
    pub(crate) errors: u64,
    pub(crate) losses: Losses,
}

impl Machine {
    /// Reads what there is; refuses a schema newer than the one known.
    pub(crate) fn read(file: &str, database: &Database<'_>) -> Result<Self, IngestError> {
        let mut losses = Losses::default();
        let tool = read_versions(file, database, &mut losses)?;
        let clock = read_clock(file, database, &mut losses)?;
        let mut machine = Self { tool, clock, devices: Vec::new(), device_numbers: HashMap::new(), errors: 0, losses };
        machine.read_devices(file, database)?;
        Ok(machine)
    }

    fn read_devices(&mut self, file: &str, database: &Database<'_>) -> Result<(), IngestError> {
        if let Some((table, layout)) = DEVICES.find(file, database)? {
            self.losses.add(database.rows(table, &layout, |[number, name, memory, uuid]| {
                let (Some(number), Some(name)) = (number.narrow()?, name.text()?) else { return Ok(()) };
                let text = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
                let uuid = uuid.text()?.filter(|uuid| !uuid.is_empty()).map(text).map(driver_uuid);
                let memory_bytes = memory.narrow::<u64>()?.filter(|memory| *memory > 0).map(Bytes::new);
                let id = DeviceId::cuda(number);
                self.devices.push(Device {
                    id,
                    name: text(name),
                    uuid,
                    hardware: None,
                    memory_bytes,
                    multiprocessors: None,
                });
                Ok(())
            }));
        }
        if let Some((table, layout)) = DEVICE_NUMBERS.find(file, database)? {
            self.losses.add(database.rows(table, &layout, |[device, number, process]| {
                if let (Some(device), Some(number), Some(process)) =
                    (device.narrow()?, number.narrow()?, process.narrow()?)
                {
                    self.device_numbers.insert((process, number), device);
                }
                Ok(())
            }));
        }
        if let Some((table, layout)) = DIAGNOSTICS.find(file, database)? {
            self.losses.add(database.rows(table, &layout, |[severity]| {
                self.errors += u64::from(severity.integer()? == Some(ERROR));
                Ok(())
            }));
        }
        Ok(())
    }
}

/// The identifier as the driver writes it; nsys leaves the prefix out.
fn driver_uuid(uuid: String) -> String {
    if uuid.starts_with("GPU-") { uuid } else { format!("GPU-{uuid}") }
}

fn read_versions(file: &str, database: &Database<'_>, losses: &mut Losses) -> Result<Option<String>, IngestError> {
    let (mut tool, mut schema) = (None, None);
    if let Some((table, layout)) = EXPORT.find(file, database)? {
        losses.add(database.rows(table, &layout, |[name, value]| {
            match name.text()? {
                Some(b"EXPORT_PRODUCT_VERSION") => tool = value.text()?.and_then(version),
                Some(b"EXPORT_SCHEMA_VERSION") => schema = value.text()?.and_then(version),
                _ => {}
            }
            Ok(())
        }));
    }
    let major = schema.as_deref().and_then(|schema: &str| schema.split('.').next()?.parse::<u32>().ok());
    match (schema, major) {
        (Some(found), Some(major)) if major > NEWEST_MAJOR => {
            Err(IngestError::NewerVersion { file: file.to_owned(), format: "nsys schema", found, known: NEWEST })
        }
        _ => Ok(tool.map(|version| format!("nsys {version}"))),
    }
}

/// A text that is nothing but a version.
fn version(text: &[u8]) -> Option<String> {
    let is_version = text.len() <= 32 && text.first().is_some_and(u8::is_ascii_digit);
    let text = std::str::from_utf8(text).ok().filter(|_| is_version)?;
    text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.').then(|| text.to_owned())
}

/// Times count from the start of the part that was kept. The session started up to `startTime` before that, and which of
/// the two the recorded wall time means is documented nowhere, so it is the uncertainty.
fn read_clock(file: &str, database: &Database<'_>, losses: &mut Losses) -> Result<Clock, IngestError> {
    let (mut wall, mut kept) = (None, None);
    if let Some((table, layout)) = SESSION.find(file, database)? {
        losses.add(database.rows(table, &layout, |[time]| {
            wall = time.integer()?.and_then(Timeline::time);
            Ok(())
        }));
    }
    if let Some((table, layout)) = ANALYSIS.find(file, database)? {
        losses.add(database.rows(table, &layout, |[start]| {
            kept = start.integer()?.and_then(Timeline::time).filter(|start| *start >= Nanos::ZERO);
            Ok(())
        }));
    }
    let uncertainty_ns = wall.and(kept);
    Ok(Clock { id: ClockId(0), kind: ClockKind::Trace, unix_ns_at_zero: wall, uncertainty_ns })
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn only_a_version_passes_for_one() {
        assert_eq!(version(b"2025.3.2.0").as_deref(), Some("2025.3.2.0"));
        for text in
            ["", ".", "/home/someone/cap.sqlite", "2025.3 on somehost", "v3", "1.2.3.4.5.6.7.8.9.10.11.12.13.14.15"]
        {
            assert_eq!(version(text.as_bytes()), None, "{text}");
        }
    }
}
