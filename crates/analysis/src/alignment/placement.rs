//! The module of every kernel, copy and memset, by whichever evidence there is.
//!
//! Ranges inside the capture of a CUDA graph come first, because they are about the kernel itself; then the operator
//! that launched it, then ranges around the launch. What is left of a graph, or is known for all of it together, is told
//! apart by order: where the launch's work repeats exactly as often as the model has layers that do the same. Where a
//! timeline has no operators and nothing names a module of a stage, its matrix kernels are laid over the model's GEMMs.

use std::collections::{BTreeMap, HashMap};

use types::timeline::{NameId, Timeline, WorkKind};
use types::{PlacedBy, Stage};

use super::layers::Layers;
use super::modelled_run::{ModelledOperator, ModelledRun};
use super::pairing::pair;
use super::path::{common, is_inside};
use super::range_module::{RangeModule, RangeModules};
use super::{Alignment, repetition};
use crate::attribution::{Amount, Attribution, graph};

/// The module of all work.
#[derive(Clone, Debug)]
pub(crate) struct Placements<'a> {
    /// One entry for each row of [`Timeline::work`].
    pub(crate) module: Vec<Option<(&'a str, PlacedBy)>>,
    /// Work whose layer rests on its order alone.
    pub(crate) by_order: Amount,
    /// Work whose module rests on the order of the matrix kernels.
    pub(crate) by_gemms: Amount,
}

impl<'a> Placements<'a> {
    /// Places the work of a timeline.
    pub(crate) fn new(
        timeline: &Timeline,
        attribution: &Attribution,
        model: &'a ModelledRun,
        alignment: &Alignment<'a>,
    ) -> Self {
        let layers = Layers::of(model);
        let mut names = RangeModules::new(timeline, attribution, model, layers.as_ref());
        let place = |row: usize| {
            let stage = attribution.stage[row]?;
            // Layers of a vision tower are numbered too, and are not the ones meant here.
            let fits = |named: &RangeModule<'a>| !named.by_number || stage.parent().is_none();
            let around = attribution.range[row].and_then(|range| names.of_range(range));
            let inside = attribution.captured[row].and_then(|inside| names.of_captured(around, inside));
            let by_capture = inside.filter(|inside| Some(*inside) != around).filter(fits);
            let by_operator = || attribution.operator[row].and_then(|operator| alignment.module[operator as usize]);
            let by_capture = by_capture.map(|named| (named.path, PlacedBy::Capture));
            by_capture
                .or_else(|| by_operator().map(|path| (path, PlacedBy::Operators)))
                .or_else(|| around.filter(fits).map(|named| (named.path, PlacedBy::Ranges)))
        };
        let module = (0..timeline.work.len()).map(place).collect();
        let mut placements = Self { module, by_order: Amount::default(), by_gemms: Amount::default() };
        if let Some(layers) = &layers {
            placements.order(timeline, attribution, layers);
        }
        // Processes side by side would mix their kernels.
        let alone = timeline.queues.iter().all(|queue| queue.process == timeline.queues[0].process);
        if timeline.operators.is_empty() && alone {
            for (stage, operators) in [(Stage::Prefill, &model.prefill), (Stage::Decode, &model.decode)] {
                placements.gemms(timeline, attribution, stage, operators);
            }
        }
        placements
    }

    /// Gives the work of a stage, where nothing else says anything of it, the modules of the model's GEMMs: matrix kernels
    /// that of their operation, and what runs between two of them the innermost module around both.
    fn gemms(
        &mut self,
        timeline: &Timeline,
        attribution: &Attribution,
        stage: Stage,
        operators: &'a [ModelledOperator],
    ) {
        let of_stage = |row: &usize| attribution.stage[*row].map(Stage::top) == Some(stage);
        if (0..timeline.work.len()).filter(of_stage).any(|row| self.module[row].is_some()) {
            return;
        }
        let Some(pairing) = pair(timeline, attribution, stage, operators) else { return };
        let mut rows: Vec<usize> = (0..timeline.work.len()).filter(of_stage).collect();
        rows.sort_by_key(|row| timeline.work[*row].start);
        for known in pairing.modules() {
            for (here, next) in known.iter().zip(known.iter().skip(1).map(Some).chain([None])) {
                self.gemm(timeline, here.0, here.1);
                let Some(next) = next else { continue };
                let between = common(here.1, next.1);
                let from = rows.partition_point(|row| timeline.work[*row].start <= timeline.work[here.0].start);
                let end = timeline.work[next.0].start;
                let inside = rows[from..].iter().take_while(|row| timeline.work[**row].start < end);
                for row in inside.filter(|_| !between.is_empty()) {
                    self.gemm(timeline, *row, between);
                }
            }
        }
    }

    fn gemm(&mut self, timeline: &Timeline, row: usize, module: &'a str) {
        self.module[row] = Some((module, PlacedBy::Gemms));
        self.by_gemms.add(timeline.work[row].duration);
    }

    /// Gives the work of graphs the layer it has by order.
    fn order(&mut self, timeline: &Timeline, attribution: &Attribution, layers: &Layers<'a>) {
        let Some(alike) = layers.alike.clone() else { return };
        let mut found: HashMap<Vec<NameId>, Option<Vec<Option<usize>>>> = HashMap::new();
        for rows in graph_launches(timeline, attribution).into_values() {
            if rows.iter().any(|row| matches!(self.module[*row as usize], Some((_, PlacedBy::Capture)))) {
                continue;
            }
            let names: Vec<NameId> = rows.iter().map(|row| timeline.work[*row as usize].name).collect();
            // A graph is launched again and again.
            let numbers = found.entry(names).or_insert_with_key(|names| repetition::layers(names, alike.len()));
            for (row, number) in rows.iter().zip(numbers.iter().flatten()) {
                let Some(layer) = number.map(|number| layers.paths[alike.start + number]) else { continue };
                let module = &mut self.module[*row as usize];
                if module.is_none_or(|(path, _)| is_inside(layer, path)) {
                    *module = Some((layer, PlacedBy::Order));
                    self.by_order.add(timeline.work[*row as usize].duration);
                }
            }
        }
    }
}

/// Rows of work by the call that launched them as a graph, in order of their start; of prefill and decode alone.
fn graph_launches(timeline: &Timeline, attribution: &Attribution) -> BTreeMap<u32, Vec<u32>> {
    let is_graph: Vec<bool> = timeline.names.iter().map(|(_, name)| graph::launches_graph(name)).collect();
    let mut launches: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (row, work) in timeline.work.iter().enumerate() {
        let (Some(call), Some(Stage::Prefill | Stage::Decode)) = (attribution.launch[row], attribution.stage[row])
        else {
            continue;
        };
        if work.kind != WorkKind::Graph && is_graph[timeline.calls[call as usize].name.index()] {
            launches.entry(call).or_default().push(row as u32);
        }
    }
    launches.values_mut().for_each(|rows| rows.sort_by_key(|row| timeline.work[*row as usize].start));
    launches
}
