//! Copies between host and device: how much of them comes once, as at set-up, and how many there are in a pass.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use types::timeline::{CopyDirection, DeviceWork, NameId, Timeline, WorkKind};
use types::{Bytes, Nanos};

use super::recurring::Recurring;
use crate::attribution::Attribution;

/// Copies of one direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CopyPattern {
    /// The part of their time that comes once: the longest before each kernel, beyond the mean of the others before it. On devices
    /// without kernels, copies of one size take the place of those before one kernel.
    pub(crate) once: Nanos,
    /// Per device: how often each size comes.
    sizes: Vec<BTreeMap<Bytes, u64>>,
}

/// Copies of a device whose sizes come again.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct AlikeCopies {
    /// How many.
    pub(crate) copies: u64,
    /// How many sizes they have.
    pub(crate) sizes: u64,
    /// How many there are for each of the rarest: a pass has no fewer, as far as each size comes in every pass.
    pub(crate) per_pass: f64,
}

impl CopyPattern {
    /// Copies whose sizes come again, of the device that has most of them.
    pub(crate) fn alike(&self) -> Option<AlikeCopies> {
        let of_device = |sizes: &BTreeMap<Bytes, u64>| {
            let again = || sizes.values().copied().filter(|count| *count > 1);
            let (copies, rarest) = (again().sum::<u64>(), again().min()?);
            Some(AlikeCopies { copies, sizes: again().count() as u64, per_pass: copies as f64 / rarest as f64 })
        };
        self.sizes.iter().filter_map(of_device).max_by_key(|alike| alike.copies)
    }

    /// Whether nearly all of these copies have one of the same size among those of `other`.
    pub(crate) fn has_sizes_of(&self, other: &Self) -> bool {
        /// Share of them.
        const NEARLY_ALL: f64 = 0.9;
        let counts = |pattern: &Self| {
            let mut counts: BTreeMap<Bytes, u64> = BTreeMap::new();
            pattern.sizes.iter().flatten().for_each(|(size, count)| *counts.entry(*size).or_default() += count);
            counts
        };
        let (ours, theirs) = (counts(self), counts(other));
        let matching: u64 =
            ours.iter().map(|(size, count)| theirs.get(size).map_or(0, |other| *count.min(other))).sum();
        matching as f64 >= NEARLY_ALL * ours.values().sum::<u64>() as f64
    }

    pub(super) fn add(&mut self, other: Self) {
        self.once += other.once;
        self.sizes.extend(other.sizes);
    }
}

