//! The model's operations laid beside the kernels that did them.
//!
//! A trace of Nsight Systems has no operators, so that the order is all there is: matrix kernels of a decode step, or of
//! a prefill, come in the order in which the model applies its weights. They are laid over each other one by one, and
//! only where their numbers agree and one kernel never stands for weights of different shapes. Anything else is left
//! open: a wrong partner would be worse than none.

use std::collections::{BTreeMap, HashMap};

use types::timeline::{LaunchShapeId, NameId, Timeline, WorkKind};
use types::{Bytes, Flops, ModelledKernel, Op, SampledKernel, Stage};

use super::choose::within;
use crate::alignment::{ModelledOperator, ModelledRun};
use crate::attribution::Attribution;
use crate::kernel::{Family, family};

/// Operations named in a row.
const NAMED: usize = 3;

/// Kernels at the begin of a pass that may be no operation of the model: tables of positions are made by a small product.
const LEADING: usize = 2;

/// Fills in what the model says of each kernel that found a partner. `instances` of a stage share the modelled cost;
/// `steps` of decode do.
pub fn lay_beside(kernels: &mut [SampledKernel], timeline: &Timeline, attribution: &Attribution, model: &ModelledRun) {
    for stage in [Stage::Prefill, Stage::Decode] {
        let operators = if stage == Stage::Decode { &model.decode } else { &model.prefill };
        let Some(pairs) = pair(timeline, attribution, stage, operators) else { continue };
        for row in kernels.iter_mut().filter(|row| within(row.stage, Some(stage))) {
            let fits = |(name, shape): &(NameId, LaunchShapeId)| {
                let found = timeline.launch_shapes.get(*shape);
                timeline.name(*name) == row.name && (found.grid, found.block) == (row.grid, row.block)
            };
            let Some((_, sum)) = pairs.kernels.iter().find(|(key, _)| fits(key)) else { continue };
            row.modelled = Some(modelled(sum, row, &pairs.basis));
        }
    }
}

fn modelled(sum: &Sum<'_>, row: &SampledKernel, basis: &str) -> ModelledKernel {
    let launches = sum.launches.max(1) as f64;
    let (flops, bytes) = (sum.flops / launches, sum.bytes / launches);
    let counted = row.counted.as_ref();
    let ratio =
        |counted: Option<f64>, modelled: f64| counted.filter(|_| modelled > 0.0).map(|counted| counted / modelled);
    ModelledKernel {
        operators: sum.modules.keys().take(NAMED).map(|module| (*module).to_owned()).collect(),
        operator_count: sum.modules.len() as u64,
        flops: Flops::new(flops.round() as u128),
        bytes: Bytes::new(bytes.round() as u64),
        bytes_ratio: ratio(counted.and_then(|counted| Some(counted.dram_bytes?.mean)), bytes),
        flops_ratio: ratio(counted.and_then(|counted| Some(counted.flops_tensor?.as_f64())), flops),
        basis: basis.to_owned(),
    }
}

/// What the operations laid beside one kernel, grid and block add up to.
#[derive(Default)]
struct Sum<'a> {
    launches: u64,
    flops: f64,
    bytes: f64,
    modules: BTreeMap<&'a str, ()>,
}

struct Pairs<'a> {
    kernels: HashMap<(NameId, LaunchShapeId), Sum<'a>>,
    basis: String,
}

/// One operation that a matrix kernel does, and the share of its modelled cost that is this one launch.
#[derive(Clone, Copy)]
struct Part<'a> {
    operator: &'a ModelledOperator,
    share: f64,
}

/// Pairs kernels and operations of a stage; `None` where their numbers do not agree.
fn pair<'a>(
    timeline: &Timeline,
    attribution: &Attribution,
    stage: Stage,
    operators: &'a [ModelledOperator],
) -> Option<Pairs<'a>> {
    let windows = windows(timeline, attribution, stage);
    let first = windows.first()?.len();
    if first == 0 || windows.iter().any(|window| window.len() != first) {
        return None;
    }
    // The cost of an operation of decode is that of all steps together.
    let each = if stage == Stage::Decode { 1.0 / windows.len() as f64 } else { 1.0 };
    let (parts, basis) = expansions(operators, each).into_iter().find_map(|(parts, how)| {
        let more = first.checked_sub(parts.len()).filter(|more| *more <= LEADING && !parts.is_empty())?;
        let basis = match more {
            0 => format!("matrix kernels in the order of the model's operations{how}"),
            more => format!("matrix kernels in the order of the model's operations{how}, the first {more} left out"),
        };
        consistent(timeline, &windows[0][more..], &parts).then_some(((parts, more), basis))
    })?;
    let (parts, leading) = parts;
    let mut kernels: HashMap<(NameId, LaunchShapeId), Sum<'a>> = HashMap::new();
    for window in &windows {
        for (work, part) in window[leading..].iter().zip(&parts) {
            let work = &timeline.work[*work];
            let Some(shape) = work.launch else { continue };
            let sum = kernels.entry((work.name, shape)).or_default();
            sum.launches += 1;
            sum.flops += part.operator.cost.flops_matrix.as_f64() * part.share;
            sum.bytes += part.operator.cost.bytes.total().as_f64() * part.share;
            sum.modules.insert(&part.operator.module, ());
        }
    }
    Some(Pairs { kernels, basis })
}

