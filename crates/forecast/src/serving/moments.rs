//! A server over time, thinned as it goes on.

use types::LoadMoment;

/// Most moments that are kept.
const MOMENTS: usize = 512;

/// Every so many steps, a moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moments {
    kept: Vec<LoadMoment>,
    /// Steps from one to the next, as a power of two.
    apart: u32,
}

impl Moments {
    /// In the order of time; servers were simulated ahead of each other by up to a step.
    pub fn sorted(&self) -> Vec<LoadMoment> {
        let mut sorted = self.kept.clone();
        sorted.sort_by(|a, b| a.at_ms.total_cmp(&b.at_ms));
        sorted
    }

    pub(crate) fn add(&mut self, step: u64, moment: LoadMoment) {
        if !step.is_multiple_of(1 << self.apart) {
            return;
        }
        self.kept.push(moment);
        if self.kept.len() > MOMENTS {
            self.apart += 1;
            let mut place = 0;
            self.kept.retain(|_| {
                place += 1;
                place % 2 == 1
            });
        }
    }
}
