//! Which output follows from which inputs: how many an operation takes and of which rank is a table, what it makes of them one rule per
//! operation, by kind.

mod attention;
mod layout;
mod product;
mod recurrence;

use std::ops::RangeInclusive;

use types::{ActivationKind, Chosen, DType, InterpolationKind, Op, Role, Shape, Spec};

use crate::ShapeError;

/// What an operation makes, or why it makes nothing.
type Made = Result<Spec, String>;

/// Shape, element type and role of what `op` makes of `inputs`.
pub fn infer(op: Op, inputs: &[Spec]) -> Result<Spec, ShapeError> {
    let made = taken(&op, inputs).and_then(|()| made(op, inputs));
    made.map_err(|reason| ShapeError { op: Box::new(op), inputs: inputs.to_vec(), reason })
}

/// An input of any rank.
const ANY: usize = usize::MAX;

/// How many inputs an operation takes, and of which rank the first of them are.
fn intake(op: &Op) -> (RangeInclusive<usize>, &'static [usize]) {
    match op {
        Op::Linear => (2..=3, &[ANY, 2]),
        Op::MatMulTransposed | Op::Add | Op::Multiply | Op::CacheAppend => (2..=2, &[]),
        Op::Conv2d { .. } => (2..=3, &[4, 4]),
        Op::Conv1d { .. } | Op::CausalConv => (2..=3, &[3, 3]),
        Op::RmsNorm { .. } => (1..=3, &[]),
        Op::LayerNorm { .. } => (1..=3, &[]),
        Op::ChannelNorm { .. } | Op::BatchNorm { .. } => (3..=5, &[4]),
        Op::Attention { detail, .. } if detail.sinks || detail.chosen == Chosen::Here => (4..=4, &[4, 4, 4]),
        Op::Attention { .. } => (3..=4, &[4, 4, 4]),
        Op::LatentAttention { .. } => (4..=4, &[4, 4, 4, 4]),
        Op::IndexPositions { .. } | Op::IndexEntries { .. } => (3..=3, &[4, 4]),
        Op::GatedDelta { .. } | Op::StateSpace { .. } => (7..=7, &[4, 4, 4]),
        Op::SelectiveScan => (6..=6, &[3, 3, 3, 3]),
        Op::CompressPositions { .. } => (4..=4, &[3]),
        Op::AttendEntries { .. } => (2..=2, &[4, 4]),
        Op::CollapseStreams => (2..=2, &[4]),
        Op::MixStreams { .. } => (3..=3, &[4]),
        Op::Embedding => (2..=2, &[ANY, 2]),
        Op::ReplaceRows | Op::AddRows => (3..=3, &[3, 2]),
        Op::Concat { .. } => (1..=16, &[]),
        Op::Dispatch { .. } => (1..=2, &[2]),
        Op::Combine { .. } => (1..=3, &[2]),
        Op::Rotary { .. } | Op::GlobalAveragePool => (1..=1, &[4]),
        Op::Interpolate { kind: InterpolationKind::Bicubic | InterpolationKind::Bilinear, .. } => (1..=1, &[4]),
        Op::Interpolate { kind: InterpolationKind::Linear, .. } => (1..=1, &[2]),
        Op::RelativePositions { .. } | Op::DistanceBias { .. } => (1..=1, &[2]),
        Op::Activation(ActivationKind::Xielu) => (3..=3, &[]),
        Op::Activation(_) | Op::Softmax | Op::Scale { .. } | Op::Softcap { .. } | Op::Copy => (1..=1, &[]),
        Op::ClampedGate { .. } | Op::LimitGroups { .. } | Op::TopK { .. } | Op::Cast(_) => (1..=1, &[]),
        Op::Reshape(_) | Op::Permute(_) | Op::Slice { .. } | Op::Expand(_) | Op::Pad { .. } => (1..=1, &[]),
    }
}

fn taken(op: &Op, inputs: &[Spec]) -> Result<(), String> {
    let (count, ranks) = intake(op);
    if !count.contains(&inputs.len()) {
        return Err(format!("takes {} to {} inputs, got {}", count.start(), count.end(), inputs.len()));
    }
    for (index, (wanted, input)) in ranks.iter().zip(inputs).enumerate() {
        if *wanted != ANY {
            rank(index, input, *wanted)?;
        }
    }
    Ok(())
}

