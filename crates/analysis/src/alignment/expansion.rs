//! The ways in which a model's operations may have become matrix kernels.

use types::{Facts, Op};

use super::modelled_run::ModelledOperator;

/// One operation that a matrix kernel does, and the share of its modelled cost that is this one launch.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    pub(crate) operator: &'a ModelledOperator,
    pub(crate) share: f64,
}

/// The ways in which the operations may have become kernels, most plain first: attention in one fused kernel or as two
/// GEMMs, and experts one after the other.
pub(super) fn expansions<'a>(operators: &'a [ModelledOperator], each: f64) -> Vec<(Vec<Part<'a>>, Facts)> {
    let spread = operators.iter().any(|operator| operator.spread);
    let repeats: Vec<usize> = if spread { (1..=16).collect() } else { vec![1] };
    let mut found = Vec::new();
    for gemms in [0, 2] {
        for repeat in &repeats {
            let mut parts: Vec<Part<'a>> = Vec::new();
            let mut place = 0;
            while place < operators.len() {
                let end = operators[place..].iter().position(|other| other.spread != operators[place].spread);
                let run = &operators[place..end.map_or(operators.len(), |end| place + end)];
                let times = if run[0].spread { *repeat } else { 1 };
                for _ in 0..times {
                    for operator in run {
                        let (count, share) = match operator.op {
                            Op::Attention { .. } => (gemms, 0.5),
                            Op::Linear | Op::Conv2d { .. } => (1, 1.0 / times as f64),
                            Op::MatMulTransposed => (1, 1.0 / times as f64),
                            _ => (0, 0.0),
                        };
                        parts.extend(std::iter::repeat_n(Part { operator, share: share * each }, count));
                    }
                }
                place += run.len();
            }
            let how = Facts::new().with_if("attention", gemms == 2).with_known("experts", spread.then_some(*repeat));
            found.push((parts, how));
        }
    }
    found
}
