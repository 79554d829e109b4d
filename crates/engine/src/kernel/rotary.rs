//! Rotary positions.

use super::runs::View;
use super::{filled, vectorised};

/// How far pairs of elements turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turns<'a> {
    /// Angle of one position, for every pair.
    pub(crate) frequencies: &'a [f32],
    /// Factor on what is rotated.
    pub(crate) magnitude: f32,
    /// The first position.
    pub(crate) offset: usize,
    /// Whether pairs are neighbours, not halves. Halves come out either way: queries and keys agree on the order.
    pub(crate) interleaved: bool,
}

/// Rotates pairs of `x [B, H, S, D]`. Elements of one position must lie one behind the other.
pub(crate) fn rotary(x: View<'_>, turns: Turns<'_>) -> Vec<f32> {
    let (dims, strides) = (x.dims, x.strides);
    let [heads, length, width] = [dims[1], dims[2], dims[3]];
    let half = width / 2;
    let Turns { frequencies, magnitude, offset, interleaved } = turns;
    let table = filled(length * width, width, |start, piece| {
        for (row, turns) in piece.chunks_exact_mut(width).enumerate() {
            let position = (offset + start / width + row) as f32;
            let (cosines, sines) = turns.split_at_mut(half);
            for ((cosine, sine), frequency) in cosines.iter_mut().zip(sines).zip(frequencies) {
                let (up, along) = (position * frequency).sin_cos();
                (*sine, *cosine) = (up * magnitude, along * magnitude);
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
                    let (left, right) = y.split_at_mut(half);
                    if interleaved {
                        for (pair, x) in x.chunks_exact(2).enumerate() {
                            left[pair] = x[0] * cosines[pair] - x[1] * sines[pair];
                            right[pair] = x[0] * sines[pair] + x[1] * cosines[pair];
                        }
                        continue;
                    }
                    let (first, second) = x.split_at(half);
                    for pair in 0..half {
                        left[pair] = first[pair] * cosines[pair] - second[pair] * sines[pair];
                        right[pair] = first[pair] * sines[pair] + second[pair] * cosines[pair];
                    }
                }
            },
        );
    })
}
