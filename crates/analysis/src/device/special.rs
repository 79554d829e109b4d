//! Work that single findings ask about: experts, attention written out, the head.

use std::collections::{BTreeMap, BTreeSet};

use types::timeline::{OperatorSignature, Timeline, WorkKind};
use types::{Nanos, Stage};

use super::dequantisation::Cast;
use super::partition::{Part, Partition};
use crate::alignment::Alignment;
use crate::attribution::Attribution;
use crate::kernel::{self, Family};
use crate::scope::Scope;

/// Tensors of attention scores have at least these dimensions: batch, heads, queries, keys.
const SCORE_DIMENSIONS: usize = 4;

/// Work that findings ask about and that names alone do not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Softmax over attention scores.
    ScoreSoftmax,
    /// GEMMs of experts.
    Expert,
    /// The head.
    Head,
    /// Quantised tensors widened for a GEMM.
    Dequantisation,
}

/// Some of the work of a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Portion {
    /// Pieces of work.
    pub(crate) calls: u64,
    /// Their part of wall time.
    pub(crate) part: Part,
}

/// The head, which turns hidden states into logits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// Most positions it computed at once during prefill.
    pub(crate) positions: u64,
    /// Its part of wall time in prefill and in decode.
    pub(crate) parts: [Nanos; 2],
}

/// All of it, by top stage where that matters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Special {
    /// Matrix products of experts; empty where the model is not known.
    pub(crate) experts: BTreeMap<Scope, Portion>,
    /// Layers that have experts.
    pub(crate) expert_layers: u64,
    /// Softmax over attention scores as a kernel of its own; empty where the trace has no shapes.
    pub(crate) score_softmax: BTreeMap<Scope, Portion>,
    /// The head; absent where the model is not known or the trace has no shapes.
    pub(crate) head: Option<Head>,
    /// Per timeline that has work, and per work of it: which of these it is.
    pub(crate) marks: Vec<Vec<Option<Mark>>>,
}

impl Portion {
    fn add(&mut self, part: Part) {
        self.calls += 1;
        self.part.wait += part.wait;
        self.part.run += part.run;
    }
}

impl Special {
    /// Adds the work of one timeline.
    pub(super) fn add(
        &mut self,
        timeline: &Timeline,
        attribution: &Attribution,
        partition: &Partition,
        alignment: Option<&Alignment<'_>>,
        casts: &[Option<Cast>],
    ) {
        let families: Vec<_> = timeline.names.iter().map(|(_, name)| kernel::family(name)).collect();
        let mut layers = BTreeSet::new();
        let scores = score_shapes(timeline);
        let mut marks: Vec<_> = casts
            .iter()
            .map(|cast| cast.filter(|cast| *cast == Cast::Quantised).map(|_| Mark::Dequantisation))
            .collect();
        for (row, work) in timeline.work.iter().enumerate() {
            let Some(stage) = partition.scopes[row].filter(|_| work.kind == WorkKind::Kernel) else {
                continue;
            };
            let (part, family) = (partition.parts[row], families[work.name.index()]);
            let operator = attribution.operator[row].map(|row| row as usize);
            let signature = operator.and_then(|row| timeline.operators[row].signature);
            let signature = signature.map(|signature| timeline.signatures.get(signature));
            let module = operator.zip(alignment).and_then(|(row, alignment)| alignment.module[row]);
            let is_product = matches!(family, Family::Gemm | Family::Gemv | Family::Experts);
            if let Some(layer) = module.and_then(layer_of_experts).filter(|_| is_product) {
                self.experts.entry(stage).or_default().add(part);
                marks[row] = Some(Mark::Expert);
                layers.insert(layer);
            }
            if family == Family::Softmax && signature.is_some_and(|signature| is_of_scores(signature, &scores)) {
                self.score_softmax.entry(stage).or_default().add(part);
                marks[row] = Some(Mark::ScoreSoftmax);
            }
            if module.is_some_and(is_head) {
                marks[row] = Some(Mark::Head);
                let head = self.head.get_or_insert_default();
                head.parts[usize::from(stage == Scope::Stage(Stage::Decode))] += part.total();
                if stage == Scope::Stage(Stage::Prefill) {
                    head.positions = head.positions.max(signature.and_then(positions).unwrap_or(0));
                }
            }
        }
        self.marks.push(marks);
        self.expert_layers = self.expert_layers.max(layers.len() as u64);
    }
}

/// The path before the experts.
fn layer_of_experts(path: &str) -> Option<&str> {
    let place = path.split('.').scan(0, |end, part| {
        let start = *end;
        *end += part.len() + 1;
        Some((start, part))
    });
    place.into_iter().find(|(_, part)| *part == "experts").map(|(start, _)| &path[..start])
}

fn is_head(path: &str) -> bool {
    path.rsplit('.').next() == Some("lm_head")
}

/// Four dimensions are batch, heads, queries and keys; three are scores where a batched GEMM has just that result.
fn is_of_scores(signature: &OperatorSignature, results: &BTreeSet<[u64; 3]>) -> bool {
    let Some(shape) = signature.shapes.first() else { return false };
    shape.len() >= SCORE_DIMENSIONS || <[u64; 3]>::try_from(&shape[..]).is_ok_and(|shape| results.contains(&shape))
}

/// Shapes of what batched GEMMs give.
fn score_shapes(timeline: &Timeline) -> BTreeSet<[u64; 3]> {
    let of_name = |name: &str, first: usize| {
        let name = timeline.names.find(name);
        timeline.operators.iter().filter(move |operator| Some(operator.name) == name).filter_map(move |operator| {
            let shapes = &timeline.signatures.get(operator.signature?).shapes;
            let [batch, rows, _] = <[u64; 3]>::try_from(&shapes.get(first)?[..]).ok()?;
            let [_, _, columns] = <[u64; 3]>::try_from(&shapes.get(first + 1)?[..]).ok()?;
            Some([batch, rows, columns])
        })
    };
    of_name("aten::bmm", 0).chain(of_name("aten::baddbmm", 1)).collect()
}

/// Rows of the first argument.
fn positions(signature: &OperatorSignature) -> Option<u64> {
    let (_, rows) = signature.shapes.first()?.split_last()?;
    rows.iter().try_fold(1u64, |product, side| product.checked_mul(*side))
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn experts_are_counted_by_the_layer_they_are_in() {
        assert_eq!(layer_of_experts("model.layers.3.mlp.experts.*.up_proj"), Some("model.layers.3.mlp."));
        assert_eq!(layer_of_experts("model.layers.3.mlp.shared_experts.up_proj"), None);
    }

    #[test]
    fn only_the_softmax_of_scores_is_attention() {
        let results = BTreeSet::from([[12, 577, 577]]);
        let of = |shape: &[u64]| {
            is_of_scores(&OperatorSignature { shapes: vec![shape.to_vec()], ..Default::default() }, &results)
        };
        assert!(of(&[1, 10, 1, 287]) && of(&[12, 577, 577]));
        assert!(!of(&[286, 64]) && !of(&[1, 577, 50_000]), "routing of experts, logits");
    }

    #[test]
    fn positions_are_the_rows_of_the_input() {
        let signature =
            OperatorSignature { shapes: vec![vec![1, 286, 1280], vec![129_280, 1280]], ..Default::default() };
        assert_eq!(positions(&signature), Some(286));
    }
}
