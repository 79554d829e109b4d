//! What a trace shows of device work, summed as the books of lost time and the findings need it.
//!
//! Wall time is divided among pieces of work first ([`partition`]), waiting by what the host did meanwhile ([`waits`]);
//! then pieces are grouped by name and operator ([`groups`]) and, where the model is known, by module ([`modules`]).

mod chains;
mod copies;
mod data_parallel;
mod dequantisation;
pub(crate) mod graph_samples;
mod groups;
mod modules;
mod partition;
mod recurring;
#[cfg(test)]
pub(crate) mod sample;
mod special;
mod sums;
mod waits;

use std::collections::{BTreeMap, HashSet};

use types::timeline::{CopyDirection, WorkKind};
use types::{Cost, ModuleSummary, Nanos, PeakUsed, Stage};

pub(crate) use chains::{Chains, MOST_FUSED};
pub(crate) use copies::{AlikeCopies, CopyPattern};
pub(crate) use data_parallel::DataParallel;
pub(crate) use groups::WorkGroup;

pub(crate) use dequantisation::Cast;
#[cfg(test)]
pub(crate) use partition::Part;
pub(crate) use partition::Partition;
#[cfg(test)]
pub(crate) use special::Head;
pub use special::Mark;
#[cfg(test)]
pub(crate) use special::Portion;
pub(crate) use special::Special;
pub(crate) use sums::DeviceSums;
pub(crate) use waits::GraphWaits;

use crate::alignment::{ModelledOperator, ModelledRun, Placements, align};
use crate::attribution::Amount;
use crate::evidence::PlacedTimeline;
use crate::scope::Scope;
use crate::statistics::share;
use types::IdleCause;

/// All instances of prefill, or of decode.
#[derive(Clone, Debug, Default)]
pub(crate) struct StageWork {
    /// Wall time, on the clock of the trace.
    pub(crate) wall: Nanos,
    /// The device had finished, the host had not.
    pub(crate) after: Nanos,
    /// The device ran work of other stages, or of none, and none of this.
    pub(crate) others: Nanos,
    /// Instances.
    pub(crate) instances: u64,
    /// Decode steps; absent where they are not known.
    pub(crate) steps: Option<u64>,
    /// Kernels, copies and fills.
    pub(crate) pieces: u64,
    /// Calls that launched them: a graph is launched once.
    pub(crate) launches: u64,
    /// The part that CUDA graphs hold.
    pub(crate) graphs: GraphWork,
    /// Time the device waited, by what the host did meanwhile.
    pub(crate) waits: BTreeMap<IdleCause, Nanos>,
    /// The part of it that comes once in the recording: the longest before each kernel, beyond the mean of the others before it.
    pub(crate) waits_once: BTreeMap<IdleCause, Nanos>,
    /// Gaps between kernels that had been launched before: see [`IdleCause::BetweenKernels`].
    pub(crate) kernel_gaps: u64,
    /// The shortest wait between two pieces of work: what even a device that never runs dry may need to go on.
    pub(crate) shortest_wait: Option<Nanos>,
    /// Runs of elementwise kernels that could be one.
    pub(crate) chains: Chains,
    /// Least time of matrix work and of all other work; absent where the model or the device is not known.
    pub(crate) least: Option<[Nanos; 2]>,
}

/// Work that CUDA graphs launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct GraphWork {
    /// Launches of graphs.
    pub(crate) launches: u64,
    /// Kernels, copies and fills in them.
    pub(crate) pieces: u64,
    /// What the device waited for because of them.
    pub(crate) waits: GraphWaits,
}

impl StageWork {
    /// Share of the work that graphs launch.
    pub(crate) fn graph_share(&self) -> f64 {
        share(self.graphs.pieces as f64, self.pieces as f64).unwrap_or(0.0)
    }

    /// Time the device worked for it.
    pub(crate) fn busy(&self) -> Nanos {
        self.wall - self.after - self.others - self.waits.values().copied().sum()
    }

    /// Least time of all work.
    pub(crate) fn least(&self) -> Option<Nanos> {
        self.least.map(|[matrix, other]| matrix + other)
    }
}

