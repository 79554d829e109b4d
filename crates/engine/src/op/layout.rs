//! Operations that move data.

use candle_core::{DType, Device, Result, Tensor};

use super::floats::TensorData;
use crate::kernel::filled;
use crate::kernel::linear::WeightSlice;
use crate::kernel::runs;

pub(super) fn copy(x: &Tensor) -> Result<Tensor> {
    let held = TensorData::new(x);
    Tensor::from_vec(runs::copy(held.floats()?.view()), x.dims(), &Device::Cpu)
}

pub(super) fn pad(x: &Tensor, dim: usize, after: usize, dims: &[usize]) -> Result<Tensor> {
    let held = TensorData::new(x);
    Tensor::from_vec(runs::pad(held.floats()?.view(), dim, after), dims, &Device::Cpu)
}

/// Rows of `table [V, O]`, in single precision.
pub(super) fn embedding(ids: &Tensor, table: &Tensor, dims: &[usize]) -> Result<Tensor> {
    let (rows, width) = table.dims2()?;
    let ids = ids.flatten_all()?.to_dtype(DType::I64)?.to_vec1::<i64>()?;
    if let Some(id) = ids.iter().find(|id| usize::try_from(**id).map_or(true, |id| id >= rows)) {
        candle_core::bail!("id {id} is not one of the table's {rows} rows");
    }
    let held = TensorData::new(table);
    let stored = held.stored()?;
    let values = filled(ids.len() * width, width, |start, piece| {
        for (row, id) in piece.chunks_exact_mut(width.max(1)).zip(&ids[start / width.max(1)..]) {
            let from = *id as usize * width;
            match stored {
                WeightSlice::Single(table) => row.copy_from_slice(&table[from..from + width]),
                WeightSlice::Brain(table) => {
                    row.iter_mut().zip(&table[from..]).for_each(|(value, narrow)| *value = narrow.to_f32());
                }
            }
        }
    });
    Tensor::from_vec(values, dims, &Device::Cpu)
}

pub(super) fn concat(inputs: &[&Tensor], dim: usize) -> Result<Tensor> {
    // Sizes of one are repeated to what another part has.
    let rank = inputs[0].rank();
    let wide: Vec<usize> = (0..rank).map(|at| inputs.iter().map(|part| part.dims()[at]).max().unwrap_or(1)).collect();
    let part = |part: &&Tensor| {
        let mut dims = wide.clone();
        dims[dim] = part.dims()[dim];
        part.broadcast_as(dims)?.contiguous()
    };
    let parts = inputs.iter().map(part).collect::<Result<Vec<_>>>()?;
    Tensor::cat(&parts, dim)
}

/// Rows of `table [L, D]` for every query and key: row `i - j + keys - 1`.
pub(super) fn relative_positions(table: &Tensor, queries: u64, keys: u64) -> Result<Tensor> {
    let rows: Vec<u32> =
        (0..queries).flat_map(|query| (0..keys).map(move |key| (query + keys - 1 - key) as u32)).collect();
    let rows = Tensor::new(rows, table.device())?;
    let width = table.dim(1)?;
    table.index_select(&rows, 0)?.reshape((queries as usize, keys as usize, width))
}

/// `base [B, S, O]` with the n-th masked position replaced by row n of `rows [N, O]`.
pub(super) fn replace_rows(inputs: &[&Tensor]) -> Result<Tensor> {
    let (base, rows, mask) = (inputs[0], inputs[1], inputs[2]);
    let (batch, length, width) = base.dims3()?;
    let positions = batch * length;
    let mask = mask.flatten_all()?.to_dtype(DType::U8)?.to_vec1::<u8>()?;
    let mut next = 0;
    let mut from = Vec::with_capacity(positions);
    for (position, masked) in mask.iter().enumerate() {
        if *masked == 0 {
            from.push(position as u32);
        } else {
            from.push((positions + next) as u32);
            next += 1;
        }
    }
    let available = rows.dim(0)?;
    if next != available {
        candle_core::bail!("{next} positions are masked, but there are {available} rows for them");
    }
    let both = Tensor::cat(&[&base.reshape((positions, width))?, rows], 0)?;
    both.index_select(&Tensor::new(from, base.device())?, 0)?.reshape((batch, length, width))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masked_positions_get_the_rows_in_order() {
        let base = Tensor::new(&[[[0f32], [1.], [2.], [3.]]], &Device::Cpu).unwrap();
        let rows = Tensor::new(&[[10f32], [11.]], &Device::Cpu).unwrap();
        let mask = Tensor::new(&[[0u8, 1, 0, 1]], &Device::Cpu).unwrap();
        let out = replace_rows(&[&base, &rows, &mask]).unwrap();
        assert_eq!(out.flatten_all().unwrap().to_vec1::<f32>().unwrap(), [0., 10., 2., 11.]);
        assert!(replace_rows(&[&base, &rows.narrow(0, 0, 1).unwrap(), &mask]).is_err());
    }

    #[test]
    fn embedded_rows_are_the_tables_in_both_types_and_unknown_ids_are_refused() {
        let table = Tensor::new(&[[0f32, 1.], [2., 3.], [4., 5.]], &Device::Cpu).unwrap();
        let ids = Tensor::new(&[[2i64, 0]], &Device::Cpu).unwrap();
        for table in [table.clone(), table.to_dtype(DType::BF16).unwrap()] {
            let found = embedding(&ids, &table, &[1, 2, 2]).unwrap();
            assert_eq!(found.flatten_all().unwrap().to_vec1::<f32>().unwrap(), [4., 5., 0., 1.]);
        }
        for wrong in [3i64, -1] {
            let ids = Tensor::new(&[wrong], &Device::Cpu).unwrap();
            let error = embedding(&ids, &table, &[1, 2]).unwrap_err().to_string();
            assert!(error.contains(&format!("id {wrong} is not one of the table's 3 rows")), "{error}");
        }
    }

    #[test]
    fn relative_rows_count_from_the_far_key() {
        let table = Tensor::new(&[[0f32], [1.], [2.], [3.], [4.]], &Device::Cpu).unwrap();
        let out = relative_positions(&table, 3, 3).unwrap();
        let rows = out.reshape((3, 3)).unwrap().to_vec2::<f32>().unwrap();
        assert_eq!(rows, [[2., 1., 0.], [3., 2., 1.], [4., 3., 2.]]);
    }
}
