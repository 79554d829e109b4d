//! Modules of the model: what a trace shows them to take, beside the least their work needs.

use std::collections::{BTreeMap, BTreeSet};

use types::timeline::Timeline;
use types::{Base, Bytes, Facts, ModuleSummary, Nanos, PeakUsed, PlacedBy, Remark, Stage, Work};

use super::is_compute_bound;
use super::partition::{Part, Partition};
use crate::alignment::{ModelledRun, Placements};
use crate::attribution::Attribution;
use crate::kernel::{Family, family_of_work};
use crate::module_path::{kind, with_ancestors};
use crate::statistics::share;

/// Modules with less of the wall time are not listed: they are hundreds, and none of them is worth a look.
const LEAST_SHARE: f64 = 0.005;
/// Share of the lost time above which waiting is its cause.
const MOSTLY: f64 = 0.5;

/// What one module took, submodules left out.
#[derive(Clone, Default)]
struct Own {
    part: Part,
    families: BTreeMap<Family, Nanos>,
    placed_by: BTreeSet<PlacedBy>,
}

/// Measured and modelled, submodules included.
#[derive(Clone, Default)]
struct Node {
    stage: Option<Stage>,
    part: Part,
    /// What the module itself took of that.
    own: Nanos,
    families: BTreeMap<Family, Nanos>,
    placed_by: BTreeSet<PlacedBy>,
    least: Nanos,
    work: Work,
    compute: f64,
    memory: f64,
}

/// Times by module path and innermost stage.
#[derive(Default)]
pub(super) struct ModuleTimes {
    own: BTreeMap<(String, Stage), Own>,
    placed: Nanos,
    all: Nanos,
}

impl ModuleTimes {
    /// Adds the work of one timeline.
    pub(super) fn add(
        &mut self,
        timeline: &Timeline,
        attribution: &Attribution,
        partition: &Partition,
        placements: &Placements<'_>,
    ) {
        let families: Vec<_> = timeline.names.iter().map(|(_, name)| crate::kernel::family(name)).collect();
        for (row, work) in timeline.work.iter().enumerate() {
            let (part, Some(stage)) = (partition.parts[row], attribution.stage[row]) else { continue };
            self.all += part.total();
            let Some((module, placement)) = placements.module[row] else { continue };
            self.placed += part.total();
            let own = match self.own.get_mut(&(module.to_owned(), stage)) {
                Some(own) => own,
                None => self.own.entry((module.to_owned(), stage)).or_default(),
            };
            own.part.wait += part.wait;
            own.part.run += part.run;
            own.placed_by.insert(placement);
            let family = match work.kind {
                types::timeline::WorkKind::Kernel => families[work.name.index()],
                kind => family_of_work(kind, ""),
            };
            *own.families.entry(family).or_default() += part.run;
        }
    }

    /// Share of the work's wall time that has a module.
    pub(super) fn placed_share(&self) -> Option<f64> {
        share(self.placed.get() as f64, self.all.get() as f64)
    }

