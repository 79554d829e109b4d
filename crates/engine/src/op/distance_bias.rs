//! Scores of positions by their distance.

use crate::compute_error::Result;
use crate::tensor::Tensor;

/// Rows of `table [L, H]` for `queries` at the end of `keys`: `[1, H, queries, keys]`.
pub(super) fn scores(table: &Tensor, [queries, keys]: [u64; 2], furthest: u64, both_ways: bool) -> Result<Tensor> {
    let [rows, heads] = table.sizes()?;
    let table = table.in_order()?;
    let mut scores = Vec::with_capacity(heads * (queries * keys) as usize);
    for head in 0..heads {
        for query in keys - queries..keys {
            for key in 0..keys {
                let row = row(key as i64 - query as i64, rows as u64, furthest, both_ways);
                scores.push(table[row as usize * heads + head]);
            }
        }
    }
    Tensor::new(scores, [1, heads, queries as usize, keys as usize])
}

/// The row of a key that is `distance` behind the query. Half of the rows are for single distances, the others for ranges that
/// grow with the distance; all from `furthest` on have the last one. Single precision, as published.
fn row(distance: i64, rows: u64, furthest: u64, both_ways: bool) -> u64 {
    let (first, rows, distance) = if both_ways {
        (if distance > 0 { rows / 2 } else { 0 }, rows / 2, distance.unsigned_abs())
    } else {
        (0, rows, distance.min(0).unsigned_abs())
    };
    let single = rows / 2;
    if distance < single {
        return first + distance;
    }
    let log = (distance as f32 / single as f32).ln() / (furthest as f64 / single as f64).ln() as f32;
    let range = (log * (rows - single) as f32) as u64;
    first + (single + range).min(rows - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_those_of_the_published_code() {
        // `T5Attention._relative_position_bucket` of transformers 5.22 with 32 rows up to a distance of 128.
        let both: Vec<u64> =
            [-200, -128, -64, -9, -8, -7, -1, 0, 1, 7, 8, 12, 20, 127, 500].map(|d| row(d, 32, 128, true)).to_vec();
        assert_eq!(both, [15, 15, 14, 8, 8, 7, 1, 0, 17, 23, 24, 25, 26, 31, 31]);
        let back: Vec<u64> =
            [5, 0, -1, -15, -16, -20, -50, -100, -127, -128, -1000].map(|d| row(d, 32, 128, false)).to_vec();
        assert_eq!(back, [0, 0, 1, 15, 16, 17, 24, 30, 31, 31, 31]);
    }

    #[test]
    fn the_last_query_is_at_the_last_key() {
        let one = scores(&crate::tensor::tests::counted(&[8, 1]), [1, 3], 100, false).unwrap();
        assert_eq!(*one.in_order().unwrap(), [2.0, 1.0, 0.0]);
    }
}
