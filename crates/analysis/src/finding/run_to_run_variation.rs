//! Runs of one input that differ: the run's numbers are less certain than they look, and the pattern often tells why.

use types::{EstimatedSaving, Finding, Sample, Severity, Stage};

use super::{Found, Run, percent, top_stages};
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

/// Why runs may differ, in the words of the advice.
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
    let spread = percent(*spread);
    let times = format!("{} runs from {least} to {most}, median {middle}", runs.len());
    // A trace has runs of something that it does not name.
    let mut evidence = match input.is_empty() {
        true => vec![format!("{spread}, {times}")],
        false => vec![
            format!("{} of {} inputs vary by more than {}", wide.len(), measured.len(), percent(MOST_SPREAD)),
            format!("widest: {spread} in `{input}`, {times}"),
        ],
    };
    let (cause, seen) = cause(runs)?;
    evidence.extend(seen);
    Some(Found::plain(Finding {
        quantities: Default::default(),
        rule: RULE.to_owned(),
        severity: Severity::Warning,
        stage: Some(stage),
        evidence,
        saving: EstimatedSaving::default(),
        advice: advice(cause, run.subject.settings.as_ref().map_or(0, |settings| settings.warmup_rounds)),
    }))
}

/// The likely cause of the widest input's spread, and what shows it.
fn cause(runs: &[&Sample]) -> Option<(Cause, Option<String>)> {
    let times = nanoseconds(runs);
    let statistics = describe(&times)?;
    let (first, others) = times.split_first()?;
    let rest = relative_spread(others);
    if *first >= statistics.max && others.len() > 1 && rest.is_some_and(|rest| rest <= MOST_SPREAD) {
        let slower = share(first - median(others)?, median(others)?)?;
        return Some((Cause::FirstSlow, Some(format!("the first run is {} slower than the others", percent(slower)))));
    }
    if let Some(slower) = drift(runs).filter(|slower| *slower > DRIFT) {
        return Some((Cause::Drift, Some(format!("the last epoch is {} slower than the first", percent(slower)))));
    }
    let calm = share(statistics.mad?, statistics.median)?;
    if others.len() > 1 && calm < CALM_SHARE {
        let seen = format!("half of the runs are within {} of the median", percent(calm));
        return Some((Cause::Outlier, Some(seen)));
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

fn advice(cause: Cause, warmup_rounds: u32) -> String {
    match cause {
        Cause::FirstSlow if warmup_rounds == 0 => {
            "The first run still warms up caches and memory. Warm up before measuring; in a trace, a range named `warmup` sets \
             such runs aside."
                .to_owned()
        }
        Cause::FirstSlow => format!(
            "The first run still warms up caches and memory. Raise the warm-up rounds (now {warmup_rounds}) and measure again."
        ),
        Cause::Drift => {
            "The machine gets slower while it runs. Let it cool down or fix its clocks, and compare medians of the first \
                         epoch only."
                .to_owned()
        }
        Cause::Outlier => {
            "Most runs agree and few stand out. The median is sound, mean and maximum are not; more repeats on a quiet \
                           machine tell whether it is the program."
                .to_owned()
        }
        Cause::Short => {
            "The stage is so short that one interruption by the operating system shows. Generate more tokens or \
                         use larger inputs, and add repeats."
                .to_owned()
        }
        Cause::Unknown => {
            "The runs differ throughout, and nothing recorded says why. Stop other work, fix the clocks, add repeats, \
                           and measure again."
                .to_owned()
        }
    }
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
        let expected = "widest: 15.0% in `a`, 3 runs from 85.0 ms to 115 ms, median 100 ms";
        assert_eq!((found[0].evidence[1].as_str(), found[0].saving.saves_ns), (expected, None));
    }

    #[test]
    fn runs_of_what_has_no_name_are_told_without_one() {
        let timed = |(repeat, time): (u32, i64)| timed(Stage::Prefill, "", repeat, time);
        let samples = [(0, 100_000_000), (1, 85_000_000), (2, 115_000_000)].map(timed).to_vec();
        let found = fired(&Case { samples, ..case() }, RULE);
        assert_eq!(found[0].evidence[0], "15.0%, 3 runs from 85.0 ms to 115 ms, median 100 ms");
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
