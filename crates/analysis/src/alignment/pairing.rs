//! Which operation of the model each matrix kernel of a stage does.
//!
//! A timeline without operators has nothing but the order: matrix kernels of a decode step, or of a prefill, come in the
//! order in which the model applies its weights. They are laid over each other one by one, and only where their numbers
//! agree and a kernel that stands for weights of different sizes takes longer for the larger. Anything else is left open:
//! a wrong partner would be worse than none.

use std::collections::{BTreeMap, HashMap};

use types::timeline::{Timeline, WorkKind};
use types::{Remark, Stage};

use super::expansion::{Part, expansions};
use super::kernel_sequence::{KernelSequence, Key, LEADING};
use super::modelled_run::ModelledOperator;
use crate::attribution::Attribution;
use crate::kernel::{Family, family};

/// Matrix kernels of a stage and the operations they do.
pub(crate) struct Pairing<'a> {
    /// The kernels of each prefill, or of each decode step, in order.
    windows: Vec<Vec<usize>>,
    /// The kernels of the first of them.
    sequence: Vec<Key>,
    /// For each of these the place of its operation.
    partners: Vec<Option<usize>>,
    operations: Vec<Part<'a>>,
    /// What it rests on.
    pub(crate) basis: Remark,
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
    let kernels = KernelSequence { kernels: &sequence, times: &times };
    let (parts, partners, basis) = expansions(operators, each).into_iter().find_map(|(parts, how)| {
        let (partners, how) = kernels.partners(&parts, how)?;
        Some((parts, partners, Remark::new("modelled.order", how)))
    })?;
    Some(Pairing { windows, sequence, partners, operations: parts, basis })
}

/// A kernel with its grid and block; `None` where the timeline does not say.
fn key(timeline: &Timeline, work: usize) -> Option<Key> {
    let work = &timeline.work[work];
    Some((work.name, work.launch?))
}

/// Matrix kernels of each prefill, or of each decode step, in the order they started.
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

/// Whether a kernel adds up the parts of a GEMM that another has divided along its inner dimension.
fn joins_parts(name: &str) -> bool {
    let name = name.to_lowercase();
    (name.contains("splitk") && name.contains("reduce")) || name.contains("reduce_1block")
}

fn outermost(attribution: &Attribution, instance: u32) -> u32 {
    let around = |instance: &u32| attribution.stages[*instance as usize].parent;
    std::iter::successors(Some(instance), around).last().unwrap_or(instance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_joins_the_parts_of_a_gemm_is_no_gemm() {
        assert!(joins_parts("void cublasLt::splitKreduce_kernel<32, 16, int>(cublasLt::cublasSplitKParams<float>)"));
        assert!(joins_parts("void reduce_1Block_kernel<float, 128, 7, cublasGemvTensorStridedBatched<float>>"));
        assert!(!joins_parts("nvjet_sm90_tst_128x8_64x12_2x1_v_bz_splitK_TNT"));
    }
}
