//! How much device work has a place, and what to do about the rest.

use types::timeline::Timeline;
use types::{Nanos, QualityCounter, Severity};

use super::{Attribution, Inference, StageOrigin, captured};
use crate::statistics::share;

/// Some pieces of work and their time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Pieces.
    pub count: u64,
    /// Their time on the device, summed.
    pub time: Nanos,
}

impl Amount {
    /// The pieces of work, by their place in the timeline, that something is true of.
    pub(super) fn of(timeline: &Timeline, is_meant: impl Fn(usize) -> bool) -> Self {
        let mut amount = Self::default();
        for (_, work) in timeline.work.iter().enumerate().filter(|(place, _)| is_meant(*place)) {
            amount.count += 1;
            amount.time += work.duration;
        }
        amount
    }
}

/// How much device work has a place. Shares are of the time of all work but that launched aside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// All work but that launched aside.
    pub all: Amount,
    /// Launched while loading or warming up.
    pub aside: Amount,
    /// With its launch in the trace.
    pub launch: Amount,
    /// With an operator.
    pub operator: Amount,
    /// With a range.
    pub range: Amount,
    /// With a stage that a range names.
    pub stage_from_ranges: Amount,
    /// With a stage that was inferred.
    pub stage_inferred: Amount,
}

impl Coverage {
    pub(super) fn of(timeline: &Timeline, attribution: &Attribution) -> Self {
        let origin = |place: usize| {
            let instance = attribution.instance[place]?;
            Some(attribution.stages[instance as usize].origin)
        };
        let meant = |is_meant: &dyn Fn(usize) -> bool| {
            Amount::of(timeline, |place| !attribution.is_aside(place) && is_meant(place))
        };
        Self {
            all: meant(&|_| true),
            aside: Amount::of(timeline, |place| attribution.is_aside(place)),
            launch: meant(&|place| attribution.launch[place].is_some()),
            operator: meant(&|place| attribution.operator[place].is_some()),
            range: meant(&|place| attribution.range[place].is_some()),
            stage_from_ranges: meant(&|place| origin(place) == Some(StageOrigin::Ranges)),
            stage_inferred: meant(&|place| origin(place) == Some(StageOrigin::Inferred)),
        }
    }

    /// Share of the time of all work; absent where there is none.
    pub fn share(&self, part: Amount) -> Option<f64> {
        share(part.time.get() as f64, self.all.time.get() as f64)
    }

    /// Work with a stage, however it was found.
    pub fn stage(&self) -> Amount {
        Amount {
            count: self.stage_from_ranges.count + self.stage_inferred.count,
            time: self.stage_from_ranges.time + self.stage_inferred.time,
        }
    }

    fn without(&self, part: Amount) -> Amount {
        Amount { count: self.all.count - part.count, time: self.all.time - part.time }
    }
}

/// From this share of device time on, what is missing may change a conclusion.
const WORTH_A_WARNING: f64 = 0.02;

/// Counters of what has no place, with its share of device time. A counter of nothing is left out. `contested` is the work
/// launched where ranges overlap without nesting.
pub(super) fn quality(
    timeline: &Timeline,
    attribution: &Attribution,
    ambiguous: u64,
    contested: Amount,
) -> Vec<QualityCounter> {
    let coverage = &attribution.coverage;
    let mut counters = Vec::new();
    let mut add = |counter: &str, value: u64, share: Option<f64>, severity: Severity, remedy: &str| {
        if value > 0 {
            let (counter, remedy) = (counter.to_owned(), remedy.to_owned());
            counters.push(QualityCounter { counter, value, share, severity, remedy });
        }
    };
    let by_share = |part: Amount| match coverage.share(part) {
        Some(share) if share >= WORTH_A_WARNING => Severity::Warning,
        _ => Severity::Info,
    };
    let unmatched = coverage.without(coverage.launch);
    let remedy = "record the CUDA runtime calls too, and warm up before the profiler starts: work launched before it \
                  has no launch in the trace";
    add("work_without_launch", unmatched.count, coverage.share(unmatched), by_share(unmatched), remedy);
    let remedy = "import the processes apart: the same launch number belongs to several of them";
    add("work_with_ambiguous_launch", ambiguous, None, Severity::Warning, remedy);
    let launchless = "their launch is not in the trace, see work_without_launch";
    if !timeline.operators.is_empty() {
        let outside = coverage.without(coverage.operator);
        let remedy = match outside == unmatched {
            true => launchless,
            false => "work launched outside any recorded operator; profile with CPU activities on",
        };
        add("work_without_operator", outside.count, coverage.share(outside), by_share(outside), remedy);
    }
    let unplaced = coverage.without(coverage.stage());
    let remedy = match &attribution.inference {
        _ if unplaced == unmatched => launchless.to_owned(),
        Inference::Refused { reason } => format!("stages were not inferred: {reason}; name them with NVTX ranges"),
        _ => "name the stages with NVTX ranges (prefill, decode, ...) around the code that launches them".to_owned(),
    };
    add("work_without_stage", unplaced.count, coverage.share(unplaced), by_share(unplaced), &remedy);
    let inferred = coverage.stage_inferred;
    let remedy = "stages come from what repeats in the trace; NVTX ranges around them would make them certain";
    add("work_with_inferred_stage", inferred.count, coverage.share(inferred), Severity::Info, remedy);
    let open = timeline.ranges.iter().filter(|range| range.end.is_none()).count() as u64;
    let remedy =
        "these ranges were open when the trace ended and count until its end; stop the profiler after they close";
    add("ranges_open_at_end", open, coverage.share(clipped(timeline, attribution)), Severity::Warning, remedy);
    let crossing = attribution.projections.crossing();
    let remedy = "ranges of one thread overlap without nesting; work in both counts for both, and is shown under the \
                  one opened last";
    add("ranges_crossing", crossing, coverage.share(contested), Severity::Info, remedy);
    counters.extend(captured::undivided(timeline, attribution));
    counters
}

/// Work launched inside a range that was open when the trace ended: on its thread, all from its begin on.
fn clipped(timeline: &Timeline, attribution: &Attribution) -> Amount {
    let mut since: Vec<Option<Nanos>> = vec![None; timeline.threads.len()];
    for range in timeline.ranges.iter().filter(|range| range.end.is_none()) {
        let since = &mut since[range.thread.0 as usize];
        *since = Some(since.map_or(range.start, |earlier| earlier.min(range.start)));
    }
    Amount::of(timeline, |place| {
        let call = attribution.launch[place].map(|call| &timeline.calls[call as usize]);
        call.is_some_and(|call| since[call.thread.0 as usize].is_some_and(|since| since <= call.start))
    })
}
