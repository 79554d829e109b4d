//! Idle time of a device by its cause.

use types::{IdleCause, Nanos};

/// Idle time by cause; the parts make up the whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting([Nanos; IdleCause::ALL.len()]);

impl Waiting {
    /// Time put down to a cause.
    pub fn of(&self, cause: IdleCause) -> Nanos {
        self.0[cause as usize]
    }

    /// All of it.
    pub fn total(&self) -> Nanos {
        self.0.iter().copied().sum()
    }

    pub(super) fn add(&mut self, cause: IdleCause, time: Nanos) {
        self.0[cause as usize] += time;
    }
}
