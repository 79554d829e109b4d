//! Normalisations.

use rayon::prelude::*;

use super::{filled, fold, vectorised};

/// Each row to mean zero and variance one, then scaled and shifted.
pub(crate) fn layer_norm(x: &[f32], weight: &[f32], bias: &[f32], epsilon: f32) -> Vec<f32> {
    let width = weight.len();
    filled(x.len(), width, |start, piece| {
        let x = &x[start..start + piece.len()];
        vectorised(
            #[inline(always)]
            || {
                for (y, x) in piece.chunks_exact_mut(width).zip(x.chunks_exact(width)) {
                    let mean = sum(x) / width as f32;
                    let squares = fold(
                        x,
                        0.0,
                        #[inline(always)]
                        |sum, x| (x - mean).mul_add(x - mean, sum),
                        |a, b| a + b,
                    );
                    let factor = 1.0 / (squares / width as f32 + epsilon).sqrt();
                    for (((y, x), weight), bias) in y.iter_mut().zip(x).zip(weight).zip(bias) {
                        *y = ((x - mean) * factor).mul_add(*weight, *bias);
                    }
                }
            },
        );
    })
}

/// Each row to mean square one, then scaled.
pub(crate) fn rms_norm(x: &[f32], weight: &[f32], epsilon: f32) -> Vec<f32> {
    let width = weight.len();
    filled(x.len(), width, |start, piece| {
        let x = &x[start..start + piece.len()];
        vectorised(
            #[inline(always)]
            || {
                for (y, x) in piece.chunks_exact_mut(width).zip(x.chunks_exact(width)) {
                    let squares = fold(
                        x,
                        0.0,
                        #[inline(always)]
                        |sum, x| x.mul_add(x, sum),
                        |a, b| a + b,
                    );
                    let factor = 1.0 / (squares / width as f32 + epsilon).sqrt();
                    for ((y, x), weight) in y.iter_mut().zip(x).zip(weight) {
                        *y = x * factor * weight;
                    }
                }
            },
        );
    })
}

/// Over the channels of `x [N, C, places]`, place by place.
///
/// Places stand side by side in memory and channels far apart, so the statistics of a block of places grow together
/// while the channels pass by.
pub(crate) fn channel_norm(x: &[f32], places: usize, weight: &[f32], bias: &[f32], epsilon: f32) -> Vec<f32> {
    /// Places one thread works on at a time.
    const BLOCK: usize = 256;
    let channels = weight.len();
    let image = channels * places;
    let mut means = vec![0f32; x.len() / channels.max(1)];
    let mut factors = means.clone();
    let blocks = means.chunks_mut(places).zip(factors.chunks_mut(places)).zip(x.chunks_exact(image.max(1)));
    for ((means, factors), x) in blocks {
        let work = |(block, (means, factors)): (usize, (&mut [f32], &mut [f32]))| {
            let start = block * BLOCK;
            let rows = || x.chunks_exact(places).map(|row| &row[start..start + BLOCK.min(places - start)]);
            vectorised(
                #[inline(always)]
                || {
                    for row in rows() {
                        means.iter_mut().zip(row).for_each(|(mean, x)| *mean += x);
                    }
                    means.iter_mut().for_each(|mean| *mean /= channels as f32);
                    for row in rows() {
                        for ((factor, mean), x) in factors.iter_mut().zip(&*means).zip(row) {
                            *factor = (x - mean).mul_add(x - mean, *factor);
                        }
                    }
                    for factor in factors.iter_mut() {
                        *factor = 1.0 / (*factor / channels as f32 + epsilon).sqrt();
                    }
                },
            );
        };
        means.par_chunks_mut(BLOCK).zip(factors.par_chunks_mut(BLOCK)).enumerate().for_each(work);
    }
    filled(x.len(), places, |start, piece| {
        vectorised(
            #[inline(always)]
            || {
                for (index, (y, x)) in piece.chunks_exact_mut(places).zip(x[start..].chunks_exact(places)).enumerate() {
                    let row = start / places + index;
                    let (weight, bias) = (weight[row % channels], bias[row % channels]);
                    let at = row / channels * places;
                    let (means, factors) = (&means[at..at + places], &factors[at..at + places]);
                    for (((y, x), mean), factor) in y.iter_mut().zip(x).zip(means).zip(factors) {
                        *y = ((x - mean) * factor).mul_add(weight, bias);
                    }
                }
            },
        );
    })
}

