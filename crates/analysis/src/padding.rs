//! How many tokens the kernels of a step process. An engine that replays captured graphs pads a batch to a size that was captured;
//! its annotation says how many tokens there are, the launches of its kernels how many are processed.
//!
//! Which kernels have a block per token is learned from the steps themselves: those whose grid is as wide as the step has tokens in
//! steps of different sizes, and never narrower.

use std::collections::{BTreeMap, BTreeSet};

use types::timeline::{NameId, Timeline, WorkKind};

/// Different numbers of tokens that a kernel's grid must equal.
const FEWEST_SIZES: usize = 2;
/// Share of the steps that a kernel must be in.
const LEAST_STEPS: f64 = 0.5;

/// How wide the grid of a kernel is in one step; absent where its launches differ.
type Width = Option<u64>;

/// Per step, the tokens that its kernels process; `None` where nothing tells. `tokens` has those of its batch.
pub(crate) fn processed(timeline: &Timeline, of_work: &[Option<u32>], tokens: &[Option<u64>]) -> Vec<Option<u64>> {
    let mut widths: BTreeMap<NameId, BTreeMap<u32, Width>> = BTreeMap::new();
    for (work, step) in timeline.work.iter().zip(of_work) {
        let (WorkKind::Kernel, Some(step), Some(launch)) = (work.kind, *step, work.launch) else { continue };
        if tokens.get(step as usize).copied().flatten().is_none_or(|tokens| tokens == 0) {
            continue;
        }
        let width = u64::from(timeline.launch_shapes.get(launch).grid[0]);
        let known = widths.entry(work.name).or_default().entry(step).or_insert(Some(width));
        *known = known.filter(|known| *known == width);
    }
    let sized = tokens.iter().flatten().filter(|tokens| **tokens > 0).count();
    let mut found = vec![None; tokens.len()];
    let mut contradicted = BTreeSet::new();
    for steps in widths.values().filter(|steps| counts_tokens(steps, tokens, sized)) {
        for (step, width) in steps {
            let place = *step as usize;
            match (found[place], *width) {
                (Some(known), Some(width)) if known != width => {
                    contradicted.insert(place);
                }
                (None, width) => found[place] = width,
                _ => {}
            }
        }
    }
    contradicted.into_iter().for_each(|place| found[place] = None);
    found
}

/// Whether a kernel has a block for each token of a step, as far as its steps tell.
fn counts_tokens(steps: &BTreeMap<u32, Width>, tokens: &[Option<u64>], sized: usize) -> bool {
    let mut equal = BTreeSet::new();
    for (step, width) in steps {
        let (Some(tokens), Some(width)) = (tokens[*step as usize], *width) else { return false };
        if width < tokens {
            return false;
        }
        if width == tokens {
            equal.insert(tokens);
        }
    }
    equal.len() >= FEWEST_SIZES && steps.len() as f64 >= LEAST_STEPS * sized as f64
}

#[cfg(test)]
mod tests {
    use types::timeline::{DeviceWork, TraceFormat};
    use types::{Clock, ClockId, ClockKind, LaunchShape};

    use super::*;

    fn kernel(name: NameId, launch: Option<types::timeline::LaunchShapeId>) -> DeviceWork {
        DeviceWork {
            kind: WorkKind::Kernel,
            name,
            queue: types::timeline::QueueId(0),
            launch,
            start: types::Nanos::ZERO,
            duration: types::Nanos::ZERO,
            correlation: None,
            operator: None,
            bytes: None,
            graph_node: None,
        }
    }

    /// Steps by the tokens of their batch, each with kernels by name and width.
    fn found(steps: &[(u64, &[(&str, u32)])]) -> Vec<Option<u64>> {
        let clock = Clock { id: ClockId(0), kind: ClockKind::Trace, unix_ns_at_zero: None, uncertainty_ns: None };
        let mut timeline = Timeline::new(TraceFormat::TorchProfiler, clock);
        let mut of_work = Vec::new();
        for (step, (_, kernels)) in steps.iter().enumerate() {
            for (name, width) in *kernels {
                let shape = LaunchShape { grid: [*width, 1, 1], block: [128, 1, 1], ..LaunchShape::default() };
                let launch = Some(timeline.launch_shapes.place_owned(shape));
                let name = timeline.names.place(name);
                timeline.work.push(kernel(name, launch));
                of_work.push(Some(step as u32));
            }
        }
        let tokens: Vec<_> = steps.iter().map(|(tokens, _)| Some(*tokens)).collect();
        processed(&timeline, &of_work, &tokens)
    }

    #[test]
    fn a_kernel_with_a_block_per_token_tells_the_padding() {
        let steps: [(u64, &[(&str, u32)]); 4] = [
            (4097, &[("cache", 4097), ("gather", 33), ("add", 1)]),
            (33, &[("cache", 64), ("gather", 33), ("add", 1)]),
            (32, &[("cache", 32), ("gather", 32), ("add", 1)]),
            (34, &[("cache", 64), ("gather", 34), ("add", 1)]),
        ];
        assert_eq!(found(&steps), [Some(4097), Some(64), Some(32), Some(64)]);
    }

    #[test]
    fn steps_of_one_size_and_kernels_that_disagree_tell_nothing() {
        assert_eq!(found(&[(33, &[("cache", 33)]), (33, &[("cache", 33)])]), [None, None]);
        let narrow: [(u64, &[(&str, u32)]); 3] = [(8, &[("a", 8)]), (16, &[("a", 16)]), (32, &[("a", 16)])];
        assert_eq!(found(&narrow), [None; 3]);
        let two: [(u64, &[(&str, u32)]); 3] =
            [(8, &[("a", 8), ("b", 8)]), (16, &[("a", 16), ("b", 16)]), (20, &[("a", 24), ("b", 32)])];
        assert_eq!(found(&two), [Some(8), Some(16), None]);
        let twice: [(u64, &[(&str, u32)]); 2] = [(8, &[("a", 8), ("a", 1)]), (16, &[("a", 16)])];
        assert_eq!(found(&twice), [None; 2]);
    }
}
