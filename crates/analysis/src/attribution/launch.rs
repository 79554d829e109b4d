//! Calls that launched work.

use types::Nanos;
use types::timeline::Timeline;

use super::nesting::ByThread;

/// Stands for "none" in the four-byte places kept per launch and per range.
pub(super) const NONE: u32 = u32::MAX;

/// Calls that launched work, by thread and start.
#[derive(Clone, Debug)]
pub(super) struct Launches {
    /// Place of each in `timeline.calls`.
    pub(super) calls: ByThread,
    /// Start of each.
    pub(super) starts: Vec<Nanos>,
    /// Per work: place of its launch here, or [`NONE`].
    pub(super) of_work: Vec<u32>,
}

impl Launches {
    pub(super) fn new(timeline: &Timeline, call_of_work: &[Option<u32>]) -> Self {
        let mut place_of_call = vec![NONE; timeline.calls.len()];
        for call in call_of_work.iter().flatten() {
            place_of_call[*call as usize] = 0;
        }
        let launching = (0..timeline.calls.len() as u32).filter(|call| place_of_call[*call as usize] != NONE);
        let calls = ByThread::new(
            timeline.threads.len(),
            launching.map(|call| (call, timeline.calls[call as usize].thread.0)),
            |call| timeline.calls[call as usize].start,
        );
        for (place, call) in calls.rows.iter().enumerate() {
            place_of_call[*call as usize] = place as u32;
        }
        let starts = calls.rows.iter().map(|call| timeline.calls[*call as usize].start).collect();
        let of_work = call_of_work.iter().map(|call| call.map_or(NONE, |call| place_of_call[call as usize])).collect();
        Self { calls, starts, of_work }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    /// What all work gets from its launch.
    pub(super) fn per_work<'a>(&'a self, per_launch: &'a [u32]) -> impl Iterator<Item = Option<u32>> + 'a {
        let of_launch = |launch: &u32| Some(*per_launch.get(*launch as usize)?).filter(|place| *place != NONE);
        self.of_work.iter().map(of_launch)
    }
}
