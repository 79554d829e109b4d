//! Rotary positions.

use types::{RotaryForm, RotaryLayout, RotaryScaling};

use crate::compute_error::{ComputeError, Result};
use crate::kernel::rotary::{Turns, rotary as run};
use crate::tensor::Tensor;

/// Rotates `x [B, H, S, D]`, the first position being `offset`.
pub(super) fn rotary(x: &Tensor, theta: f64, offset: u64, form: RotaryForm) -> Result<Tensor> {
    let [_, _, _, width] = x.sizes()?;
    let interleaved = form.layout == RotaryLayout::Interleaved;
    let (frequencies, magnitude) = frequencies(width, theta, form.scaling)?;
    let turns = Turns { frequencies: &frequencies, magnitude, offset: offset as usize, interleaved };
    Tensor::new(run(x.floats()?.rows().view(), turns), x.dims())
}

/// Angle of one position for every pair, and the factor on what is rotated. Single precision, as published: long prompts
/// otherwise drift from the reference.
fn frequencies(width: usize, theta: f64, scaling: RotaryScaling) -> Result<(Vec<f32>, f32)> {
    let plain = |pair: usize| 1.0 / (theta as f32).powf((2 * pair) as f32 / width as f32);
    let pairs = 0..width / 2;
    let turn = std::f64::consts::TAU;
    Ok(match scaling {
        RotaryScaling::None => (pairs.map(plain).collect(), 1.0),
        RotaryScaling::Linear { factor } => (pairs.map(|pair| plain(pair) / factor as f32).collect(), 1.0),
        RotaryScaling::Llama3 { factor, low, high, original } => {
            let stretched = |pair: usize| {
                let angle = f64::from(plain(pair));
                let turns = original * angle / turn;
                let fast = ((turns - low) / (high - low)).clamp(0.0, 1.0);
                (angle * (fast + (1.0 - fast) / factor)) as f32
            };
            (pairs.map(stretched).collect(), 1.0)
        }
        RotaryScaling::Yarn { factor, fast, slow, original, magnitude, truncate } => {
            // The pair whose angle makes that many turns in the original context.
            let pair_of = |turns: f64| width as f64 * (original / (turns * turn)).ln() / (2.0 * theta.ln());
            let (mut first, mut last) = (pair_of(fast), pair_of(slow));
            if truncate {
                (first, last) = (first.floor(), last.ceil());
            }
            let (first, last) = (first.max(0.0), last.min(width as f64 - 1.0));
            let last = if first == last { last + 0.001 } else { last };
            let stretched = |pair: usize| {
                let slow = ((pair as f64 - first) / (last - first)).clamp(0.0, 1.0);
                (f64::from(plain(pair)) * ((1.0 - slow) + slow / factor)) as f32
            };
            (pairs.map(stretched).collect(), magnitude as f32)
        }
        RotaryScaling::Other(name) => {
            return Err(ComputeError::new(format!("rotary scaling `{name}` can only be modelled")));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::tests::{random, worst};

    #[test]
    fn interleaved_pairs_come_out_as_halves() {
        let x = random(&[1, 2, 3, 8], 1);
        let form = RotaryForm { layout: RotaryLayout::Interleaved, ..RotaryForm::default() };
        let found = rotary(&x, 10_000.0, 5, form).unwrap();
        // Pairs side by side, then all first ones before all second ones.
        let halves = x.reshape([1, 2, 3, 4, 2]).unwrap().permute(&[0, 1, 2, 4, 3]).unwrap();
        let halves = halves.reshape([1, 2, 3, 8]).unwrap();
        let wanted = rotary(&halves, 10_000.0, 5, RotaryForm::default()).unwrap();
        assert_eq!(worst(&found, &wanted), 0.0);
    }

    #[test]
    fn stretching_leaves_fast_angles_alone_and_divides_slow_ones() {
        let plain = frequencies(64, 500_000.0, RotaryScaling::None).unwrap().0;
        let llama = RotaryScaling::Llama3 { factor: 8.0, low: 1.0, high: 4.0, original: 8192.0 };
        let yarn = RotaryScaling::Yarn {
            factor: 8.0,
            fast: 32.0,
            slow: 1.0,
            original: 8192.0,
            magnitude: 1.2,
            truncate: true,
        };
        for scaling in [llama, yarn] {
            let (angles, _) = frequencies(64, 500_000.0, scaling).unwrap();
            assert_eq!(angles[0], plain[0]);
            assert!((angles[31] * 8.0 / plain[31] - 1.0).abs() < 1e-6);
            assert!(angles.windows(2).all(|pair| pair[0] > pair[1]));
        }
        let error = frequencies(64, 1e4, RotaryScaling::Other("longrope")).unwrap_err().to_string();
        assert!(error.contains("`longrope` can only be modelled"), "{error}");
    }

    #[test]
    fn halves_turn_by_the_angle_of_their_position_in_any_layout() {
        let turned = random(&[2, 5, 3, 8], 1).permute(&[0, 2, 1, 3]).unwrap();
        let found = rotary(&turned, 10_000.0, 7, RotaryForm::default()).unwrap();
        let mut wanted = turned.in_order().unwrap().into_owned();
        for (row, x) in wanted.chunks_exact_mut(8).enumerate() {
            for pair in 0..4 {
                let angle = (7 + row % 5) as f32 / 10_000f32.powf(pair as f32 / 4.0);
                let (first, second) = (x[pair], x[pair + 4]);
                x[pair] = first * angle.cos() - second * angle.sin();
                x[pair + 4] = first * angle.sin() + second * angle.cos();
            }
        }
        let off = worst(&found, &Tensor::new(wanted, [2, 3, 5, 8]).unwrap());
        assert!(off < 1e-6, "off by {off}");
    }
}
