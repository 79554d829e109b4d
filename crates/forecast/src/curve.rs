//! The part of a time that physics explains: a floor, and the larger of arithmetic and traffic at the rates reached.

use crate::search::descend;
use crate::shape::Work;

/// `floor + max(compute / e_compute, memory / e_memory)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Curve {
    pub(crate) floor_us: f64,
    pub(crate) compute: f64,
    pub(crate) memory: f64,
}

/// Errors below this, in logarithms, are noise to the curve: the residual explains them.
const SMALL_ERROR: f64 = 0.03;

impl Curve {
    /// Through points of work and microseconds, by the least mean of absolute errors in logarithms.
    pub(crate) fn through(points: &[(&Work, f64)]) -> Self {
        let shortest = points.iter().map(|(_, time)| *time).fold(f64::INFINITY, f64::min);
        let of = |x: &[f64]| Self { floor_us: x[0].exp(), compute: x[1].exp(), memory: x[2].exp() };
        let cost = |x: &[f64]| {
            // An efficiency above one, or a floor above every time, explains nothing.
            let possible = x[1] <= 0.1 && x[2] <= 0.7 && x[0].exp() <= shortest * 1.5 + 1e-9;
            let error = |(work, time): &(&Work, f64)| {
                let error = time.ln() - of(x).at(work).ln();
                (error * error + SMALL_ERROR * SMALL_ERROR).sqrt()
            };
            possible.then(|| points.iter().map(error).sum::<f64>() / points.len() as f64)
        };
        let starts = [-0.3, -1.0, -2.5].map(|rate: f64| descend(&[(shortest * 0.8).ln(), rate, rate], 0.5, 20, cost));
        let best = starts
            .into_iter()
            .min_by(|a, b| cost(a).unwrap_or(f64::INFINITY).total_cmp(&cost(b).unwrap_or(f64::INFINITY)));
        of(&best.unwrap_or_else(|| vec![shortest.ln(), -0.5, -0.5]))
    }

    /// Microseconds.
    pub(crate) fn at(&self, work: &Work) -> f64 {
        self.floor_us + (work.compute_us / self.compute).max(work.memory_us / self.memory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn efficiencies_and_floor_are_found_again() {
        let works: Vec<Work> = (0..60)
            .map(|index| {
                let (compute, memory) = (2f64.powf(f64::from(index % 10)), 2f64.powf(f64::from(index / 10) * 2.0));
                Work { compute_us: compute, memory_us: memory, bytes: 1.0, features: vec![] }
            })
            .collect();
        let truth = Curve { floor_us: 3.0, compute: 0.7, memory: 0.85 };
        let points: Vec<_> = works.iter().map(|work| (work, truth.at(work))).collect();
        let found = Curve::through(&points);
        assert!((found.floor_us / 3.0 - 1.0).abs() < 0.05, "{found:?}");
        assert!((found.compute - 0.7).abs() < 0.03 && (found.memory - 0.85).abs() < 0.03, "{found:?}");
    }
}
