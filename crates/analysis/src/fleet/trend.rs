//! A quantity over many runs, and where it changed for good.
//!
//! A series is split where the ranks of the two sides differ most (Wilcoxon's test), as long as that is beyond doubt for all places
//! together and the medians differ by more than a little; then each side is split again. A single odd run is no change.

use std::collections::BTreeMap;

use types::{Trend, TrendChange, TrendPoint};

use crate::statistics::{Stratum, median, rank_test};

/// Runs on each side of a change.
const FEWEST: usize = 4;
/// Chance of a change where there is none, over all places of one series.
const DOUBT: f64 = 0.01;
/// Smaller changes are not worth a word.
const WORTH: f64 = 0.02;

/// One run, reduced to what can be followed over time.
#[derive(Clone, Debug, Default)]
pub struct RunQuantities {
    /// The run.
    pub run: String,
    /// When it began, RFC 3339.
    pub started_at: String,
    /// Model, device and verb: only runs that agree in it are one series.
    pub subject: String,
    /// Quantities with their values.
    pub quantities: BTreeMap<String, f64>,
    /// What may have changed it: configuration, driver, versions, commit.
    pub facts: BTreeMap<String, String>,
}

/// Every quantity of every subject over time.
pub fn trends(mut runs: Vec<RunQuantities>) -> Vec<Trend> {
    runs.sort_by(|one, other| (&one.started_at, &one.run).cmp(&(&other.started_at, &other.run)));
    let mut series: BTreeMap<(&str, &str), Vec<(&RunQuantities, f64)>> = BTreeMap::new();
    for run in &runs {
        for (quantity, value) in run.quantities.iter().filter(|(_, value)| value.is_finite()) {
            series.entry((&run.subject, quantity)).or_default().push((run, *value));
        }
    }
    series.into_iter().map(|((subject, quantity), points)| trend(subject, quantity, &points)).collect()
}

fn trend(subject: &str, quantity: &str, points: &[(&RunQuantities, f64)]) -> Trend {
    let values: Vec<f64> = points.iter().map(|(_, value)| *value).collect();
    let mut splits = Vec::new();
    split(&values, 0, &mut splits);
    splits.sort_by_key(|(place, _)| *place);
    let bounds: Vec<usize> = splits.iter().map(|(place, _)| *place).chain([values.len()]).collect();
    let mut from = 0;
    let mut changes = Vec::new();
    for (number, (place, p_value)) in splits.iter().enumerate() {
        let (before, after) = (median(&values[from..*place]), median(&values[*place..bounds[number + 1]]));
        from = *place;
        let (Some(before), Some(after)) = (before.filter(|before| *before != 0.0), after) else { continue };
        changes.push(TrendChange {
            run: points[*place].0.run.clone(),
            before,
            after,
            change: after / before - 1.0,
            p_value: *p_value,
            differences: differences(points[place - 1].0, points[*place].0),
        });
    }
    let point = |(run, value): &(&RunQuantities, f64)| TrendPoint {
        run: run.run.clone(),
        started_at: run.started_at.clone(),
        value: *value,
    };
    Trend {
        subject: subject.to_owned(),
        quantity: quantity.to_owned(),
        points: points.iter().map(point).collect(),
        changes,
    }
}

/// Finds the clearest change, and goes on to both sides of it.
fn split(values: &[f64], from: usize, found: &mut Vec<(usize, f64)>) {
    let places = values.len().saturating_sub(2 * FEWEST - 1);
    let apart = apart(values);
    let Some(place) = (FEWEST..FEWEST + places).max_by(|one, other| apart[*one].total_cmp(&apart[*other])) else {
        return;
    };
    let (before, after) = values.split_at(place);
    let test = rank_test(&[Stratum { base: before.to_vec(), with: after.to_vec() }]);
    let best = test.map(|test| (place, test.p_value * places as f64));
    let Some((place, p_value)) = best.filter(|(_, p_value)| *p_value <= DOUBT) else { return };
    let (Some(was), Some(is)) = (median(before), median(after)) else { return };
    if was == 0.0 || (is / was - 1.0).abs() < WORTH {
        return;
    }
    found.push((from + place, p_value));
    split(before, from, found);
    split(after, from + place, found);
}