fn made(op: Op, inputs: &[Spec]) -> Made {
    let x = inputs[0];
    match op {
        Op::Linear => product::linear(inputs),
        Op::MatMulTransposed => product::matmul_transposed(inputs),
        Op::Conv2d { stride, padding } => product::conv2d(inputs, stride, padding),
        Op::Conv1d { stride, padding } => product::conv1d(inputs, stride, padding),
        Op::CausalConv => {
            equal("channels and weight", x.shape.last(), inputs[1].shape.dims()[0])?;
            Ok(same(x))
        }
        Op::LayerNorm { .. } | Op::RmsNorm { .. } => {
            if let Some(weight) = inputs.get(1) {
                equal("last dimension and weight", x.shape.last(), weight.shape.elements())?;
            }
            Ok(same(x))
        }
        Op::ChannelNorm { .. } | Op::BatchNorm { .. } => {
            equal("channels and weight", x.shape.dims()[1], inputs[1].shape.elements())?;
            Ok(same(x))
        }
        Op::Attention { causal, detail, .. } => attention::attention(inputs, causal, detail),
        Op::LatentAttention { causal, .. } => attention::latent(inputs, causal),
        Op::IndexPositions { keep } => attention::index_positions(inputs, keep),
        Op::CompressPositions { every, width } => attention::compress_positions(inputs, every, width),
        Op::AttendEntries { every, .. } => {
            equal("width of queries and entries", x.shape.last(), inputs[1].shape.last() * every)?;
            Ok(same(x))
        }
        Op::IndexEntries { every } => attention::index_entries(inputs, every),
        Op::GatedDelta { .. } => recurrence::gated_delta(inputs),
        Op::StateSpace { .. } => recurrence::state_space(inputs),
        Op::SelectiveScan => recurrence::selective_scan(inputs),
        Op::CollapseStreams => Ok(activation([x.shape.dims()[0], x.shape.dims()[1], x.shape.last()], x.dtype)),
        Op::MixStreams { .. } => {
            equal("width of streams and of the added term", x.shape.last(), inputs[2].shape.last())?;
            Ok(same(x))
        }
        Op::Rotary { .. } if !x.shape.last().is_multiple_of(2) => Err("the head width must be even".into()),
        Op::Activation(_) | Op::Softmax | Op::Scale { .. } | Op::Softcap { .. } | Op::Copy | Op::Rotary { .. } => {
            Ok(same(x))
        }
        Op::ClampedGate { .. } => {
            let both = x.shape.last();
            if !both.is_multiple_of(2) {
                return Err(format!("{both} is not an even number of gate and up values"));
            }
            Ok(activation(with_last(x.shape, both / 2), x.dtype))
        }
        Op::LimitGroups { groups, keep, best } => {
            let experts = x.shape.last();
            if groups == 0 || !experts.is_multiple_of(groups) || keep > groups || best > experts / groups {
                return Err(format!("cannot keep {keep} of {groups} groups by {best} of {experts} scores"));
            }
            Ok(same(x))
        }
        Op::Add | Op::Multiply => {
            let shape = broadcast(x.shape, inputs[1].shape).ok_or("the shapes do not broadcast")?;
            Ok(activation(shape, x.dtype))
        }
        Op::TopK { k } => {
            if k == 0 || k > x.shape.last() {
                return Err(format!("cannot take the top {k} of {}", x.shape.last()));
            }
            Ok(activation(with_last(x.shape, k), DType::Int64))
        }
        Op::Embedding => layout::embedding(inputs),
        Op::Reshape(shape) => {
            equal("element counts", x.shape.elements(), shape.elements())?;
            Ok(Spec { shape, ..x })
        }
        Op::Permute(order) => layout::permute(x, order),
        Op::Slice { dim, start, length } => layout::slice(x, dim, start, length),
        Op::Expand(shape) => match broadcast(x.shape, shape) {
            Some(expanded) if expanded == shape => Ok(Spec { shape, ..x }),
            _ => Err(format!("cannot expand to {shape}")),
        },
        Op::Concat { dim } => layout::concat(inputs, dim),
        Op::Pad { dim, after } => Ok(activation(with_dim(x.shape, dim, dimension(x.shape, dim)? + after), x.dtype)),
        Op::Interpolate { kind: InterpolationKind::Bicubic | InterpolationKind::Bilinear, size } => {
            Ok(activation([x.shape.dims()[0], size[0], size[1], x.shape.last()], x.dtype))
        }
        Op::Interpolate { kind: InterpolationKind::Linear, size } => Ok(activation([size[0], x.shape.last()], x.dtype)),
        Op::RelativePositions { queries, keys } => {
            equal("table rows and 2 * max(queries, keys) - 1", x.shape.dims()[0], 2 * queries.max(keys) - 1)?;
            Ok(activation([queries, keys, x.shape.last()], x.dtype))
        }
        Op::DistanceBias { queries, keys, .. } => {
            ends_within(queries, keys)?;
            Ok(activation([1, x.shape.last(), queries, keys], x.dtype))
        }
        Op::GlobalAveragePool => Ok(activation([x.shape.dims()[0], x.shape.dims()[1]], x.dtype)),
        Op::Cast(dtype) => Ok(activation(x.shape, dtype)),
        Op::ReplaceRows | Op::AddRows => layout::replace_rows(inputs),
        Op::Dispatch { per_token } => Ok(activation([x.shape.dims()[0] * per_token, x.shape.last()], x.dtype)),
        Op::Combine { per_token } => {
            let rows = x.shape.dims()[0];
            if per_token == 0 || !rows.is_multiple_of(per_token) {
                return Err(format!("{rows} rows are not {per_token} for each token"));
            }
            Ok(activation([rows / per_token, x.shape.last()], x.dtype))
        }
        Op::CacheAppend => Ok(Spec { role: Role::Cache, ..x }),
    }
}

fn activation(shape: impl Into<Shape>, dtype: DType) -> Spec {
    Spec { shape: shape.into(), dtype, role: Role::Activation }
}

/// A result like the input.
fn same(input: Spec) -> Spec {
    activation(input.shape, input.dtype)
}

fn rank(index: usize, input: &Spec, wanted: usize) -> Result<(), String> {
    let found = input.shape.rank();
    if found == wanted { Ok(()) } else { Err(format!("input {index} must have rank {wanted}, has {found}")) }
}

fn equal(what: &str, left: u64, right: u64) -> Result<(), String> {
    if left == right { Ok(()) } else { Err(format!("{what} differ: {left} and {right}")) }
}

/// The last query sees the last key, so there are no more queries than keys.
fn ends_within(queries: u64, keys: u64) -> Result<(), String> {
    if queries <= keys { Ok(()) } else { Err(format!("{queries} queries cannot end at key {keys}")) }
}

fn built(dims: &[u64]) -> Result<Shape, String> {
    Shape::try_new(dims).ok_or_else(|| "the output has too many dimensions".into())
}

fn dimension(shape: Shape, dim: u64) -> Result<u64, String> {
    let size = usize::try_from(dim).ok().and_then(|dim| shape.dims().get(dim).copied());
    size.ok_or_else(|| format!("dimension {dim} does not exist"))
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
