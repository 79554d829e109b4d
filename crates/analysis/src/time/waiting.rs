//! Idle time of a device by its cause.

use types::Nanos;

/// What a device waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GapCause {
    /// The host prepared and launched the next work: framework, interpreter, driver.
    Launch,
    /// The host waited for the device.
    Synchronisation,
    /// The host was in a copy or memset call.
    Copy,
    /// The host took or gave back memory.
    Allocation,
    /// The next work was launched already: the device's own latency, or an order between streams.
    Queued,
    /// The trace does not tell: no call launched the next work, or none follows.
    Unknown,
}

impl GapCause {
    /// Every cause.
    pub const ALL: [Self; 6] =
        [Self::Launch, Self::Synchronisation, Self::Copy, Self::Allocation, Self::Queued, Self::Unknown];

    /// The name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Launch => "launch",
            Self::Synchronisation => "synchronisation",
            Self::Copy => "copy",
            Self::Allocation => "allocation",
            Self::Queued => "queued",
            Self::Unknown => "unknown",
        }
    }
}

/// Idle time by cause; the parts make up the whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting([Nanos; GapCause::ALL.len()]);

impl Waiting {
    /// Time put down to a cause.
    pub fn of(&self, cause: GapCause) -> Nanos {
        self.0[cause as usize]
    }

    /// All of it.
    pub fn total(&self) -> Nanos {
        self.0.iter().copied().sum()
    }

    /// The cause of the most; the first of equals.
    pub fn main(&self) -> GapCause {
        let most = self.0.iter().max().copied().unwrap_or_default();
        GapCause::ALL.into_iter().find(|cause| self.of(*cause) == most).unwrap_or(GapCause::Unknown)
    }

    pub(super) fn add(&mut self, cause: GapCause, time: Nanos) {
        self.0[cause as usize] += time;
    }
}
