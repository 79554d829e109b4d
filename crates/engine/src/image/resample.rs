//! Bicubic resizing with the arithmetic of Pillow, to the level.
//!
//! The published model was trained on pages resized by Pillow: an antialiased bicubic filter (a = -0.5) that widens when
//! it shrinks, one pass across and then one down, whole levels between the two, weights in fixed point with 22 bits after
//! the point. Source: `ImagingResample` in `libImaging/Resample.c` of Pillow 12, described at
//! <https://pillow.readthedocs.io/en/stable/handbook/concepts.html#filters>.

use rayon::prelude::*;

use super::RgbImage;
use crate::cubic;

const CHANNELS: usize = 3;
const POINT: u32 = 22;
const HALF: i32 = 1 << (POINT - 1);

/// What one output pixel takes from the input: the first input pixel and a weight for each from there.
struct Taps {
    first: usize,
    weights: Vec<i32>,
}

/// The image at another size.
pub(super) fn resize(image: &RgbImage, width: usize, height: usize) -> RgbImage {
    let (from_width, from_height) = (image.width() as usize, image.height() as usize);
    let across = (width != from_width).then(|| {
        let taps = taps(from_width, width);
        let mut levels = vec![0; width * from_height * CHANNELS];
        let rows = image.levels().par_chunks(from_width * CHANNELS);
        levels.par_chunks_mut((width * CHANNELS).max(1)).zip(rows).for_each(|(out, row)| squeeze(row, &taps, out));
        RgbImage::from_levels(width, from_height, levels)
    });
    let image = across.as_ref().unwrap_or(image);
    if height == from_height {
        return image.clone();
    }
    let stride = width * CHANNELS;
    let mut levels = vec![0; stride * height];
    let rows = levels.par_chunks_mut(stride.max(1)).zip(taps(from_height, height).into_par_iter());
    rows.for_each_init(|| vec![0; stride], |sums, (out, taps)| stack(image.levels(), &taps, sums, out));
    RgbImage::from_levels(width, height, levels)
}

/// One row, across.
fn squeeze(row: &[u8], taps: &[Taps], out: &mut [u8]) {
    for (pixel, taps) in out.chunks_exact_mut(CHANNELS).zip(taps) {
        let mut sums = [HALF; CHANNELS];
        for (from, weight) in row[taps.first * CHANNELS..].chunks_exact(CHANNELS).zip(&taps.weights) {
            for (sum, level) in sums.iter_mut().zip(from) {
                *sum += i32::from(*level) * weight;
            }
        }
        for (level, sum) in pixel.iter_mut().zip(sums) {
            *level = whole(sum);
        }
    }
}

/// One output row from the rows it takes from.
fn stack(levels: &[u8], taps: &Taps, sums: &mut [i32], out: &mut [u8]) {
    let stride = out.len();
    sums.fill(HALF);
    for (row, weight) in levels[taps.first * stride..].chunks_exact(stride).zip(&taps.weights) {
        for (sum, level) in sums.iter_mut().zip(row) {
            *sum += i32::from(*level) * weight;
        }
    }
    for (level, sum) in out.iter_mut().zip(sums.iter()) {
        *level = whole(*sum);
    }
}

/// What each of `output` pixels takes from `input` ones.
fn taps(input: usize, output: usize) -> Vec<Taps> {
    let pixel = |index: usize| {
        let (first, weights) = cubic::taps(index, input, output);
        Taps { first, weights: weights.into_iter().map(fixed).collect() }
    };
    (0..output).map(pixel).collect()
}

/// A weight in fixed point, rounded half away from zero.
fn fixed(weight: f64) -> i32 {
    (weight * f64::from(1 << POINT)).round() as i32
}

/// A sum in fixed point as a level.
fn whole(sum: i32) -> u8 {
    (sum >> POINT).clamp(0, 255) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_of_every_pixel_sum_to_one() {
        for (input, output) in [(1, 1), (1, 100), (100, 1), (97, 64), (64, 97), (20_000, 640)] {
            for taps in taps(input, output) {
                let sum: i64 = taps.weights.iter().map(|weight| i64::from(*weight)).sum();
                // Each weight is rounded by half a unit at most.
                assert!((sum - (1 << POINT)).abs() <= taps.weights.len() as i64, "{input} to {output}: {sum}");
            }
        }
    }

    #[test]
    fn a_flat_image_stays_flat() {
        let image = resize(&RgbImage::filled(13, 7, 201), 40, 3);
        assert_eq!((image.width(), image.height()), (40, 3));
        assert!(image.levels().iter().all(|level| *level == 201));
    }

    #[test]
    fn the_same_size_is_the_same_image() {
        let image = RgbImage::from_levels(2, 2, (0..12).map(|level| level * 20).collect());
        assert_eq!(resize(&image, 2, 2), image);
    }

    #[test]
    fn nothing_is_left_of_a_side_of_zero() {
        let image = RgbImage::filled(3, 3, 9);
        assert!(resize(&image, 0, 3).levels().is_empty());
        assert!(resize(&image, 3, 0).levels().is_empty());
    }
}
