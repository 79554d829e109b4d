//! What rules about copies between host and device share: how much of them there must be, and their facts.

use types::timeline::{CopyDirection, WorkKind};
use types::{Base, BytesPerSecond, DeviceTime, EstimatedSaving, Facts, Finding, Nanos, RunKindName, Severity};

use super::idle::{seen_once, some};
use super::{Claim, Found, Run};
use crate::device::{AlikeCopies, DeviceRecords, WorkGroup};
use crate::kernel::is_migration;
use crate::replay::{Change, CopyFate};
use crate::statistics::share;

/// Share of the devices' time from which copies are worth a word.
const LEAST_SHARE: f64 = 0.05;

/// Share of the devices' time from which copies are what the run does.
const MUCH: f64 = 0.1;

/// Copies in every pass from which they are weights: a batch has fewer tensors.
const MANY: f64 = 16.0;

/// A rule about copies in one direction.
pub(super) struct CopyRule {
    /// Its name.
    pub(super) name: &'static str,
    /// The direction.
    pub(super) direction: CopyDirection,
}

impl CopyRule {
    /// Copies that devices spend much of their time on with no kernel beside them.
    pub(super) fn check(&self, run: &Run<'_>) -> Option<Found> {
        let kind = WorkKind::Copy(self.direction).copy_name()?;
        let copies = |time: &DeviceTime| time.copies.iter().find(|copy| copy.kind == kind).cloned();
        let span: Nanos = run.device_time.iter().map(|time| time.span_ns).sum();
        let exposed = |time: &DeviceTime| copies(time).map_or(Nanos::ZERO, |copy| copy.exposed_ns);
        let saves: Nanos = run.device_time.iter().map(exposed).sum();
        let part = share(saves.get() as f64, span.get() as f64).filter(|part| *part >= LEAST_SHARE)?;
        let pattern = run.device.and_then(|device| device.copies.get(&self.direction)).cloned().unwrap_or_default();
        let comes_back = (saves - pattern.once).max(Nanos::ZERO);
        let to_device = run.device.and_then(|device| device.copies.get(&CopyDirection::HostToDevice));
        let are_weights = |alike: &AlikeCopies| alike.per_pass >= MANY;
        let weights = match self.direction {
            CopyDirection::HostToDevice => pattern.alike().filter(are_weights),
            // In training, gradients go to the host and weights of their sizes come from it.
            _ if run.kind() == Some(RunKindName::Training) => None,
            _ => pattern.alike().filter(are_weights).filter(|_| to_device.is_some_and(|to| pattern.has_sizes_of(to))),
        };
        let room: Nanos = run.device_time.iter().map(|time| time.compute_ns + time.communication_exposed_ns).sum();
        let row = |time: &DeviceTime| {
            let copy = copies(time)?;
            let bytes = copy.bytes?;
            let rate = BytesPerSecond::new(share(bytes.as_f64() * 1e9, copy.ns.get() as f64)?);
            let facts =
                Facts::new().with("device", time.device.to_string()).with("copies", copy.calls).with("moved", bytes);
            Some(facts.with("time", copy.ns).with("rate", rate).with("kernels", time.compute_ns))
        };
        let facts = seen_once(Facts::new(), pattern.once, saves)
            .with("exposed", saves)
            .with_share("exposed_share", part, Base::DeviceTime)
            .with("span", span)
            .with("devices", run.device_time.iter().filter_map(row).collect::<Vec<_>>())
            .with_known("pageable", run.device.and_then(|device| self.pageable(device)))
            .with_known("unified", run.device.and_then(|device| self.unified(device)))
            .with_known("alike", weights.map(|alike| alike.copies))
            .with_known("sizes", weights.map(|alike| alike.sizes))
            // What runs beside copies can be no more than the rest of the time, nor than there are kernels.
            .with_if("mostly", (part > 0.5 || room < comes_back) && weights.is_none());
        let recurs = share(comes_back.get() as f64, span.get() as f64).unwrap_or_default();
        if recurs < LEAST_SHARE {
            return Some(Found::plain(Finding::new(self.name, Severity::Info, None, facts.with_if("one_off", true))));
        }
        let severity = if recurs < MUCH { Severity::Info } else { Severity::Warning };
        let finding = Finding::new(self.name, severity, None, facts);
        let fate = if weights.is_some() { CopyFate::Removed } else { CopyFate::Hidden };
        if fate == CopyFate::Hidden && room == Nanos::ZERO {
            return Some(Found::plain(finding));
        }
        let finding = finding.saving(EstimatedSaving::at_most(comes_back));
        let change = Change::Copies(Some(self.direction), fate);
        let claim = Claim::Everywhere(run.time_of(|group| group.kind == WorkKind::Copy(self.direction)));
        Some(Found::new(finding, claim).replayed(change))
    }

    /// How much of them is of pageable memory, as the names of the copies say.
    fn pageable(&self, device: &DeviceRecords) -> Option<Nanos> {
        some(self.sum(device, |group| group.name.contains("ageable")))
    }

    /// How much of them moves pages of unified memory, where that is most of them.
    fn unified(&self, device: &DeviceRecords) -> Option<Nanos> {
        let unified = self.sum(device, |group| is_migration(group.kind, &group.name));
        some(unified).filter(|unified| 2 * unified.get() > self.sum(device, |_| true).get())
    }

    fn sum(&self, device: &DeviceRecords, which: impl Fn(&WorkGroup) -> bool) -> Nanos {
        let copies = device.groups.iter().filter(|group| group.kind == WorkKind::Copy(self.direction));
        copies.filter(|group| which(group)).map(|group| group.run).sum()
    }
}

#[cfg(test)]
mod tests {
    use types::Stage;

    use super::*;
    use crate::device::sample::group;
    use crate::kernel::Family;

    #[test]
    fn pages_of_unified_memory_are_told_where_they_are_most_of_the_copies() {
        let rule = CopyRule { name: "copies", direction: CopyDirection::HostToDevice };
        let copy = |name: &str, run: i64| WorkGroup {
            kind: WorkKind::Copy(CopyDirection::HostToDevice),
            ..group(Stage::Prefill, name, Family::MemoryCopy, run)
        };
        let unified = |plain: i64| {
            let groups =
                vec![copy("[CUDA memcpy Unified Host-to-Device]", 50), copy("[CUDA memcpy Host-to-Device]", plain)];
            rule.unified(&DeviceRecords { groups, ..DeviceRecords::default() })
        };
        assert_eq!((unified(40), unified(60)), (Some(Nanos::new(50)), None));
    }
}
