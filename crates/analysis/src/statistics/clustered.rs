//! Values that come in clusters, such as the gaps between the tokens of requests: their mean and quantiles, with intervals.
//!
//! Values of one cluster are not independent of each other, so whole clusters are drawn anew. An interval cannot reach beyond the
//! largest value: that of a 99th percentile is too narrow below some hundred clusters.

use types::Random;

use super::{expanded_tail, percentile};

/// The quantiles.
const QUANTILES: [f64; 3] = [0.5, 0.9, 0.99];
/// The mean and the quantiles.
pub(crate) type Figures = [f64; 1 + QUANTILES.len()];

/// Times that clusters are drawn anew.
const RESAMPLES: usize = 400;
/// Any number would do; it is fixed so that the same values give the same intervals.
const SEED: u64 = 20_251_115;
/// How often an interval holds the truth.
const CONFIDENCE: f64 = 0.95;
/// Fewest clusters that have intervals.
const FEWEST: usize = 5;
/// Most values that are weighed one by one in every draw; more are counted on a grid, to take well below a second.
const MOST_WEIGHTED: usize = 100_000;
/// Points of a grid.
const POINTS: usize = 65;
/// How far a grid reaches to either side, in standard deviations.
const REACH: f64 = 5.0;

/// Values of several clusters, with their mean and quantiles.
pub(crate) struct ClusteredSample {
    /// All of them, in order.
    sorted: Vec<i64>,
    /// The mean and the quantiles.
    figures: Figures,
    /// What each cluster with values contributes.
    parts: Vec<Part>,
    /// How quantiles of a draw are found.
    search: Search,
}

/// The values of one cluster.
struct Part {
    count: f64,
    sum: f64,
}

/// A way to the quantiles of a draw.
enum Search {
    /// Values with the places of their clusters in `parts`, in order.
    Weighted(Vec<(i64, u32)>),
    /// One grid for each quantile.
    Grids([Grid; QUANTILES.len()]),
}

impl ClusteredSample {
    /// The values that `take` finds in each cluster; absent where there are none.
    pub(crate) fn of<T>(clusters: &[&T], take: fn(&T, &mut Vec<i64>)) -> Option<Self> {
        let mut sorted = Vec::new();
        clusters.iter().for_each(|cluster| take(cluster, &mut sorted));
        if sorted.is_empty() {
            return None;
        }
        sorted.sort_unstable();
        let mean = sorted.iter().map(|value| *value as f64).sum::<f64>() / sorted.len() as f64;
        let [p50, p90, p99] = QUANTILES.map(|share| interpolated(&sorted, share));
        let search = if sorted.len() <= MOST_WEIGHTED {
            Search::Weighted(Vec::new())
        } else {
            Search::Grids(QUANTILES.map(|share| Grid::around(share, &sorted, clusters.len())))
        };
        let mut sample = Self { sorted, figures: [mean, p50, p90, p99], parts: Vec::new(), search };
        sample.divide(clusters, take);
        Some(sample)
    }

    /// How many values there are.
    pub(crate) fn count(&self) -> usize {
        self.sorted.len()
    }

    /// The mean and the quantiles.
    pub(crate) fn figures(&self) -> Figures {
        self.figures
    }

    /// Fills in what each cluster contributes.
    fn divide<T>(&mut self, clusters: &[&T], take: fn(&T, &mut Vec<i64>)) {
        let mut values = Vec::new();
        for cluster in clusters {
            values.clear();
            take(cluster, &mut values);
            if values.is_empty() {
                continue;
            }
            values.sort_unstable();
            let place = self.parts.len() as u32;
            match &mut self.search {
                Search::Weighted(owned) => owned.extend(values.iter().map(|value| (*value, place))),
                Search::Grids(grids) => grids.iter_mut().for_each(|grid| grid.add(&values)),
            }
            let sum = values.iter().map(|value| *value as f64).sum();
            self.parts.push(Part { count: values.len() as f64, sum });
        }
        if let Search::Weighted(owned) = &mut self.search {
            owned.sort_unstable();
        }
    }

