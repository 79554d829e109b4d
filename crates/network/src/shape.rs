//! Which output follows from which inputs: shape inference, one rule per operation.

use types::{Chosen, DType, InterpolationKind, Op, Role, Shape, Spec};

use crate::ShapeError;

/// Shape, element type and role of what `op` makes of `inputs`.
pub fn infer(op: Op, inputs: &[Spec]) -> Result<Spec, ShapeError> {
    let fail = |reason: String| ShapeError { op: Box::new(op), inputs: inputs.to_vec(), reason };
    let count = |wanted: std::ops::RangeInclusive<usize>| {
        if wanted.contains(&inputs.len()) {
            Ok(())
        } else {
            Err(fail(format!("takes {} to {} inputs, got {}", wanted.start(), wanted.end(), inputs.len())))
        }
    };
    let rank = |index: usize, wanted: usize| {
        let found = inputs[index].shape.rank();
        if found == wanted { Ok(()) } else { Err(fail(format!("input {index} must have rank {wanted}, has {found}"))) }
    };
    let equal = |what: &str, left: u64, right: u64| {
        if left == right { Ok(()) } else { Err(fail(format!("{what} differ: {left} and {right}"))) }
    };
    let activation = |shape: Shape, dtype: DType| Spec { shape, dtype, role: Role::Activation };
    let built = |dims: &[u64]| Shape::try_new(dims).ok_or_else(|| fail("the output has too many dimensions".into()));

    let same = |inputs: &[Spec]| activation(inputs[0].shape, inputs[0].dtype);
    match op {
        Op::Linear => {
            count(2..=3)?;
            rank(1, 2)?;
            let [out, features] = [inputs[1].shape.dims()[0], inputs[1].shape.dims()[1]];
            equal("input features and weight columns", inputs[0].shape.last(), features)?;
            if let Some(bias) = inputs.get(2) {
                equal("bias and weight rows", bias.shape.elements(), out)?;
            }
            Ok(activation(with_last(inputs[0].shape, out), inputs[0].dtype))
        }
        Op::MatMulTransposed => {
            count(2..=2)?;
            let (a, b) = (inputs[0].shape, inputs[1].shape);
            rank(1, a.rank())?;
            let lead = a.rank().checked_sub(2).ok_or_else(|| fail("operands must be matrices".into()))?;
            if a.dims()[..lead] != b.dims()[..lead] {
                return Err(fail("leading dimensions differ".into()));
            }
            equal("inner dimensions", a.last(), b.last())?;
            Ok(activation(with_last(a, b.dims()[lead]), inputs[0].dtype))
        }
        Op::Conv2d { stride, padding } => {
            count(2..=3)?;
            rank(0, 4)?;
            rank(1, 4)?;
            let (x, weight) = (inputs[0].shape, inputs[1].shape);
            let (x, weight) = (x.dims(), weight.dims());
            equal("input channels and weight channels", x[1], weight[1])?;
            let side = |size: u64, kernel: u64| {
                (size + 2 * padding)
                    .checked_sub(kernel)
                    .filter(|_| stride > 0)
                    .map(|span| span / stride + 1)
                    .ok_or_else(|| fail(format!("a kernel of {kernel} does not fit {size} with padding {padding}")))
            };
            let shape = [x[0], weight[0], side(x[2], weight[2])?, side(x[3], weight[3])?];
            Ok(activation(shape.into(), inputs[0].dtype))
        }
        Op::Conv1d { stride, padding } => {
            count(2..=3)?;
            rank(0, 3)?;
            rank(1, 3)?;
            let (x, weight) = (inputs[0].shape, inputs[1].shape);
            let (x, weight) = (x.dims(), weight.dims());
            equal("input channels and weight channels", x[1], weight[1])?;
            let span = (x[2] + 2 * padding).checked_sub(weight[2]).filter(|_| stride > 0);
            let span = span.ok_or_else(|| {
                fail(format!("a kernel of {} does not fit {} with padding {padding}", weight[2], x[2]))
            })?;
            Ok(activation([x[0], weight[0], span / stride + 1].into(), inputs[0].dtype))
        }
        Op::RmsNorm { .. } if inputs.len() == 1 => Ok(same(inputs)),
        Op::LayerNorm { .. } | Op::RmsNorm { .. } => {
            count(2..=3)?;
            equal("last dimension and weight", inputs[0].shape.last(), inputs[1].shape.elements())?;
            Ok(same(inputs))
        }
        Op::ChannelNorm { .. } | Op::BatchNorm { .. } => {
            count(3..=5)?;
            rank(0, 4)?;
            equal("channels and weight", inputs[0].shape.dims()[1], inputs[1].shape.elements())?;
            Ok(same(inputs))
        }
        Op::Attention { causal, detail, .. } => {
            let last = detail.sinks || detail.chosen == Chosen::Here;
            count(if last { 4..=4 } else { 3..=4 })?;
            (0..3).try_for_each(|index| rank(index, 4))?;
            let (q, k, v) = (inputs[0].shape, inputs[1].shape, inputs[2].shape);
            let (q, k, v) = (q.dims(), k.dims(), v.dims());
            equal("batch of queries and keys", q[0], k[0])?;
            equal("width of queries and keys", q[3], k[3])?;
            equal("length of keys and values", k[2], v[2])?;
            equal("heads of keys and values", k[1], v[1])?;
            if k[1] == 0 || !q[1].is_multiple_of(k[1]) {
                return Err(fail(format!("{} query heads cannot share {} key heads", q[1], k[1])));
            }
            if causal && q[2] > k[2] {
                return Err(fail(format!("{} queries cannot end at key {}", q[2], k[2])));
            }
            if detail.sinks {
                equal("sinks and query heads", inputs[3].shape.elements(), q[1])?;
            } else if detail.chosen == Chosen::Here {
                let chosen = inputs[3].shape;
                if chosen.rank() != 3 || chosen.dims()[..2] != [q[0], q[2]] {
                    return Err(fail("chosen keys must be [batch, queries, keys]".into()));
                }
            } else if let Some(bias) = inputs.get(3)
                && bias.shape != Shape::from([q[0], q[1], q[2], k[2]])
            {
                return Err(fail("bias must be [batch, heads, queries, keys]".into()));
            }
            Ok(activation([q[0], q[1], q[2], v[3]].into(), inputs[0].dtype))
        }
        Op::LatentAttention { causal, .. } => {
            count(4..=4)?;
            (0..4).try_for_each(|index| rank(index, 4))?;
            let shapes = [0, 1, 2, 3].map(|index: usize| inputs[index].shape);
            let [q, turned, latents, keys] = [0, 1, 2, 3].map(|index: usize| shapes[index].dims());
            equal("width of queries and latents", q[3], latents[3])?;
            equal("width of rotated queries and keys", turned[3], keys[3])?;
            equal("positions of latents and keys", latents[2], keys[2])?;
            if q[..3] != turned[..3] || latents[..2] != [q[0], 1] || keys[..2] != [q[0], 1] {
                return Err(fail("batches, heads or queries differ".into()));
            }
            if causal && q[2] > latents[2] {
                return Err(fail(format!("{} queries cannot end at key {}", q[2], latents[2])));
            }
            Ok(same(inputs))
        }
        Op::IndexPositions { keep } => {
            count(3..=3)?;
            (0..2).try_for_each(|index| rank(index, 4))?;
            let (q, k) = (inputs[0].shape, inputs[1].shape);
            let (q, k) = (q.dims(), k.dims());
            equal("width of queries and keys", q[3], k[3])?;
            equal("weights and heads", inputs[2].shape.last(), q[1])?;
            Ok(activation([q[0], q[2], keep].into(), DType::Int64))
        }
        Op::GatedDelta { .. } => {
            count(7..=7)?;
            (0..3).try_for_each(|index| rank(index, 4))?;
            let (q, v) = (inputs[0].shape, inputs[2].shape);
            let (q, v) = (q.dims(), v.dims());
            if inputs[0].shape != inputs[1].shape || q[..2] != v[..2] {
                return Err(fail("queries, keys and values differ".into()));
            }
            if q[2] == 0 || !v[2].is_multiple_of(q[2]) {
                return Err(fail(format!("{} value heads cannot share {} key heads", v[2], q[2])));
            }
            Ok(activation(inputs[2].shape, inputs[2].dtype))
        }
        Op::StateSpace { .. } => {
            count(7..=7)?;
            (0..3).try_for_each(|index| rank(index, 4))?;
            let (x, to) = (inputs[0].shape, inputs[1].shape);
            let (x, to) = (x.dims(), to.dims());
            if inputs[1].shape != inputs[2].shape || x[..2] != to[..2] {
                return Err(fail("inputs and outputs of the state differ".into()));
            }
            if to[2] == 0 || !x[2].is_multiple_of(to[2]) {
                return Err(fail(format!("{} heads cannot share {} groups", x[2], to[2])));
            }
            equal("steps and heads", inputs[3].shape.last(), x[2])?;
            Ok(same(inputs))
        }
        Op::SelectiveScan => {
            count(6..=6)?;
            (0..4).try_for_each(|index| rank(index, 3))?;
            equal("channels and steps", inputs[0].shape.last(), inputs[1].shape.last())?;
            equal("inputs and outputs of the state", inputs[2].shape.last(), inputs[3].shape.last())?;
            equal("channels and decay", inputs[0].shape.last(), inputs[4].shape.dims()[0])?;
            Ok(same(inputs))
        }
        Op::CompressPositions { every, width } => {
            count(4..=4)?;
            rank(0, 3)?;
            if inputs[0].shape != inputs[1].shape {
                return Err(fail("values and gates differ".into()));
            }
            equal("values and biases", inputs[0].shape.last(), inputs[2].shape.last())?;
            if every == 0 || !width.is_multiple_of(every) {
                return Err(fail(format!("an entry of {width} cannot be one of {every} positions")));
            }
            let x = inputs[0].shape;
            Ok(activation([x.dims()[0], 1, x.dims()[1], width / every].into(), inputs[0].dtype))
        }
        Op::AttendEntries { every, .. } => {
            count(2..=2)?;
            (0..2).try_for_each(|index| rank(index, 4))?;
            equal("width of queries and entries", inputs[0].shape.last(), inputs[1].shape.last() * every)?;
            Ok(same(inputs))
        }
        Op::IndexEntries { every } => {
            count(3..=3)?;
            (0..2).try_for_each(|index| rank(index, 4))?;
            equal("width of queries and entries", inputs[0].shape.last(), inputs[1].shape.last() * every)?;
            let q = inputs[0].shape;
            equal("weights and heads", inputs[2].shape.last(), q.dims()[1])?;
            Ok(activation([q.dims()[0], q.dims()[2], 1].into(), DType::Int64))
        }
        Op::CollapseStreams => {
            count(2..=2)?;
            rank(0, 4)?;
            let x = inputs[0].shape;
            Ok(activation([x.dims()[0], x.dims()[1], x.last()].into(), inputs[0].dtype))
        }
        Op::MixStreams { .. } => {
            count(3..=3)?;
            rank(0, 4)?;
            equal("width of streams and of the added term", inputs[0].shape.last(), inputs[2].shape.last())?;
            Ok(same(inputs))
        }
        Op::CausalConv => {
            count(2..=3)?;
            rank(0, 3)?;
            rank(1, 3)?;
            equal("channels and weight", inputs[0].shape.last(), inputs[1].shape.dims()[0])?;
            Ok(same(inputs))
        }
        Op::Embedding => {
            count(2..=2)?;
            rank(1, 2)?;
            let mut dims = inputs[0].shape.dims().to_vec();
            dims.push(inputs[1].shape.last());
            Ok(activation(built(&dims)?, inputs[1].dtype))
        }
        Op::Rotary { .. } => {
            count(1..=1)?;
            rank(0, 4)?;
            if !inputs[0].shape.last().is_multiple_of(2) {
                return Err(fail("the head width must be even".into()));
            }
            Ok(same(inputs))
        }
        Op::Activation(_) | Op::Softmax | Op::Scale { .. } | Op::Softcap { .. } | Op::Copy => {
            count(1..=1)?;
            Ok(same(inputs))
        }
        Op::ClampedGate { .. } => {
            count(1..=1)?;
            let both = inputs[0].shape.last();
            if !both.is_multiple_of(2) {
                return Err(fail(format!("{both} is not an even number of gate and up values")));
            }
            Ok(activation(with_last(inputs[0].shape, both / 2), inputs[0].dtype))
        }
        Op::LimitGroups { groups, keep, best } => {
            count(1..=1)?;
            let experts = inputs[0].shape.last();
            if groups == 0 || !experts.is_multiple_of(groups) || keep > groups || best > experts / groups {
                return Err(fail(format!("cannot keep {keep} of {groups} groups by {best} of {experts} scores")));
            }
            Ok(same(inputs))
        }
        Op::Add | Op::Multiply => {
            count(2..=2)?;
            let shape = broadcast(inputs[0].shape, inputs[1].shape)
                .ok_or_else(|| fail("the shapes do not broadcast".into()))?;
            Ok(activation(shape, inputs[0].dtype))
        }
        Op::TopK { k } => {
            count(1..=1)?;
            if k == 0 || k > inputs[0].shape.last() {
                return Err(fail(format!("cannot take the top {k} of {}", inputs[0].shape.last())));
            }
            Ok(activation(with_last(inputs[0].shape, k), DType::Int64))
        }
        Op::Reshape(shape) => {
            count(1..=1)?;
            equal("element counts", inputs[0].shape.elements(), shape.elements())?;
            Ok(Spec { shape, ..inputs[0] })
        }
        Op::Permute(order) => {
            count(1..=1)?;
            let dims = inputs[0].shape;
            rank(0, order.rank())?;
            let mut seen = [false; Shape::MAX_RANK];
            let mut permuted = Vec::with_capacity(order.rank());
            for &from in order.dims() {
                let from = usize::try_from(from).ok().filter(|from| *from < dims.rank() && !seen[*from]);
                let from = from.ok_or_else(|| fail(format!("{order} is not a permutation of the dimensions")))?;
                seen[from] = true;
                permuted.push(dims.dims()[from]);
            }
            Ok(Spec { shape: built(&permuted)?, ..inputs[0] })
        }
        Op::Slice { dim, start, length } => {
            count(1..=1)?;
            let size = *dimension(inputs[0].shape.dims(), dim)
                .ok_or_else(|| fail(format!("dimension {dim} does not exist")))?;
            if start + length > size {
                return Err(fail(format!("{start}..{} exceeds the size {size} of dimension {dim}", start + length)));
            }
            Ok(Spec { shape: with_dim(inputs[0].shape, dim, length), ..inputs[0] })
        }
        Op::Expand(shape) => {
            count(1..=1)?;
            match broadcast(inputs[0].shape, shape) {
                Some(expanded) if expanded == shape => Ok(Spec { shape, ..inputs[0] }),
                _ => Err(fail(format!("cannot expand to {shape}"))),
            }
        }
        Op::Concat { dim } => {
            count(1..=16)?;
            let mut around = inputs[0].shape;
            let mut total = 0;
            for input in inputs {
                let size = *dimension(input.shape.dims(), dim)
                    .ok_or_else(|| fail(format!("dimension {dim} does not exist")))?;
                around = Some(with_dim(input.shape, dim, 1))
                    .filter(|shape| shape.rank() == around.rank())
                    .and_then(|shape| broadcast(with_dim(around, dim, 1), shape))
                    .ok_or_else(|| fail(format!("only dimension {dim} may differ")))?;
                total += size;
            }
            Ok(activation(with_dim(around, dim, total), inputs[0].dtype))
        }
        Op::Pad { dim, after } => {
            count(1..=1)?;
            let size = *dimension(inputs[0].shape.dims(), dim)
                .ok_or_else(|| fail(format!("dimension {dim} does not exist")))?;
            Ok(activation(with_dim(inputs[0].shape, dim, size + after), inputs[0].dtype))
        }
        Op::Interpolate { kind: InterpolationKind::Bicubic | InterpolationKind::Bilinear, size } => {
            count(1..=1)?;
            rank(0, 4)?;
            let [batch, channels] = [inputs[0].shape.dims()[0], inputs[0].shape.dims()[3]];
            Ok(activation([batch, size[0], size[1], channels].into(), inputs[0].dtype))
        }
        Op::Interpolate { kind: InterpolationKind::Linear, size } => {
            count(1..=1)?;
            rank(0, 2)?;
            Ok(activation([size[0], inputs[0].shape.last()].into(), inputs[0].dtype))
        }
        Op::RelativePositions { queries, keys } => {
            count(1..=1)?;
            rank(0, 2)?;
            equal("table rows and 2 * max(queries, keys) - 1", inputs[0].shape.dims()[0], 2 * queries.max(keys) - 1)?;
            Ok(activation([queries, keys, inputs[0].shape.last()].into(), inputs[0].dtype))
        }
        Op::DistanceBias { queries, keys, .. } => {
            count(1..=1)?;
            rank(0, 2)?;
            if queries > keys {
                return Err(fail(format!("{queries} queries cannot end at key {keys}")));
            }
            Ok(activation([1, inputs[0].shape.last(), queries, keys].into(), inputs[0].dtype))
        }
        Op::GlobalAveragePool => {
            count(1..=1)?;
            rank(0, 4)?;
            Ok(activation([inputs[0].shape.dims()[0], inputs[0].shape.dims()[1]].into(), inputs[0].dtype))
        }
        Op::Cast(dtype) => {
            count(1..=1)?;
            Ok(activation(inputs[0].shape, dtype))
        }
        Op::ReplaceRows | Op::AddRows => {
            count(3..=3)?;
            rank(0, 3)?;
            rank(1, 2)?;
            equal("width of base and rows", inputs[0].shape.last(), inputs[1].shape.last())?;
            let positions = inputs[0].shape.elements() / inputs[0].shape.last().max(1);
            equal("positions of base and mask", positions, inputs[2].shape.elements())?;
            if inputs[1].shape.dims()[0] > positions {
                return Err(fail(format!("{} rows do not fit {positions} positions", inputs[1].shape.dims()[0])));
            }
            Ok(same(inputs))
        }
        Op::Dispatch { per_token } => {
            count(1..=2)?;
            rank(0, 2)?;
            let [tokens, width] = [inputs[0].shape.dims()[0], inputs[0].shape.dims()[1]];
            Ok(activation([tokens * per_token, width].into(), inputs[0].dtype))
        }
        Op::Combine { per_token } => {
            count(1..=3)?;
            rank(0, 2)?;
            let [rows, width] = [inputs[0].shape.dims()[0], inputs[0].shape.dims()[1]];
            if per_token == 0 || !rows.is_multiple_of(per_token) {
                return Err(fail(format!("{rows} rows are not {per_token} for each token")));
            }
            Ok(activation([rows / per_token, width].into(), inputs[0].dtype))
        }
        Op::CacheAppend => {
            count(2..=2)?;
            Ok(Spec { role: Role::Cache, ..inputs[0] })
        }
    }
}

