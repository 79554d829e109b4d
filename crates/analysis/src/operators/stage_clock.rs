//! Which stage a moment on the host belongs to.

use std::collections::BTreeMap;

use types::timeline::ThreadId;
use types::{Nanos, Stage};

use crate::attribution::StageInstance;

/// The stages of a timeline by thread and time.
pub(super) struct StageClock {
    /// For each thread with stages: from each moment on, the innermost stage that runs.
    threads: BTreeMap<ThreadId, Vec<(Nanos, Option<Stage>)>>,
}

impl StageClock {
    /// Of these instances, parents before children.
    pub(super) fn new(instances: &[StageInstance]) -> Self {
        let mut moments: BTreeMap<ThreadId, Vec<(Nanos, bool, usize)>> = BTreeMap::new();
        for (place, instance) in instances.iter().enumerate() {
            let of_thread = moments.entry(instance.thread).or_default();
            of_thread.extend([(instance.host.start, true, place), (instance.host.end, false, place)]);
        }
        let segments = |mut moments: Vec<(Nanos, bool, usize)>| {
            // What ends at a moment is over before the next starts.
            moments.sort_unstable();
            let mut open: Vec<usize> = Vec::new();
            let mut segments: Vec<(Nanos, Option<Stage>)> = Vec::with_capacity(moments.len());
            for (time, starts, place) in moments {
                if starts {
                    open.push(place)
                } else {
                    open.retain(|other| *other != place)
                }
                segments.push((time, open.last().map(|place| instances[*place].stage)));
            }
            segments
        };
        Self { threads: moments.into_iter().map(|(thread, moments)| (thread, segments(moments))).collect() }
    }

    /// The innermost stage that runs at a moment on a thread. A thread without stages, such as autograd's, works for the one
    /// that has them; where several have them, nobody knows for which.
    pub(super) fn at(&self, thread: ThreadId, time: Nanos) -> Option<Stage> {
        let only = || self.threads.values().next().filter(|_| self.threads.len() == 1);
        let segments = self.threads.get(&thread).or_else(only)?;
        let next = segments.partition_point(|(start, _)| *start <= time);
        segments.get(next.checked_sub(1)?)?.1
    }
}