/// Matrix kernels of each prefill, or of each decode step, in the order they began.
fn windows(timeline: &Timeline, attribution: &Attribution, stage: Stage) -> Vec<Vec<usize>> {
    let mut windows: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (place, work) in timeline.work.iter().enumerate() {
        let is_matrix = work.kind == WorkKind::Kernel
            && matches!(family(timeline.name(work.name)), Family::Gemm | Family::Gemv | Family::Convolution)
            && !timeline.name(work.name).to_lowercase().contains("splitk");
        if !is_matrix || !within(attribution.stage[place], Some(stage)) {
            continue;
        }
        let window = match stage {
            Stage::Decode => attribution.step[place],
            // The instance of a nested stage is another one than that of prefill itself.
            _ => attribution.instance[place].map(|instance| outermost(attribution, instance)),
        };
        if let Some(window) = window {
            windows.entry(window).or_default().push(place);
        }
    }
    let mut windows: Vec<_> = windows.into_values().collect();
    windows.iter_mut().for_each(|window| window.sort_by_key(|place| timeline.work[*place].start));
    windows
}

fn outermost(attribution: &Attribution, instance: u32) -> u32 {
    let mut instance = instance;
    while let Some(parent) = attribution.stages[instance as usize].parent {
        instance = parent;
    }
    instance
}

/// The ways in which the operations may have become kernels, most plain first: attention in one fused kernel or as two
/// products, and experts one after the other.
fn expansions<'a>(operators: &'a [ModelledOperator], each: f64) -> Vec<(Vec<Part<'a>>, String)> {
    let spread = operators.iter().any(|operator| operator.spread);
    let repeats: Vec<usize> = if spread { (1..=16).collect() } else { vec![1] };
    let mut found = Vec::new();
    for products in [0, 2] {
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
                            Op::Attention { .. } => (products, 0.5),
                            Op::Linear | Op::Conv2d { .. } if operator.weight.is_some() => (1, 1.0 / times as f64),
                            Op::MatMulTransposed => (1, 1.0 / times as f64),
                            _ => (0, 0.0),
                        };
                        parts.extend(std::iter::repeat_n(Part { operator, share: share * each }, count));
                    }
                }
                place += run.len();
            }
            let attention = if products == 2 { ", attention as two products" } else { "" };
            let experts = if spread { format!(", {repeat} experts one after the other") } else { String::new() };
            found.push((parts, format!("{attention}{experts}")));
        }
    }
    found
}

/// Whether every kernel with one grid and block stands for weights of one size: a pairing that is off by one is not.
fn consistent(timeline: &Timeline, window: &[usize], parts: &[Part<'_>]) -> bool {
    let mut sizes: HashMap<(NameId, LaunchShapeId), HashMap<u64, u64>> = HashMap::new();
    for (work, part) in window.iter().zip(parts) {
        let work = &timeline.work[*work];
        let Some(shape) = work.launch else { return false };
        let size = part.operator.weight.as_ref().map_or(0, |weight| weight.iter().product());
        *sizes.entry((work.name, shape)).or_default().entry(size).or_default() += 1;
    }
    // Small products of different shapes may share a kernel and a grid; most launches must agree.
    let (agreeing, all) = sizes.values().fold((0, 0), |(agreeing, all), sizes| {
        (agreeing + sizes.values().max().copied().unwrap_or_default(), all + sizes.values().sum::<u64>())
    });
    agreeing * 10 >= all * 9
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribution::{Settings, attribute};
    use crate::device::sample::{Launch, timeline};
    use types::{Cost, DeviceId, LaunchShape, Nanos};

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
            least: None,
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
        let attribution = attribute(&timeline, &Settings::default());
        let mut rows = vec![row("nvjet_sm90_a"), row("nvjet_sm90_b")];
        lay_beside(&mut rows, &timeline, &attribution, &ModelledRun { prefill, ..ModelledRun::default() });
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
    fn a_product_before_the_models_own_is_left_out_and_more_kernels_than_that_are_not_paired() {
        let rows = laid(vec![operator("up", 4, 100), operator("k", 2, 20)]);
        assert!(rows[0].modelled.as_ref().unwrap().basis.ends_with("the first 1 left out"));
        let many = (0..9).map(|place| operator(&place.to_string(), 2, 1)).collect();
        assert!(laid(many).iter().all(|row| row.modelled.is_none()));
    }

    #[test]
    fn one_kernel_for_weights_of_different_sizes_is_not_believed() {
        let rows = laid(vec![operator("q", 2, 10), operator("up", 4, 100), operator("k", 8, 20)]);
        assert!(rows.iter().all(|row| row.modelled.is_none()));
    }
}
