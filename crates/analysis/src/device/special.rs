//! Work that single findings ask about: experts, attention written out, the head, the pace of equal kernels.

use std::collections::{BTreeMap, BTreeSet};

use types::timeline::{LaunchShapeId, NameId, OperatorSignature, Timeline, WorkKind};
use types::{Nanos, Stage};

use super::partition::{Part, Partition};
use crate::alignment::Alignment;
use crate::attribution::Attribution;
use crate::kernel::{self, Family};
use crate::statistics::{median, share};

/// Fewest launches of one kernel with one shape from which a pace can be told: each quarter has five.
const FEWEST_FOR_PACE: usize = 20;
/// Tensors of attention scores have at least these dimensions: batch, heads, queries, keys.
const SCORE_DIMENSIONS: usize = 4;

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
    pub(crate) experts: BTreeMap<Stage, Portion>,
    /// Layers that have experts.
    pub(crate) expert_layers: u64,
    /// Softmax over attention scores as a kernel of its own; empty where the trace has no shapes.
    pub(crate) score_softmax: BTreeMap<Stage, Portion>,
    /// The head; absent where the model is not known or the trace has no shapes.
    pub(crate) head: Option<Head>,
    /// By how much equal matrix kernels of decode got slower from the first quarter to the last, as a share; and their
    /// running time. Absent where none ran often enough.
    pub(crate) slowdown: Option<(f64, Nanos)>,
}

/// Begin and duration of launches of one kernel with one shape.
type EqualLaunches = BTreeMap<(NameId, Option<LaunchShapeId>), Vec<(Nanos, Nanos)>>;

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
    ) {
        let families: Vec<_> = timeline.names.iter().map(|(_, name)| kernel::family(name)).collect();
        let mut layers = BTreeSet::new();
        let mut equal = EqualLaunches::new();
        for (row, work) in timeline.work.iter().enumerate() {
            let Some(stage) = attribution.stage[row].map(Stage::top).filter(|_| work.kind == WorkKind::Kernel) else {
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
                layers.insert(layer);
            }
            if family == Family::Softmax && signature.is_some_and(is_of_scores) {
                self.score_softmax.entry(stage).or_default().add(part);
            }
            if module.is_some_and(is_head) {
                let head = self.head.get_or_insert_default();
                head.parts[usize::from(stage == Stage::Decode)] += part.total();
                if stage == Stage::Prefill {
                    head.positions = head.positions.max(signature.and_then(positions).unwrap_or(0));
                }
            }
            if is_product && stage == Stage::Decode {
                equal.entry((work.name, work.launch)).or_default().push((work.start, work.duration));
            }
        }
        self.expert_layers = self.expert_layers.max(layers.len() as u64);
        self.slowdown = self.slowdown.or_else(|| slowdown(equal));
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

fn is_of_scores(signature: &OperatorSignature) -> bool {
    signature.shapes.first().is_some_and(|shape| shape.len() >= SCORE_DIMENSIONS)
}

/// Rows of the first argument.
fn positions(signature: &OperatorSignature) -> Option<u64> {
    let (_, rows) = signature.shapes.first()?.split_last()?;
    rows.iter().try_fold(1u64, |product, side| product.checked_mul(*side))
}

/// How much longer equal kernels take in the last quarter than in the first, weighted by their time.
fn slowdown(equal: EqualLaunches) -> Option<(f64, Nanos)> {
    let (mut weighted, mut all) = (0.0, Nanos::ZERO);
    for mut launches in equal.into_values().filter(|launches| launches.len() >= FEWEST_FOR_PACE) {
        launches.sort();
        let durations: Vec<_> = launches.iter().map(|(_, duration)| duration.get() as f64).collect();
        let quarter = durations.len() / 4;
        let (first, last) = (median(&durations[..quarter])?, median(&durations[durations.len() - quarter..])?);
        let Some(ratio) = share(last, first) else { continue };
        let time: Nanos = launches.iter().map(|(_, duration)| *duration).sum();
        weighted += (ratio - 1.0) * time.get() as f64;
        all += time;
    }
    (all > Nanos::ZERO).then(|| (weighted / all.get() as f64, all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribution::{AttributionSettings, attribute};
    use crate::device::sample::{Launch, range, timeline};

    fn found(timeline: &Timeline) -> Special {
        let attribution = attribute(timeline, &AttributionSettings::default());
        let mut special = Special::default();
        special.add(timeline, &attribution, &Partition::new(timeline, &attribution), None);
        special
    }

    #[test]
    fn equal_kernels_that_get_slower_are_seen() {
        let launch = |place: i64| {
            let duration = if place < 20 { 10 } else { 12 };
            Launch::new(place * 20, place * 20 + 5, duration).named("nvjet_sm90_tst_8x64_64x16_4x1_v_bz_TNN")
        };
        let mut slower = timeline(0, &(0..40).map(launch).collect::<Vec<_>>());
        slower.ranges.clear();
        range(&mut slower, "decode", 0, 1_000);
        let (share, time) = found(&slower).slowdown.unwrap();
        assert!((share - 0.2).abs() < 1e-12, "{share}");
        assert_eq!(time, Nanos::new(20 * 10 + 20 * 12));
        slower.work.truncate(FEWEST_FOR_PACE - 1);
        assert_eq!(found(&slower).slowdown, None);
    }

    #[test]
    fn experts_are_counted_by_the_layer_they_are_in() {
        assert_eq!(layer_of_experts("model.layers.3.mlp.experts.*.up_proj"), Some("model.layers.3.mlp."));
        assert_eq!(layer_of_experts("model.layers.3.mlp.shared_experts.up_proj"), None);
    }

    #[test]
    fn only_the_softmax_of_scores_is_attention() {
        let of =
            |shape: &[u64]| is_of_scores(&OperatorSignature { shapes: vec![shape.to_vec()], ..Default::default() });
        assert!(of(&[1, 10, 1, 287]) && !of(&[286, 64]));
    }

    #[test]
    fn positions_are_the_rows_of_the_input() {
        let signature =
            OperatorSignature { shapes: vec![vec![1, 286, 1280], vec![129_280, 1280]], ..Default::default() };
        assert_eq!(positions(&signature), Some(286));
    }
}