/// Each channel of `x [N, C, places]` times its scale plus its shift.
pub(crate) fn scale_and_shift(x: &[f32], places: usize, scale: &[f32], shift: &[f32]) -> Vec<f32> {
    let places = places.max(1);
    filled(x.len(), places, |start, piece| {
        for (index, (y, x)) in piece.chunks_exact_mut(places).zip(x[start..].chunks_exact(places)).enumerate() {
            let channel = (start / places + index) % scale.len();
            y.iter_mut().zip(x).for_each(|(y, x)| *y = x * scale[channel] + shift[channel]);
        }
    })
}

/// The mean of every `places` elements.
pub(crate) fn means(x: &[f32], places: usize) -> Vec<f32> {
    x.chunks_exact(places.max(1)).map(|channel| sum(channel) / places as f32).collect()
}

#[inline(always)]
fn sum(values: &[f32]) -> f32 {
    fold(values, 0.0, |sum, value| sum + value, |a, b| a + b)
}

#[cfg(test)]
mod tests {
    use super::super::runs::{View, copy};
    use super::super::tests::{numbers, worst};
    use super::*;

    /// By the definition, in double precision.
    fn by_definition(x: &[f32], weight: &[f32], bias: &[f32], centred: bool, epsilon: f64) -> Vec<f32> {
        let width = weight.len();
        let row = |x: &[f32]| {
            let mean = if centred { x.iter().map(|x| f64::from(*x)).sum::<f64>() / width as f64 } else { 0.0 };
            let squares: f64 = x.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum();
            let factor = 1.0 / (squares / width as f64 + epsilon).sqrt();
            let scaled = |index: usize| (f64::from(x[index]) - mean) * factor * f64::from(weight[index]);
            (0..width).map(|index| (scaled(index) + f64::from(bias[index])) as f32).collect::<Vec<_>>()
        };
        x.chunks(width).flat_map(row).collect()
    }

    #[test]
    fn rows_equal_the_definition() {
        for width in [5, 64, 83] {
            let (x, weight, bias) = (numbers(width * 900, 1), numbers(width, 2), numbers(width, 3));
            let wanted = by_definition(&x, &weight, &bias, true, 1e-5);
            assert!(worst(&layer_norm(&x, &weight, &bias, 1e-5), &wanted) < 1e-5, "{width}");
            let wanted = by_definition(&x, &weight, &vec![0.0; width], false, 1e-6);
            assert!(worst(&rms_norm(&x, &weight, 1e-6), &wanted) < 1e-5, "{width}");
        }
    }

    #[test]
    fn channels_are_normalised_as_rows_would_be() {
        // Two images of five channels and 300 places: more than one block, and not a whole number of them.
        let (n, channels, places) = (2, 5, 300);
        let (x, weight, bias) = (numbers(n * channels * places, 4), numbers(channels, 5), numbers(channels, 6));
        // Channels and places of each image exchanged.
        let turned = |data: &[f32], [high, wide]: [usize; 2]| {
            copy(View { data, dims: &[n, wide, high], strides: &[high * wide, 1, wide] })
        };
        let normed = layer_norm(&turned(&x, [channels, places]), &weight, &bias, 1e-6);
        let wanted = turned(&normed, [places, channels]);
        assert!(worst(&channel_norm(&x, places, &weight, &bias, 1e-6), &wanted) < 1e-5);
    }

    #[test]
    fn every_channel_has_its_own_scale_and_shift() {
        let y = scale_and_shift(&[1., 2., 3., 4., 5., 6., 7., 8.], 2, &[10., 100.], &[0.5, 0.25]);
        assert_eq!(means(&y, 4), [182.875, 402.875]);
        assert_eq!(y, [10.5, 20.5, 300.25, 400.25, 50.5, 60.5, 700.25, 800.25]);
    }
}
