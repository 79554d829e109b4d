//! Ranges around loading and warming up: what is launched inside them is not what was to be measured.
//!
//! A warm-up runs the same stages as what follows it, so that a range around it is the only thing that tells them apart.

use std::collections::BTreeMap;

use types::Nanos;
use types::timeline::{RangeStyle, ThreadId, Timeline};

use crate::time::{Span, Spans};

/// Names of such ranges.
const NAMES: [&str; 5] = ["load", "loading", "warmup", "warm_up", "warm-up"];

/// When a timeline loads or warms up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asides {
    /// Of ranges that a thread has pushed.
    threads: BTreeMap<u32, Spans>,
    /// Of ranges started by handle, which hold for a whole process.
    processes: BTreeMap<Option<u32>, Spans>,
}

/// A range as far as it matters here.
pub(super) type Placed = (RangeStyle, ThreadId, Span);

impl Asides {
    /// The ranges of these names that lie in no stage. One inside a stage is a part of what is measured: an engine may load
    /// weights or pages while it works.
    pub(super) fn find(timeline: &Timeline, stages: impl Iterator<Item = Placed>, last: Nanos) -> Self {
        let named: Vec<bool> = timeline.names.iter().map(|(_, name)| NAMES.contains(&name)).collect();
        let ours = |range: &&types::timeline::Range| {
            let domain = range.domain.map(|domain| timeline.name(domain));
            named[range.name.index()] && matches!(domain, None | Some("" | "LLM"))
        };
        let mut found = timeline.ranges.iter().filter(ours).peekable();
        if found.peek().is_none() {
            return Self::default();
        }
        let stages = Self::of(timeline, stages);
        let place = |range: &types::timeline::Range| {
            (range.style, range.thread, Span::new(range.start, range.end.unwrap_or(last)))
        };
        let free = found.map(place).filter(|(_, thread, span)| !stages.cover(timeline, *thread, *span));
        Self::of(timeline, free)
    }

    fn of(timeline: &Timeline, ranges: impl Iterator<Item = Placed>) -> Self {
        let mut threads: BTreeMap<u32, Vec<Span>> = BTreeMap::new();
        let mut processes: BTreeMap<Option<u32>, Vec<Span>> = BTreeMap::new();
        for (style, thread, span) in ranges {
            match style {
                RangeStyle::PushPop => threads.entry(thread.0).or_default().push(span),
                RangeStyle::StartEnd => processes.entry(process(timeline, thread)).or_default().push(span),
            }
        }
        Self {
            threads: threads.into_iter().map(|(thread, spans)| (thread, Spans::union(spans))).collect(),
            processes: processes.into_iter().map(|(process, spans)| (process, Spans::union(spans))).collect(),
        }
    }

    /// Whether there are any.
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty() && self.processes.is_empty()
    }

    /// Whether a thread does something aside at a moment.
    pub fn hold(&self, timeline: &Timeline, thread: ThreadId, moment: Nanos) -> bool {
        self.seen_by(timeline, thread).any(|spans| spans.contains(moment))
    }

    /// Whether one of them reaches from before a span to behind it, and is not just that span.
    fn cover(&self, timeline: &Timeline, thread: ThreadId, span: Span) -> bool {
        self.seen_by(timeline, thread).any(|spans| {
            let around = spans.within(span);
            around.as_slice() == [span] && !spans.as_slice().contains(&span)
        })
    }

    fn seen_by<'a>(&'a self, timeline: &Timeline, thread: ThreadId) -> impl Iterator<Item = &'a Spans> {
        let pushed = self.threads.get(&thread.0);
        pushed.into_iter().chain(self.processes.get(&process(timeline, thread)))
    }

    /// Moments of a window in which every process that does something aside does so.
    pub fn time_within(&self, timeline: &Timeline, window: Span) -> Nanos {
        let mut each: BTreeMap<Option<u32>, Vec<Span>> = BTreeMap::new();
        let of_threads = self.threads.iter().map(|(thread, spans)| (process(timeline, ThreadId(*thread)), spans));
        for (process, spans) in of_threads.chain(self.processes.iter().map(|(process, spans)| (*process, spans))) {
            each.entry(process).or_default().extend(spans.as_slice());
        }
        let all = each.into_values().map(Spans::union).reduce(|one, other| one.intersect(&other));
        all.unwrap_or_default().total_within(window)
    }
}

fn process(timeline: &Timeline, thread: ThreadId) -> Option<u32> {
    timeline.threads.get(thread.0 as usize).and_then(|thread| thread.process)
}