/// The copies of a timeline that are part of what is meant, by direction.
pub(super) fn patterns(timeline: &Timeline, attribution: &Attribution) -> BTreeMap<CopyDirection, CopyPattern> {
    let mut patterns: BTreeMap<CopyDirection, CopyPattern> = BTreeMap::new();
    let mut order: Vec<usize> = (0..timeline.work.len()).filter(|row| !attribution.is_aside(*row)).collect();
    order.sort_by_key(|row| timeline.work[*row].start);
    let device_of = |work: &DeviceWork| timeline.queues[work.queue.0 as usize].device;
    let computes = |work: &DeviceWork| matches!(work.kind, WorkKind::Kernel | WorkKind::Graph);
    let computing: BTreeSet<u32> = timeline.work.iter().filter(|work| computes(work)).map(device_of).collect();
    // Copies of each device since its last kernel, and those before kernels of one name.
    let mut before: BTreeMap<u32, BTreeMap<CopyDirection, Nanos>> = BTreeMap::new();
    let mut recurring: HashMap<(CopyDirection, Option<NameId>), Recurring> = HashMap::new();
    let mut alone: HashMap<(CopyDirection, u32, Option<Bytes>), Recurring> = HashMap::new();
    let mut sizes: BTreeMap<(CopyDirection, u32), BTreeMap<Bytes, u64>> = BTreeMap::new();
    let mut end = |copies: BTreeMap<CopyDirection, Nanos>, kernel: Option<NameId>| {
        for (direction, time) in copies {
            recurring.entry((direction, kernel)).or_default().add(time);
        }
    };
    for work in order.into_iter().map(|row| &timeline.work[row]) {
        let device = device_of(work);
        let copies = before.entry(device).or_default();
        match work.kind {
            WorkKind::Copy(direction) => {
                if computing.contains(&device) {
                    *copies.entry(direction).or_default() += work.duration;
                } else {
                    alone.entry((direction, device, work.bytes)).or_default().add(work.duration);
                }
                let sizes = sizes.entry((direction, device)).or_default();
                work.bytes.into_iter().for_each(|size| *sizes.entry(size).or_default() += 1);
            }
            WorkKind::Kernel | WorkKind::Graph => end(std::mem::take(copies), Some(work.name)),
            WorkKind::Fill => {}
        }
    }
    before.into_values().for_each(|copies| end(copies, None));
    for ((direction, _), sizes) in sizes {
        patterns.entry(direction).or_default().sizes.push(sizes);
    }
    let recurring = recurring.into_iter().map(|((direction, _), times)| (direction, times));
    for (direction, times) in recurring.chain(alone.into_iter().map(|((direction, ..), times)| (direction, times))) {
        patterns.entry(direction).or_default().once += times.once();
    }
    patterns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribution::{AttributionSettings, attribute};
    use crate::device::sample::{Launch, timeline};

    const TO_DEVICE: CopyDirection = CopyDirection::HostToDevice;

    /// Works of 50 ns each in their order: copies to the device of these sizes, and kernels, whose size is 0.
    fn to_device(sizes: &[u64]) -> CopyPattern {
        let launch = |place: usize| Launch::new(100 * place as i64, 100 * place as i64 + 10, 50);
        let mut timeline = timeline(10_000, &(0..sizes.len()).map(launch).collect::<Vec<_>>());
        for (work, size) in timeline.work.iter_mut().zip(sizes).filter(|(_, size)| **size > 0) {
            (work.kind, work.bytes) = (WorkKind::Copy(TO_DEVICE), Some(Bytes::new(*size)));
        }
        patterns(&timeline, &attribute(&timeline, &AttributionSettings::default())).remove(&TO_DEVICE).unwrap()
    }

    #[test]
    fn copies_before_the_first_kernel_come_once() {
        let set_up = to_device(&[8, 9, 10, 0, 0, 0]);
        assert_eq!((set_up.once, set_up.alike()), (Nanos::new(150), None));
        let one_more_at_first = to_device(&[8, 9, 0, 8, 0, 8, 0]);
        assert_eq!((one_more_at_first.once, one_more_at_first.alike().unwrap().per_pass), (Nanos::new(50), 1.0));
    }

    #[test]
    fn copies_on_a_device_without_kernels_come_back_by_their_size() {
        // A copy of one size in each of three steps, and one of another size at first.
        assert_eq!(to_device(&[9, 8, 8, 8]).once, Nanos::new(50));
        assert_eq!(to_device(&[8]).once, Nanos::new(50));
    }

    #[test]
    fn copies_of_every_pass_come_back_and_are_counted_by_their_rarest_size() {
        // Two layers and a head: three copies in each of two passes.
        let weights = to_device(&[8, 0, 8, 0, 9, 0, 8, 0, 8, 0, 9, 0]);
        let alike = AlikeCopies { copies: 6, sizes: 2, per_pass: 3.0 };
        assert_eq!((weights.once, weights.alike()), (Nanos::ZERO, Some(alike)));
    }

    #[test]
    fn copies_that_return_have_the_sizes_of_those_that_went() {
        let went = to_device(&[8, 8, 9, 9, 0]);
        assert!(to_device(&[9, 8, 9, 8, 0]).has_sizes_of(&went));
        assert!(!to_device(&[8, 8, 8, 8, 0]).has_sizes_of(&went), "two of them did not go");
    }

    #[test]
    fn the_same_copy_to_each_of_two_devices_does_not_come_again() {
        // One pass over two layers and a head, on each device.
        let mut both = to_device(&[8, 0, 8, 0, 9, 0]);
        both.add(both.clone());
        assert_eq!(both.alike(), Some(AlikeCopies { copies: 2, sizes: 1, per_pass: 1.0 }));
    }
}
