//! What rules about copies between host and device share: how much of them there must be, and how it is told.

use types::timeline::{CopyDirection, WorkKind};
use types::{BytesPerSecond, DeviceTime, EstimatedSaving, Finding, Nanos, Severity};

use super::{Claim, Found, Run, percent};
use crate::device::DeviceRecords;
use crate::replay::{Change, CopyFate};
use crate::statistics::share;

/// Share of the devices' time from which copies are what the run does.
const MUCH: f64 = 0.1;

/// A rule about copies in one direction.
pub(super) struct CopyRule {
    /// Its name.
    pub(super) name: &'static str,
    /// The direction.
    pub(super) direction: CopyDirection,
    /// What is copied, at the start of a sentence.
    pub(super) what: &'static str,
    /// What to do.
    pub(super) advice: &'static str,
}

impl CopyRule {
    /// Copies that devices spend much of their time on with no kernel beside them.
    pub(super) fn check(&self, run: &Run<'_>) -> Option<Found> {
        let kind = WorkKind::Copy(self.direction).copy_name()?;
        let copies = |time: &DeviceTime| time.copies.iter().find(|copy| copy.kind == kind).cloned();
        let span: Nanos = run.device_time.iter().map(|time| time.span_ns).sum();
        let exposed = |time: &DeviceTime| copies(time).map_or(Nanos::ZERO, |copy| copy.exposed_ns);
        let saves: Nanos = run.device_time.iter().map(exposed).sum();
        let part = share(saves.get() as f64, span.get() as f64).filter(|part| *part >= MUCH)?;
        let mut evidence =
            vec![format!("{} run {saves} with no kernel beside them, {} of {span}", self.what, percent(part))];
        evidence.extend(run.device_time.iter().filter_map(|time| {
            let copy = copies(time)?;
            let bytes = copy.bytes?;
            let rate = BytesPerSecond::new(share(bytes.as_f64() * 1e9, copy.ns.get() as f64)?);
            let kernels = time.compute_ns;
            Some(format!(
                "{}: {} copies, {bytes} in {} ({rate}); kernels run {kernels}",
                time.device, copy.calls, copy.ns
            ))
        }));
        evidence.extend(run.device.and_then(|device| self.pageable(device)));
        // What runs beside copies can be no more than the rest of the time.
        if part > 0.5 {
            evidence.push(
                "they take longer than all that could run beside them: hiding them saves little, fewer bytes or faster copies help"
                    .to_owned(),
            );
        }
        let finding = Finding {
            quantities: Default::default(),
            rule: self.name.to_owned(),
            severity: Severity::Warning,
            stage: None,
            evidence,
            saving: EstimatedSaving::at_most(saves),
            advice: self.advice.to_owned(),
        };
        let change = Change::Copies(Some(self.direction), CopyFate::Hidden);
        Some(Found::new(finding, Claim::Work(Vec::new())).replayed_everywhere(change))
    }

    /// How much of them is of pageable memory, as the names of the copies say.
    fn pageable(&self, device: &DeviceRecords) -> Option<String> {
        let copies = device.groups.iter().filter(|group| group.kind == WorkKind::Copy(self.direction));
        let pageable: Nanos = copies.filter(|group| group.name.contains("ageable")).map(|group| group.run).sum();
        (pageable > Nanos::ZERO)
            .then(|| format!("{pageable} of them of pageable memory, which the driver copies in pieces"))
    }
}
