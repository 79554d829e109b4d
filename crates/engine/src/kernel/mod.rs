//! What operations come down to on a processor: loops over slices of numbers, shared out among the
//! threads and compiled for the vector unit at hand.
//!
//! Knows numbers and strides only. Which operation wants which loop, and on which tensors, is `op`'s business.

pub(crate) mod activation;
pub(crate) mod attention;
pub(crate) mod broadcast;
pub(crate) mod conv2d;
pub(crate) mod detailed_attention;
pub(crate) mod dot;
pub(crate) mod linear;
mod math;
pub(crate) mod matmul;
pub(crate) mod norm;
mod pages;
pub(crate) mod rotary;
pub(crate) mod runs;
pub(crate) mod softmax;

use std::mem::MaybeUninit;

use pulp::{Arch, NullaryFnOnce};
use rayon::prelude::*;

/// Elements one thread works on at a time: 128 KiB, which stay in its own cache from the first pass to the last.
pub(crate) const PIECE: usize = 1 << 15;

/// A vector of `length` that `fill` writes piece by piece, told where each starts; pieces hold whole multiples of `unit`
/// elements and start out as zeros. Zeros are written piece by piece too, while the piece is in the cache: clearing the
/// whole vector first would send it through memory twice.
pub(crate) fn filled<T: Copy + Default + Send>(
    length: usize,
    unit: usize,
    fill: impl Fn(usize, &mut [T]) + Sync,
) -> Vec<T> {
    let unit = unit.max(1);
    let piece = (PIECE / unit).max(1) * unit;
    let mut values = pages::room(length);
    let work = |(index, room): (usize, &mut [MaybeUninit<T>])| {
        room.fill(MaybeUninit::new(T::default()));
        // SAFETY: all of it was written in the line above.
        fill(index * piece, unsafe { room.assume_init_mut() });
    };
    let room = &mut values.spare_capacity_mut()[..length];
    if length <= piece {
        work((0, room));
    } else {
        room.par_chunks_mut(piece).enumerate().for_each(work);
    }
    // SAFETY: the pieces cover the first `length` elements, and each was written before `fill` saw it.
    unsafe { values.set_len(length) };
    values
}

/// Runs `work` as compiled for the widest vector unit this processor has. The closure, and what it calls, must be marked
/// `#[inline(always)]`: code that is not inlined here is compiled for the plainest processor, where a fused
/// multiply-add is a call into a library.
#[inline(always)]
pub(crate) fn vectorised<R>(work: impl FnMut() -> R) -> R {
    Arch::new().dispatch(Inlined(work))
}

/// A closure called by reference: calling it by value goes through a shim that is not inlined.
struct Inlined<F>(F);

impl<R, F: FnMut() -> R> NullaryFnOnce for Inlined<F> {
    type Output = R;

    #[inline(always)]
    fn call(mut self) -> R {
        (self.0)()
    }
}

/// Sixteen running values at a time: what the compiler needs to see to use vector registers for a sum or a maximum.
const LANES: usize = 16;

/// Folds `values` lane by lane, then the lanes.
#[inline(always)]
pub(crate) fn fold(values: &[f32], start: f32, step: impl Fn(f32, f32) -> f32, join: impl Fn(f32, f32) -> f32) -> f32 {
    let mut lanes = [start; LANES];
    let mut chunks = values.chunks_exact(LANES);
    for chunk in &mut chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane = step(*lane, *value);
        }
    }
    let rest = chunks.remainder().iter().fold(start, |sum, value| step(sum, *value));
    lanes.into_iter().fold(rest, join)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Numbers between minus two and two that look random and are the same every time.
    pub(crate) fn numbers(count: usize, seed: u32) -> Vec<f32> {
        let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12345);
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 22) as f32 - 2.0
        };
        (0..count).map(|_| next()).collect()
    }

    pub(crate) fn worst(found: &[f32], wanted: &[f32]) -> f32 {
        assert_eq!(found.len(), wanted.len());
        found.iter().zip(wanted).map(|(a, b)| (a - b).abs()).fold(0f32, f32::max)
    }

    #[test]
    fn pieces_cover_the_vector_in_whole_units() {
        let length = 3 * PIECE + 21;
        let values = filled(length, 7, |start, piece| {
            assert_eq!(start % 7, 0);
            for (index, value) in piece.iter_mut().enumerate() {
                assert_eq!(*value, 0.0);
                *value = (start + index) as f32;
            }
        });
        assert!(values.iter().enumerate().all(|(index, value)| *value == index as f32));
        assert!(filled(0, 4, |_, piece: &mut [f32]| assert!(piece.is_empty())).is_empty());
    }

    #[test]
    fn folding_by_lanes_leaves_nothing_out() {
        let values: Vec<f32> = (0..37).map(|value| value as f32).collect();
        assert_eq!(fold(&values, 0.0, |sum, value| sum + value, |a, b| a + b), 666.0);
    }
}
