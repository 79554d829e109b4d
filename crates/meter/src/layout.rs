//! How a tensor lies on devices that share a model: which dimensions are cut, and whether sums are still open.
//!
//! A tensor is whole on every device unless its layout says otherwise. Rules carry layouts through operations the way
//! tensor-parallel programs do: heads and inner widths stay cut from one matrix to the next, and what the second matrix
//! leaves is a part of a sum that devices must add up before anything but an addition is done with it.

use types::{Op, Shape};

/// Cuts of a tensor. `1` everywhere is a whole tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Layout {
    /// Pieces of each dimension.
    ways: [u64; Shape::MAX_RANK],
    /// Devices whose tensors must be added up to get the value.
    partial: u64,
}

impl Layout {
    pub(crate) const WHOLE: Self = Self { ways: [1; Shape::MAX_RANK], partial: 1 };

    /// Dimension `dim` in `ways` pieces.
    pub(crate) fn cut(dim: usize, ways: u64) -> Self {
        let mut layout = Self::WHOLE;
        layout.ways[dim] = ways.max(1);
        layout
    }

    /// A sum over `ways` devices.
    pub(crate) fn open_sum(ways: u64) -> Self {
        Self { partial: ways.max(1), ..Self::WHOLE }
    }

    pub(crate) fn is_whole(&self) -> bool {
        *self == Self::WHOLE
    }

    /// Devices whose tensors must be added up.
    pub(crate) fn partial(&self) -> u64 {
        self.partial
    }

    /// Total number of pieces.
    pub(crate) fn pieces(&self) -> u64 {
        self.ways.iter().product()
    }

    pub(crate) fn ways(&self, dim: usize) -> u64 {
        self.ways.get(dim).copied().unwrap_or(1)
    }

    /// The same with dimension `dim` in `ways` pieces.
    pub(crate) fn with(mut self, dim: usize, ways: u64) -> Self {
        self.ways[dim] = ways.max(1);
        self
    }

    /// The same without open sums.
    pub(crate) fn summed(self) -> Self {
        Self { partial: 1, ..self }
    }

    /// The piece one device has, rounded up where it does not divide.
    pub(crate) fn local(&self, shape: Shape) -> Shape {
        if self.pieces() == 1 {
            return shape;
        }
        let dims: Vec<u64> = shape.dims().iter().zip(self.ways).map(|(size, ways)| size.div_ceil(ways)).collect();
        Shape::try_new(&dims).unwrap_or(shape)
    }
}

/// What becomes of layouts in an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Every device works on its piece and has this piece of the output.
    Local(Layout),
    /// The open sums of this input must be added up first.
    Sum(usize),
    /// The pieces of this input must be gathered first.
    Gather(usize),
}

/// What `op` makes of inputs of these shapes and layouts.
pub(crate) fn step(op: &Op, inputs: &[(Shape, Layout)], output: Shape) -> Step {
    if inputs.iter().all(|(_, layout)| layout.is_whole()) {
        return Step::Local(Layout::WHOLE);
    }
    match op {
        Op::Linear => linear(inputs, output),
        Op::Embedding => embedding(inputs),
        Op::Add => {
            let open: Vec<u64> = inputs.iter().map(|(_, layout)| layout.partial).collect();
            // Parts of two sums add up to parts of one.
            if open.iter().all(|ways| *ways == open[0]) {
                aligned(inputs, output, open[0])
            } else {
                summed(inputs, output)
            }
        }
        Op::Combine { .. } => combine(inputs),
        Op::Reshape(_) => viewed(inputs[0], |layout| reshaped(inputs[0].0, layout, output)),
        Op::Permute(order) => viewed(inputs[0], |layout| {
            let mut next = Layout { partial: layout.partial, ..Layout::WHOLE };
            for (to, from) in order.dims().iter().enumerate() {
                next.ways[to] = layout.ways(usize::try_from(*from).ok()?);
            }
            Some(next)
        }),
        Op::Slice { dim, length, .. } => viewed(inputs[0], |layout| {
            let ways = layout.ways(usize::try_from(*dim).ok()?);
            // A slice of a fused matrix is cut like the matrix: every device has its part of each.
            length.is_multiple_of(ways).then_some(layout)
        }),
        Op::Expand(_) | Op::Copy | Op::Cast(_) | Op::Pad { .. } => viewed(inputs[0], Some),
        Op::Attention { .. } | Op::LatentAttention { .. } => heads(inputs),
        _ if reduces_last(op) && inputs[0].1.ways(inputs[0].0.rank().saturating_sub(1)) > 1 => Step::Gather(0),
        _ => summed(inputs, output),
    }
}

