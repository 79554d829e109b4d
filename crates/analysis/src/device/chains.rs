//! Runs of elementwise kernels: each reads what the one before wrote, so a compiler could make one kernel of them.

use std::collections::BTreeMap;

use types::Nanos;
use types::timeline::{QueueId, Timeline, WorkKind};

use super::partition::{Part, Partition};
use crate::kernel;
use crate::scope::Scope;

/// Kernels that become one at most. Longer chains are loops over tensors that have nothing to do with each other: an optimizer's.
pub(crate) const MOST_FUSED: usize = 8;

/// What fusing all chains of a stage would save: of each chain, all but the longest of each [`MOST_FUSED`] kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chains {
    /// Chains of two and more.
    pub(crate) chains: u64,
    /// Kernels in them.
    pub(crate) kernels: u64,
    /// Running time of all kernels but the longest of each [`MOST_FUSED`].
    pub(crate) run: Nanos,
    /// Waiting for all kernels but the first of each chain.
    pub(crate) wait: Nanos,
}

impl Chains {
    /// Adds those of another timeline.
    pub(crate) fn add(&mut self, other: Self) {
        self.chains += other.chains;
        self.kernels += other.kernels;
        self.run += other.run;
        self.wait += other.wait;
    }

    fn close(&mut self, chain: &mut Vec<Part>) {
        if chain.len() > 1 {
            let longest: Nanos =
                chain.chunks(MOST_FUSED).filter_map(|fused| fused.iter().map(|part| part.run).max()).sum();
            self.chains += 1;
            self.kernels += chain.len() as u64;
            self.run += chain.iter().map(|part| part.run).sum::<Nanos>() - longest;
            self.wait += chain[1..].iter().map(|part| part.wait).sum::<Nanos>();
        }
        chain.clear();
    }
}

/// Chains by top stage. A chain ends at any other kernel of its queue, before one that reads nothing, and where the stage or the
/// CUDA graph does: `graph_of` has the launch of the graph that a row is part of.
pub(super) fn chains(
    timeline: &Timeline,
    partition: &Partition,
    graph_of: impl Fn(usize) -> Option<u32>,
) -> BTreeMap<Scope, Chains> {
    let elementwise: Vec<bool> = timeline.names.iter().map(|(_, name)| kernel::is_unfused_elementwise(name)).collect();
    let starts: Vec<bool> = timeline.names.iter().map(|(_, name)| kernel::reads_nothing(name)).collect();
    let mut rows: Vec<u32> = (0..timeline.work.len() as u32).collect();
    rows.sort_by_key(|row| {
        let work = &timeline.work[*row as usize];
        (work.queue, work.start)
    });
    let mut found: BTreeMap<Scope, Chains> = BTreeMap::new();
    let mut chain: Vec<Part> = Vec::new();
    let mut open: Option<(QueueId, Scope, Option<u32>)> = None;
    for row in rows {
        let work = &timeline.work[row as usize];
        let here = partition.scopes[row as usize].map(|scope| (work.queue, scope, graph_of(row as usize)));
        let fuses = work.kind == WorkKind::Kernel && elementwise[work.name.index()];
        if (open != here || !fuses || starts[work.name.index()])
            && let Some((_, stage, _)) = open
        {
            found.entry(stage).or_default().close(&mut chain);
        }
        open = here;
        if fuses && here.is_some() {
            chain.push(partition.parts[row as usize]);
        }
    }
    if let Some((_, stage, _)) = open {
        found.entry(stage).or_default().close(&mut chain);
    }
    found.retain(|_, chains| chains.chains > 0);
    found
}

#[cfg(test)]
mod tests {
    use types::Stage;

    use super::*;
    use crate::attribution::{AttributionSettings, attribute};
    use crate::device::sample::{Launch, timeline};

    const ADD: &str = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)";

    fn found(launches: &[Launch]) -> BTreeMap<Scope, Chains> {
        let timeline = timeline(1_000, launches);
        let attribution = attribute(&timeline, &AttributionSettings::default());
        chains(&timeline, &Partition::new(&timeline, &attribution), attribution.graph_launches(&timeline))
    }

    #[test]
    fn a_chain_ends_with_its_graph() {
        let add = |start| Launch::new(start, 100 + start, 10).named(ADD);
        let mut timeline = timeline(1_000, &[add(0), add(20), add(40), add(60)]);
        let graph = timeline.names.place("cudaGraphLaunch");
        timeline.calls.iter_mut().for_each(|call| call.name = graph);
        // Two graphs of two kernels each.
        timeline.work[1].correlation = timeline.work[0].correlation;
        timeline.work[3].correlation = timeline.work[2].correlation;
        let attribution = attribute(&timeline, &AttributionSettings::default());
        let partition = Partition::new(&timeline, &attribution);
        let found = chains(&timeline, &partition, attribution.graph_launches(&timeline));
        assert_eq!((found[&Scope::Stage(Stage::Prefill)].chains, found[&Scope::Stage(Stage::Prefill)].kernels), (2, 4));
    }

    #[test]
    fn eight_kernels_become_one_at_most() {
        let adds: Vec<_> = (0..9).map(|place| Launch::new(place, 100 + 10 * place, 10).named(ADD)).collect();
        let all = found(&adds)[&Scope::Stage(Stage::Prefill)];
        assert_eq!((all.chains, all.kernels, all.run), (1, 9, Nanos::new(70)));
    }

    #[test]
    fn a_chain_saves_all_but_its_longest_kernel_and_all_waits_but_the_first() {
        let found = found(&[
            Launch::new(0, 100, 10).named(ADD),
            Launch::new(1, 120, 30).named(ADD),
            Launch::new(2, 155, 20).named(ADD),
            Launch::new(3, 200, 50).named("nvjet_sm90_tst_8x64_64x16_4x1_v_bz_TNN"),
            Launch::new(4, 300, 10).named(ADD),
        ]);
        let expected = Chains { chains: 1, kernels: 3, run: Nanos::new(30), wait: Nanos::new(15) };
        assert_eq!(found[&Scope::Stage(Stage::Prefill)], expected);
    }

    #[test]
    fn fills_one_after_the_other_are_no_chain() {
        const FILL: &str = "void at::native::vectorized_elementwise_kernel<8, at::native::FillFunctor<float>>(int)";
        let fill = |start| Launch::new(start, 100 + start, 10).named(FILL);
        assert!(found(&[fill(0), fill(20), fill(40)]).is_empty());
        // What reads a fill could make the values itself.
        let found = found(&[fill(0), Launch::new(20, 120, 30).named(ADD)]);
        assert_eq!(found[&Scope::Stage(Stage::Prefill)].run, Nanos::new(10));
    }

    #[test]
    fn single_kernels_are_no_chain() {
        assert!(found(&[Launch::new(0, 100, 10).named(ADD), Launch::new(1, 120, 10).named("nvjet_x")]).is_empty());
    }
}
