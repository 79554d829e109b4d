//! Which operation of the model each matrix kernel of a stage does.
//!
//! A timeline without operators has nothing but the order: matrix kernels of a decode step, or of a prefill, come in the
//! order in which the model applies its weights. They are laid over each other one by one, and only where their numbers
//! agree and a kernel that stands for weights of different sizes takes longer for the larger. Anything else is left open:
//! a wrong partner would be worse than none.

use std::collections::{BTreeMap, HashMap};

use types::timeline::{LaunchShapeId, NameId, Timeline, WorkKind};
use types::{Op, Stage};

use super::ModelledOperator;
use crate::attribution::Attribution;
use crate::kernel::{Family, family};
use crate::statistics::median;

/// Kernels at the begin of a pass that may be no operation of the model: tables of positions are made by a small product.
const LEADING: usize = 2;

/// How much longer a kernel must take for larger weights, for the two to be told apart.
const LONGER: f64 = 1.1;

/// How many times as long as usual a launch may take, and how many times shorter.
const SPREAD: f64 = 1.5;

/// A kernel with its grid and block.
pub(crate) type Key = (NameId, LaunchShapeId);

/// One operation that a matrix kernel does, and the share of its modelled cost that is this one launch.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    pub(crate) operator: &'a ModelledOperator,
    pub(crate) share: f64,
}

/// Matrix kernels of a stage and the operations they do.
pub(crate) struct Pairing<'a> {
    /// The kernels of each prefill, or of each decode step, in order.
    windows: Vec<Vec<usize>>,
    /// The kernels of the first of them.
    sequence: Vec<Key>,
    /// For each of these the place of its operation.
    partners: Vec<Option<usize>>,
    operations: Vec<Part<'a>>,
    /// What it rests on, in words.
    pub(crate) basis: String,
}

impl<'a> Pairing<'a> {
    /// Operations of each kernel's launches in one pass, in order.
    pub(crate) fn launches(&self) -> HashMap<Key, Vec<Part<'a>>> {
        let mut launches: HashMap<Key, Vec<Part<'a>>> = HashMap::new();
        let mut counts: HashMap<Key, usize> = HashMap::new();
        for (key, partner) in self.sequence.iter().zip(&self.partners) {
            launches.entry(*key).or_default().extend(partner.map(|place| self.operations[place]));
            *counts.entry(*key).or_default() += 1;
        }
        // A kernel some of whose launches have no partner would be told by the others; the first of a pass may have none.
        launches.retain(|key, found| !found.is_empty() && found.len() + LEADING >= counts[key]);
        launches
    }

    /// The module of every kernel that has an operation, pass by pass and in order, by its place in the timeline.
    pub(crate) fn modules(&self) -> impl Iterator<Item = Vec<(usize, &'a str)>> {
        self.windows.iter().map(|window| {
            let partners = window.iter().zip(&self.partners);
            partners
                .filter_map(|(work, partner)| Some((*work, self.operations[(*partner)?].operator.module.as_str())))
                .collect()
        })
    }
}

/// Pairs kernels and operations of a stage; `None` where their numbers do not agree.
pub(crate) fn pair<'a>(
    timeline: &Timeline,
    attribution: &Attribution,
    stage: Stage,
    operators: &'a [ModelledOperator],
) -> Option<Pairing<'a>> {
    let windows = windows(timeline, attribution, stage);
    let first = windows.first()?.len();
    if first == 0 || windows.iter().any(|window| window.len() != first) {
        return None;
    }
    // The cost of an operation of decode is that of all steps of one run of it together.
    let runs = attribution.stages.iter().filter(|instance| instance.stage == stage).count().max(1);
    let each = if stage == Stage::Decode { runs as f64 / windows.len() as f64 } else { 1.0 };
    let sequence: Vec<Key> = windows[0].iter().map(|work| key(timeline, *work)).collect::<Option<_>>()?;
    // Attention may be launched otherwise as the cache grows; all else is the same in every pass.
    let alike = |window: &Vec<usize>| {
        let same = window.iter().zip(&sequence).filter(|(work, key)| self::key(timeline, **work) == Some(**key));
        same.count() * 10 >= sequence.len() * 9
    };
    if !windows.iter().all(alike) {
        return None;
    }
    let times: Vec<f64> = windows[0].iter().map(|work| timeline.work[*work].duration.get() as f64).collect();
    let kernels = Kernels { sequence: &sequence, times: &times };
    let (parts, partners, basis) = expansions(operators, each).into_iter().find_map(|(parts, how)| {
        let (partners, left_out) = kernels.partners(&parts)?;
        Some((parts, partners, format!("matrix kernels in the order of the model's operations{how}{left_out}")))
    })?;
    Some(Pairing { windows, sequence, partners, operations: parts, basis })
}

