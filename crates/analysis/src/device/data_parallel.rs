//! What a trace shows of training on several devices with PyTorch: whether gradients are sent in buckets or parameters are sharded,
//! and what the buckets cost.

use std::collections::BTreeMap;

use types::Nanos;
use types::timeline::{HostOperator, OperatorKind, ThreadId, Timeline};

use crate::attribution::Attribution;

/// The annotation around each forward pass of `DistributedDataParallel`.
const FORWARD: &str = "DistributedDataParallel.forward";
/// Operators of its reducer; PyTorch has spelled them in two ways.
const REDUCER: [&str; 2] = ["torch.distributed.ddp.reducer::", "torch::distributed::reducer::"];
/// The one that copies a gradient out of its bucket, which a gradient that is a view of the bucket does not need.
const COPY_BACK: &str = "torch.distributed.ddp.reducer::copy_bucket_to_grad";
/// Annotations of `FullyShardedDataParallel`, of both versions.
const SHARDED: [&str; 2] = ["FullyShardedDataParallel.", "FSDP::"];

/// What was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DataParallel {
    /// Gradients are sent in buckets, during the backward pass.
    pub(crate) buckets: bool,
    /// Parameters are gathered before use.
    pub(crate) shards: bool,
    /// Device work that copies gradients out of their buckets.
    pub(crate) copies_back: u64,
    /// Its time.
    pub(crate) copy_time: Nanos,
}

impl DataParallel {
    /// What one more timeline shows.
    pub(crate) fn add(&mut self, timeline: &Timeline, attribution: &Attribution) {
        for (_, name) in timeline.names.iter() {
            self.buckets |= name == FORWARD || REDUCER.iter().any(|start| name.starts_with(start));
            self.shards |= SHARDED.iter().any(|start| name.starts_with(start));
        }
        let is_copy: Vec<bool> = timeline.names.iter().map(|(_, name)| name == COPY_BACK).collect();
        if !is_copy.contains(&true) {
            return;
        }
        let of_kind =
            |operator: &&HostOperator| operator.kind == OperatorKind::Framework && is_copy[operator.name.index()];
        let mut spans: BTreeMap<ThreadId, Vec<(Nanos, Nanos)>> = BTreeMap::new();
        for operator in timeline.operators.iter().filter(of_kind) {
            spans.entry(operator.thread).or_default().push((operator.start, operator.end()));
        }
        spans.values_mut().for_each(|spans| spans.sort_unstable());
        for (work, call) in timeline.work.iter().zip(&attribution.launch) {
            let Some(call) = call.map(|call| &timeline.calls[call as usize]) else { continue };
            let Some(spans) = spans.get(&call.thread) else { continue };
            let before = spans.partition_point(|(start, _)| *start <= call.start);
            if before.checked_sub(1).is_some_and(|place| call.start < spans[place].1) {
                self.copies_back += 1;
                self.copy_time += work.duration;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribution::{AttributionSettings, attribute};
    use crate::device::sample::{Launch, range, timeline};

    fn found(timeline: &Timeline) -> DataParallel {
        let mut found = DataParallel::default();
        found.add(timeline, &attribute(timeline, &AttributionSettings::default()));
        found
    }

    #[test]
    fn copies_out_of_buckets_are_those_launched_inside_the_reducer_s_operator() {
        let copy = Launch { operator: Some(COPY_BACK), ..Launch::new(10, 100, 7) };
        let shown = found(&timeline(1_000, &[copy, Launch::new(20, 200, 9)]));
        let expected =
            DataParallel { buckets: true, copies_back: 1, copy_time: Nanos::new(7), ..DataParallel::default() };
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_program_on_one_device_shows_none_of_it() {
        let mut alone = timeline(1_000, &[Launch::new(10, 100, 7)]);
        assert_eq!(found(&alone), DataParallel::default());
        range(&mut alone, "FullyShardedDataParallel.forward", 5, 50);
        assert_eq!(found(&alone), DataParallel { shards: true, ..DataParallel::default() });
    }
}
