//! Modules, measured time beside roofline time; and cost centres, which are modules without overlap.

use std::collections::BTreeMap;

use types::{CostCentre, ModuleSummary, Nanos, PeakUsed, PlacedBy, Stage, Work};

use crate::evidence::PricedOperator;
use crate::module_path::with_ancestors;
use crate::operators::priced::{Sum, sums};
use crate::statistics::share;

/// Modules with less of all operators' time are not listed: they are hundreds, and none of them is worth a look.
const LEAST_SHARE: f64 = 0.005;

/// A module within one top stage, and the operators in it and in its submodules.
#[derive(Default)]
struct Node<'a> {
    stage: Option<Stage>,
    operators: Vec<&'a PricedOperator>,
}

/// Every module that takes enough time, submodules included.
///
/// A module used in prefill and in decode has a row for each. Within prefill its stage is the innermost one that holds all
/// of its operators: `sam` for a block of SAM, `prefill` for the model around it. The count is of rows that took less than
/// the roofline time of their work, of whose losses nothing can be said.
pub(crate) fn modules(
    operators: &[PricedOperator],
    classes: &BTreeMap<String, String>,
    peak: Option<&PeakUsed>,
) -> (Vec<ModuleSummary>, u64) {
    let mut nodes: BTreeMap<(&str, Stage), Node<'_>> = BTreeMap::new();
    let mut classes: BTreeMap<&str, &str> =
        classes.iter().map(|(path, class)| (path.as_str(), class.as_str())).collect();
    for operator in operators {
        let (Some(path), Some(stage)) = (operator.record.module.as_deref(), operator.record.stage) else { continue };
        classes.insert(path, &operator.class);
        for path in with_ancestors(path) {
            let node = nodes.entry((path, stage.top())).or_default();
            node.stage = Some(node.stage.map_or(stage, |other| other.common(stage)));
            node.operators.push(operator);
        }
    }
    let all = Sum::of(operators).time.get() as f64;
    let (mut rows, mut faster) = (Vec::new(), 0);
    for ((path, _), node) in nodes {
        let (Some(class), Some(stage)) = (classes.get(path), node.stage) else { continue };
        let sum = Sum::of(node.operators.iter().copied());
        if share(sum.time.get() as f64, all).is_none_or(|share| share < LEAST_SHARE) {
            continue;
        }
        let lost = sum.least.map(|least| sum.time - least);
        faster += u64::from(lost.is_some_and(|lost| lost < Nanos::ZERO));
        rows.push(ModuleSummary {
            path: path.to_owned(),
            class: (*class).to_owned(),
            stage,
            measured_ns: Some(sum.time),
            exclusive_ns: Some(Sum::of(node.operators.iter().copied().filter(|one| is_own(one, path))).time),
            speed_of_light_ns: sum.least,
            lost_ns: lost.filter(|lost| *lost >= Nanos::ZERO),
            work: Some(Work { flops_matrix: sum.flops_matrix, bytes: sum.moved }),
            bound: peak.and_then(|peak| bound(&node.operators, peak)).map(str::to_owned),
            cause: None,
            placed_by: [PlacedBy::Operators].into(),
        });
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.measured_ns));
    (rows, faster)
}

/// Whether an operator is in the module itself, not in a submodule.
fn is_own(operator: &PricedOperator, path: &str) -> bool {
    operator.record.module.as_deref() == Some(path)
}

/// Parts of the network by time: the module below a repeated layer, all layers together, or the whole path outside of one.
pub(crate) fn cost_centres(operators: &[PricedOperator]) -> Vec<CostCentre> {
    let all = Sum::of(operators).time.get() as f64;
    let placed = operators.iter().filter(|operator| operator.record.module.is_some());
    let key = |operator: &PricedOperator| {
        (operator.record.stage, centre(operator.record.module.as_deref().unwrap_or_default()))
    };
    let centre = |((stage, module), sum): ((Option<Stage>, String), Sum)| {
        Some(CostCentre {
            module,
            stage: stage?,
            calls: sum.calls,
            total_ns: sum.time,
            share: share(sum.time.get() as f64, all)?,
            speed_of_light_ns: sum.least,
            flops_matrix: sum.flops_matrix,
            bytes_allocated: sum.allocated,
        })
    };
    sums(placed, key).into_iter().filter_map(centre).collect()
}

fn centre(path: &str) -> String {
    let mut parts = Vec::new();
    let mut layer = false;
    for part in path.split('.') {
        let number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        parts.push(if number { "*" } else { part });
        if layer {
            break;
        }
        layer = number;
    }
    parts.join(".")
}

/// What most of the roofline time is bound by, from the rates utilisation is relative to.
fn bound(operators: &[&PricedOperator], peak: &PeakUsed) -> Option<&'static str> {
    let (mut compute_bound, mut memory_bound) = (0.0, 0.0);
    for operator in operators {
        let compute = (operator.cost.flops_matrix / peak.flops).get();
        let memory = (operator.cost.bytes.total() / peak.bytes_per_second).get();
        if compute > memory {
            compute_bound += compute;
        } else {
            memory_bound += memory;
        }
    }
    let known = (compute_bound + memory_bound).is_finite() && compute_bound + memory_bound > 0.0;
    known.then_some(if compute_bound > memory_bound { "compute" } else { "memory" })
}