/// Operations that need the whole of the last dimension.
fn reduces_last(op: &Op) -> bool {
    matches!(
        op,
        Op::RmsNorm { .. }
            | Op::LayerNorm { .. }
            | Op::Softmax
            | Op::TopK { .. }
            | Op::Rotary { .. }
            | Op::Dispatch { .. }
    )
}

/// A view keeps its layout where the rule finds one.
fn viewed((_, layout): (Shape, Layout), rule: impl FnOnce(Layout) -> Option<Layout>) -> Step {
    match rule(layout) {
        Some(next) => Step::Local(next),
        None if layout.partial > 1 => Step::Sum(0),
        None => Step::Gather(0),
    }
}

/// Cuts move to the dimension that begins at the same place.
fn reshaped(from: Shape, layout: Layout, to: Shape) -> Option<Layout> {
    let mut next = Layout { partial: layout.partial, ..Layout::WHOLE };
    let before = |shape: Shape, dim: usize| shape.dims()[..dim].iter().product::<u64>();
    for dim in (0..from.rank()).filter(|dim| layout.ways(*dim) > 1) {
        let ways = layout.ways(dim);
        let place = before(from, dim);
        let fits = |other: &usize| before(to, *other) == place && to.dims()[*other] > 1;
        let other = (0..to.rank()).find(fits)?;
        next.ways[other] = ways;
    }
    Some(next)
}

/// `x [.., I]`, `W [O, I]`: cut outputs need all inputs, cut inputs leave open sums.
fn linear(inputs: &[(Shape, Layout)], output: Shape) -> Step {
    let ((x_shape, x), (_, weight)) = (inputs[0], inputs[1]);
    if x.partial > 1 {
        return Step::Sum(0);
    }
    let (last, inner) = (x_shape.rank() - 1, weight.ways(1));
    // A whole input is cut for free where the matrix wants pieces of it.
    if x.ways(last) != 1 && x.ways(last) != inner {
        return Step::Gather(0);
    }
    let mut next = Layout { partial: inner, ..x };
    next.ways[output.rank() - 1] = weight.ways(0);
    Step::Local(next)
}

/// A table cut by rows leaves an open sum: devices without the row have zeros.
fn embedding(inputs: &[(Shape, Layout)]) -> Step {
    Step::Local(Layout::open_sum(inputs[1].1.ways(0)))
}

/// Rows of experts on other devices are missing from the sum.
fn combine(inputs: &[(Shape, Layout)]) -> Step {
    let rows = inputs[0].1;
    Step::Local(Layout::open_sum(rows.partial * rows.ways(0)))
}

/// Heads are cut like the queries; keys and values may be cut less, down to one for all.
fn heads(inputs: &[(Shape, Layout)]) -> Step {
    match inputs.iter().position(|(_, layout)| layout.partial > 1) {
        Some(open) => Step::Sum(open),
        None => Step::Local(Layout::cut(1, inputs[0].1.ways(1))),
    }
}

fn summed(inputs: &[(Shape, Layout)], output: Shape) -> Step {
    match inputs.iter().position(|(_, layout)| layout.partial > 1) {
        Some(open) => Step::Sum(open),
        None => aligned(inputs, output, 1),
    }
}

