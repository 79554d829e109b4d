//! The part of a time that the curve leaves over, interpolated between points: a Gaussian process on the nearest of them.
//!
//! The covariance is Matern 3/2 over scaled features, with a constant. Points of a table of usual length have weights, worked
//! out once, and the residual anywhere is their sum; of longer tables only neighbours are used (Vecchia's approximation), so
//! that neither the fit nor a prediction takes long.

use crate::search::descend;

/// Points a prediction rests on where there are no weights.
const NEIGHBOURS: usize = 96;

/// Points that say how sure a prediction is: those beyond change little, and intervals are measured the same way.
const NEAREST: usize = 24;

/// Most points that get weights; more would take long to work out, and lie close enough for neighbours to suffice.
const WEIGHTED: usize = 1500;

/// Neighbours while scales are searched for, which is the longer work.
const TRIAL_NEIGHBOURS: usize = 48;

/// Tables up to this length get their scales from the likelihood of all points together; longer ones, whose points lie
/// close, from how well points are predicted by their neighbours.
const SHORT: usize = 600;

/// Points of a short table that the likelihood is of.
const LIKELIHOOD: usize = 300;

/// Rounds of the search, each begun with neighbours of the scales before.
const ROUNDS: [usize; 3] = [8, 5, 4];

/// Points that are left out in turn to choose scales by.
const TRIALS: usize = 128;

/// Points that are left out in turn to measure intervals by.
const CHECKS: usize = 600;

/// Variance of the constant: the curve may be off by a factor of e everywhere.
const CONSTANT: f64 = 1.0;

/// How many octaves a feature's scale may be, at least and at most.
const SCALES: [f64; 2] = [0.3, 300.0];

/// A scale nothing speaks against.
const USUAL_SCALE: f64 = 6.0;

/// The least noise of a measurement that anybody repeats.
const LEAST_NOISE: f64 = 0.003;

/// What the residual looks like.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scales {
    pub(crate) scales: Vec<f64>,
    pub(crate) spread: f64,
    pub(crate) noise: f64,
}

/// Points and their residuals.
#[derive(Clone, Copy)]
pub(crate) struct Process<'a> {
    /// Features, and which site each point belongs to.
    pub(crate) features: &'a [Vec<f64>],
    pub(crate) residuals: &'a [f64],
    pub(crate) sites: &'a [u64],
    /// Of each point, from [`Process::weights`]; empty where there are none.
    pub(crate) weights: &'a [f64],
}

/// Which points a prediction must not use.
#[derive(Clone, Copy)]
pub(crate) enum Without {
    Nothing,
    Point(usize),
    /// The whole site of a point, which is what a new model is.
    Site(usize),
}

impl Scales {
    fn numbers(&self) -> Vec<f64> {
        self.scales.iter().chain([&self.spread, &self.noise]).map(|value| value.ln()).collect()
    }

    fn of_numbers(numbers: &[f64]) -> Self {
        let features = numbers.len() - 2;
        Self {
            scales: numbers[..features].iter().map(|value| value.exp()).collect(),
            spread: numbers[features].exp(),
            noise: numbers[features + 1].exp(),
        }
    }

    fn possible(&self) -> bool {
        let within = self.scales.iter().all(|scale| (SCALES[0]..=SCALES[1]).contains(scale));
        within && (LEAST_NOISE..=1.0).contains(&self.noise) && (0.005..=3.0).contains(&self.spread)
    }

    fn covariance(&self, one: &[f64], other: &[f64]) -> f64 {
        let distance = (3.0 * self.distance(one, other)).sqrt();
        CONSTANT + self.spread * self.spread * (1.0 + distance) * (-distance).exp()
    }

    /// Square of the scaled distance.
    fn distance(&self, one: &[f64], other: &[f64]) -> f64 {
        one.iter().zip(other).zip(&self.scales).map(|((a, b), scale)| ((a - b) / scale).powi(2)).sum()
    }
}