#[cfg(test)]
mod tests {
    use types::{Bytes, Flops, Traffic};

    use super::*;
    use crate::sample::{operator, peak};

    fn rows(operators: Vec<PricedOperator>) -> Vec<ModuleSummary> {
        modules(&operators, &BTreeMap::new(), None).0
    }

    fn row<'a>(found: &'a [ModuleSummary], path: &str, stage: Stage) -> Option<&'a ModuleSummary> {
        found.iter().find(|row| row.path == path && row.stage == stage)
    }

    #[test]
    fn a_module_holds_its_submodules_and_stands_in_the_stage_that_holds_them_all() {
        let found = rows(vec![
            operator("add", "model", Stage::Prefill, 10),
            operator("conv", "model.sam_model", Stage::Sam, 50),
            operator("conv", "model.sam_model.neck", Stage::Sam, 30),
            operator("linear", "model.projector", Stage::Projector, 10),
            operator("add", "model", Stage::Decode, 40),
        ]);
        let measured = |path, stage| row(&found, path, stage).and_then(|row| row.measured_ns).map(Nanos::get);
        assert_eq!(measured("model", Stage::Prefill), Some(100));
        assert_eq!(measured("model", Stage::Decode), Some(40));
        assert_eq!(measured("model.sam_model", Stage::Sam), Some(80));
        assert_eq!(measured("model.sam_model.neck", Stage::Sam), Some(30));
        assert_eq!(found.len(), 5);
    }

    #[test]
    fn a_list_of_modules_that_is_none_itself_has_no_row() {
        let found = rows(vec![operator("linear", "model.layers.0.mlp", Stage::Decode, 10)]);
        assert_eq!(found.len(), 1);
        let classes = BTreeMap::from([("model.layers.0".to_owned(), "DecoderLayer".to_owned())]);
        let operators = vec![operator("linear", "model.layers.0.mlp", Stage::Decode, 10)];
        let (found, _) = modules(&operators, &classes, None);
        assert_eq!(row(&found, "model.layers.0", Stage::Decode).unwrap().class, "DecoderLayer");
    }

    #[test]
    fn small_modules_are_left_out() {
        let found = rows(vec![operator("a", "large", Stage::Decode, 1_000), operator("b", "small", Stage::Decode, 4)]);
        assert!(row(&found, "large", Stage::Decode).is_some() && row(&found, "small", Stage::Decode).is_none());
    }

    #[test]
    fn a_module_faster_than_its_least_time_has_no_loss_and_is_counted() {
        let mut operators = vec![operator("a", "x", Stage::Decode, 100), operator("a", "y", Stage::Decode, 100)];
        operators[0].roofline_ns = Some(Nanos::new(30));
        operators[1].roofline_ns = Some(Nanos::new(130));
        let (found, faster) = modules(&operators, &BTreeMap::new(), None);
        assert_eq!(row(&found, "x", Stage::Decode).unwrap().lost_ns, Some(Nanos::new(70)));
        assert_eq!(row(&found, "y", Stage::Decode).unwrap().lost_ns, None);
        assert_eq!(faster, 1);
    }

    #[test]
    fn what_bounds_a_module_is_what_most_of_its_least_time_is() {
        let mut operators = vec![operator("a", "x", Stage::Decode, 100)];
        operators[0].cost.flops_matrix = Flops::new(2_000);
        operators[0].cost.bytes = Traffic { weights: Bytes::new(1_000), ..Traffic::ZERO };
        let bounds = [peak(1e9, 1e9), peak(1e9, 0.4e9)]
            .map(|peak| modules(&operators, &BTreeMap::new(), Some(&peak)).0[0].bound.clone());
        assert_eq!(bounds, [Some("compute".to_owned()), Some("memory".to_owned())]);
    }

    #[test]
    fn layers_are_one_cost_centre_per_part_and_stage() {
        let centres = cost_centres(&[
            operator("linear", "model.layers.0.mlp.gate_proj", Stage::Decode, 10),
            operator("linear", "model.layers.11.mlp.experts.3.up_proj", Stage::Decode, 30),
            operator("linear", "model.layers.0.self_attn.q_proj", Stage::Decode, 5),
            operator("linear", "model.layers.0.mlp", Stage::Prefill, 20),
            operator("linear", "lm_head", Stage::Decode, 35),
        ]);
        let named: Vec<_> = centres.iter().map(|one| (one.module.as_str(), one.stage, one.total_ns.get())).collect();
        let expected = [
            ("model.layers.*.mlp", Stage::Decode, 40),
            ("lm_head", Stage::Decode, 35),
            ("model.layers.*.mlp", Stage::Prefill, 20),
            ("model.layers.*.self_attn", Stage::Decode, 5),
        ];
        assert_eq!(named, expected);
        assert!((centres.iter().map(|one| one.share).sum::<f64>() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn nothing_measured_gives_no_shares() {
        assert_eq!(cost_centres(&[operator("linear", "lm_head", Stage::Decode, 0)]), []);
    }
}
