//! Rows of what a run measured and concluded.

use types::{DeviceTime, ModuleSummary, Sample};

use super::{RankRows, Sink};
use crate::TableError;

impl RankRows<'_> {
    pub(super) fn device_time(&self, sink: &mut Sink<'_>) -> Result<(), TableError> {
        self.own_devices().try_for_each(|row| {
            sink(&[
                self.rank(),
                row.device.as_str().into(),
                row.span_ns.into(),
                row.busy_ns.into(),
                row.idle_ns.into(),
                row.compute_ns.into(),
                row.communication_ns.into(),
                row.communication_exposed_ns.into(),
                row.communication_awaited_ns.into(),
                row.copies_exposed_ns.into(),
            ])
        })
    }

    pub(super) fn idle(&self, sink: &mut Sink<'_>) -> Result<(), TableError> {
        for row in self.own_devices() {
            for idle in &row.idle {
                let device = row.device.as_str().into();
                sink(&[self.rank(), device, idle.cause.name().into(), idle.ns.into(), idle.longest_ns.into()])?;
            }
        }
        Ok(())
    }

    pub(super) fn samples(&self, sink: &mut Sink<'_>) -> Result<(), TableError> {
        let own = |sample: &&Sample| sample.rank.is_none() || sample.rank == self.origin.rank;
        self.metrics.times.samples.iter().filter(own).try_for_each(|sample| {
            sink(&[
                self.rank(),
                sample.stage.name().into(),
                sample.input.as_deref().into(),
                sample.epoch.into(),
                sample.repeat.into(),
                sample.wall_ns.into(),
                sample.warmup.into(),
            ])
        })
    }

    pub(super) fn modules(&self, sink: &mut Sink<'_>) -> Result<(), TableError> {
        if self.origin.among_others {
            return Ok(());
        }
        let modules: &[ModuleSummary] = &self.metrics.breakdown.modules;
        modules.iter().try_for_each(|module| {
            sink(&[
                self.rank(),
                module.path.as_str().into(),
                module.class.as_str().into(),
                module.stage.name().into(),
                module.measured_ns.into(),
                module.speed_of_light_ns.into(),
                module.lost_ns.into(),
            ])
        })
    }

    pub(super) fn findings(&self, sink: &mut Sink<'_>) -> Result<(), TableError> {
        if self.origin.among_others {
            return Ok(());
        }
        (0u32..).zip(&self.metrics.conclusions.findings).try_for_each(|(place, finding)| {
            sink(&[
                self.rank(),
                place.into(),
                finding.rule.as_str().into(),
                finding.severity.name().into(),
                finding.stage.map(|stage| stage.name()).into(),
                finding.saving.saves_ns.into(),
                finding.advice.as_str().into(),
            ])
        })
    }

    /// Devices of this rank.
    fn own_devices(&self) -> impl Iterator<Item = &DeviceTime> {
        let own = |row: &&DeviceTime| !self.origin.among_others || row.rank == self.origin.rank;
        self.metrics.breakdown.device_time.iter().filter(own)
    }
}