fn dimension(dims: &[u64], dim: u64) -> Option<&u64> {
    usize::try_from(dim).ok().and_then(|dim| dims.get(dim))
}

/// `shape` with dimension `dim`, known to exist, set to `size`.
fn with_dim(shape: Shape, dim: u64, size: u64) -> Shape {
    let mut dims = shape.dims().to_vec();
    if let Some(slot) = usize::try_from(dim).ok().and_then(|dim| dims.get_mut(dim)) {
        *slot = size;
    }
    Shape::try_new(&dims).unwrap_or(shape)
}

fn with_last(shape: Shape, size: u64) -> Shape {
    with_dim(shape, shape.rank().saturating_sub(1) as u64, size)
}

/// The shape both broadcast to, aligning from the last dimension.
fn broadcast(a: Shape, b: Shape) -> Option<Shape> {
    let rank = a.rank().max(b.rank());
    let mut dims = [1; Shape::MAX_RANK];
    for back in 1..=rank {
        let size = |shape: &Shape| shape.rank().checked_sub(back).map_or(1, |index| shape.dims()[index]);
        dims[rank - back] = match (size(&a), size(&b)) {
            (left, right) if left == right => left,
            (1, right) => right,
            (left, 1) => left,
            _ => return None,
        };
    }
    Shape::try_new(&dims[..rank])
}

