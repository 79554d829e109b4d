//! Several pages of one capture: the launches that they share are one launch each, with the counters of all pages.

use std::collections::HashMap;

use super::LaunchCounters;

/// Two pages round a value differently: to two digits behind the point, in a unit the tool chooses.
const ROUNDING: f64 = 0.01;

/// What putting pages together met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageOverlap {
    /// Launches that an earlier page had already.
    pub shared: u64,
    /// Of these, launches for which two pages give different values; those of the earlier page are kept.
    pub differing: u64,
    /// Launches with the process and number of another kernel's: pages of different captures, kept apart.
    pub apart: u64,
}

impl LaunchCounters {
    /// Adds the launches of another page to those of earlier pages.
    pub fn add_page(all: &mut Vec<Self>, page: Vec<Self>) -> PageOverlap {
        let mut overlap = PageOverlap::default();
        let key = |one: &Self| Some((one.process?, one.id));
        let known: HashMap<(u32, u64), usize> =
            all.iter().enumerate().filter_map(|(place, one)| Some((key(one)?, place))).collect();
        for one in page {
            let Some(place) = key(&one).and_then(|key| known.get(&key)) else {
                all.push(one);
                continue;
            };
            let earlier = &mut all[*place];
            if (&earlier.name, earlier.device) == (&one.name, one.device) {
                overlap.shared += 1;
                overlap.differing += u64::from(earlier.absorb(one));
            } else {
                overlap.apart += 1;
                all.push(one);
            }
        }
        overlap
    }

    /// Takes what another page has of this launch; whether the two differ.
    fn absorb(&mut self, other: Self) -> bool {
        let Self { time, dram, dram_rate, compute, memory, occupancy, stage, .. } = other;
        self.stage = self.stage.or(stage);
        let mut differs = false;
        let pairs = [
            (&mut self.time, time),
            (&mut self.dram, dram),
            (&mut self.dram_rate, dram_rate),
            (&mut self.compute, compute),
            (&mut self.memory, memory),
            (&mut self.occupancy, occupancy),
        ];
        for (own, other) in pairs {
            match (*own, other) {
                (Some(one), Some(two)) => {
                    differs |= (one - two).abs() > ROUNDING.max(ROUNDING * one.abs().max(two.abs()));
                }
                (None, _) => *own = other,
                _ => {}
            }
        }
        differs
    }
}

#[cfg(test)]
mod tests {
    use super::super::launches::tests::counted;
    use super::*;

    #[test]
    fn pages_of_one_launch_fill_each_other() {
        let one = LaunchCounters { compute: None, dram: None, ..counted("gemm", 100.0, None) };
        let other = LaunchCounters { time: None, ..counted("gemm", 0.0, Some(9.0)) };
        let mut all = vec![one];
        let overlap = LaunchCounters::add_page(&mut all, vec![other]);
        assert_eq!(overlap, PageOverlap { shared: 1, ..PageOverlap::default() });
        assert_eq!(all, [counted("gemm", 100.0, Some(9.0))]);
    }

    #[test]
    fn values_that_differ_beyond_rounding_are_counted_and_the_earlier_is_kept() {
        let mut all = vec![counted("gemm", 100.0, Some(9.0))];
        let overlap = LaunchCounters::add_page(&mut all, vec![counted("gemm", 100.4, Some(9.5))]);
        assert_eq!((overlap.differing, all[0].compute), (1, Some(9.0)));
        let overlap = LaunchCounters::add_page(&mut all, vec![counted("gemm", 100.4, Some(9.004))]);
        assert_eq!((overlap.shared, overlap.differing), (1, 0));
    }

    #[test]
    fn another_kernel_of_the_same_number_is_another_capture() {
        let mut all = vec![counted("gemm", 100.0, None)];
        let overlap = LaunchCounters::add_page(&mut all, vec![counted("copy", 100.0, None)]);
        assert_eq!((overlap.apart, all.len()), (1, 2));
        let other = LaunchCounters { process: Some(8), ..counted("gemm", 100.0, None) };
        assert_eq!(LaunchCounters::add_page(&mut all, vec![other]), PageOverlap::default());
        assert_eq!(all.len(), 3);
    }
}
