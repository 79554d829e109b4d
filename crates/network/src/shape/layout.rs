//! Operations that move data.

use types::{Shape, Spec};

use super::{Made, activation, broadcast, built, dimension, equal, rank, same, with_dim};

pub(super) fn embedding(inputs: &[Spec]) -> Made {
    let mut dims = inputs[0].shape.dims().to_vec();
    dims.push(inputs[1].shape.last());
    Ok(activation(built(&dims)?, inputs[1].dtype))
}

pub(super) fn permute(x: Spec, order: Shape) -> Made {
    rank(0, &x, order.rank())?;
    let mut seen = [false; Shape::MAX_RANK];
    let mut permuted = Vec::with_capacity(order.rank());
    for &from in order.dims() {
        let from = usize::try_from(from).ok().filter(|from| *from < x.shape.rank() && !seen[*from]);
        let from = from.ok_or_else(|| format!("{order} is not a permutation of the dimensions"))?;
        seen[from] = true;
        permuted.push(x.shape.dims()[from]);
    }
    Ok(Spec { shape: built(&permuted)?, ..x })
}

pub(super) fn slice(x: Spec, dim: u64, start: u64, length: u64) -> Made {
    let size = dimension(x.shape, dim)?;
    if start + length > size {
        return Err(format!("{start}..{} exceeds the size {size} of dimension {dim}", start + length));
    }
    Ok(Spec { shape: with_dim(x.shape, dim, length), ..x })
}

pub(super) fn concat(inputs: &[Spec], dim: u64) -> Made {
    let mut around = inputs[0].shape;
    let mut total = 0;
    for input in inputs {
        total += dimension(input.shape, dim)?;
        around = Some(with_dim(input.shape, dim, 1))
            .filter(|shape| shape.rank() == around.rank())
            .and_then(|shape| broadcast(with_dim(around, dim, 1), shape))
            .ok_or_else(|| format!("only dimension {dim} may differ"))?;
    }
    Ok(activation(with_dim(around, dim, total), inputs[0].dtype))
}

pub(super) fn replace_rows(inputs: &[Spec]) -> Made {
    let (base, rows) = (inputs[0].shape, inputs[1].shape);
    equal("width of base and rows", base.last(), rows.last())?;
    let positions = base.elements() / base.last().max(1);
    equal("positions of base and mask", positions, inputs[2].shape.elements())?;
    if rows.dims()[0] > positions {
        return Err(format!("{} rows do not fit {positions} positions", rows.dims()[0]));
    }
    Ok(same(inputs[0]))
}