#[cfg(test)]
mod tests {
    use types::AttentionDetail;

    use super::*;

    fn spec<const N: usize>(dims: [u64; N]) -> Spec {
        Spec::activation(dims, DType::Bf16)
    }

    fn shape_of(op: Op, inputs: &[Spec]) -> Shape {
        infer(op, inputs).unwrap().shape
    }

    #[test]
    fn a_strided_convolution_halves_the_image() {
        let op = Op::Conv2d { stride: 2, padding: 1 };
        let shape = shape_of(op, &[spec([1, 256, 64, 64]), spec([512, 256, 3, 3])]);
        assert_eq!(shape, Shape::from([1, 512, 32, 32]));
    }

    #[test]
    fn broadcasting_aligns_from_the_last_dimension() {
        assert_eq!(shape_of(Op::Add, &[spec([2, 3, 4, 1]), spec([5])]), Shape::from([2, 3, 4, 5]));
        assert!(infer(Op::Add, &[spec([2, 3]), spec([4])]).is_err());
    }

    #[test]
    fn views_keep_the_role_and_computations_do_not() {
        let weight = Spec { role: Role::Weight, ..spec([4, 6]) };
        assert_eq!(infer(Op::Reshape([24].into()), &[weight]).unwrap().role, Role::Weight);
        assert_eq!(infer(Op::Cast(DType::Fp32), &[weight]).unwrap().role, Role::Activation);
    }