    /// Intervals of the figures; absent where there are too few clusters.
    pub(crate) fn intervals(&self) -> Option<[(f64, f64); 1 + QUANTILES.len()]> {
        let count = self.parts.len();
        if count < FEWEST {
            return None;
        }
        let mut random = Random::new(SEED);
        let mut drawn = vec![0_u32; count];
        let mut redrawn: [Vec<f64>; 1 + QUANTILES.len()] = Default::default();
        for _ in 0..RESAMPLES {
            drawn.fill(0);
            (0..count).for_each(|_| drawn[random.below(count)] += 1);
            redrawn.iter_mut().zip(self.redrawn(&drawn)).for_each(|(all, one)| all.push(one));
        }
        let tail = expanded_tail(count, count - 1, CONFIDENCE);
        let ends = redrawn.map(|all| percentile(&all, tail).zip(percentile(&all, 1.0 - tail)));
        ends.iter().all(Option::is_some).then(|| ends.map(Option::unwrap_or_default))
    }

    /// The figures if each cluster had been there as often as it was drawn.
    fn redrawn(&self, drawn: &[u32]) -> Figures {
        let sum = |value: fn(&Part) -> f64| -> f64 {
            self.parts.iter().zip(drawn).map(|(part, times)| value(part) * f64::from(*times)).sum()
        };
        let count = sum(|part| part.count);
        let [p50, p90, p99] = match &self.search {
            Search::Weighted(owned) => weighted(owned, drawn),
            Search::Grids(grids) => {
                std::array::from_fn(|place| interpolated(&self.sorted, grids[place].located(drawn, count)))
            }
        };
        [sum(|part| part.sum) / count, p50, p90, p99]
    }
}

/// The quantiles of a draw from values with their clusters.
fn weighted(owned: &[(i64, u32)], drawn: &[u32]) -> [f64; QUANTILES.len()] {
    let mut seen = 0;
    let add = |(_, owner): &(i64, u32)| {
        seen += drawn[*owner as usize] as usize;
        seen
    };
    let cumulative: Vec<usize> = owned.iter().map(add).collect();
    let value = |rank: usize| owned[cumulative.partition_point(|seen| *seen <= rank)].0;
    QUANTILES.map(|share| between(share, seen, value))
}

/// Values around a quantile, at which a draw is counted instead of value by value.
struct Grid {
    /// The quantile.
    share: f64,
    /// In order.
    points: Vec<Point>,
}

/// One of these values.
struct Point {
    /// Of all values, the share that lies below it.
    share: f64,
    value: f64,
    /// How many values of each cluster are at or below it.
    below: Vec<u32>,
}

impl Grid {
    /// Points as far apart as the quantile may move. Its share varies most where the values of a cluster are all alike, and
    /// then as that of as many values as there are clusters.
    fn around(share: f64, sorted: &[i64], clusters: usize) -> Self {
        let reach = REACH * (share * (1.0 - share) / clusters as f64).sqrt();
        let (low, high) = ((share - reach).max(0.0), (share + reach).min(1.0));
        let point = |place: usize| {
            let share = low + (high - low) * place as f64 / (POINTS - 1) as f64;
            Point { share, value: interpolated(sorted, share), below: Vec::with_capacity(clusters) }
        };
        Self { share, points: (0..POINTS).map(point).collect() }
    }

    /// Counts one more cluster.
    fn add(&mut self, ordered: &[i64]) {
        for point in &mut self.points {
            point.below.push(ordered.partition_point(|value| *value as f64 <= point.value) as u32);
        }
    }

