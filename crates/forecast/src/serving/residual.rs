//! What the measured steps of a server say of their prices.

use types::{StepKind, StepResidual};

use super::scheduler::Part;

/// Fewest steps of a kind that say something.
const FEWEST: usize = 8;

/// Standard errors by which a median must differ from the forecast.
const CERTAIN: f64 = 2.0;

/// The standard error of a median over that of a mean, for a normal distribution.
const MEDIAN_ERROR: f64 = 1.2533;

/// The median absolute deviation of a normal distribution, as a share of its standard deviation.
const NORMAL_MAD: f64 = 0.6745;

/// How much longer measured steps took on the device than forecast, by kind; absent for a kind of which too few were measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Residuals([Option<StepResidual>; 2]);

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
        let [decode, prompts] = logarithms;
        Self([residual(StepKind::Decode, decode), residual(StepKind::Prompts, prompts)])
    }

    /// Those of kinds that were measured.
    pub fn known(&self) -> Vec<StepResidual> {
        self.0.iter().flatten().copied().collect()
    }

    /// By which factor steps with these parts take longer, and by how much they vary: a standard deviation in logarithms.
    pub(crate) fn applying(&self, parts: &[Part]) -> [f64; 2] {
        self.0[usize::from(has_prompts(parts))].map_or([1.0, 0.0], |one| [one.factor, one.deviation])
    }
}

fn residual(kind: StepKind, logarithms: Vec<f64>) -> Option<StepResidual> {
    if logarithms.len() < FEWEST {
        return None;
    }
    let middle = median(logarithms.clone());
    let deviation = median(logarithms.iter().map(|one| (one - middle).abs()).collect()) / NORMAL_MAD;
    let is_certain = middle.abs() > CERTAIN * MEDIAN_ERROR * deviation / (logarithms.len() as f64).sqrt();
    let factor = if is_certain { middle.exp() } else { 1.0 };
    Some(StepResidual { kind, steps: logarithms.len() as u64, factor, deviation })
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
        let of = |logarithms: &[f64]| residual(StepKind::Decode, logarithms.to_vec());
        let found = of(&logarithms).unwrap();
        assert!((found.factor - (1.1f64 * 1.3).sqrt()).abs() < 1e-12 && found.steps == 20, "{found:?}");
        assert!((found.deviation - (1.3f64 / 1.1).ln() / 2.0 / NORMAL_MAD).abs() < 1e-12, "{found:?}");
        assert_eq!(of(&logarithms[..7]), None);
        // Steps 10% off in either direction do not tell that their mean of 1% is one.
        let both: Vec<f64> = [0.11, -0.09].repeat(10);
        let both = of(&both).unwrap();
        assert!(both.factor == 1.0 && both.deviation > 0.1);
    }
}