impl Process<'_> {
    /// The scales that suit the points best.
    pub(crate) fn scales(&self) -> Scales {
        let features = self.features.first().map_or(0, Vec::len);
        let start = Scales { scales: vec![USUAL_SCALE; features], spread: 0.3, noise: 0.03 };
        if self.residuals.len() <= SHORT { self.likeliest(&start) } else { self.most_predictive(start) }
    }

    /// The scales under which the points are likeliest together (type II maximum likelihood).
    fn likeliest(&self, start: &Scales) -> Scales {
        let points = spaced(self.residuals.len(), LIKELIHOOD);
        let cost = |numbers: &[f64]| {
            let tried = Scales::of_numbers(numbers);
            if !tried.possible() {
                return None;
            }
            let mut matrix = self.covariances(&points, &tried);
            factor(&mut matrix, points.len())?;
            let mut values: Vec<f64> = points.iter().map(|point| self.residuals[*point]).collect();
            solve_lower(&matrix, points.len(), &mut values);
            let determinant: f64 = (0..points.len()).map(|row| matrix[row * points.len() + row].ln()).sum();
            let usual: f64 = tried.scales.iter().map(|scale| (scale / USUAL_SCALE).ln().powi(2)).sum();
            Some(values.iter().map(|value| value * value).sum::<f64>() / 2.0 + determinant + 0.05 * usual)
        };
        Scales::of_numbers(&descend(&start.numbers(), 0.7, 2 * ROUNDS[0], cost))
    }

    /// The scales that predict points best from their neighbours, half of them without any point of their site.
    fn most_predictive(&self, mut scales: Scales) -> Scales {
        let features = scales.scales.len();
        let trials = spaced(self.residuals.len(), TRIALS);
        // Neighbours depend on the scales, so both are found in turn.
        for rounds in ROUNDS {
            let neighbours: Vec<Vec<usize>> = trials
                .iter()
                .enumerate()
                .map(|(turn, point)| {
                    let without = if turn % 2 == 0 { Without::Point(*point) } else { Without::Site(*point) };
                    self.neighbours(&self.features[*point], without, &scales, TRIAL_NEIGHBOURS)
                })
                .collect();
            let cost = |numbers: &[f64]| {
                let tried = Scales::of_numbers(numbers);
                if !tried.possible() {
                    return None;
                }
                let mut sum = 0.0;
                for (point, near) in trials.iter().zip(&neighbours) {
                    let (mean, variance) = self.given(&self.features[*point], near, &tried)?;
                    let square = (self.residuals[*point] - mean).powi(2) / variance;
                    // Student's t with four degrees of freedom: single outliers do not decide.
                    sum += variance.ln() / 2.0 + 2.5 * (square / 4.0).ln_1p();
                }
                let usual: f64 = tried.scales.iter().map(|scale| (scale / USUAL_SCALE).ln().powi(2)).sum();
                Some(sum / trials.len() as f64 + 0.002 * usual / features.max(1) as f64)
            };
            scales = Scales::of_numbers(&descend(&scales.numbers(), 0.7, rounds, cost));
        }
        scales
    }

    /// What each point adds to the residual elsewhere, times its covariance; empty where there are too many points.
    pub(crate) fn weights(&self, scales: &Scales) -> Vec<f64> {
        let size = self.residuals.len();
        if size > WEIGHTED {
            return Vec::new();
        }
        let all: Vec<usize> = (0..size).collect();
        let mut matrix = self.covariances(&all, scales);
        if factor(&mut matrix, size).is_none() {
            return Vec::new();
        }
        let mut values = self.residuals.to_vec();
        solve_lower(&matrix, size, &mut values);
        solve_upper(&matrix, size, &mut values);
        values
    }

    /// Mean and standard deviation at `features`.
    pub(crate) fn at(&self, features: &[f64], without: Without, scales: &Scales) -> Option<(f64, f64)> {
        let near = self.neighbours(features, without, scales, NEAREST);
        let (_, variance) = self.given(features, &near, scales)?;
        let is_whole = matches!(without, Without::Nothing) && self.weights.len() == self.features.len();
        let mean = if is_whole {
            let weighted = self.features.iter().zip(self.weights);
            weighted.map(|(point, weight)| weight * scales.covariance(features, point)).sum()
        } else {
            let near = self.neighbours(features, without, scales, NEIGHBOURS);
            self.given(features, &near, scales)?.0
        };
        Some((mean, variance.sqrt()))
    }

    /// Error and standard deviation of points left out in turn, alone and with their sites.
    pub(crate) fn left_out(&self, scales: &Scales) -> Vec<(f64, f64)> {
        let points = spaced(self.residuals.len(), CHECKS);
        let both = points.into_iter().flat_map(|point| [(point, Without::Point(point)), (point, Without::Site(point))]);
        both.filter_map(|(point, without)| {
            let (mean, deviation) = self.at(&self.features[point], without, scales)?;
            Some((self.residuals[point] - mean, deviation))
        })
        .collect()
    }

    fn neighbours(&self, features: &[f64], without: Without, scales: &Scales, count: usize) -> Vec<usize> {
        let allowed = |index: usize| match without {
            Without::Nothing => true,
            Without::Point(point) => index != point,
            Without::Site(point) => self.sites[index] != self.sites[point],
        };
        let candidates = (0..self.features.len()).filter(|index| allowed(*index));
        let mut near: Vec<(f64, usize)> =
            candidates.map(|index| (scales.distance(features, &self.features[index]), index)).collect();
        if near.len() > count {
            near.select_nth_unstable_by(count - 1, |a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            near.truncate(count);
        }
        near.into_iter().map(|(_, index)| index).collect()
    }

    /// Covariances of these points with each other, below the diagonal and on it.
    fn covariances(&self, points: &[usize], scales: &Scales) -> Vec<f64> {
        let size = points.len();
        let mut matrix = vec![0.0; size * size];
        for row in 0..size {
            for column in 0..row {
                matrix[row * size + column] =
                    scales.covariance(&self.features[points[row]], &self.features[points[column]]);
            }
            matrix[row * size + row] = CONSTANT + scales.spread.powi(2) + scales.noise.powi(2) + 1e-9;
        }
        matrix
    }

    /// Mean and variance given these points; `None` where there are none.
    fn given(&self, features: &[f64], near: &[usize], scales: &Scales) -> Option<(f64, f64)> {
        if near.is_empty() {
            return None;
        }
        let size = near.len();
        let mut matrix = self.covariances(near, scales);
        factor(&mut matrix, size)?;
        let mut towards: Vec<f64> =
            near.iter().map(|index| scales.covariance(features, &self.features[*index])).collect();
        let mut values: Vec<f64> = near.iter().map(|index| self.residuals[*index]).collect();
        solve_lower(&matrix, size, &mut towards);
        solve_lower(&matrix, size, &mut values);
        let mean = towards.iter().zip(&values).map(|(a, b)| a * b).sum();
        let known: f64 = towards.iter().map(|value| value * value).sum();
        let variance = CONSTANT + scales.spread.powi(2) + scales.noise.powi(2) - known;
        Some((mean, variance.max(scales.noise.powi(2))))
    }
}

