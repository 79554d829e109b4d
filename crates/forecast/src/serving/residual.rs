//! What the measured steps of a server say of their prices.

use super::scheduler::Part;

/// Fewest steps of a kind that say something.
const FEWEST: usize = 8;

/// Standard errors by which a median must differ from the forecast.
const CERTAIN: f64 = 2.0;

/// The standard error of a median over that of a mean, for a normal distribution.
const MEDIAN_ERROR: f64 = 1.2533;

/// The median absolute deviation of a normal distribution, as a share of its standard deviation.
const NORMAL_MAD: f64 = 0.6745;

/// How much longer measured steps of a kind took on the device than forecast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Residual {
    /// How many; 0 where too few were measured.
    pub steps: u64,
    /// The median, as a factor; 1 where it is within its own uncertainty.
    pub factor: f64,
    /// Standard deviation from step to step, in logarithms.
    pub deviation: f64,
}

impl Default for Residual {
    fn default() -> Self {
        Self { steps: 0, factor: 1.0, deviation: 0.0 }
    }
}

/// The same for every kind of step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Residuals {
    /// Steps that only decode.
    pub decode: Residual,
    /// Steps with prompts.
    pub prompts: Residual,
}

/// A step as it was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredStep {
    /// What it processed.
    pub parts: Vec<Part>,
    /// Time of the device's work, microseconds.
    pub device: f64,
}

impl Residuals {
    /// Of steps with their forecast, in the same unit.
    pub(crate) fn of<'a>(steps: impl Iterator<Item = (&'a MeasuredStep, f64)>) -> Self {
        let mut logarithms = [Vec::new(), Vec::new()];
        for (MeasuredStep { parts, device }, forecast) in
            steps.filter(|(step, forecast)| step.device > 0.0 && *forecast > 0.0)
        {
            logarithms[usize::from(has_prompts(parts))].push((device / forecast).ln());
        }
        let [decode, prompts] = logarithms.map(Residual::of);
        Self { decode, prompts }
    }

    /// Of a step with these parts.
    pub(crate) fn applying(&self, parts: &[Part]) -> Residual {
        if has_prompts(parts) { self.prompts } else { self.decode }
    }
}

impl Residual {
    fn of(logarithms: Vec<f64>) -> Self {
        if logarithms.len() < FEWEST {
            return Self::default();
        }
        let middle = median(logarithms.clone());
        let deviation = median(logarithms.iter().map(|one| (one - middle).abs()).collect()) / NORMAL_MAD;
        let is_certain = middle.abs() > CERTAIN * MEDIAN_ERROR * deviation / (logarithms.len() as f64).sqrt();
        Self { steps: logarithms.len() as u64, factor: if is_certain { middle.exp() } else { 1.0 }, deviation }
    }
}

fn has_prompts(parts: &[Part]) -> bool {
    parts.iter().any(|part| part.tokens > 1)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len().is_multiple_of(2) { (values[half - 1] + values[half]) / 2.0 } else { values[half] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_and_its_deviation_tell_a_kind_and_too_few_steps_nothing() {
        // Half of the steps take 1.1 times as long and half 1.3 times: e to the mean of the logarithms is 1.196.
        let logarithms: Vec<f64> = [1.1f64, 1.3].repeat(10).iter().map(|ratio| ratio.ln()).collect();
        let found = Residual::of(logarithms.clone());
        assert!((found.factor - (1.1f64 * 1.3).sqrt()).abs() < 1e-12 && found.steps == 20, "{found:?}");
        assert!((found.deviation - (1.3f64 / 1.1).ln() / 2.0 / NORMAL_MAD).abs() < 1e-12, "{found:?}");
        assert_eq!(Residual::of(logarithms[..7].to_vec()), Residual::default());
        // Steps 10% off in either direction do not tell that their mean of 1% is one.
        let both: Vec<f64> = [0.11, -0.09].repeat(10);
        assert!(Residual::of(both.clone()).factor == 1.0 && Residual::of(both).deviation > 0.1);
    }
}