    /// One row per module and top stage, and one per kind of them, most lost first.
    pub(super) fn rows(
        &self,
        model: &ModelledRun,
        instances: &BTreeMap<Stage, u64>,
        peak: Option<&PeakUsed>,
    ) -> (Vec<ModuleSummary>, Vec<ModuleSummary>) {
        let mut nodes: BTreeMap<(&str, Stage), Node> = BTreeMap::new();
        let mut classes: BTreeMap<&str, &str> = BTreeMap::new();
        for ((module, stage), own) in &self.own {
            for path in with_ancestors(module) {
                let node = nodes.entry((path, stage.top())).or_default();
                node.stage = Some(node.stage.map_or(*stage, |other| other.common(*stage)));
                node.part.wait += own.part.wait;
                node.part.run += own.part.run;
                node.placed_by.extend(&own.placed_by);
                if path == module {
                    node.own += own.part.total();
                }
                for (family, time) in &own.families {
                    *node.families.entry(*family).or_default() += *time;
                }
            }
        }
        let mut known = peak.is_some();
        for (stage, operators) in [(Stage::Prefill, &model.prefill), (Stage::Decode, &model.decode)] {
            let count = instances.get(&stage).map_or(0, |count| i64::try_from(*count).unwrap_or(i64::MAX));
            for operator in operators {
                classes.insert(&operator.module, &operator.class);
                known &= operator.roofline.is_some();
                for path in with_ancestors(&operator.module) {
                    // A module that the trace does not show has no row.
                    let Some(node) = nodes.get_mut(&(path, stage)) else { continue };
                    node.least += Nanos::new(operator.roofline.unwrap_or_default().get().saturating_mul(count));
                    node.work.flops_matrix += operator.cost.flops_matrix * count.unsigned_abs();
                    node.work.bytes += operator.cost.bytes.total() * count.unsigned_abs();
                    if let Some((compute, time)) = peak.and_then(|peak| is_compute_bound(operator, peak)) {
                        *(if compute { &mut node.compute } else { &mut node.memory }) += time;
                    }
                }
            }
        }
        for (path, class) in &model.classes {
            classes.entry(path).or_insert(class);
        }
        let listed =
            |part: Part| share(part.total().get() as f64, self.all.get() as f64).is_some_and(|one| one >= LEAST_SHARE);
        let mut kinds: BTreeMap<(String, Stage), (BTreeSet<&str>, Node)> = BTreeMap::new();
        for ((path, stage), node) in &nodes {
            let (kind, Some(class)) = (kind(path), classes.get(path)) else { continue };
            if kind != *path {
                let (classes, sum) = kinds.entry((kind, *stage)).or_default();
                classes.insert(class);
                sum.add(node);
            }
        }
        let sorted = |mut rows: Vec<ModuleSummary>| {
            rows.sort_by_key(|row| std::cmp::Reverse((row.lost_ns, row.measured_ns)));
            rows
        };
        let row = |((path, _), node): ((&str, Stage), Node)| {
            let class = classes.get(path).filter(|_| listed(node.part))?;
            Some(node.summary(path, class, known))
        };
        let of_kind = |((path, _), (classes, node)): ((String, Stage), (BTreeSet<&str>, Node))| {
            let class = classes.into_iter().collect::<Vec<_>>().join(", ");
            listed(node.part).then(|| node.summary(&path, &class, known))
        };
        (sorted(nodes.into_iter().filter_map(row).collect()), sorted(kinds.into_iter().filter_map(of_kind).collect()))
    }
}

impl Node {
    /// Takes another module of the same kind in.
    fn add(&mut self, other: &Self) {
        self.stage = match (self.stage, other.stage) {
            (Some(one), Some(two)) => Some(one.common(two)),
            (one, two) => one.or(two),
        };
        self.part.wait += other.part.wait;
        self.part.run += other.part.run;
        self.own += other.own;
        for (family, time) in &other.families {
            *self.families.entry(*family).or_default() += *time;
        }
        self.placed_by.extend(&other.placed_by);
        self.least += other.least;
        self.work.flops_matrix += other.work.flops_matrix;
        self.work.bytes += other.work.bytes;
        self.compute += other.compute;
        self.memory += other.memory;
    }

    fn summary(self, path: &str, class: &str, known: bool) -> ModuleSummary {
        let measured = self.part.total();
        let least = known.then_some(self.least);
        let lost = least.map(|least| measured - least).filter(|lost| *lost >= Nanos::ZERO);
        let bound =
            (self.compute + self.memory > 0.0).then_some(if self.compute > self.memory { "compute" } else { "memory" });
        ModuleSummary {
            path: path.to_owned(),
            class: class.to_owned(),
            stage: self.stage.unwrap_or(Stage::Prefill),
            measured_ns: Some(measured),
            exclusive_ns: Some(self.own),
            speed_of_light_ns: least,
            lost_ns: lost,
            work: Some(self.work).filter(|work| work.bytes > Bytes::ZERO),
            bound: bound.map(str::to_owned),
            cause: lost.and_then(|lost| self.cause(lost)),
            placed_by: self.placed_by,
        }
    }

    /// Why time is lost: waiting, where that is most of it; otherwise the kernels that ran longest.
    fn cause(&self, lost: Nanos) -> Option<Remark> {
        let waiting = share(self.part.wait.get() as f64, lost.get() as f64)?;
        if waiting > MOSTLY {
            let facts = Facts::new().with_share("share", waiting.min(1.0), Base::LostTime);
            return Some(Remark::new("module.waiting", facts));
        }
        let (family, time) = self.families.iter().max_by_key(|(_, time)| **time)?;
        Some(Remark::new("module.kernels", Facts::new().with("family", family.name()).with("time", *time)))
    }
}
