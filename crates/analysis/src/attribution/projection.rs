//! Ranges projected onto the device: from the start of the first to the end of the last kernel, copy or memset launched
//! inside.
//!
//! The definition is that of `nsys stats -r nvtx_gpu_proj_sum`: work counts for a range when the thread that opened the
//! range launched it while the range was open, and so counts for every range around that one too. Work of a launch on a
//! thread is a run of places in launch order, so a projection is a minimum and a maximum over that run.

use std::cmp::Reverse;

use types::Nanos;
use types::timeline::{NameId, RangeStyle, Timeline};

use super::RangeIndex;
use super::forest::RangeSpans;
use super::launch::{Launches, NONE};
use crate::time::Span;

/// What a range covers on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Projection {
    /// From the first start to the last end.
    pub span: Span,
    /// Kernels, copies and memsets.
    pub work: u64,
}

/// All ranges of one name that launched work.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeSum {
    /// Their name.
    pub name: NameId,
    /// Their domain.
    pub domain: Option<NameId>,
    /// How they were opened.
    pub style: RangeStyle,
    /// How many launched work.
    pub instances: u64,
    /// Time they cover on the device, summed.
    pub projected_ns: Nanos,
    /// Shortest of them.
    pub shortest_ns: Nanos,
    /// Longest of them.
    pub longest_ns: Nanos,
    /// Time they were open on the host, summed.
    pub host_ns: Nanos,
    /// Kernels, copies and memsets launched inside.
    pub work: u64,
}

/// Every range projected onto the device, on demand.
#[derive(Clone, Debug)]
pub struct Projections {
    ranges: RangeSpans,
    /// Work launched before each launch, and the total.
    before: Vec<u32>,
    /// First start and last end of the work of each launch, as a tree over pairs: leaves in the second half.
    tree: Vec<Span>,
}

impl Projections {
    pub(super) fn new(timeline: &Timeline, ranges: RangeSpans, launches: Launches) -> Self {
        let count = if timeline.ranges.is_empty() { 0 } else { launches.len() };
        let nothing = Span::new(Nanos::new(i64::MAX), Nanos::new(i64::MIN));
        let mut before = vec![0u32; count + 1];
        let mut tree = vec![nothing; 2 * count];
        if count > 0 {
            for (work, launch) in timeline.work.iter().zip(&launches.of_work).filter(|(_, launch)| **launch != NONE) {
                before[*launch as usize + 1] += 1;
                let leaf = &mut tree[count + *launch as usize];
                *leaf = leaf.hull(Span::new(work.start, work.end()));
            }
        }
        for place in 0..count {
            before[place + 1] += before[place];
        }
        for place in (1..count).rev() {
            tree[place] = tree[2 * place].hull(tree[2 * place + 1]);
        }
        Self { ranges, before, tree }
    }

    /// The range a pushed range lies in.
    pub fn parent(&self, range: RangeIndex) -> Option<RangeIndex> {
        self.ranges.parent.get(range.0 as usize).filter(|parent| **parent != NONE).map(|parent| RangeIndex(*parent))
    }

    /// Ranges that ended inside one opened later on their thread, as ranges of two domains may.
    pub fn crossing(&self) -> u64 {
        self.ranges.crossing
    }

    /// What a range covers on the device; absent where it launched nothing.
    pub fn of(&self, range: RangeIndex) -> Option<Projection> {
        let (first, end) = (*self.ranges.first.get(range.0 as usize)?, *self.ranges.end.get(range.0 as usize)?);
        if first >= end {
            return None;
        }
        let count = self.before.len() - 1;
        let (mut low, mut high) = (first as usize + count, end as usize + count);
        let mut span = self.tree[low];
        while low < high {
            if low % 2 == 1 {
                span = span.hull(self.tree[low]);
                low += 1;
            }
            if high % 2 == 1 {
                high -= 1;
                span = span.hull(self.tree[high]);
            }
            (low, high) = (low / 2, high / 2);
        }
        Some(Projection { span, work: u64::from(self.before[end as usize] - self.before[first as usize]) })
    }

    /// Ranges by domain, name and style, the largest projected time first.
    pub fn sums(&self, timeline: &Timeline) -> Vec<RangeSum> {
        let mut sums: Vec<RangeSum> = Vec::new();
        // Names have small numbers: a list per name is a table without hashing.
        let mut places: Vec<Vec<u32>> = vec![Vec::new(); timeline.names.len()];
        for (place, range) in timeline.ranges.iter().enumerate() {
            let Some(projection) = self.of(RangeIndex(place as u32)) else { continue };
            let same = &mut places[range.name.index()];
            let found = same.iter().copied().find(|sum| {
                let sum = &sums[*sum as usize];
                sum.domain == range.domain && sum.style == range.style
            });
            let sum = found.unwrap_or_else(|| {
                same.push(sums.len() as u32);
                sums.push(RangeSum {
                    name: range.name,
                    domain: range.domain,
                    style: range.style,
                    instances: 0,
                    projected_ns: Nanos::ZERO,
                    shortest_ns: Nanos::new(i64::MAX),
                    longest_ns: Nanos::ZERO,
                    host_ns: Nanos::ZERO,
                    work: 0,
                });
                sums.len() as u32 - 1
            });
            let (sum, projected) = (&mut sums[sum as usize], projection.span.length());
            sum.instances += 1;
            sum.projected_ns += projected;
            sum.shortest_ns = sum.shortest_ns.min(projected);
            sum.longest_ns = sum.longest_ns.max(projected);
            sum.host_ns += range.end.unwrap_or(self.ranges.last) - range.start;
            sum.work += projection.work;
        }
        sums.sort_by_key(|sum| Reverse(sum.projected_ns));
        sums
    }
}
