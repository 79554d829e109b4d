//! Rotary positions.

use super::runs::View;
use super::{filled, vectorised};

/// Rotates the halves of `x [B, H, S, D]` against each other, the first position being `offset`. Elements of one position
/// must lie one behind the other.
pub(crate) fn rotary(x: View<'_>, theta: f32, offset: usize) -> Vec<f32> {
    let (dims, strides) = (x.dims, x.strides);
    let [heads, length, width] = [dims[1], dims[2], dims[3]];
    let half = width / 2;
    // Angles in single precision, as published: long prompts otherwise drift from the reference.
    let frequencies: Vec<f32> = (0..half).map(|pair| 1.0 / theta.powf((2 * pair) as f32 / width as f32)).collect();
    let table = filled(length * width, width, |start, piece| {
        for (row, turns) in piece.chunks_exact_mut(width).enumerate() {
            let position = (offset + start / width + row) as f32;
            let (cosines, sines) = turns.split_at_mut(half);
            for ((cosine, sine), frequency) in cosines.iter_mut().zip(sines).zip(&frequencies) {
                (*sine, *cosine) = (position * frequency).sin_cos();
            }
        }
    });
    filled(dims.iter().product(), width, |start, piece| {
        vectorised(
            #[inline(always)]
            || {
                for (row, y) in piece.chunks_exact_mut(width).enumerate() {
                    let row = start / width + row;
                    let (position, head, batch) = (row % length, row / length % heads, row / length / heads);
                    let x = &x.data[batch * strides[0] + head * strides[1] + position * strides[2]..][..width];
                    let (cosines, sines) = table[position * width..][..width].split_at(half);
                    let (first, second) = x.split_at(half);
                    let (left, right) = y.split_at_mut(half);
                    for pair in 0..half {
                        left[pair] = first[pair] * cosines[pair] - second[pair] * sines[pair];
                        right[pair] = first[pair] * sines[pair] + second[pair] * cosines[pair];
                    }
                }
            },
        );
    })
}