    #[test]
    fn a_mismatch_names_the_operation_the_shapes_and_the_reason() {
        let error = infer(Op::Linear, &[spec([7, 10]), spec([4, 6])]).unwrap_err().to_string();
        assert_eq!(
            error,
            "linear cannot take inputs [7, 10], [4, 6]: input features and weight columns differ: 10 and 6"
        );
    }

    #[test]
    fn a_permutation_must_name_every_dimension_once() {
        assert_eq!(shape_of(Op::Permute([2, 0, 1].into()), &[spec([3, 4, 5])]), Shape::from([5, 3, 4]));
        assert!(infer(Op::Permute([0, 0, 1].into()), &[spec([3, 4, 5])]).is_err());
        assert!(infer(Op::Permute([0, 1, 3].into()), &[spec([3, 4, 5])]).is_err());
    }

    #[test]
    fn grouped_heads_must_divide_the_query_heads() {
        let attention = Op::Attention { causal: true, scale: 1.0, fused: false, detail: AttentionDetail::default() };
        let keys = spec([1, 2, 9, 16]);
        assert_eq!(shape_of(attention, &[spec([1, 8, 4, 16]), keys, keys]), Shape::from([1, 8, 4, 16]));
        assert!(infer(attention, &[spec([1, 7, 4, 16]), keys, keys]).is_err());
    }
}
