//! Runs of one input that differ: the run's numbers are less certain than they look, and the pattern often tells why.

use types::{Base, Facts, Finding, Sample, Severity, Stage};

use super::{Found, Run, top_stages};
use crate::statistics::{describe, median, relative_spread, share};
use crate::timings::{nanoseconds, rounded};

/// Standard deviation over median. Two runs are meant to agree within this.
const MOST_SPREAD: f64 = 0.10;
/// Below this a single interruption by the operating system (some milliseconds) is a large part of the time.
const SHORT_NS: f64 = 5e6;
/// Median deviation over median; below it most runs agree and a few stand out.
const CALM_SHARE: f64 = 0.03;
/// How much slower the last epoch must be than the first to be called a drift.
const DRIFT: f64 = 0.05;

/// Why runs may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    FirstSlow,
    Drift,
    Outlier,
    Short,
    Unknown,
}

/// The rule's name.
pub(super) const RULE: &str = "run-to-run-variation";

pub(super) fn check(run: &Run<'_>) -> Vec<Found> {
    // Instances of a stage in a trace are of inputs that it does not name, and no repeats of one.
    let repeats = run.subject.settings.is_some();
    top_stages(run).filter(|_| repeats).filter_map(|stage| of_stage(run, stage)).collect()
}

fn of_stage(run: &Run<'_>, stage: Stage) -> Option<Found> {
    let measured = run.timings.inputs(stage).filter_map(|(input, runs)| {
        let spread = relative_spread(&nanoseconds(runs))?;
        Some((input, runs, spread))
    });
    let measured: Vec<_> = measured.collect();
    let wide: Vec<_> = measured.iter().filter(|(.., spread)| *spread > MOST_SPREAD).collect();
    let (input, runs, spread) = wide.iter().max_by(|one, other| one.2.total_cmp(&other.2))?;
    let statistics = describe(&nanoseconds(runs))?;
    let (least, middle, most) = (rounded(statistics.min), rounded(statistics.median), rounded(statistics.max));
    // A trace has runs of something that it does not name.
    let named = Some(*input).filter(|input| !input.is_empty());
    let warmup = run.subject.settings.as_ref().map(|settings| settings.warmup_rounds).filter(|rounds| *rounds > 0);
    let [disturbed, inferences] = run.disturbed.map_or([None; 2], |counts| counts.map(Some));
    let facts = Facts::new()
        .with("where", Base::Stage(stage))
        .with_known("input", named)
        .with_known("varying", named.map(|_| wide.len()))
        .with_known("inputs", named.map(|_| measured.len()))
        .with_share("limit", MOST_SPREAD, Base::Itself)
        .with_share("spread", *spread, Base::Itself)
        .with("runs", runs.len())
        .with("shortest", least)
        .with("longest", most)
        .with("median", middle)
        .with_known("disturbed", disturbed)
        .with_known("inferences", inferences)
        .with_known("warmup_rounds", warmup);
    let (cause, by) = cause(runs)?;
    let facts = match cause {
        Cause::FirstSlow => facts.with_share("first_slower", by, Base::Itself),
        Cause::Drift => facts.with_share("drift", by, Base::Itself),
        Cause::Outlier => facts.with_share("calm", by, Base::Itself),
        Cause::Short => facts.with_if("short", true),
        Cause::Unknown => facts.with_if("unexplained", true),
    };
    Some(Found::plain(Finding::new(RULE, Severity::Warning, Some(stage), facts)))
}

/// The likely cause of the widest input's spread, and by how much it shows.
fn cause(runs: &[&Sample]) -> Option<(Cause, Option<f64>)> {
    let times = nanoseconds(runs);
    let statistics = describe(&times)?;
    let (first, others) = times.split_first()?;
    let rest = relative_spread(others);
    if *first >= statistics.max && others.len() > 1 && rest.is_some_and(|rest| rest <= MOST_SPREAD) {
        let slower = share(first - median(others)?, median(others)?)?;
        return Some((Cause::FirstSlow, Some(slower)));
    }
    if let Some(slower) = drift(runs).filter(|slower| *slower > DRIFT) {
        return Some((Cause::Drift, Some(slower)));
    }
    let calm = share(statistics.mad?, statistics.median)?;
    if others.len() > 1 && calm < CALM_SHARE {
        return Some((Cause::Outlier, Some(calm)));
    }
    let cause = if statistics.median < SHORT_NS { Cause::Short } else { Cause::Unknown };
    Some((cause, None))
}

