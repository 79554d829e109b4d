//! The device spends much of its time copying within its own memory.

use types::timeline::{CopyDirection, WorkKind};
use types::{Base, Bytes, BytesPerSecond, CopyTime, DeviceTime, EstimatedSaving, Facts, Finding, Nanos, Severity};

use super::{Claim, Found, Run};
use crate::device::WorkGroup;
use crate::statistics::share;

/// Share of the time devices are busy from which such copies are told.
const LEAST_SHARE: f64 = 0.05;
/// Share of the recorded time below which they do not matter, however little else a device does.
const LITTLE: f64 = 0.01;
/// Share of the busy time from which they are worth a warning.
const MUCH: f64 = 0.15;

/// The rule's name.
pub(super) const RULE: &str = "device-to-device-copies";

fn copies(time: &DeviceTime) -> Option<&CopyTime> {
    time.copies.iter().find(|copy| copy.kind == "DtoD")
}

pub(super) fn check(run: &Run<'_>) -> Option<Found> {
    let busy: Nanos = run.device_time.iter().map(|time| time.busy_ns).sum();
    let all: Nanos = run.device_time.iter().filter_map(copies).map(|copy| copy.ns).sum();
    let span: Nanos = run.device_time.iter().map(|time| time.span_ns).sum();
    share(all.get() as f64, span.get() as f64).filter(|part| *part >= LITTLE)?;
    let part = share(all.get() as f64, busy.get() as f64).filter(|part| *part >= LEAST_SHARE)?;
    // What runs beside a kernel saves nothing.
    let exposed = |time: &DeviceTime| copies(time).map_or(Nanos::ZERO, |copy| copy.exposed_ns);
    let saves: Nanos = run.device_time.iter().map(exposed).sum();
    let row = |time: &DeviceTime| {
        let copy = copies(time)?;
        let bytes = copy.bytes?;
        // Every byte is read and written.
        let rate = BytesPerSecond::new(share(bytes.as_f64() * 2e9, copy.ns.get() as f64)?);
        let each = Bytes::new(bytes.get() / copy.calls.max(1));
        let facts =
            Facts::new().with("device", time.device.to_string()).with("copies", copy.calls).with("moved", bytes);
        Some(facts.with("time", copy.ns).with("each", each).with("rate", rate))
    };
    let facts = Facts::new()
        .with("run", all)
        .with_share("run_share", part, Base::BusyTime)
        .with("exposed", saves)
        .with("devices", run.device_time.iter().filter_map(row).collect::<Vec<_>>());
    let severity = if part >= MUCH { Severity::Warning } else { Severity::Info };
    let finding = Finding::new(RULE, severity, None, facts).saving(EstimatedSaving::at_most(saves));
    let is_copy = |group: &WorkGroup| group.kind == WorkKind::Copy(CopyDirection::DeviceToDevice);
    Some(Found::new(finding, Claim::Everywhere(run.time_of(is_copy))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::on_devices;

    fn time(kind: &str, ns: i64) -> DeviceTime {
        let (kind, ns, bytes) = (kind.to_owned(), Nanos::new(ns), Some(Bytes::new(3_000)));
        let copies = vec![CopyTime { kind, calls: 3, ns, exposed_ns: Nanos::new(80), bytes }];
        DeviceTime {
            busy_ns: Nanos::new(1_000),
            copies_exposed_ns: Nanos::new(80),
            copies,
            ..crate::sample::device_time(1_000)
        }
    }

    #[test]
    fn copies_within_a_device_fire_and_claim_what_is_exposed() {
        let found = on_devices(&[time("DtoD", 200)], RULE);
        assert_eq!((found.len(), found[0].saving.saves_ns), (1, Some(Nanos::new(80))));
        let facts = &found[0].quantities;
        assert_eq!((facts.time("run"), facts.share("run_share")), (Some(Nanos::new(200)), Some(0.2)));
        let row = &facts.rows("devices")[0];
        assert_eq!((row.count("copies"), row.time("time")), (Some(3), Some(Nanos::new(200))));
        let bytes = ["moved", "each"].map(|name| row.get(name).cloned());
        assert_eq!(bytes, [3_000, 1_000].map(|bytes| Some(Bytes::new(bytes).into())));
    }

    #[test]
    fn few_copies_and_copies_from_the_host_do_not_fire() {
        assert_eq!(on_devices(&[time("DtoD", 40)], RULE), []);
        assert_eq!(on_devices(&[time("HtoD", 200)], RULE), []);
        // A fifth of what little the device did: it was idle for all but a hundredth of the time.
        let hardly_busy = DeviceTime { span_ns: Nanos::new(100_000), ..time("DtoD", 200) };
        assert_eq!(on_devices(&[hardly_busy], RULE), []);
    }
}
