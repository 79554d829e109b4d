//! The model's operations laid beside the kernels that did them.
//!
//! A timeline without operators has nothing but the order: matrix kernels of a decode step, or of a prefill, come in the
//! order in which the model applies its weights. They are laid over each other one by one, and only where their numbers
//! agree and a kernel that stands for weights of different sizes takes longer for the larger. Anything else is left open:
//! a wrong partner would be worse than none.

use std::collections::{BTreeMap, HashMap};

use types::timeline::{LaunchShapeId, NameId, Timeline, WorkKind};
use types::{Bytes, Flops, ModelledKernel, Op, SampledKernel, Stage};

use super::choose::within;
use crate::alignment::{ModelledOperator, ModelledRun};
use crate::attribution::Attribution;
use crate::kernel::{Family, family};
use crate::statistics::median;

/// Operations named in a row.
const NAMED: usize = 3;

/// Kernels at the begin of a pass that may be no operation of the model: tables of positions are made by a small product.
const LEADING: usize = 2;

/// How much longer a kernel must take for larger weights, for the two to be told apart.
const LONGER: f64 = 1.1;

/// Most launches of a kernel whose operations are kept one by one.
const KEPT: usize = 256;

/// Fills in what the model says of each kernel that found a partner.
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
    let counted = row.counted.as_ref();
    let (flops, bytes) = sum.mean(counted.map(|counted| counted.launches));
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

/// The operations laid beside one kernel, grid and block.
#[derive(Default)]
struct Sum<'a> {
    /// Operations and bytes of its first launches, in order.
    launches: Vec<(f64, f64)>,
    modules: BTreeMap<&'a str, ()>,
}

impl Sum<'_> {
    /// Operations and bytes of a launch: mean over those that were sampled, which are the first, else over all. A kernel may
    /// do products of several sizes.
    fn mean(&self, sampled: Option<u64>) -> (f64, f64) {
        let all = self.launches.len();
        let launches = &self.launches[..sampled.map_or(all, |count| all.min(count.max(1) as usize))];
        let mean = |of: fn(&(f64, f64)) -> f64| launches.iter().map(of).sum::<f64>() / launches.len().max(1) as f64;
        (mean(|launch| launch.0), mean(|launch| launch.1))
    }
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
    // The cost of an operation of decode is that of all steps of one run of it together.
    let runs = attribution.stages.iter().filter(|instance| instance.stage == stage).count().max(1);
    let each = if stage == Stage::Decode { runs as f64 / windows.len() as f64 } else { 1.0 };
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
            let cost = &part.operator.cost;
            if sum.launches.len() < KEPT {
                let (flops, bytes) = (cost.flops_matrix.as_f64(), cost.bytes.total().as_f64());
                sum.launches.push((flops * part.share, bytes * part.share));
            }
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
            && !joins_parts(timeline.name(work.name));
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

/// Whether a kernel adds up the parts of a product that another has divided along its inner dimension.
fn joins_parts(name: &str) -> bool {
    let name = name.to_lowercase();
    name.contains("splitk") && name.contains("reduce")
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

/// Whether every kernel with one grid and block stands for weights of one size, or takes longer for the larger: with a
/// pairing that is off by one it does not.
fn consistent(timeline: &Timeline, window: &[usize], parts: &[Part<'_>]) -> bool {
    let mut sizes: HashMap<(NameId, LaunchShapeId), BTreeMap<u64, Vec<f64>>> = HashMap::new();
    for (work, part) in window.iter().zip(parts) {
        let work = &timeline.work[*work];
        let Some(shape) = work.launch else { return false };
        let size = part.operator.weight.as_ref().map_or(0, |weight| weight.iter().product());
        let times = sizes.entry((work.name, shape)).or_default().entry(size).or_default();
        times.push(work.duration.get() as f64);
    }
    // Small products of different shapes may share a kernel and a grid; most launches must agree.
    let agreeing: usize = sizes.values().map(agreeing).sum();
    agreeing * 10 >= window.len() * 9
}

/// Launches of one kernel that agree with their partners: of one size all of them; of several, where each takes clearly
/// longer than the next smaller, those nearest to what is usual for their own, and else the most of one size.
fn agreeing(sizes: &BTreeMap<u64, Vec<f64>>) -> usize {
    let usual: Vec<f64> = sizes.values().filter_map(|times| median(times)).collect();
    if usual.windows(2).any(|pair| pair[1] < pair[0] * LONGER) {
        return sizes.values().map(Vec::len).max().unwrap_or_default();
    }
    let is_near = |own: f64, time: f64| usual.iter().all(|other| (time - own).abs() <= (time - other).abs());
    let near = |(times, own): (&Vec<f64>, &f64)| times.iter().filter(|time| is_near(*own, **time)).count();
    sizes.values().zip(&usual).map(near).sum()
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
    fn one_kernel_for_weights_of_different_sizes_is_believed_where_it_takes_longer_for_the_larger() {
        let parts = || vec![operator("q", 2, 10), operator("up", 4, 100), operator("k", 8, 20)];
        assert!(laid(parts()).iter().all(|row| row.modelled.is_none()));
        let mut timeline = recorded();
        timeline.work[2].duration = Nanos::new(80);
        let attribution = attribute(&timeline, &Settings::default());
        let mut rows = vec![row("nvjet_sm90_a")];
        lay_beside(&mut rows, &timeline, &attribution, &ModelledRun { prefill: parts(), ..ModelledRun::default() });
        assert_eq!(rows[0].modelled.as_ref().unwrap().flops, Flops::new(15));
        // Off by one, the larger of the two takes less.
        timeline.work[2].duration = Nanos::new(20);
        let mut rows = vec![row("nvjet_sm90_a")];
        lay_beside(&mut rows, &timeline, &attribution, &ModelledRun { prefill: parts(), ..ModelledRun::default() });
        assert!(rows[0].modelled.is_none());
    }

    #[test]
    fn what_is_counted_is_held_against_the_launches_that_were_sampled() {
        let sum = Sum { launches: vec![(10.0, 1.0), (20.0, 3.0), (60.0, 5.0)], modules: BTreeMap::new() };
        assert_eq!(sum.mean(Some(1)), (10.0, 1.0));
        assert_eq!(sum.mean(Some(2)), (15.0, 2.0));
        assert_eq!((sum.mean(Some(9)), sum.mean(None)), ((30.0, 3.0), (30.0, 3.0)));
    }

    #[test]
    fn what_joins_the_parts_of_a_product_is_no_product() {
        assert!(joins_parts("void cublasLt::splitKreduce_kernel<32, 16, int>(cublasLt::cublasSplitKParams<float>)"));
        assert!(!joins_parts("nvjet_sm90_tst_128x8_64x12_2x1_v_bz_splitK_TNT"));
    }
}