/// What the trace shows.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeviceRecords {
    /// Prefill, decode, and what lies in neither.
    pub(crate) stages: BTreeMap<Scope, StageWork>,
    /// Work by stage, name and operator, longest first.
    pub(crate) groups: Vec<WorkGroup>,
    /// Calls that blocked while the device had nothing to do: by top stage, cause and name.
    pub(crate) blocking: BTreeMap<(Scope, IdleCause, String), u64>,
    /// Copies by direction.
    pub(crate) copies: BTreeMap<CopyDirection, CopyPattern>,
    /// Host time of decode steps, in order.
    pub(crate) steps: Vec<Nanos>,
    /// Work that single findings ask about.
    pub(crate) special: Special,
    /// What training on several devices shows of itself.
    pub(crate) data_parallel: DataParallel,
    /// Whether the program calls HIP.
    pub(crate) is_hip: bool,
    /// Most launches have no kernel in the recording: when the device did nothing is not known.
    pub(crate) misses_kernels: bool,
    /// Multiprocessors of the device; absent where it is not known.
    pub(crate) multiprocessors: Option<u64>,
    /// Modules, measured beside modelled; empty where the model is not known.
    pub(crate) modules: Vec<ModuleSummary>,
    /// The same for modules that differ by a number alone.
    pub(crate) module_kinds: Vec<ModuleSummary>,
    /// Share of the device's part of wall time that has a module; absent where the model is not known.
    pub(crate) module_share: Option<f64>,
    /// Roofline times of stages that are above the measured time.
    pub(crate) misfits: BTreeMap<Stage, Nanos>,
    /// Work of CUDA graphs whose layer rests on its order alone.
    pub(crate) placed_by_order: Amount,
    /// Work whose module rests on the order of the matrix kernels.
    pub(crate) placed_by_gemms: Amount,
}

