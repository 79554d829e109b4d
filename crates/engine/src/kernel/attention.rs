//! Scaled dot-product attention, a block of queries and a block of keys at a time: scores never leave the cache.

use rayon::prelude::*;

use super::math::exp;
use super::matmul::{Matrix, Output, Threads, multiply};
use super::runs::View;
use super::softmax::{exponentials, largest};
use super::{LANES, vectorised};

/// Most queries and keys of a block: its scores take 512 KiB, which the cache next to a core holds.
const QUERIES: usize = 256;
const KEYS: usize = 512;

/// `q [B, H, S, D]`, `k` and `v [B, G, T, D]`, all with elements of one position one behind the other; `bias` is
/// `[B, H, S, T]` in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attention<'a> {
    pub(crate) queries: View<'a>,
    pub(crate) keys: View<'a>,
    pub(crate) values: View<'a>,
    pub(crate) bias: Option<&'a [f32]>,
    pub(crate) causal: bool,
    pub(crate) scale: f32,
}

/// What one thread keeps for a block.
#[derive(Default)]
struct Scratch {
    scores: Vec<f32>,
    /// For each query the largest score so far, and the sum of the exponentials of all less that.
    largest: Vec<f32>,
    sums: Vec<f32>,
}

impl Attention<'_> {
    /// `[B, H, S, D]`.
    pub(crate) fn run(&self) -> Vec<f32> {
        let [batch, heads, length] = [0, 1, 2].map(|dim| self.queries.dims[dim]);
        let width = self.values.dims[3];
        let mut output = vec![0f32; batch * heads * length * width];
        let block = length.div_ceil(length.div_ceil(QUERIES).max(1)).max(1);
        let all = output.par_chunks_mut((length * width).max(1)).enumerate();
        all.for_each(|(head, output)| {
            let blocks = output.par_chunks_mut((block * width).max(1)).enumerate();
            blocks.for_each_init(Scratch::default, |scratch, (index, output)| {
                self.block(head, index * block, output, scratch);
            });
        });
        output
    }

    /// The queries of one head from `first` on, as many as `output` has room for.
    fn block(&self, head: usize, first: usize, output: &mut [f32], scratch: &mut Scratch) {
        let [heads, length, width] = [1, 2, 3].map(|dim| self.queries.dims[dim]);
        let [groups, positions] = [1, 2].map(|dim| self.keys.dims[dim]);
        let value_width = self.values.dims[3];
        let count = output.len() / value_width.max(1);
        let (batch, group) = (head / heads, head % heads / (heads / groups));
        let of = |view: &View<'_>, head: usize, row: usize| {
            batch * view.strides[0] + head * view.strides[1] + row * view.strides[2]
        };
        let queries = &self.queries.data[of(&self.queries, head % heads, first)..];
        let queries = Matrix { data: queries, row: self.queries.strides[2], column: 1 };
        // The last query sees every key.
        let seen = |query: usize| if self.causal { positions - length + query + 1 } else { positions };
        scratch.largest.clear();
        scratch.largest.resize(count, f32::NEG_INFINITY);
        scratch.sums.clear();
        scratch.sums.resize(count, 0.0);
        let most = seen(first + count - 1);
        if count == 1 && self.bias.is_none() {
            return self.single(queries.data, [of(&self.keys, group, 0), of(&self.values, group, 0)], most, output);
        }
        let tile = most.div_ceil(most.div_ceil(KEYS).max(1));
        for start in (0..most).step_by(tile.max(1)) {
            let keys = tile.min(most - start);
            scratch.scores.resize(count * keys, 0.0);
            let matrix = |view: &View<'_>| Matrix { row: view.strides[2], column: 1, data: &[] };
            let k = Matrix { data: &self.keys.data[of(&self.keys, group, start)..], ..matrix(&self.keys) };
            let v = Matrix { data: &self.values.data[of(&self.values, group, start)..], ..matrix(&self.values) };
            let (sizes, scores) = ([count, keys, width], (&mut scratch.scores[..], keys));
            multiply(sizes, self.scale, queries, k.transposed(), scores, Output::Replace, Threads::One);
            vectorised(
                #[inline(always)]
                || {
                    for (row, scores) in scratch.scores.chunks_exact_mut(keys).enumerate() {
                        let query = first + row;
                        if let Some(bias) = self.bias {
                            let bias = &bias[(head * length + query) * positions + start..][..keys];
                            scores.iter_mut().zip(bias).for_each(|(score, bias)| *score += bias);
                        }
                        let (scores, unseen) = scores.split_at_mut(seen(query).saturating_sub(start).min(keys));
                        unseen.fill(0.0);
                        if scores.is_empty() {
                            continue;
                        }
                        let before = scratch.largest[row];
                        let now = before.max(largest(scores));
                        let fade = exp(before - now);
                        scratch.largest[row] = now;
                        scratch.sums[row] = scratch.sums[row] * fade + exponentials(scores, now);
                        if start > 0 && fade != 1.0 {
                            let row = &mut output[row * value_width..][..value_width];
                            row.iter_mut().for_each(|value| *value *= fade);
                        }
                    }
                },
            );
            let scores = Matrix::rows(&scratch.scores, keys);
            let sizes = [count, value_width, keys];
            multiply(sizes, 1.0, scores, v, (&mut *output, value_width), Output::Add, Threads::One);
        }
        for (row, sum) in output.chunks_exact_mut(value_width.max(1)).zip(&scratch.sums) {
            let factor = 1.0 / sum;
            row.iter_mut().for_each(|value| *value *= factor);
        }
    }

    /// One query, whose keys and values start at `at`: two passes over them, which no rearranging can better.
    fn single(&self, query: &[f32], at: [usize; 2], seen: usize, output: &mut [f32]) {
        let query = &query[..self.queries.dims[3]];
        let (key_step, value_step) = (self.keys.strides[2], self.values.strides[2]);
        let mut scores = vec![0f32; seen];
        vectorised(
            #[inline(always)]
            || {
                for (position, score) in scores.iter_mut().enumerate() {
                    let key = &self.keys.data[at[0] + position * key_step..][..query.len()];
                    *score = self.scale * dot(query, key);
                }
                let largest = largest(&scores);
                let factor = 1.0 / exponentials(&mut scores, largest);
                for (position, score) in scores.iter().enumerate() {
                    let weight = score * factor;
                    let value = &self.values.data[at[1] + position * value_step..][..output.len()];
                    for (output, value) in output.iter_mut().zip(value) {
                        *output = weight.mul_add(*value, *output);
                    }
                }
            },
        );
    }
}

#[inline(always)]
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0f32; LANES];
    let (a, b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f32 = a.remainder().iter().zip(b.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a.zip(b) {
        for lane in 0..LANES {
            lanes[lane] = a[lane].mul_add(b[lane], lanes[lane]);
        }
    }
    lanes.into_iter().sum::<f32>() + rest
}
