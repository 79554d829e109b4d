//! Rotary positions.

use candle_core::{Device, Result, Tensor};
use types::{RotaryForm, RotaryLayout, RotaryScaling};

use super::floats::TensorData;
use crate::kernel::rotary::{Turns, rotary as run};

/// Rotates `x [B, H, S, D]`, the first position being `offset`.
pub(super) fn rotary(x: &Tensor, theta: f64, offset: u64, form: RotaryForm) -> Result<Tensor> {
    let (_, _, _, width) = x.dims4()?;
    let interleaved = form.layout == RotaryLayout::Interleaved;
    let (frequencies, magnitude) = frequencies(width, theta, form.scaling)?;
    let held = TensorData::new(x);
    let turns = Turns { frequencies: &frequencies, magnitude, offset: offset as usize, interleaved };
    Tensor::from_vec(run(held.floats()?.rows().view(), turns), x.dims(), &Device::Cpu)
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
            candle_core::bail!("rotary scaling `{name}` can only be modelled")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interleaved_pairs_come_out_as_halves() {
        let x = Tensor::randn(0f32, 1.0, (1, 2, 3, 8), &Device::Cpu).unwrap();
        let form = RotaryForm { layout: RotaryLayout::Interleaved, ..RotaryForm::default() };
        let found = rotary(&x, 10_000.0, 5, form).unwrap();
        let order = Tensor::new(&[0u32, 2, 4, 6, 1, 3, 5, 7], &Device::Cpu).unwrap();
        let halves = x.index_select(&order, 3).unwrap();
        let wanted = rotary(&halves, 10_000.0, 5, RotaryForm::default()).unwrap();
        let worst = (found - wanted).unwrap().abs().unwrap().max_all().unwrap().to_scalar::<f32>().unwrap();
        assert!(worst == 0.0, "off by {worst}");
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
        let x = Tensor::randn(0f32, 1.0, (2, 5, 3, 8), &Device::Cpu).unwrap();
        let turned = x.transpose(1, 2).unwrap();
        let found = rotary(&turned, 10_000.0, 7, RotaryForm::default()).unwrap();
        let mut cosines = Vec::new();
        let mut sines = Vec::new();
        for position in 7..12 {
            for pair in 0..4 {
                let angle = position as f32 / 10_000f32.powf(pair as f32 / 4.0);
                cosines.push(angle.cos());
                sines.push(angle.sin());
            }
        }
        let table = |values: Vec<f32>| Tensor::from_vec(values, (5, 4), &Device::Cpu).unwrap();
        let wanted =
            candle_nn::rotary_emb::rope(&turned.contiguous().unwrap(), &table(cosines), &table(sines)).unwrap();
        let worst = (found - wanted).unwrap().abs().unwrap().max_all().unwrap().to_scalar::<f32>().unwrap();
        assert!(worst < 1e-6, "off by {worst}");
    }
}
