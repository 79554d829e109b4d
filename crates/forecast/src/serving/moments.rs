//! A server over time, thinned as it goes on.

/// The server as a step began.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moment {
    /// Since the first request, microseconds.
    pub at: f64,
    /// Sequences in the step.
    pub batch: usize,
    /// Requests that wait.
    pub waiting: usize,
    /// Share of the KV blocks in use.
    pub kv: f64,
}

/// Most moments that are kept.
const MOMENTS: usize = 512;

/// Every so many steps, a moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moments {
    kept: Vec<Moment>,
    /// Steps from one to the next, as a power of two.
    apart: u32,
}

impl Moments {
    /// In the order of simulation: each server's are in the order of time.
    pub fn kept(&self) -> &[Moment] {
        &self.kept
    }

    pub(crate) fn add(&mut self, step: u64, moment: Moment) {
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
