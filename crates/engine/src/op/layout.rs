//! Operations that move data.

use crate::compute_error::{ComputeError, Result};
use crate::kernel::filled;
use crate::kernel::linear::WeightSlice;
use crate::kernel::runs::{self, View};
use crate::tensor::{Floats, Tensor};

pub(super) fn copy(x: &Tensor) -> Result<Tensor> {
    Tensor::new(runs::copy(x.floats()?.view()), x.dims())
}

/// `x` with zeros behind dimension `dim`, as many as `dims` has more.
pub(super) fn pad(x: &Tensor, dim: usize, dims: &[usize]) -> Result<Tensor> {
    let mut behind = dims.to_vec();
    behind[dim] -= x.dims()[dim];
    let zeros = View { data: &[0.0], dims: &behind, strides: &vec![0; behind.len()] };
    Tensor::new(runs::concat(&[x.floats()?.view(), zeros], dim), dims)
}

/// Rows of `table [V, O]`, in single precision.
pub(super) fn embedding(ids: &Tensor, table: &Tensor, dims: &[usize]) -> Result<Tensor> {
    let [rows, width] = table.sizes()?;
    let row = |id: &i64| match usize::try_from(*id) {
        Ok(row) if row < rows => Ok(row),
        _ => Err(ComputeError::new(format!("id {id} is not one of the table's {rows} rows"))),
    };
    let order = ids.longs()?.iter().map(row).collect::<Result<Vec<_>>>()?;
    Tensor::new(picked(table.stored()?, width, &order), dims)
}

/// The rows of a table that `order` names, each of `width` numbers.
pub(super) fn picked(table: WeightSlice<'_>, width: usize, order: &[usize]) -> Vec<f32> {
    filled(order.len() * width, width, |start, piece| {
        for (row, index) in piece.chunks_exact_mut(width.max(1)).zip(&order[start / width.max(1)..]) {
            let from = index * width;
            match table {
                WeightSlice::Single(table) => row.copy_from_slice(&table[from..from + width]),
                WeightSlice::Brain(table) => {
                    row.iter_mut().zip(&table[from..]).for_each(|(value, narrow)| *value = narrow.to_f32());
                }
            }
        }
    })
}

/// Sizes of one are repeated to what another part has.
pub(super) fn concat(inputs: &[&Tensor], dim: usize, dims: &[usize]) -> Result<Tensor> {
    let part = |part: &&Tensor| {
        let mut wide = dims.to_vec();
        wide[dim] = part.dims()[dim];
        part.expand(&wide)
    };
    let parts = inputs.iter().map(part).collect::<Result<Vec<_>>>()?;
    let floats = parts.iter().map(Tensor::floats).collect::<Result<Vec<_>>>()?;
    let views: Vec<View<'_>> = floats.iter().map(Floats::view).collect();
    Tensor::new(runs::concat(&views, dim), dims)
}

/// Rows of `table [L, D]` for every query and key: row `i - j + keys - 1`.
pub(super) fn relative_positions(table: &Tensor, queries: u64, keys: u64, dims: &[usize]) -> Result<Tensor> {
    let [_, width] = table.sizes()?;
    let order: Vec<usize> =
        (0..queries).flat_map(|query| (0..keys).map(move |key| (query + keys - 1 - key) as usize)).collect();
    Tensor::new(picked(WeightSlice::Single(&table.in_order()?), width, &order), dims)
}

/// `base [B, S, O]` with the n-th masked position replaced by row n of `rows [N, O]`.
pub(super) fn replace_rows(inputs: &[&Tensor]) -> Result<Tensor> {
    let [available, width] = inputs[1].sizes()?;
    let (rows, mask) = (inputs[1].in_order()?, inputs[2].bytes()?);
    let masked = mask.iter().filter(|masked| **masked != 0).count();
    if masked != available {
        let why = format!("{masked} positions are masked, but there are {available} rows for them");
        return Err(ComputeError::new(why));
    }
    let mut values = inputs[0].in_order()?.into_owned();
    let positions = values.chunks_exact_mut(width.max(1)).zip(mask).filter(|(_, masked)| **masked != 0);
    positions.zip(rows.chunks_exact(width.max(1))).for_each(|((position, _), row)| position.copy_from_slice(row));
    Tensor::new(values, inputs[0].dims())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::linear::narrow;
    use crate::tensor::tests::counted;

    #[test]
    fn masked_positions_get_the_rows_in_order() {
        let base = counted(&[1, 4, 1]);
        let rows = Tensor::new(vec![10f32, 11.], [2, 1]).unwrap();
        let mask = Tensor::new(vec![0u8, 1, 0, 1], [1, 4]).unwrap();
        let out = replace_rows(&[&base, &rows, &mask]).unwrap();
        assert_eq!(*out.in_order().unwrap(), [0., 10., 2., 11.]);
        assert!(replace_rows(&[&base, &rows.slice(0, 0, 1).unwrap(), &mask]).is_err());
    }

    #[test]
    fn embedded_rows_are_the_tables_in_both_types_and_unknown_ids_are_refused() {
        let table = counted(&[3, 2]);
        let ids = Tensor::new(vec![2i64, 0], [1, 2]).unwrap();
        let narrowed = Tensor::new(narrow(&table.in_order().unwrap()), [3, 2]).unwrap();
        for table in [&table, &narrowed] {
            let found = embedding(&ids, table, &[1, 2, 2]).unwrap();
            assert_eq!(*found.in_order().unwrap(), [4., 5., 0., 1.]);
        }
        for wrong in [3i64, -1] {
            let ids = Tensor::new(vec![wrong], [1]).unwrap();
            let error = embedding(&ids, &table, &[1, 2]).unwrap_err().to_string();
            assert!(error.contains(&format!("id {wrong} is not one of the table's 3 rows")), "{error}");
        }
    }

    #[test]
    fn relative_rows_count_from_the_far_key() {
        let out = relative_positions(&counted(&[5, 1]), 3, 3, &[3, 3, 1]).unwrap();
        assert_eq!(*out.in_order().unwrap(), [2., 1., 0., 3., 2., 1., 4., 3., 2.]);
    }

    #[test]
    fn parts_of_size_one_are_repeated_and_padding_is_zero() {
        let (x, y) = (counted(&[2, 1, 2]), Tensor::new(vec![8f32, 9.], [1, 1, 2]).unwrap());
        let joined = concat(&[&x, &y], 1, &[2, 2, 2]).unwrap();
        assert_eq!(*joined.in_order().unwrap(), [0., 1., 8., 9., 2., 3., 8., 9.]);
        let padded = pad(&x, 2, &[2, 1, 3]).unwrap();
        assert_eq!(*padded.in_order().unwrap(), [0., 1., 0., 2., 3., 0.]);
    }
}