    /// The share of all values below the quantile of a draw of `count` values.
    fn located(&self, drawn: &[u32], count: f64) -> f64 {
        let last = self.points.len() - 1;
        let at = self.points.partition_point(|point| point.share_of(drawn, count) < self.share).clamp(1, last);
        let (low, high) = (&self.points[at - 1], &self.points[at]);
        let (before, after) = (low.share_of(drawn, count), high.share_of(drawn, count));
        let weight = if after > before { (self.share - before) / (after - before) } else { 0.0 };
        low.share + (high.share - low.share) * weight.clamp(0.0, 1.0)
    }
}

impl Point {
    /// The share of a draw that is at or below it.
    fn share_of(&self, drawn: &[u32], count: f64) -> f64 {
        let below: u64 = self.below.iter().zip(drawn).map(|(below, times)| u64::from(*below) * u64::from(*times)).sum();
        below as f64 / count
    }
}

/// The value below which `share` of sorted values lie, between neighbours.
fn interpolated(sorted: &[i64], share: f64) -> f64 {
    between(share, sorted.len(), |rank| sorted[rank])
}

/// The value at `share` of `count` values in order, of which there is one at least.
fn between(share: f64, count: usize, value: impl Fn(usize) -> i64) -> f64 {
    let place = share.clamp(0.0, 1.0) * (count - 1) as f64;
    let below = place as usize;
    let (low, high) = (value(below) as f64, value((below + 1).min(count - 1)) as f64);
    low + (high - low) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(cluster: &Vec<i64>, values: &mut Vec<i64>) {
        values.extend(cluster);
    }

    /// Clusters that differ from each other by far more than values of one cluster do.
    fn simulated(random: &mut Random, clusters: usize, values: usize) -> Vec<Vec<i64>> {
        let one = |_| {
            let centre = 1e6 * (1.0 + 0.1 * random.normal());
            (0..values).map(|_| (centre * (1.0 + 0.01 * random.normal())) as i64).collect()
        };
        (0..clusters).map(one).collect()
    }

    #[test]
    fn quantiles_lie_between_neighbours_and_few_clusters_have_no_interval() {
        let clusters = [vec![40, 10], vec![], vec![20, 30]];
        let sample = ClusteredSample::of(&clusters.each_ref(), values).unwrap();
        let [mean, p50, p90, p99] = sample.figures();
        assert_eq!((sample.count(), mean, p50, p90), (4, 25.0, 25.0, 37.0));
        assert!((p99 - 39.7).abs() < 1e-9, "{p99}");
        assert_eq!(sample.intervals(), None);
        assert!(ClusteredSample::of(&[&Vec::new()], values).is_none());
    }

    #[test]
    fn intervals_hold_the_truth_about_as_often_as_they_say() {
        let mut random = Random::new(17);
        let mut holds = [0; 2];
        for _ in 0..200 {
            let clusters = simulated(&mut random, 20, 10);
            let sample = ClusteredSample::of(&clusters.iter().collect::<Vec<_>>(), values).unwrap();
            let [mean, median, ..] = sample.intervals().unwrap();
            for (holds, (low, high)) in holds.iter_mut().zip([mean, median]) {
                *holds += u32::from((low..=high).contains(&1e6));
            }
        }
        assert!(holds.iter().all(|holds| *holds >= 180), "{holds:?}");
    }

    #[test]
    fn draws_counted_on_a_grid_give_the_intervals_of_weighted_ones() {
        let clusters = simulated(&mut Random::new(3), 200, 50);
        let clusters: Vec<&Vec<i64>> = clusters.iter().collect();
        let mut sample = ClusteredSample::of(&clusters, values).unwrap();
        let weighted = sample.intervals().unwrap();
        sample.search = Search::Grids(QUANTILES.map(|share| Grid::around(share, &sample.sorted, clusters.len())));
        sample.parts.clear();
        sample.divide(&clusters, values);
        for (weighted, counted) in weighted.into_iter().zip(sample.intervals().unwrap()) {
            let width = weighted.1 - weighted.0;
            let apart = (weighted.0 - counted.0).abs().max((weighted.1 - counted.1).abs());
            assert!(apart < 0.05 * width, "{weighted:?} {counted:?}");
        }
    }
}
