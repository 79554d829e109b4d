//! How often a region was entered, as far as kernels show.
//!
//! A kernel says which ranges were open when it was launched, not when they were opened. Two kernels of one region with a
//! kernel of the same thread between them that is not of it prove two entries; side by side they prove one. The count is
//! therefore a lower bound.

use std::collections::HashMap;
use std::rc::Rc;

use types::counter::ProfiledWork;

use super::tree::{Membership, Node};

/// A region in a thread of a process.
type Entered = (Node, Option<u32>, Option<u64>);

/// The fewest entries by region, process and thread, of kernels in the order of their launch.
pub(super) fn fewest<'a>(
    kernels: impl Iterator<Item = (&'a ProfiledWork, Rc<Membership>)> + Clone,
) -> HashMap<Entered, u64> {
    let mut threads: HashMap<Option<u32>, Vec<u64>> = HashMap::new();
    for (work, found) in kernels.clone() {
        let known = threads.entry(work.process).or_default();
        for thread in found.inclusive.iter().filter_map(|(_, thread)| *thread) {
            if !known.contains(&thread) {
                known.push(thread);
            }
        }
    }
    let mut counts: HashMap<Entered, u64> = HashMap::new();
    let mut open: HashMap<(Option<u32>, Option<u64>), Vec<Node>> = HashMap::new();
    for (work, found) in kernels {
        // A kernel without ranges may be of any thread. It only ends something where there is no choice.
        let silent = |thread: Option<u64>| found.inclusive.iter().all(|(_, other)| *other != thread);
        let of_process = threads.get(&work.process).map(Vec::as_slice).unwrap_or_default();
        let is_sure = of_process.len() <= 1;
        let listed = of_process.iter().copied().map(Some).chain([None]);
        for thread in listed {
            if silent(thread) && !is_sure {
                continue;
            }
            let now: Vec<Node> =
                found.inclusive.iter().filter(|(_, other)| *other == thread).map(|(node, _)| *node).collect();
            let before = open.entry((work.process, thread)).or_default();
            for node in now.iter().filter(|node| !before.contains(node)) {
                *counts.entry((*node, work.process, thread)).or_default() += 1;
            }
            *before = now;
        }
    }
    counts
}
