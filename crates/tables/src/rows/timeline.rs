//! Rows of what a trace recorded.

use std::collections::BTreeMap;

use analysis::attribution::StageOrigin;
use analysis::collective_calls;
use analysis::kernel::{self, Family};
use types::timeline::{DeviceWork, OperatorKind, ThreadId, WorkKind};
use types::{Nanos, Severity};

use super::{RankRows, Sink};
use crate::{Cell, TableError};

/// What the name of a kernel tells.
struct Named {
    short: String,
    family: Family,
}

impl RankRows<'_> {
    pub(super) fn run(&self, sink: &mut Sink<'_>) -> Result<(), TableError> {
        let (timeline, run) = (self.timeline, &self.metrics.run);
        let job = timeline.job.as_ref();
        let devices = analysis::time::devices(timeline);
        let first = timeline.work.iter().map(|work| work.start).min();
        let last = timeline.work.iter().map(DeviceWork::end).max();
        let kind =
            self.metrics.conditions.trace.as_ref().and_then(|trace| trace.kind.as_ref()).map(|kind| kind.kind.name());
        let paths: Vec<&str> = self.origin.sources.iter().map(|source| source.path.as_str()).collect();
        let digest = if let [source] = self.origin.sources { source.digest() } else { None };
        let of_device = |ordinal: &u32| timeline.devices.iter().find(|one| one.id == types::DeviceId::cuda(*ordinal));
        let device = devices.first().and_then(of_device).map(|device| device.name.as_str());
        let lost = timeline.quality.iter().filter(|counter| counter.severity >= Severity::Warning);
        sink(&[
            self.rank(),
            self.origin.job.into(),
            Some(run.id.as_str()).filter(|id| !id.is_empty()).into(),
            job.and_then(|job| job.world_size).into(),
            kind.into(),
            run.model.as_deref().into(),
            device.filter(|name| !name.is_empty()).into(),
            (devices.len() as u64).into(),
            (timeline.devices.len() as u64).into(),
            timeline.tool.as_deref().into(),
            timeline.format.name().into(),
            paths.join(", ").as_str().into(),
            digest.as_ref().map(ToString::to_string).as_deref().into(),
            self.clock.into(),
            first.map(|time| self.at(time)).into(),
            last.map(|time| self.at(time)).into(),
            env!("CARGO_PKG_VERSION").into(),
            lost.map(|counter| counter.value).sum::<u64>().into(),
        ])
    }

    pub(super) fn kernels(&self, sink: &mut Sink<'_>) -> Result<(), TableError> {
        let names = self.names();
        for row in self.ordered(|kind| matches!(kind, WorkKind::Kernel | WorkKind::Graph)) {
            let work = &self.timeline.work[row];
            let named = &names[&work.name.index()];
            let [rank, device, stream, start, duration] = self.work(work);
            let [stage, step, operator] = self.place(row);
            let name = self.timeline.name(work.name).into();
            let (short, family) = (named.short.as_str().into(), named.family.name().into());
            let correlation = work.correlation.map(|number| number.0.get()).into();
            let aside = self.attribution.is_aside(row).into();
            sink(&[
                rank,
                device,
                stream,
                start,
                duration,
                name,
                short,
                family,
                stage,
                step,
                operator,
                correlation,
                aside,
            ])?;
        }
        Ok(())
    }

    pub(super) fn copies(&self, sink: &mut Sink<'_>) -> Result<(), TableError> {
        for row in self.ordered(|kind| matches!(kind, WorkKind::Copy(_) | WorkKind::Fill)) {
            let work = &self.timeline.work[row];
            let kind = work.kind.copy_name().unwrap_or("unknown").into();
            let [rank, device, stream, start, duration] = self.work(work);
            let [stage, step, operator] = self.place(row);
            let bytes = work.bytes.map(|bytes| bytes.get()).into();
            let aside = self.attribution.is_aside(row).into();
            sink(&[rank, device, stream, start, duration, kind, bytes, stage, step, operator, aside])?;
        }
        Ok(())
    }

    pub(super) fn collectives(&self, sink: &mut Sink<'_>) -> Result<(), TableError> {
        for call in collective_calls(self.timeline, self.attribution) {
            let work = &self.timeline.work[call.row as usize];
            let kernel = kernel::short_name(self.timeline.name(work.name));
            let known =
                |text: fn(&types::timeline::Collective) -> &str| call.called.map(text).filter(|text| !text.is_empty());
            let [rank, device, stream, start, duration] = self.work(work);
            sink(&[
                rank,
                device,
                stream,
                start,
                duration,
                known(|called| &called.name).unwrap_or(&kernel).into(),
                known(|called| &called.dtype).into(),
                call.bytes.map(|bytes| bytes.get()).into(),
                known(|called| &called.group).into(),
                call.called.and_then(|called| called.group_size).into(),
                known(|called| &called.members).into(),
                call.number.into(),
                call.exposed.into(),
                kernel.as_str().into(),
            ])?;
        }
        Ok(())
    }

    pub(super) fn kernel_sums(&self, sink: &mut Sink<'_>) -> Result<(), TableError> {
        let names = self.names();
        let mut times: BTreeMap<(u32, usize), Vec<i64>> = BTreeMap::new();
        for (row, work) in self.timeline.work.iter().enumerate() {
            if work.kind == WorkKind::Kernel && !self.attribution.is_aside(row) {
                let device = self.timeline.queues[work.queue.0 as usize].device;
                times.entry((device, work.name.index())).or_default().push(work.duration.get());
            }
        }
        let all: BTreeMap<usize, &str> = self.timeline.names.iter().map(|(id, name)| (id.index(), name)).collect();
        for ((device, name), mut times) in times {
            times.sort_unstable();
            let named = &names[&name];
            sink(&[
                self.rank(),
                device.into(),
                all[&name].into(),
                named.short.as_str().into(),
                named.family.name().into(),
                (times.len() as u64).into(),
                times.iter().map(|time| Nanos::new(*time)).sum::<Nanos>().into(),
                times.first().copied().into(),
                times[(times.len() - 1) / 2].into(),
                times.last().copied().into(),
            ])?;
        }
        Ok(())
    }

    pub(super) fn host_ops(&self, sink: &mut Sink<'_>) -> Result<(), TableError> {
        let timeline = self.timeline;
        let row = |place: usize| match timeline.operators.get(place) {
            Some(operator) => {
                let kind = match operator.kind {
                    OperatorKind::Framework => "operator",
                    OperatorKind::Python => "python",
                };
                (operator.start, operator.duration, operator.thread, kind, operator.name, None)
            }
            None => {
                let call = &timeline.calls[place - timeline.operators.len()];
                let correlation = call.correlation.map(|number| number.0.get());
                (call.start, call.duration, call.thread, "call", call.name, correlation)
            }
        };
        for place in sorted(timeline.operators.len() + timeline.calls.len(), |place| {
            let (start, duration, ..) = row(place);
            (start, std::cmp::Reverse(duration))
        }) {
            let (start, duration, thread, kind, name, correlation) = row(place as usize);
            let [process, thread] = self.thread(thread);
            let (start, name) = (self.at(start).into(), timeline.name(name).into());
            sink(&[self.rank(), process, thread, start, duration.into(), kind.into(), name, correlation.into()])?;
        }
        Ok(())
    }

    pub(super) fn ranges(&self, sink: &mut Sink<'_>) -> Result<(), TableError> {
        let ranges = &self.timeline.ranges;
        for place in sorted(ranges.len(), |place| ranges[place].start) {
            let range = &ranges[place as usize];
            let [process, thread] = self.thread(range.thread);
            let end = range.end.map(|end| self.at(end)).into();
            let domain = range.domain.map(|domain| self.timeline.name(domain)).into();
            let name = self.timeline.name(range.name).into();
            sink(&[self.rank(), process, thread, self.at(range.start).into(), end, name, domain])?;
        }
        Ok(())
    }

    pub(super) fn steps(&self, sink: &mut Sink<'_>) -> Result<(), TableError> {
        let steps = self.steps.iter().flat_map(|steps| &steps.list);
        (0u32..).zip(steps).try_for_each(|(number, (wall, step))| {
            sink(&[
                self.rank(),
                number.into(),
                step.name.as_str().into(),
                step.label.map(|label| label.name()).into(),
                self.at(wall.start).into(),
                step.host_ns.into(),
                step.wall_ns.into(),
                step.device_ns.into(),
                step.kernels.into(),
            ])
        })
    }

    pub(super) fn stages(&self, sink: &mut Sink<'_>) -> Result<(), TableError> {
        (0u32..).zip(&self.attribution.stages).try_for_each(|(number, run)| {
            sink(&[
                self.rank(),
                run.stage.name().into(),
                number.into(),
                self.at(run.wall.start).into(),
                run.wall_ns().into(),
                (run.origin != StageOrigin::Ranges).into(),
            ])
        })
    }

    pub(super) fn memory(&self, sink: &mut Sink<'_>) -> Result<(), TableError> {
        self.timeline.memory.iter().try_for_each(|event| {
            sink(&[
                self.rank(),
                event.device.into(),
                self.at(event.time).into(),
                event.bytes.into(),
                event.allocated.map(|bytes| bytes.get()).into(),
                event.reserved.map(|bytes| bytes.get()).into(),
            ])
        })
    }

    /// A time of the timeline on the clock of the tables.
    fn at(&self, time: Nanos) -> Nanos {
        time + self.zero
    }

    /// Rows of some work by device and start; none where only launches of graphs were timed, between which a query would see idle time.
    fn ordered(&self, kind: impl Fn(WorkKind) -> bool) -> impl Iterator<Item = usize> {
        let work = if self.timeline.graphs_only { &[][..] } else { &self.timeline.work };
        let device = |row: usize| self.timeline.queues[work[row].queue.0 as usize].device;
        let rows = sorted(work.len(), |row| (device(row), work[row].start));
        rows.into_iter().map(|row| row as usize).filter(move |row| kind(work[*row].kind))
    }

    /// What names of kernels tell, once for each.
    fn names(&self) -> BTreeMap<usize, Named> {
        let mut names = BTreeMap::new();
        for work in &self.timeline.work {
            if matches!(work.kind, WorkKind::Kernel | WorkKind::Graph) {
                names.entry(work.name.index()).or_insert_with(|| {
                    let name = self.timeline.name(work.name);
                    Named { short: kernel::short_name(name), family: kernel::family_of_work(work.kind, name) }
                });
            }
        }
        names
    }

    /// Rank, device, stream, start and duration.
    fn work(&self, work: &DeviceWork) -> [Cell<'_>; 5] {
        let queue = &self.timeline.queues[work.queue.0 as usize];
        let stream = queue.stream.filter(|stream| i32::try_from(*stream).is_ok());
        [self.rank(), queue.device.into(), stream.into(), self.at(work.start).into(), work.duration.into()]
    }

    /// Stage, step and operator.
    fn place(&self, row: usize) -> [Cell<'_>; 3] {
        let step = self.steps.as_ref().and_then(|steps| steps.of_work[row]);
        let operator = self.attribution.operator[row].map(|row| &self.timeline.operators[row as usize]);
        let stage = self.attribution.stage[row].map(|stage| stage.name());
        [stage.into(), step.into(), operator.map(|operator| self.timeline.name(operator.name)).into()]
    }

    /// Process and thread.
    fn thread(&self, thread: ThreadId) -> [Cell<'_>; 2] {
        let thread = &self.timeline.threads[thread.0 as usize];
        let process = thread.process.filter(|process| i32::try_from(*process).is_ok());
        [process.into(), thread.thread.into()]
    }
}

/// Places below `count`, in the order of what they stand for.
fn sorted<K: Ord>(count: usize, key: impl Fn(usize) -> K) -> Vec<u32> {
    let mut places: Vec<u32> = (0..u32::try_from(count).unwrap_or(u32::MAX)).collect();
    places.sort_by_key(|place| key(*place as usize));
    places
}
