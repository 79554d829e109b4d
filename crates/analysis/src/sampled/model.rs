//! What the model says of the kernels that were sampled, beside what was counted.

use std::collections::BTreeSet;

use types::timeline::Timeline;
use types::{Bytes, Flops, ModelledKernel, Remark, SampledKernel, Stage};

use super::choice::within;
use crate::alignment::{Key, ModelledRun, Part, pair};
use crate::attribution::Attribution;
use crate::module_path::kind;

/// Operations named in a row.
const NAMED: usize = 8;

/// Fills in what the model says of each kernel that found a partner. The profiler has skipped that many launches of each
/// before it sampled.
pub fn lay_beside(
    kernels: &mut [SampledKernel],
    timeline: &Timeline,
    attribution: &Attribution,
    model: &ModelledRun,
    skipped: u64,
) {
    for stage in [Stage::Prefill, Stage::Decode] {
        let operators = if stage == Stage::Decode { &model.decode } else { &model.prefill };
        let Some(pairs) = pair(timeline, attribution, stage, operators) else { continue };
        let launches = pairs.launches();
        for row in kernels.iter_mut().filter(|row| within(row.stage, Some(stage))) {
            let fits = |(name, shape): &Key| {
                let found = timeline.launch_shapes.get(*shape);
                timeline.name(*name) == row.name && (found.grid, found.block) == (row.grid, row.block)
            };
            let Some((_, parts)) = launches.iter().find(|(key, _)| fits(key)) else { continue };
            row.modelled = Some(modelled(parts, row, &pairs.basis, skipped));
        }
    }
}

