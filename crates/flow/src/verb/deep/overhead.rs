//! What each pass cost over the plain program.
//!
//! The plain program runs before the timeline and, where it is short, once more behind it. Whatever else a machine does only
//! adds to a time, so the faster of the two is what passes are held against; how far the two lie apart says how sure that is.

use std::collections::BTreeMap;
use std::time::Duration;

use types::{Nanos, Overhead, PassRecord, Stage};

use super::pass_name::{BASELINE, BASELINE_AGAIN};
use super::request::{DeepRequest, Mode};

/// A plain program that takes longer runs once.
const SHORT: Duration = Duration::from_secs(60);

/// Whether the plain program runs twice.
pub(super) fn runs_again(request: &DeepRequest, passes: &[PassRecord]) -> bool {
    let plain = passes.iter().find(|pass| pass.name == BASELINE);
    request.mode == Mode::Deep && plain.is_some_and(|plain| plain.wall_ns.get() < SHORT.as_nanos() as i64)
}

/// Fills in the overhead of every pass: over its stages where it and the plain program say how long they took, else over the
/// process. A pass that does less than the plain program has none.
pub(super) fn settle(passes: &mut [PassRecord], does_all: impl Fn(&PassRecord) -> bool) {
    let plain = Plain::of(passes);
    for pass in passes.iter_mut().filter(|pass| !is_plain(pass) && does_all(pass)) {
        let Some((before, after, what)) = plain.beside(pass) else { continue };
        pass.overhead = Some(after.get() as f64 / before.get() as f64 - 1.0);
        pass.overhead_of = Some(what.to_owned());
    }
}

/// What recording the timeline cost; all unknown before both are there.
pub(super) fn of_timeline(passes: &[PassRecord]) -> Option<Overhead> {
    let timeline = passes.iter().find(|pass| pass.name == "timeline")?;
    let plain = Plain::of(passes);
    let (before, after, what) = plain.beside(timeline)?;
    Some(Overhead {
        baseline_ns: Some(before),
        profiled_ns: Some(after),
        share: Some(after.get() as f64 / before.get() as f64 - 1.0),
        baseline_spread: plain.spread(what),
    })
}

const STAGES: &str = "stages";
const PROCESS: &str = "process";

/// The passes without instruments.
struct Plain(Vec<PassRecord>);

impl Plain {
    fn of(passes: &[PassRecord]) -> Self {
        Self(passes.iter().filter(|pass| is_plain(pass)).cloned().collect())
    }

    /// Time of the plain program, of a pass, and what was timed.
    fn beside(&self, pass: &PassRecord) -> Option<(Nanos, Nanos, &'static str)> {
        let mut fastest: BTreeMap<Stage, Nanos> = BTreeMap::new();
        for (stage, time) in self.0.iter().flat_map(|plain| &plain.stage_wall_ns) {
            fastest.entry(*stage).and_modify(|known| *known = (*known).min(*time)).or_insert(*time);
        }
        let of_process = || Some((self.0.iter().map(|plain| plain.wall_ns).min()?, pass.wall_ns, PROCESS));
        let of_stages = sum(&fastest).zip(sum(&pass.stage_wall_ns)).map(|(before, after)| (before, after, STAGES));
        of_stages.or_else(of_process).filter(|(before, ..)| *before > Nanos::ZERO)
    }

    /// How much longer the slower of two took.
    fn spread(&self, what: &str) -> Option<f64> {
        let time = |plain: &PassRecord| if what == STAGES { sum(&plain.stage_wall_ns) } else { Some(plain.wall_ns) };
        let times: Vec<f64> = self.0.iter().filter_map(time).map(|time| time.get() as f64).collect();
        let [one, other] = times[..] else { return None };
        (one.min(other) > 0.0).then(|| one.max(other) / one.min(other) - 1.0)
    }
}

fn is_plain(pass: &PassRecord) -> bool {
    pass.name == BASELINE || pass.name == BASELINE_AGAIN
}

/// Time of the stages that lie in no other; absent where none was told.
fn sum(times: &BTreeMap<Stage, Nanos>) -> Option<Nanos> {
    let top: Vec<Nanos> = times.iter().filter(|(stage, _)| stage.parent().is_none()).map(|(_, time)| *time).collect();
    (!top.is_empty()).then(|| top.into_iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(name: &str, wall: i64, stages: &[(Stage, i64)]) -> PassRecord {
        PassRecord {
            name: name.to_owned(),
            wall_ns: Nanos::new(wall),
            stage_wall_ns: stages.iter().map(|(stage, time)| (*stage, Nanos::new(*time))).collect(),
            ..PassRecord::default()
        }
    }

    #[test]
    fn passes_are_held_against_the_faster_stages_of_two_plain_ones() {
        let stages = |prefill, decode| [(Stage::Prefill, prefill), (Stage::Sam, 1), (Stage::Decode, decode)];
        let mut passes = vec![
            pass(BASELINE, 900, &stages(40, 60)),
            pass("timeline", 950, &stages(50, 70)),
            pass(BASELINE_AGAIN, 800, &stages(60, 50)),
            pass("counters-decode", 9000, &[]),
        ];
        settle(&mut passes, |_| true);
        let told: Vec<_> = passes.iter().map(|pass| (pass.overhead, pass.overhead_of.as_deref())).collect();
        assert_eq!(told[0], (None, None));
        assert_eq!(told[1].1, Some(STAGES));
        assert!((told[1].0.unwrap() - (120.0 / 90.0 - 1.0)).abs() < 1e-12);
        assert_eq!(told[3], (Some(9000.0 / 800.0 - 1.0), Some(PROCESS)));
        let overhead = of_timeline(&passes).unwrap();
        assert_eq!((overhead.baseline_ns, overhead.profiled_ns), (Some(Nanos::new(90)), Some(Nanos::new(120))));
        assert!((overhead.baseline_spread.unwrap() - 0.1).abs() < 1e-12);
    }

    #[test]
    fn one_plain_pass_says_nothing_of_how_sure_it_is_and_none_says_nothing() {
        let passes = [pass(BASELINE, 100, &[]), pass("timeline", 150, &[(Stage::Decode, 5)])];
        let overhead = of_timeline(&passes).unwrap();
        assert_eq!((overhead.share, overhead.baseline_spread), (Some(0.5), None));
        assert_eq!(of_timeline(&passes[1..]), None);
        assert_eq!(of_timeline(&passes[..1]), None);
    }
}