/// A kernel with its grid and block; `None` where the timeline does not say.
fn key(timeline: &Timeline, work: usize) -> Option<Key> {
    let work = &timeline.work[work];
    Some((work.name, work.launch?))
}

/// The matrix kernels of a pass, in order, and how long each took.
struct Kernels<'a> {
    sequence: &'a [Key],
    times: &'a [f64],
}

impl Kernels<'_> {
    /// For each kernel the place of its operation, and in words what is left out: nothing, the first, or all launches of one
    /// kernel, such as one that makes a table of positions in every layer. Where several kernels may be the one that is left
    /// out, only partners that all of these ways agree on are given.
    fn partners(&self, parts: &[Part<'_>]) -> Option<(Vec<Option<usize>>, String)> {
        let all = self.sequence.len();
        let excess = all.checked_sub(parts.len()).filter(|_| !parts.is_empty())?;
        if excess <= LEADING {
            let places: Vec<usize> = (excess..all).collect();
            let left_out = if excess > 0 { format!(", the first {excess} left out") } else { String::new() };
            return self.consistent(&places, parts).then(|| (self.laid(&places), left_out));
        }
        let mut agreed: Option<Vec<Option<usize>>> = None;
        for leading in 0..=LEADING {
            for key in self.recurring(excess - leading) {
                let kept = |place: &usize| self.sequence[*place] != key;
                let places: Vec<usize> = (0..all).filter(kept).skip(leading).collect();
                if places.len() != parts.len() || !self.consistent(&places, parts) {
                    continue;
                }
                let laid = self.laid(&places);
                agreed = Some(match agreed {
                    None => laid,
                    Some(before) => {
                        before.into_iter().zip(laid).map(|(one, other)| one.filter(|_| one == other)).collect()
                    }
                });
            }
        }
        let agreed = agreed?;
        let left_out = agreed.iter().filter(|partner| partner.is_none()).count();
        Some((agreed, format!(", {left_out} of {all} left out")))
    }

    /// Kernels with as many launches; few are no habit of a layer.
    fn recurring(&self, launches: usize) -> Vec<Key> {
        let mut counts: BTreeMap<usize, (Key, usize)> = BTreeMap::new();
        let mut first: HashMap<Key, usize> = HashMap::new();
        for (place, key) in self.sequence.iter().enumerate() {
            let place = *first.entry(*key).or_insert(place);
            counts.entry(place).or_insert((*key, 0)).1 += 1;
        }
        let wanted = |(key, count): (Key, usize)| (count == launches && count > LEADING).then_some(key);
        counts.into_values().filter_map(wanted).collect()
    }

    /// The operations in order beside the kernels at these places.
    fn laid(&self, places: &[usize]) -> Vec<Option<usize>> {
        let mut partners = vec![None; self.sequence.len()];
        for (operation, place) in places.iter().enumerate() {
            partners[*place] = Some(operation);
        }
        partners
    }

    /// Whether every kernel with one grid and block stands for weights of one size, or takes longer for the larger: with a
    /// pairing that is off by one it does not.
    fn consistent(&self, places: &[usize], parts: &[Part<'_>]) -> bool {
        let mut sizes: HashMap<Key, BTreeMap<u64, Vec<f64>>> = HashMap::new();
        for (place, part) in places.iter().zip(parts) {
            let size = part.operator.weight.as_ref().map_or(0, |weight| weight.iter().product());
            sizes.entry(self.sequence[*place]).or_default().entry(size).or_default().push(self.times[*place]);
        }
        // Small products of different shapes may share a kernel and a grid; most launches must agree.
        let agreeing: usize = sizes.values().map(agreeing).sum();
        agreeing * 10 >= places.len() * 9
    }
}

/// Matrix kernels of each prefill, or of each decode step, in the order they began.
fn windows(timeline: &Timeline, attribution: &Attribution, stage: Stage) -> Vec<Vec<usize>> {
    // There are few names and many launches.
    let is_matrix =
        |name: &str| matches!(family(name), Family::Gemm | Family::Gemv | Family::Convolution) && !joins_parts(name);
    let matrix: Vec<bool> = timeline.names.iter().map(|(_, name)| is_matrix(name)).collect();
    let mut windows: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (place, work) in timeline.work.iter().enumerate() {
        let is_matrix = work.kind == WorkKind::Kernel && matrix[work.name.index()];
        if !is_matrix || attribution.stage[place].map(Stage::top) != Some(stage) {
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
    (name.contains("splitk") && name.contains("reduce")) || name.contains("reduce_1block")
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
                            Op::Linear | Op::Conv2d { .. } => (1, 1.0 / times as f64),
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

/// Launches of one kernel that agree with their partners: those that take about as long as is usual for their size, where
/// each size takes clearly longer than the next smaller; where it does not, those of one size, the most there are.
fn agreeing(sizes: &BTreeMap<u64, Vec<f64>>) -> usize {
    let usual: Vec<f64> = sizes.values().filter_map(|times| median(times)).collect();
    let near = |(times, own): (&Vec<f64>, &f64)| {
        let is_usual = |time: &&f64| **time <= own * SPREAD && **time * SPREAD >= *own;
        let is_nearest = |time: &&f64| usual.iter().all(|other| (**time - own).abs() <= (**time - other).abs());
        times.iter().filter(is_usual).filter(is_nearest).count()
    };
    let each = sizes.values().zip(&usual).map(near);
    match usual.windows(2).any(|pair| pair[1] < pair[0] * LONGER) {
        true => each.max().unwrap_or_default(),
        false => each.sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::Cost;

    fn operator(module: &str, size: u64) -> ModelledOperator {
        ModelledOperator {
            module: module.to_owned(),
            class: "Linear".to_owned(),
            stage: Stage::Decode,
            op: Op::Linear,
            weight: Some(vec![size]),
            spread: false,
            cost: Cost::ZERO,
            least: None,
        }
    }

    /// Partners of kernels, each by a letter and how long it took, beside operations by the sizes of their weights.
    fn partners(kernels: &[(u32, f64)], sizes: &[u64]) -> Option<Vec<Option<usize>>> {
        let mut names = types::timeline::Timeline::new(
            types::timeline::TraceFormat::Wire,
            types::Clock {
                id: types::ClockId(0),
                kind: types::ClockKind::Trace,
                unix_ns_at_zero: None,
                uncertainty_ns: None,
            },
        );
        let shape = names.launch_shapes.place_owned(types::LaunchShape::default());
        let sequence: Vec<Key> =
            kernels.iter().map(|(kernel, _)| (names.names.place(&kernel.to_string()), shape)).collect();
        let times: Vec<f64> = kernels.iter().map(|(_, time)| *time).collect();
        let operators: Vec<_> = sizes.iter().map(|size| operator("x", *size)).collect();
        let parts: Vec<_> = operators.iter().map(|operator| Part { operator, share: 1.0 }).collect();
        Some(Kernels { sequence: &sequence, times: &times }.partners(&parts)?.0)
    }

    #[test]
    fn a_product_that_every_layer_makes_besides_is_left_out() {
        // Five layers of three products and one that is none of the model's: the second or the third kernel.
        let layer = [(1, 10.0), (1, 10.0), (2, 1.0), (3, 30.0)];
        let kernels: Vec<_> = layer.into_iter().cycle().take(20).collect();
        let found = partners(&kernels, &[4, 4, 9].repeat(5)).unwrap();
        // Which of the two nothing tells, so neither gets a partner; the others are sure.
        let layers: Vec<&[Option<usize>]> = found.chunks(4).collect();
        assert_eq!(layers[..2], [[Some(0), Some(1), None, None], [Some(3), Some(4), None, None]]);
    }

    #[test]
    fn a_kernel_of_two_sizes_tells_which_other_is_left_out() {
        // The first kernel does both sizes; without the third, a small one would take as long as a large one.
        let layer = [(1, 10.0), (2, 1.0), (1, 30.0), (3, 5.0)];
        let kernels: Vec<_> = layer.into_iter().cycle().take(20).collect();
        let found = partners(&kernels, &[4, 9, 4].repeat(5)).unwrap();
        assert_eq!(found[..5], [Some(0), None, Some(1), Some(2), Some(3)]);
    }

    #[test]
    fn more_kernels_than_can_be_told_are_not_paired() {
        assert_eq!(partners(&[(1, 1.0); 9], &[4, 9]), None);
        assert_eq!(partners(&[(1, 1.0)], &[4, 9]), None);
        assert_eq!(partners(&[(1, 1.0), (2, 1.0)], &[]), None);
    }

    #[test]
    fn what_joins_the_parts_of_a_product_is_no_product() {
        assert!(joins_parts("void cublasLt::splitKreduce_kernel<32, 16, int>(cublasLt::cublasSplitKParams<float>)"));
        assert!(joins_parts("void reduce_1Block_kernel<float, 128, 7, cublasGemvTensorStridedBatched<float>>"));
        assert!(!joins_parts("nvjet_sm90_tst_128x8_64x12_2x1_v_bz_splitK_TNT"));
    }
}