/// Dimensions are aligned at the end; where one input is cut, whole ones are cut for free.
fn aligned(inputs: &[(Shape, Layout)], output: Shape, partial: u64) -> Step {
    let mut next = Layout { partial, ..Layout::WHOLE };
    for (index, (shape, layout)) in inputs.iter().enumerate() {
        for dim in (0..shape.rank()).filter(|dim| layout.ways(*dim) > 1) {
            let Some(to) = (output.rank() + dim).checked_sub(shape.rank()) else { return Step::Gather(index) };
            if next.ways[to] != 1 && next.ways[to] != layout.ways(dim) {
                return Step::Gather(index);
            }
            next.ways[to] = layout.ways(dim);
        }
    }
    Step::Local(next)
}

#[cfg(test)]
mod tests {
    use types::ActivationKind;

    use super::*;

    fn shape<const N: usize>(dims: [u64; N]) -> Shape {
        dims.into()
    }

    #[test]
    fn a_block_of_two_matrices_ends_in_one_open_sum() {
        // Megatron's block: the first matrix by columns, the second by rows, four devices.
        let (x, up, down) = (shape([1, 7, 8]), shape([32, 8]), shape([8, 32]));
        let inner = shape([1, 7, 32]);
        let first = step(&Op::Linear, &[(x, Layout::WHOLE), (up, Layout::cut(0, 4))], inner);
        assert_eq!(first, Step::Local(Layout::cut(2, 4)));
        let middle = step(&Op::Activation(ActivationKind::Silu), &[(inner, Layout::cut(2, 4))], inner);
        assert_eq!(middle, Step::Local(Layout::cut(2, 4)));
        let second = step(&Op::Linear, &[(inner, Layout::cut(2, 4)), (down, Layout::cut(1, 4))], x);
        assert_eq!(second, Step::Local(Layout::open_sum(4)));
        // The residual needs the sum; two open sums do not.
        let residual = step(&Op::Add, &[(x, Layout::WHOLE), (x, Layout::open_sum(4))], x);
        assert_eq!(residual, Step::Sum(1));
        let both = step(&Op::Add, &[(x, Layout::open_sum(4)), (x, Layout::open_sum(4))], x);
        assert_eq!(both, Step::Local(Layout::open_sum(4)));
    }

    #[test]
    fn heads_stay_cut_through_reshape_and_permute() {
        let split =
            step(&Op::Reshape(shape([1, 7, 8, 16])), &[(shape([1, 7, 128]), Layout::cut(2, 4))], shape([1, 7, 8, 16]));
        assert_eq!(split, Step::Local(Layout::cut(2, 4)));
        let turned =
            step(&Op::Permute(shape([0, 2, 1, 3])), &[(shape([1, 7, 8, 16]), Layout::cut(2, 4))], shape([1, 8, 7, 16]));
        assert_eq!(turned, Step::Local(Layout::cut(1, 4)));
        let merged =
            step(&Op::Reshape(shape([1, 7, 128])), &[(shape([1, 7, 8, 16]), Layout::cut(2, 4))], shape([1, 7, 128]));
        assert_eq!(merged, Step::Local(Layout::cut(2, 4)));
        assert_eq!(Layout::cut(1, 4).local(shape([1, 8, 7, 16])), shape([1, 2, 7, 16]));
    }

    #[test]
    fn whole_tensors_stay_whole() {
        let x = shape([1, 7, 8]);
        let whole = step(&Op::Linear, &[(x, Layout::WHOLE), (shape([8, 8]), Layout::WHOLE)], x);
        assert_eq!(whole, Step::Local(Layout::WHOLE));
    }

    #[test]
    fn a_norm_over_a_cut_width_needs_all_of_it() {
        let x = shape([1, 7, 8]);
        let norm = Op::Softmax;
        assert_eq!(step(&norm, &[(x, Layout::cut(2, 2))], x), Step::Gather(0));
        assert_eq!(step(&norm, &[(x, Layout::cut(1, 2))], x), Step::Local(Layout::cut(1, 2)));
    }
}