fn modelled(parts: &[Part<'_>], row: &SampledKernel, basis: &Remark, skipped: u64) -> ModelledKernel {
    let counted = row.counted.as_ref();
    let (flops, bytes) = mean(parts, counted.map(|counted| counted.launches), skipped);
    let ratio =
        |counted: Option<f64>, modelled: f64| counted.filter(|_| modelled > 0.0).map(|counted| counted / modelled);
    let modules: BTreeSet<&str> = parts.iter().map(|part| part.operator.module.as_str()).collect();
    // The model itself has no path.
    let kind = |module: &str| if module.is_empty() { "the model itself".to_owned() } else { kind(module) };
    let alike: BTreeSet<String> = modules.iter().map(|module| kind(module)).collect();
    ModelledKernel {
        operators: alike.into_iter().take(NAMED).collect(),
        operator_count: modules.len() as u64,
        flops: Flops::new(flops.round() as u128),
        bytes: Bytes::new(bytes.round() as u64),
        bytes_ratio: ratio(counted.and_then(|counted| Some(counted.dram_bytes?.mean)), bytes),
        flops_ratio: ratio(counted.and_then(|counted| Some(counted.flops_tensor?.as_f64())), flops),
        basis: basis.clone(),
    }
}

/// Operations and bytes of a launch: mean over those that were sampled, which are the first behind what was skipped, else
/// over all. A kernel may do GEMMs of several sizes, and one with few launches in a pass is sampled in several.
fn mean(parts: &[Part<'_>], sampled: Option<u64>, skipped: u64) -> (f64, f64) {
    let launches: Vec<&Part<'_>> = match sampled {
        Some(sampled) if !parts.is_empty() => {
            // A whole number of passes changes nothing.
            let skipped = skipped as usize % parts.len();
            parts.iter().cycle().skip(skipped).take(sampled.max(1) as usize).collect()
        }
        _ => parts.iter().collect(),
    };
    let mean =
        |of: fn(&Part<'_>) -> f64| launches.iter().map(|part| of(part)).sum::<f64>() / launches.len().max(1) as f64;
    (
        mean(|part| part.operator.cost.flops_matrix.as_f64() * part.share),
        mean(|part| part.operator.cost.bytes.total().as_f64() * part.share),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alignment::ModelledOperator;
    use crate::attribution::{AttributionSettings, attribute};
    use crate::device::sample::{Launch, timeline};
    use types::{Cost, DeviceId, LaunchShape, Nanos, Op};

    /// Two kernels by name, one of them launched twice, within one prefill.
    fn recorded() -> Timeline {
        let launch = |place: i64, name: &'static str| Launch { name, ..Launch::new(place * 10, place * 100, 50) };
        let mut timeline =
            timeline(1_000, &[launch(1, "nvjet_sm90_a"), launch(2, "nvjet_sm90_b"), launch(3, "nvjet_sm90_a")]);
        for work in &mut timeline.work {
            work.launch =
                Some(timeline.launch_shapes.place_owned(LaunchShape { grid: [1, 1, 1], ..Default::default() }));
        }
        timeline
    }

    fn operator(module: &str, side: u64, flops: u128) -> ModelledOperator {
        ModelledOperator {
            module: module.to_owned(),
            class: "Linear".to_owned(),
            stage: Stage::Prefill,
            op: Op::Linear,
            weight: Some(vec![side, side]),
            spread: false,
            cost: Cost { flops_matrix: Flops::new(flops), ..Cost::ZERO },
            roofline: None,
        }
    }

    fn row(name: &str) -> SampledKernel {
        SampledKernel {
            name: name.to_owned(),
            short_name: name.to_owned(),
            family: "gemm".to_owned(),
            stage: Some(Stage::Prefill),
            device: DeviceId::cuda(0),
            grid: [1, 1, 1],
            block: [0; 3],
            calls: 1,
            total_ns: Nanos::ZERO,
            mean_ns: Nanos::ZERO,
            min_ns: Nanos::ZERO,
            max_ns: Nanos::ZERO,
            stage_share: None,
            counted: None,
            modelled: None,
        }
    }

    fn laid(prefill: Vec<ModelledOperator>) -> Vec<SampledKernel> {
        let timeline = recorded();
        let attribution = attribute(&timeline, &AttributionSettings::default());
        let mut rows = vec![row("nvjet_sm90_a"), row("nvjet_sm90_b")];
        lay_beside(&mut rows, &timeline, &attribution, &ModelledRun { prefill, ..ModelledRun::default() }, 0);
        rows
    }

    #[test]
    fn kernels_get_the_operations_in_whose_place_they_stand() {
        let rows = laid(vec![operator("q", 2, 10), operator("up", 4, 100), operator("k", 2, 20)]);
        let first = rows[0].modelled.as_ref().unwrap();
        assert_eq!((first.flops, first.operator_count), (Flops::new(15), 2));
        assert_eq!(first.operators, ["k", "q"]);
        assert_eq!(rows[1].modelled.as_ref().unwrap().operators, ["up"]);
    }

    #[test]
    fn a_gemm_before_the_models_own_is_left_out_and_more_kernels_than_that_are_not_paired() {
        let rows = laid(vec![operator("up", 4, 100), operator("k", 2, 20)]);
        assert_eq!(rows[0].modelled.as_ref().unwrap().basis.facts.count("leading"), Some(1));
        let many = (0..9).map(|place| operator(&place.to_string(), 2, 1)).collect();
        assert!(laid(many).iter().all(|row| row.modelled.is_none()));
    }

    #[test]
    fn one_kernel_for_weights_of_different_sizes_is_believed_where_it_takes_longer_for_the_larger() {
        let parts = || vec![operator("q", 2, 10), operator("up", 4, 100), operator("k", 8, 20)];
        assert!(laid(parts()).iter().all(|row| row.modelled.is_none()));
        let mut timeline = recorded();
        timeline.work[2].duration = Nanos::new(80);
        let attribution = attribute(&timeline, &AttributionSettings::default());
        let mut rows = vec![row("nvjet_sm90_a")];
        lay_beside(&mut rows, &timeline, &attribution, &ModelledRun { prefill: parts(), ..ModelledRun::default() }, 0);
        assert_eq!(rows[0].modelled.as_ref().unwrap().flops, Flops::new(15));
        // Off by one, the larger of the two takes less.
        timeline.work[2].duration = Nanos::new(20);
        let mut rows = vec![row("nvjet_sm90_a")];
        lay_beside(&mut rows, &timeline, &attribution, &ModelledRun { prefill: parts(), ..ModelledRun::default() }, 0);
        assert!(rows[0].modelled.is_none());
    }

    #[test]
    fn what_is_counted_is_compared_with_the_launches_that_were_sampled() {
        let operators = [operator("q", 2, 10), operator("up", 4, 20), operator("k", 8, 60)];
        let parts: Vec<_> = operators.iter().map(|operator| Part { operator, share: 1.0 }).collect();
        let flops = |sampled| mean(&parts, sampled, 0).0;
        assert_eq!((flops(Some(1)), flops(Some(2)), flops(Some(3)), flops(None)), (10.0, 15.0, 30.0, 30.0));
        assert_eq!(mean(&parts[..1], Some(3), 0).0, 10.0, "one launch in each of three passes");
        assert_eq!((mean(&parts, Some(2), 1).0, mean(&parts, Some(1), 5).0), (40.0, 60.0), "behind what was skipped");
        assert_eq!(mean(&[], Some(3), 1), (0.0, 0.0));
    }
}