/// How much slower the last epoch is than the first; absent with one.
fn drift(runs: &[&Sample]) -> Option<f64> {
    let (first, last) = (runs.first()?.epoch, runs.last()?.epoch);
    let of = |epoch: u32| {
        let times: Vec<_> = runs.iter().copied().filter(|sample| sample.epoch == epoch).collect();
        median(&nanoseconds(&times))
    };
    (first != last).then(|| share(of(last)? - of(first)?, of(first)?)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::fired;
    use crate::sample::{Case, case, timed};

    fn run(times: &[i64]) -> Vec<Finding> {
        let timed = |(repeat, time): (usize, &i64)| timed(Stage::Prefill, "a", repeat as u32, *time);
        let samples = times.iter().enumerate().map(timed).collect();
        fired(&Case { samples, ..case() }, RULE)
    }

    #[test]
    fn a_spread_above_a_tenth_fires_and_names_its_size() {
        // Mean and median 100 ms, deviation sqrt((15^2 + 15^2) / 2) = 15 ms.
        let found = run(&[100_000_000, 85_000_000, 115_000_000]);
        assert_eq!(found.len(), 1);
        let facts = &found[0].quantities;
        assert!((facts.share("spread").unwrap() - 0.15).abs() < 1e-12);
        assert_eq!((facts.name("input"), facts.count("varying"), facts.count("runs")), (Some("a"), Some(1), Some(3)));
        let times = ["shortest", "longest", "median"].map(|name| facts.time(name).unwrap().get() / 1_000_000);
        assert_eq!((times, found[0].saving.saves_ns), ([85, 115, 100], None));
        assert!(facts.has("unexplained") && !facts.has("disturbed"));
    }

    #[test]
    fn runs_of_what_has_no_name_are_told_without_one() {
        let timed = |(repeat, time): (u32, i64)| timed(Stage::Prefill, "", repeat, time);
        let samples = [(0, 100_000_000), (1, 85_000_000), (2, 115_000_000)].map(timed).to_vec();
        let found = fired(&Case { samples, ..case() }, RULE);
        assert_eq!((found[0].quantities.count("runs"), found[0].quantities.has("input")), (Some(3), false));
    }

    #[test]
    fn inferences_that_other_work_disturbed_are_counted() {
        let case = Case {
            samples: [100, 85, 115]
                .iter()
                .zip(0..)
                .map(|(ms, repeat)| timed(Stage::Prefill, "a", repeat, ms * 1_000_000))
                .collect(),
            ..case()
        };
        let disturbed = |repeat: u32| types::InferenceDisturbance {
            input: Some("a".to_owned()),
            epoch: 0,
            repeat,
            warmup: repeat == 2,
            disturbance: types::Disturbance { causes: vec!["noise".to_owned(); repeat as usize], ..Default::default() },
        };
        let evidence = crate::Evidence { disturbance: (0..3).map(disturbed).collect(), ..case.evidence() };
        let findings = crate::metrics(&case.subject(), &evidence).conclusions.findings;
        let facts = &findings.iter().find(|finding| finding.rule == RULE).unwrap().quantities;
        // The third is a warm-up.
        assert_eq!((facts.count("disturbed"), facts.count("inferences")), (Some(1), Some(2)));
    }

    #[test]
    fn a_spread_just_below_a_tenth_does_not_fire() {
        assert_eq!(run(&[100_000_000, 90_100_000, 109_900_000]), []);
        assert_eq!(run(&[100_000_000]), []);
    }

    #[test]
    fn inputs_that_differ_are_no_variance() {
        let samples = vec![timed(Stage::Decode, "a", 0, 1_000), timed(Stage::Decode, "b", 0, 9_000)];
        assert_eq!(fired(&Case { samples, ..case() }, RULE), []);
    }

    fn likely(times: &[(u32, i64)]) -> Cause {
        let timed = |(repeat, (epoch, time)): (usize, &(u32, i64))| Sample {
            epoch: *epoch,
            ..timed(Stage::Prefill, "a", repeat as u32, *time)
        };
        let samples: Vec<_> = times.iter().enumerate().map(timed).collect();
        cause(&samples.iter().collect::<Vec<_>>()).unwrap().0
    }

    #[test]
    fn the_pattern_of_the_runs_tells_the_cause() {
        let ms = 1_000_000;
        assert_eq!(likely(&[(0, 150 * ms), (0, 100 * ms), (0, 101 * ms)]), Cause::FirstSlow);
        assert_eq!(likely(&[(0, 100 * ms), (0, 101 * ms), (1, 130 * ms), (1, 131 * ms)]), Cause::Drift);
        assert_eq!(likely(&[(0, 100 * ms), (0, 180 * ms), (0, 101 * ms), (0, 99 * ms)]), Cause::Outlier);
        assert_eq!(likely(&[(0, ms), (0, 2 * ms), (0, 3 * ms), (0, 2 * ms)]), Cause::Short);
        assert_eq!(likely(&[(0, 100 * ms), (0, 200 * ms), (0, 300 * ms), (0, 150 * ms)]), Cause::Unknown);
    }
}