/// How far the two sides of each place are apart: the rank sum against what it would be by chance, in standard deviations. Equal
/// values share their ranks; all are ranked once, as there may be thousands of runs and as many places.
fn apart(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|one, other| values[*one].total_cmp(&values[*other]));
    let mut ranks = vec![0.0; values.len()];
    let mut below = 0;
    for equal in order.chunk_by(|one, other| values[*one] == values[*other]) {
        let shared = below as f64 + (equal.len() + 1) as f64 / 2.0;
        equal.iter().for_each(|place| ranks[*place] = shared);
        below += equal.len();
    }
    let all = values.len() as f64;
    let mut sum = 0.0;
    let at = |(place, rank): (usize, &f64)| {
        let (many, few) = (place as f64, all - place as f64);
        // Pairs in which the one in front is larger: all ranks in front less those that they have among themselves (Mann and Whitney).
        let wins = sum - many * (many + 1.0) / 2.0;
        sum += rank;
        (wins - many * few / 2.0).abs() / (many * few * (all + 1.0) / 12.0).sqrt()
    };
    ranks.iter().enumerate().map(at).collect()
}

/// What else differs between two runs.
fn differences(before: &RunQuantities, after: &RunQuantities) -> Vec<String> {
    let keys = before.facts.keys().chain(after.facts.keys()).collect::<std::collections::BTreeSet<_>>();
    let text = |run: &RunQuantities, key: &str| run.facts.get(key).cloned().unwrap_or_else(|| "unknown".to_owned());
    keys.into_iter()
        .filter(|key| before.facts.get(*key) != after.facts.get(*key))
        .map(|key| format!("{key}: {} -> {}", text(before, key), text(after, key)))
        .collect()
}

#[cfg(test)]
mod tests {
    use types::Random;

    use super::*;

    fn runs(value: impl Fn(usize) -> f64) -> Vec<RunQuantities> {
        (0..40)
            .map(|number| RunQuantities {
                run: format!("run-{number:02}"),
                started_at: format!("2026-01-01T00:{number:02}:00Z"),
                subject: "llama".to_owned(),
                quantities: BTreeMap::from([("decode, ms".to_owned(), value(number))]),
                facts: BTreeMap::from([("driver".to_owned(), if number < 25 { "550" } else { "580" }.to_owned())]),
            })
            .collect()
    }

    #[test]
    fn a_lasting_change_is_dated_and_an_odd_run_is_none() {
        let noise = |number: usize| Random::new(number as u64).normal() * 0.1;
        let slower = trends(runs(|number| if number < 25 { 10.0 } else { 11.0 } + noise(number)));
        let [Trend { changes, points, .. }] = slower.as_slice() else { panic!("{slower:?}") };
        let [change] = changes.as_slice() else { panic!("{changes:?}") };
        assert_eq!((points.len(), change.run.as_str()), (40, "run-25"));
        assert!((change.change - 0.1).abs() < 0.02 && change.p_value < 0.01, "{change:?}");
        assert_eq!(change.differences, ["driver: 550 -> 580"]);
        let odd = trends(runs(|number| if number == 20 { 30.0 } else { 10.0 } + noise(number)));
        assert_eq!(odd[0].changes, []);
    }

    #[test]
    fn sides_are_as_far_apart_as_their_pairs_say() {
        let values = [3.0, 1.0, 2.0, 2.0, 5.0, 2.0, 4.0, 1.0];
        for (place, apart) in apart(&values).into_iter().enumerate().skip(1) {
            let (before, after) = values.split_at(place);
            let pairs = before.iter().flat_map(|one| after.iter().map(move |other| (one, other)));
            let wins: f64 =
                pairs.map(|(one, other)| 0.5 + (other - one).signum() / 2.0 * f64::from(other != one)).sum();
            let (many, few) = (before.len() as f64, after.len() as f64);
            let expected = (wins - many * few / 2.0).abs() / (many * few * 9.0 / 12.0).sqrt();
            assert!((apart - expected).abs() < 1e-12, "{place}: {apart} and {expected}");
        }
    }

    #[test]
    fn equal_runs_rarely_change() {
        let mut random = Random::new(11);
        let mut changed = 0;
        for _ in 0..50 {
            let values: Vec<f64> = (0..40).map(|_| 10.0 + random.normal()).collect();
            changed += usize::from(!trends(runs(|number| values[number]))[0].changes.is_empty());
        }
        assert!(changed <= 1, "{changed} of 50");
    }
}