/// At most `count` of `total` indices, scattered the same way every time.
fn spaced(total: usize, count: usize) -> Vec<usize> {
    if total <= count {
        return (0..total).collect();
    }
    // The golden ratio's fractions are spread evenly and follow no order the table may have.
    let golden = 0.618_033_988_749_895_f64;
    let mut chosen: Vec<usize> =
        (0..count).map(|index| (((index as f64 + 0.5) * golden).fract() * total as f64) as usize).collect();
    chosen.sort_unstable();
    chosen.dedup();
    chosen
}

/// Cholesky's lower factor in place; `None` where there is none.
fn factor(matrix: &mut [f64], size: usize) -> Option<()> {
    for row in 0..size {
        let (above, rest) = matrix.split_at_mut(row * size);
        let current = &mut rest[..size];
        for column in 0..row {
            let other = &above[column * size..column * size + column];
            let sum: f64 = current[..column].iter().zip(other).map(|(a, b)| a * b).sum();
            current[column] = (current[column] - sum) / above[column * size + column];
        }
        let sum: f64 = current[..row].iter().map(|value| value * value).sum();
        let pivot = current[row] - sum;
        if pivot <= 0.0 || pivot.is_nan() {
            return None;
        }
        current[row] = pivot.sqrt();
    }
    Some(())
}

