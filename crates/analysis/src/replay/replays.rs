//! All timelines of a run, replayed side by side: what a change saves in them, and how well they replay.

use std::collections::BTreeMap;

use types::{CriticalPathPart, Hardware, Nanos, ReplayBasis, ReplaySummary};

use super::bound::Bound;
use super::change::Change;
use super::path::PathCause;
use super::refusal::Refusal;
use super::trace_replay::{Basis, TraceReplay};
use crate::device::Mark;
use crate::evidence::PlacedTimeline;
use crate::scope::Scope;
use crate::statistics::share;

/// Timelines, ready to be replayed.
#[derive(Debug, Default)]
pub struct Replays<'a> {
    traces: Vec<TraceReplay<'a>>,
    refused: Option<Refusal>,
}

/// What a change saves, over all timelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReplayedSaving {
    /// Of the traced pass, in the middle of the interval.
    pub(crate) traced: Nanos,
    /// Least, of the plain run where it is the basis.
    pub(crate) low: Nanos,
    /// Most.
    pub(crate) high: Nanos,
}

impl<'a> Replays<'a> {
    /// All timelines with device work; one that cannot be replayed refuses for all. `marks` has the work that findings ask
    /// about, for each of them.
    pub(crate) fn new(
        timelines: &'a [PlacedTimeline<'a>],
        hardware: Option<&Hardware>,
        marks: &'a [Vec<Option<Mark>>],
    ) -> Self {
        let mut traces = Vec::new();
        let with_work = timelines.iter().filter(|placed| !placed.timeline.work.is_empty());
        for (place, placed) in with_work.enumerate() {
            match TraceReplay::new(placed, hardware, marks.get(place).map(Vec::as_slice).unwrap_or_default()) {
                Ok(trace) => traces.push(trace),
                Err(refusal) => return Self { traces: Vec::new(), refused: Some(refusal) },
            }
        }
        let refused = (traces.is_empty() && !timelines.is_empty()).then_some(Refusal::NoWork);
        Self { traces, refused }
    }

    /// Makes plain times of one instance of each stage the basis.
    pub(crate) fn set_plain(&mut self, plain: &BTreeMap<Scope, Nanos>) {
        for trace in &mut self.traces {
            trace.set_plain(plain);
        }
    }

    /// The timelines.
    pub(crate) fn traces(&self) -> &[TraceReplay<'a>] {
        &self.traces
    }

    /// Why there is none.
    pub(crate) fn refused(&self) -> Option<Refusal> {
        self.refused
    }

    /// Whether the traces show where the host waited for the device.
    pub(crate) fn shows_waits(&self) -> bool {
        self.traces.iter().all(TraceReplay::shows_waits)
    }

    /// What savings are of.
    pub(crate) fn basis_kind(&self) -> Basis {
        if self.traces.iter().any(TraceReplay::is_plain) { Basis::Plain } else { Basis::Traced }
    }

    /// Time of the run that savings are of; absent where it is the traced pass as the books have it.
    pub(crate) fn basis(&self) -> Option<Nanos> {
        (self.basis_kind() == Basis::Plain).then(|| self.time(&[], Bound::Low, Basis::Plain, None))
    }

    /// What one change saves in a part of the run, or in all of it.
    pub(crate) fn saving(&self, change: &Change, scope: Option<Scope>) -> Option<ReplayedSaving> {
        self.together(&[(change, scope)], scope)
    }

    /// What changes save together.
    pub(crate) fn together(
        &self,
        changes: &[(&Change, Option<Scope>)],
        scope: Option<Scope>,
    ) -> Option<ReplayedSaving> {
        if self.traces.is_empty() {
            return None;
        }
        let after = |basis| {
            let low = self.time(changes, Bound::Low, basis, scope);
            let is_exact = changes.iter().all(|(change, _)| change.is_exact());
            [low, if is_exact { low } else { self.time(changes, Bound::High, basis, scope) }]
        };
        let before = self.time(&[], Bound::Low, Basis::Traced, scope);
        let [least, most] = after(Basis::Traced);
        let traced = [before - least, before - most].map(|saves| saves.max(Nanos::ZERO));
        let middle = Nanos::new((traced[0].get() + traced[1].get()) / 2);
        let (low, high) = match self.basis_kind() {
            Basis::Traced => (traced[0].min(traced[1]), traced[0].max(traced[1])),
            Basis::Plain => {
                let plain = self.time(&[], Bound::Low, Basis::Plain, scope);
                let scaled = after(Basis::Plain).map(|after| plain - after);
                // What is left of the host may be slowed down by the profiler, or may not.
                let ends = [scaled[0], scaled[1], plain - least];
                let ends = ends.map(|saves| saves.max(Nanos::ZERO));
                (ends.iter().copied().min().unwrap_or_default(), ends.iter().copied().max().unwrap_or_default())
            }
        };
        Some(ReplayedSaving { traced: middle, low, high })
    }

    /// Time of a part of the run, or of all of it, with changes.
    pub(crate) fn time(
        &self,
        changes: &[(&Change, Option<Scope>)],
        bound: Bound,
        basis: Basis,
        scope: Option<Scope>,
    ) -> Nanos {
        let of = |trace: &TraceReplay<'_>| match changes {
            [] => trace.time(trace.unchanged(basis), scope),
            changes => trace.time(&trace.replay(changes, bound, basis), scope),
        };
        self.traces.iter().map(of).sum()
    }

    /// How well they replay; `together` is what all findings save. Absent where nothing was traced.
    pub(crate) fn summary(&self, together: Option<Nanos>) -> Option<ReplaySummary> {
        let nothing = ReplaySummary {
            measured_ns: None,
            replayed_ns: None,
            residual: None,
            basis: None,
            basis_ns: None,
            together_ns: None,
            refused: self.refused.map(Refusal::reason),
        };
        if self.traces.is_empty() {
            return self.refused.map(|_| nothing);
        }
        let measured: Nanos = self.traces.iter().map(|trace| trace.recorded(None)).sum();
        let replayed = self.time(&[], Bound::Low, Basis::Traced, None);
        let basis = match self.basis_kind() {
            Basis::Plain => ReplayBasis::PlainRun,
            Basis::Traced => ReplayBasis::TracedPass,
        };
        Some(ReplaySummary {
            measured_ns: Some(measured),
            replayed_ns: Some(replayed),
            residual: share((replayed - measured).get() as f64, measured.get() as f64),
            basis: Some(basis),
            basis_ns: Some(self.basis().unwrap_or(measured)),
            together_ns: together,
            ..nothing
        })
    }

    /// The critical path with changes, longest first.
    pub(crate) fn critical_path(&self, changes: &[(&Change, Option<Scope>)], basis: Basis) -> Vec<CriticalPathPart> {
        let mut sums: BTreeMap<PathCause, Nanos> = BTreeMap::new();
        for trace in &self.traces {
            let path = match changes {
                [] => trace.critical_path(trace.unchanged(basis)),
                changes => trace.critical_path(&trace.replay(changes, Bound::Low, basis)),
            };
            for (cause, time) in path {
                *sums.entry(cause).or_default() += time;
            }
        }
        let whole: Nanos = sums.values().copied().sum();
        let part = |(cause, ns): (PathCause, Nanos)| {
            Some(CriticalPathPart { cause: cause.remark(), ns, share: share(ns.get() as f64, whole.get() as f64)? })
        };
        let mut parts: Vec<_> = sums.into_iter().filter_map(part).collect();
        parts.sort_by_key(|part| std::cmp::Reverse(part.ns));
        parts
    }
}
