//! Attention with a window, chunks, chosen keys, a softcap or sinks: one query at a time, plainly. Plain attention has a faster kernel.

use rayon::prelude::*;

use super::attention::Attention;
use super::runs::View;

/// Keys that a query does not see, beside those behind it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hidden<'a> {
    Nothing,
    /// Those further back than so many, its own included.
    BeforeWindow(usize),
    /// Those of other chunks of so many positions; the first query is behind `before` positions.
    OtherChunks {
        before: usize,
        chunk: usize,
    },
    /// All but those chosen, `[B, S, keep]`; what is below zero is no key.
    AllBut {
        chosen: &'a [i64],
        keep: usize,
    },
}

/// Attention with a window, chunks, chosen keys, softcap or sinks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DetailedAttention<'a> {
    /// Its bias is not used.
    pub(crate) plain: Attention<'a>,
    pub(crate) hidden: Hidden<'a>,
    /// Scores `s` become `limit * tanh(s / limit)`.
    pub(crate) softcap: Option<f32>,
    /// A score of each head that takes part in the softmax and has no value.
    pub(crate) sinks: Option<&'a [f32]>,
}

impl DetailedAttention<'_> {
    /// `[B, H, S, V]`.
    pub(crate) fn run(&self) -> Vec<f32> {
        let Attention { queries, keys, values, causal, scale, .. } = self.plain;
        let [batch, heads, length, width] = [0, 1, 2, 3].map(|dim| queries.dims[dim]);
        let [groups, positions] = [1, 2].map(|dim| keys.dims[dim]);
        let value_width = values.dims[3];
        let row = |view: &View<'_>, batch: usize, head: usize, row: usize| {
            batch * view.strides[0] + head * view.strides[1] + row * view.strides[2]
        };
        let mut output = vec![0f32; batch * heads * length * value_width];
        output.par_chunks_mut(value_width.max(1)).enumerate().for_each(|(index, output)| {
            let (query, head, batch) = (index % length, index / length % heads, index / length / heads);
            let group = head / (heads / groups);
            let end = if causal { positions - length + query + 1 } else { positions };
            let start = match self.hidden {
                Hidden::Nothing | Hidden::AllBut { .. } => 0,
                Hidden::BeforeWindow(window) => end.saturating_sub(window),
                Hidden::OtherChunks { before, chunk } => {
                    // Positions of the query, of the first of its chunk, and of the first key there is.
                    let position = before + query;
                    (position / chunk.max(1) * chunk).saturating_sub(before + length - positions)
                }
            };
            let seen: Vec<usize> = match self.hidden {
                Hidden::AllBut { chosen, keep } => {
                    let row = &chosen[(batch * length + query) * keep..][..keep];
                    row.iter().filter_map(|key| usize::try_from(*key).ok()).filter(|key| *key < end).collect()
                }
                _ => (start..end).collect(),
            };
            let q = &queries.data[row(&queries, batch, head, query)..][..width];
            let mut scores: Vec<f32> = seen
                .iter()
                .map(|&key| {
                    let k = &keys.data[row(&keys, batch, group, key)..][..width];
                    let score = scale * q.iter().zip(k).map(|(a, b)| a * b).sum::<f32>();
                    self.softcap.map_or(score, |limit| limit * (score / limit).tanh())
                })
                .collect();
            let sink = self.sinks.map(|sinks| sinks[head]);
            let largest = scores.iter().copied().chain(sink).fold(f32::NEG_INFINITY, f32::max);
            scores.iter_mut().for_each(|score| *score = (*score - largest).exp());
            let total: f32 = scores.iter().sum::<f32>() + sink.map_or(0.0, |sink| (sink - largest).exp());
            for (&key, score) in seen.iter().zip(&scores) {
                let v = &values.data[row(&values, batch, group, key)..][..value_width];
                output.iter_mut().zip(v).for_each(|(sum, v)| *sum += score / total * v);
            }
        });
        output
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{numbers, worst};
    use super::*;

    fn view<'a>(data: &'a [f32], dims: &'a [usize; 4], strides: &'a [usize; 4]) -> View<'a> {
        View { data, dims, strides }
    }

    #[test]
    fn without_details_it_is_plain_attention() {
        let (q, kv) = (numbers(2 * 4 * 5 * 8, 1), numbers(2 * 2 * 9 * 8, 2));
        let (query_dims, query_strides) = ([2, 4, 5, 8], [160, 40, 8, 1]);
        let (key_dims, key_strides) = ([2, 2, 9, 8], [144, 72, 8, 1]);
        let keys = view(&kv, &key_dims, &key_strides);
        let plain = Attention {
            queries: view(&q, &query_dims, &query_strides),
            keys,
            values: keys,
            bias: None,
            causal: true,
            scale: 0.3,
        };
        let detailed = DetailedAttention { plain, hidden: Hidden::Nothing, softcap: None, sinks: None };
        assert!(worst(&detailed.run(), &plain.run()) < 1e-5);
        // A cap far above all scores, a window wider than the keys and a sink far below all scores change nothing.
        let sinks = [-1e9f32; 4];
        let loose =
            DetailedAttention { hidden: Hidden::BeforeWindow(50), softcap: Some(1e6), sinks: Some(&sinks), ..detailed };
        assert!(worst(&loose.run(), &plain.run()) < 1e-4);
    }

    #[test]
    fn a_window_of_one_gives_the_value_and_an_equal_sink_halves_it() {
        let (q, k, v) = ([1f32, 2., 3.], [1f32, 1., 1.], [10f32, 20., 30.]);
        let (dims, strides) = ([1, 1, 3, 1], [3, 3, 1, 1]);
        let plain = Attention {
            queries: view(&q, &dims, &strides),
            keys: view(&k, &dims, &strides),
            values: view(&v, &dims, &strides),
            bias: None,
            causal: true,
            scale: 0.0,
        };
        let windowed = DetailedAttention { plain, hidden: Hidden::BeforeWindow(1), softcap: None, sinks: None };
        assert_eq!(windowed.run(), [10., 20., 30.]);
        let sinks = [0f32];
        assert_eq!(DetailedAttention { sinks: Some(&sinks), ..windowed }.run(), [5., 10., 15.]);
        // Chunks of two, one position before the first query, whose key is gone: the first sees itself, the third the second.
        let chunked = DetailedAttention { hidden: Hidden::OtherChunks { before: 1, chunk: 2 }, ..windowed };
        assert_eq!(chunked.run(), [10., 20., 25.]);
        let chosen = [0, -1, 0, 1, 0, 2];
        let sparse = DetailedAttention { hidden: Hidden::AllBut { chosen: &chosen, keep: 2 }, ..windowed };
        assert_eq!(sparse.run(), [10., 15., 20.]);
    }
}