fn solve_lower(matrix: &[f64], size: usize, values: &mut [f64]) {
    for row in 0..size {
        let line = &matrix[row * size..row * size + row];
        let sum: f64 = line.iter().zip(values.iter()).map(|(a, b)| a * b).sum();
        values[row] = (values[row] - sum) / matrix[row * size + row];
    }
}

/// The same for the transposed factor.
fn solve_upper(matrix: &[f64], size: usize, values: &mut [f64]) {
    for row in (0..size).rev() {
        values[row] /= matrix[row * size + row];
        let solved = values[row];
        for (value, entry) in values[..row].iter_mut().zip(&matrix[row * size..row * size + row]) {
            *value -= entry * solved;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smooth_residual_is_predicted_between_its_points() {
        let features: Vec<Vec<f64>> = (0..100).map(|i| vec![f64::from(i % 10), f64::from(i / 10)]).collect();
        let truth = |x: &[f64]| 0.2 * (x[0] / 3.0).sin() + 0.02 * x[1];
        let residuals: Vec<f64> = features.iter().map(|x| truth(x)).collect();
        let sites: Vec<u64> = (0..100).map(|index| index / 10).collect();
        let process = Process { features: &features, residuals: &residuals, sites: &sites, weights: &[] };
        let scales = process.scales();
        let query = [4.5, 5.5];
        let (mean, deviation) = process.at(&query, Without::Nothing, &scales).unwrap();
        assert!((mean - truth(&query)).abs() < 0.01, "{mean} for {}", truth(&query));
        let (_, far) = process.at(&[40.0, 5.5], Without::Nothing, &scales).unwrap();
        assert!(far > 2.0 * deviation, "far from every point it is less sure: {far} and {deviation}");
    }

    #[test]
    fn weights_say_what_all_points_together_say() {
        let features: Vec<Vec<f64>> = (0..90).map(|i| vec![f64::from(i % 9), f64::from(i / 9)]).collect();
        let residuals: Vec<f64> = features.iter().map(|x| 0.3 * x[0].sin() - 0.1 * x[1]).collect();
        let sites = vec![0; features.len()];
        let bare = Process { features: &features, residuals: &residuals, sites: &sites, weights: &[] };
        let scales = Scales { scales: vec![3.0, 5.0], spread: 0.4, noise: 0.02 };
        let weights = bare.weights(&scales);
        let weighted = Process { weights: &weights, ..bare };
        for query in [[0.5, 0.5], [4.2, 7.9], [12.0, 3.0]] {
            let [one, other] = [&bare, &weighted].map(|process| process.at(&query, Without::Nothing, &scales).unwrap());
            assert!((one.0 - other.0).abs() < 1e-6 && one.1 == other.1, "{one:?} {other:?}");
        }
    }

    #[test]
    fn no_points_give_no_prediction() {
        let process = Process { features: &[], residuals: &[], sites: &[], weights: &[] };
        let scales = Scales { scales: vec![1.0], spread: 1.0, noise: 0.1 };
        assert_eq!(process.at(&[0.0], Without::Nothing, &scales), None);
    }
}
