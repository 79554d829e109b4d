//! The books of lost time: every nanosecond that a stage took beyond the least its work needs stands under one cause, and
//! a finding can only claim what no other has claimed before.

use types::{LostTime, Nanos};

use super::Cause;
use crate::scope::Scope;
use crate::statistics::share;

/// One stage: what it took and what it needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StageLoss {
    /// What it is about.
    pub(crate) stage: Scope,
    /// What all its instances took.
    pub(crate) wall: Nanos,
    /// Least time its work needs; absent where the model or the device is not known.
    pub(crate) least: Option<Nanos>,
}

/// Time under one cause.
#[derive(Clone, Debug)]
struct Entry {
    stage: Scope,
    cause: Cause,
    lost: Nanos,
    claims: Vec<(&'static str, Nanos)>,
}

/// Everything a run lost.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    stages: Vec<StageLoss>,
    entries: Vec<Entry>,
}

impl Ledger {
    /// Adds a stage. Its lost time is what is added under causes.
    pub(crate) fn open(&mut self, stage: StageLoss) {
        self.stages.push(stage);
    }

    /// Puts time under a cause.
    pub(crate) fn add(&mut self, stage: Scope, cause: Cause, lost: Nanos) {
        if lost <= Nanos::ZERO {
            return;
        }
        match self.entries.iter_mut().find(|entry| entry.stage == stage && entry.cause == cause) {
            Some(entry) => entry.lost += lost,
            None => self.entries.push(Entry { stage, cause, lost, claims: Vec::new() }),
        }
    }

    /// Stages with their limits.
    pub(crate) fn stages(&self) -> &[StageLoss] {
        &self.stages
    }

    /// What a stage lost to causes that `which` chooses.
    pub(crate) fn lost(&self, stage: Scope, which: impl Fn(&Cause) -> bool) -> Nanos {
        self.of(stage, which).map(|entry| entry.lost).sum()
    }

    /// Claims up to `wanted` of what a stage lost to causes that `which` chooses, and says how much was left to claim.
    pub(crate) fn claim(
        &mut self,
        rule: &'static str,
        stage: Scope,
        which: impl Fn(&Cause) -> bool,
        wanted: Nanos,
    ) -> Nanos {
        let mut open = wanted;
        for entry in self.entries.iter_mut().filter(|entry| entry.stage == stage && which(&entry.cause)) {
            let granted = open.min(entry.left());
            if granted > Nanos::ZERO {
                entry.claims.push((rule, granted));
                open = open - granted;
            }
        }
        wanted.max(Nanos::ZERO) - open.max(Nanos::ZERO)
    }

    /// Claims work that need not have been done at all: its least time is lost too, and nothing else covers it.
    pub(crate) fn claim_work(&mut self, rule: &'static str, stage: Scope, least: Nanos) -> Nanos {
        self.add(stage, Cause::AvoidableWork, least);
        self.claim(rule, stage, |cause| *cause == Cause::AvoidableWork, least)
    }

    /// Everything, most lost first.
    pub(crate) fn rows(&self, wall: Option<Nanos>) -> Vec<LostTime> {
        let row = |entry: &Entry| LostTime {
            stage: entry.stage.stage(),
            cause: entry.cause.remark(),
            lost_ns: entry.lost,
            share: wall
                .and_then(|wall| share(entry.lost.get() as f64, wall.get() as f64))
                .filter(|share| *share <= 1.0),
            claimed_ns: entry.claimed(),
            rules: entry.claims.iter().map(|(rule, _)| (*rule).to_owned()).collect(),
        };
        let mut entries: Vec<_> = self.entries.iter().collect();
        entries.sort_by(|one, two| two.lost.cmp(&one.lost).then_with(|| one.cause.cmp(&two.cause)));
        entries.into_iter().map(row).collect()
    }

    fn of(&self, stage: Scope, which: impl Fn(&Cause) -> bool) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |entry| entry.stage == stage && which(&entry.cause))
    }
}

impl Entry {
    fn claimed(&self) -> Nanos {
        self.claims.iter().map(|(_, claimed)| *claimed).sum()
    }

    fn left(&self) -> Nanos {
        self.lost - self.claimed()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use types::Stage;

    use super::*;

    #[test]
    fn what_one_finding_claims_no_other_gets() {
        let mut ledger = Ledger::default();
        ledger.add(Scope::Stage(Stage::Decode), Cause::AfterLast, Nanos::new(100));
        let all = |_: &Cause| true;
        assert_eq!(ledger.claim("one", Scope::Stage(Stage::Decode), all, Nanos::new(70)), Nanos::new(70));
        assert_eq!(ledger.claim("two", Scope::Stage(Stage::Decode), all, Nanos::new(70)), Nanos::new(30));
        assert_eq!(ledger.claim("three", Scope::Stage(Stage::Decode), all, Nanos::new(70)), Nanos::ZERO);
        assert_eq!(ledger.claim("four", Scope::Stage(Stage::Prefill), all, Nanos::new(70)), Nanos::ZERO);
        let rows = ledger.rows(Some(Nanos::new(400)));
        assert_eq!((rows[0].claimed_ns, rows[0].share, rows[0].rules.len()), (Nanos::new(100), Some(0.25), 2));
    }

    #[test]
    fn work_that_was_not_needed_is_lost_and_claimed_at_once() {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.claim_work("head", Scope::Stage(Stage::Prefill), Nanos::new(40)), Nanos::new(40));
        assert_eq!(ledger.lost(Scope::Stage(Stage::Prefill), |_| true), Nanos::new(40));
        assert_eq!(ledger.claim("other", Scope::Stage(Stage::Prefill), |_| true, Nanos::new(1)), Nanos::ZERO);
    }

    proptest! {
        #[test]
        fn claims_never_exceed_what_is_lost(
            lost in proptest::collection::vec(0i64..1_000, 1..6),
            claims in proptest::collection::vec((0usize..6, -10i64..2_000), 0..20),
        ) {
            let causes = [Cause::AfterLast, Cause::BetweenOperators, Cause::AvoidableWork];
            let mut ledger = Ledger::default();
            for (place, lost) in lost.iter().enumerate() {
                ledger.add(Scope::Stage(Stage::Decode), causes[place % 3].clone(), Nanos::new(*lost));
            }
            let mut granted = Nanos::ZERO;
            for (cause, wanted) in claims {
                let got = ledger.claim("rule", Scope::Stage(Stage::Decode), |found| *found == causes[cause % 3], Nanos::new(wanted));
                prop_assert!(got >= Nanos::ZERO && got <= Nanos::new(wanted.max(0)));
                granted += got;
            }
            prop_assert!(granted <= ledger.lost(Scope::Stage(Stage::Decode), |_| true));
            prop_assert_eq!(ledger.rows(None).iter().map(|row| row.claimed_ns).sum::<Nanos>(), granted);
        }
    }
}
