//! From values to places on a chart, and the ticks beside them.

/// Largest over smallest value from which an axis of numbers is logarithmic.
const LOGARITHMIC: f64 = 20.0;

/// Maps values onto `0..=1`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    logarithmic: bool,
}

impl Scale {
    /// Over all `values`: logarithmic where they spread far, else from zero.
    pub(crate) fn of_figures(values: impl Iterator<Item = f64> + Clone) -> Self {
        let (low, high) = range(values);
        if low > 0.0 && high / low >= LOGARITHMIC {
            let (low, high) = (10f64.powf(low.log10().floor()), 10f64.powf(high.log10().ceil()));
            return Self { low, high, logarithmic: true };
        }
        Self { low: 0.0, high: if high > 0.0 { high * 1.05 } else { 1.0 }, logarithmic: false }
    }

    /// Over the places of settings: logarithmic where numbers spread far, else as they are.
    pub(super) fn of_settings(values: impl Iterator<Item = f64> + Clone, numeric: bool) -> Self {
        let (low, high) = range(values);
        let logarithmic = numeric && low > 0.0 && high / low >= LOGARITHMIC / 2.5;
        if low == high {
            return Self { low: low - 1.0, high: high + 1.0, logarithmic: false };
        }
        Self { low, high, logarithmic }
    }

    /// The place of a value.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let (value, low, high) =
            if self.logarithmic { (value.ln(), self.low.ln(), self.high.ln()) } else { (value, self.low, self.high) };
        (value - low) / (high - low)
    }

    /// Where lines are drawn across: powers of ten, or round steps.
    pub(crate) fn ticks(&self) -> Vec<f64> {
        if self.logarithmic {
            let (first, last) = (self.low.log10().round() as i32, self.high.log10().round() as i32);
            let step = (last - first).div_euclid(7) + 1;
            return (first..=last)
                .step_by(step.max(1).unsigned_abs() as usize)
                .map(|power| 10f64.powi(power))
                .collect();
        }
        let rough = (self.high - self.low) / 5.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= rough);
        let step = step.unwrap_or(rough);
        (0..=6).map(|index| self.low + step * f64::from(index)).filter(|tick| *tick <= self.high).collect()
    }
}

fn range(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let low = values.clone().fold(f64::INFINITY, f64::min);
    let high = values.fold(f64::NEG_INFINITY, f64::max);
    if low.is_finite() && high.is_finite() { (low, high) } else { (0.0, 1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_spread_far_are_logarithmic() {
        let scale = Scale::of_figures([3.0, 700.0].into_iter());
        assert_eq!(scale.ticks(), [1.0, 10.0, 100.0, 1000.0]);
        assert!((scale.place(10.0) - 1.0 / 3.0).abs() < 1e-12);
        let near = Scale::of_figures([3.0, 10.0].into_iter());
        assert_eq!((near.place(0.0), near.ticks()[0], near.ticks()[1]), (0.0, 0.0, 5.0));
    }

    #[test]
    fn one_value_and_none_still_have_a_place() {
        assert_eq!(Scale::of_settings([4.0].into_iter(), true).place(4.0), 0.5);
        assert!(Scale::of_figures(std::iter::empty()).place(0.5).is_finite());
        assert!(!Scale::of_figures([0.0].into_iter()).ticks().is_empty());
    }
}
