//! How much device work has a place.

use types::timeline::Timeline;

use super::Attribution;
use super::amount::Amount;
use super::stage::StageOrigin;
use crate::statistics::share;

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
    /// Launched by CUDA graphs.
    pub graph: Amount,
    /// Of that, without an operator.
    pub graph_alone: Amount,
    /// With a range.
    pub range: Amount,
    /// With a stage that a range names or an engine annotates.
    pub stage_from_ranges: Amount,
    /// With a stage that follows from the tokens.
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
        let graph_of = attribution.graph_launches(timeline);
        Self {
            all: meant(&|_| true),
            aside: Amount::of(timeline, |place| attribution.is_aside(place)),
            launch: meant(&|place| attribution.launch[place].is_some()),
            operator: meant(&|place| attribution.operator[place].is_some()),
            graph: meant(&|place| graph_of(place).is_some()),
            graph_alone: meant(&|place| graph_of(place).is_some() && attribution.operator[place].is_none()),
            range: meant(&|place| attribution.range[place].is_some()),
            stage_from_ranges: meant(&|place| matches!(origin(place), Some(StageOrigin::Ranges | StageOrigin::Engine))),
            stage_inferred: meant(&|place| origin(place) == Some(StageOrigin::Tokens)),
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

    /// What of all work is not in this part.
    pub(super) fn without(&self, part: Amount) -> Amount {
        Amount { count: self.all.count - part.count, time: self.all.time - part.time }
    }
}
