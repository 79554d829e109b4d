//! Why a timeline cannot be replayed.

use types::timeline::Timeline;
use types::{Facts, Remark};

/// Share of device work whose launch must be known: below it, nearly all order between host and device is a guess.
const FEWEST_LAUNCHES: f64 = 0.5;

/// Why a timeline cannot be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Nothing ran on a device.
    NoWork,
    /// Only launches of CUDA graphs were timed.
    GraphsOnly,
    /// No call of a host thread was recorded.
    NoCalls,
    /// Calls were recorded, but too few of them are tied to the work they launched.
    NoLaunches,
}

impl Refusal {
    /// Why this timeline cannot be; `None` where it can.
    pub(super) fn of(timeline: &Timeline, launch: &[Option<u32>]) -> Option<Self> {
        let launched = launch.iter().flatten().count();
        if timeline.work.is_empty() {
            return Some(Self::NoWork);
        }
        if timeline.graphs_only {
            return Some(Self::GraphsOnly);
        }
        if timeline.calls.is_empty() {
            return Some(Self::NoCalls);
        }
        let fewest = FEWEST_LAUNCHES * timeline.work.len() as f64;
        ((launched as f64) < fewest).then_some(Self::NoLaunches)
    }

    /// Why, behind "not replayed:".
    pub fn reason(self) -> Remark {
        match self {
            Self::NoWork => Remark::new("replay.no-work", Facts::new()),
            Self::GraphsOnly => Remark::new("replay.graphs-only", Facts::new()),
            Self::NoCalls => Remark::new("replay.no-calls", Facts::new()),
            Self::NoLaunches => Remark::new("replay.no-launches", Facts::new()),
        }
    }
}