impl DeviceRecords {
    /// Sums up timelines that have device work; absent where none has.
    pub(crate) fn new(
        timelines: &[PlacedTimeline<'_>],
        model: Option<&ModelledRun>,
        peak: Option<&PeakUsed>,
        multiprocessors: Option<u64>,
    ) -> Option<Self> {
        let mut records = Self { multiprocessors, ..Self::default() };
        let mut all = groups::Groups::default();
        let mut modules = modules::ModuleTimes::default();
        for placed in timelines.iter().filter(|placed| !placed.timeline.work.is_empty() && !placed.timeline.graphs_only)
        {
            let (timeline, attribution) = (placed.timeline, placed.attribution);
            let partition = Partition::new(timeline, attribution);
            records.add_stages(placed, &partition);
            records.data_parallel.add(timeline, attribution);
            records.is_hip |= timeline.calls.iter().any(|call| timeline.name(call.name).starts_with("hip"));
            records.misses_kernels |= attribution.misses_kernels();
            let casts = dequantisation::rows(timeline, attribution);
            all.add(timeline, attribution, &partition, &casts);
            let alignment = model.map(|model| align(timeline, attribution, model));
            if let Some((model, alignment)) = model.zip(alignment.as_ref()) {
                let placements = Placements::new(timeline, attribution, model, alignment);
                modules.add(timeline, attribution, &partition, &placements);
                records.placed_by_order.count += placements.by_order.count;
                records.placed_by_order.time += placements.by_order.time;
                records.placed_by_gemms.count += placements.by_gemms.count;
                records.placed_by_gemms.time += placements.by_gemms.time;
            }
            records.special.add(timeline, attribution, &partition, alignment.as_ref(), &casts);
        }
        if records.stages.is_empty() {
            return None;
        }
        records.groups = all.finish();
        if let Some(model) = model {
            records.add_least(model);
            let instances =
                records.stages.iter().filter_map(|(scope, work)| Some((scope.stage()?, work.instances))).collect();
            records.module_share = modules.placed_share();
            (records.modules, records.module_kinds) = modules.rows(model, &instances, peak);
        }
        Some(records)
    }

    /// Calls that kept the host in a scope for a cause, each with how often, the most frequent first.
    pub(crate) fn calls(&self, scope: Scope, cause: IdleCause) -> Vec<(u64, &str)> {
        let calls = self.blocking.iter().filter(|((of, why, _), _)| *of == scope && *why == cause);
        let mut calls: Vec<_> = calls.map(|((_, _, name), count)| (*count, name.as_str())).collect();
        calls.sort_by(|one, two| two.cmp(one));
        calls
    }

    fn add_stages(&mut self, placed: &PlacedTimeline<'_>, partition: &Partition) {
        let (timeline, attribution) = (placed.timeline, placed.attribution);
        for time in &partition.stages {
            let stage = self.stages.entry(time.stage).or_default();
            stage.wall += time.wall.length() - time.behind;
            stage.after += time.after;
            stage.others += time.others;
            stage.instances += 1;
        }
        let found = waits::waits(timeline, attribution, partition);
        for ((stage, wait), time) in found.of_stage {
            *self.stages.entry(stage).or_default().waits.entry(wait).or_default() += time;
        }
        for ((stage, wait), time) in found.once {
            *self.stages.entry(stage).or_default().waits_once.entry(wait).or_default() += time;
        }
        for (key, calls) in found.calls {
            *self.blocking.entry(key).or_default() += calls;
        }
        for (direction, pattern) in copies::patterns(timeline, attribution) {
            self.copies.entry(direction).or_default().add(pattern);
        }
        for (stage, of_graphs) in found.of_graphs {
            let waits = &mut self.stages.entry(stage).or_default().graphs.waits;
            waits.launching += of_graphs.launching;
            waits.before_first += of_graphs.before_first;
            waits.between_kernels += of_graphs.between_kernels;
        }
        for (stage, gaps) in found.between_kernels {
            self.stages.entry(stage).or_default().kernel_gaps += gaps;
        }
        let graph_of = attribution.graph_launches(timeline);
        let mut graphs: HashSet<u32> = HashSet::new();
        for (row, part) in partition.parts.iter().enumerate() {
            let Some(stage) = partition.scopes[row] else { continue };
            let work = self.stages.entry(stage).or_default();
            let is_graph = graph_of(row).is_some();
            let is_launch = graph_of(row).is_none_or(|call| graphs.insert(call));
            work.pieces += 1;
            work.launches += u64::from(is_launch);
            work.graphs.pieces += u64::from(is_graph);
            work.graphs.launches += u64::from(is_graph && is_launch);
            if timeline.work[row].kind == WorkKind::Kernel && part.wait > Nanos::ZERO {
                work.shortest_wait = Some(work.shortest_wait.map_or(part.wait, |shortest| shortest.min(part.wait)));
            }
        }
        for (stage, chains) in chains::chains(timeline, partition, &graph_of) {
            self.stages.entry(stage).or_default().chains.add(chains);
        }
        if !attribution.steps.is_empty() {
            let decode = self.stages.entry(Scope::Stage(Stage::Decode)).or_default();
            *decode.steps.get_or_insert(0) += attribution.steps.len() as u64;
            self.steps.extend(attribution.steps.iter().map(|step| step.host.length()));
        }
    }

    fn add_least(&mut self, model: &ModelledRun) {
        let passes = [(Stage::Prefill, &model.prefill), (Stage::Decode, &model.decode)];
        for (stage, operators) in passes {
            let Some(work) = self.stages.get_mut(&Scope::Stage(stage)) else { continue };
            let count = i64::try_from(work.instances).unwrap_or(i64::MAX);
            let sum = |matrix: bool| -> Option<Nanos> {
                let of_kind = operators.iter().filter(|operator| is_matrix(&operator.cost) == matrix);
                of_kind.map(|operator| operator.roofline).sum::<Option<Nanos>>()
            };
            let all = |least: Nanos| Nanos::new(least.get().saturating_mul(count));
            let least = sum(true).zip(sum(false)).map(|(matrix, other)| [all(matrix), all(other)]);
            // No work takes less than its roofline time: this is not the work that ran.
            let fits = |[matrix, other]: &[Nanos; 2]| *matrix + *other <= work.wall;
            self.misfits.extend(least.filter(|least| !fits(least)).map(|[matrix, other]| (stage, matrix + other)));
            work.least = least.filter(fits);
        }
    }
}

fn is_matrix(cost: &Cost) -> bool {
    cost.flops_matrix > types::Flops::ZERO
}

/// Whether an operation's least time is spent on arithmetic; absent where it has no work.
fn is_compute_bound(operator: &ModelledOperator, peak: &PeakUsed) -> Option<(bool, f64)> {
    let compute = (operator.cost.flops_matrix / peak.flops).get();
    let memory = (operator.cost.bytes.total() / peak.bytes_per_second).get();
    let larger = compute.max(memory);
    (larger.is_finite() && larger > 0.0).then_some((compute > memory, larger))
}
