//! Modules that ranges are named after.

use std::collections::{HashMap, HashSet};

use types::timeline::{CapturedRangeId, NameId, Timeline};

use super::layers::Layers;
use super::modelled_run::ModelledRun;
use crate::attribution::{Attribution, RangeIndex, graph};

/// A module that a range names.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct RangeModule<'a> {
    pub(super) path: &'a str,
    /// Whether the range gives a layer's number and no path.
    pub(super) by_number: bool,
}

/// Which modules ranges are named after.
pub(super) struct RangeModules<'a, 't> {
    timeline: &'t Timeline,
    attribution: &'t Attribution,
    paths: HashSet<&'a str>,
    layers: Option<Layers<'a>>,
    /// By the module around a range, and the range's name.
    known: HashMap<(Option<RangeModule<'a>>, NameId), Option<RangeModule<'a>>>,
    /// By range, as far as they were asked for.
    of_range: HashMap<RangeIndex, Option<RangeModule<'a>>>,
    of_captured: HashMap<(Option<RangeModule<'a>>, CapturedRangeId), Option<RangeModule<'a>>>,
}

impl<'a, 't> RangeModules<'a, 't> {
    pub(super) fn new(
        timeline: &'t Timeline,
        attribution: &'t Attribution,
        model: &'a ModelledRun,
        layers: Option<&Layers<'a>>,
    ) -> Self {
        let operators = model.prefill.iter().chain(&model.decode).map(|operator| operator.module.as_str());
        Self {
            timeline,
            attribution,
            paths: operators.chain(model.classes.keys().map(String::as_str)).collect(),
            layers: layers.cloned(),
            known: HashMap::new(),
            of_range: HashMap::new(),
            of_captured: HashMap::new(),
        }
    }

    /// The module of a range, or of those around it.
    pub(super) fn of_range(&mut self, range: RangeIndex) -> Option<RangeModule<'a>> {
        let mut path = Vec::new();
        let mut around = Some(range);
        let mut named = None;
        while let Some(index) = around {
            if let Some(known) = self.of_range.get(&index) {
                named = *known;
                break;
            }
            path.push(index);
            around = self.attribution.projections.parent(index);
        }
        while let Some(index) = path.pop() {
            named = self.inside(named, self.timeline.ranges[index.0 as usize].name);
            self.of_range.insert(index, named);
        }
        named
    }

    /// The module of a captured range, or of those around it and around the launch.
    pub(super) fn of_captured(
        &mut self,
        around: Option<RangeModule<'a>>,
        range: CapturedRangeId,
    ) -> Option<RangeModule<'a>> {
        let key = (around, range);
        if let Some(known) = self.of_captured.get(&key) {
            return *known;
        }
        let timeline = self.timeline;
        let mut path: Vec<_> = graph::with_parents(timeline, range).map(|(_, range)| range.name).collect();
        let mut named = around;
        while let Some(name) = path.pop() {
            named = self.inside(named, name);
        }
        self.of_captured.insert(key, named);
        named
    }

    /// The module that a range names where another lies around it; else that other.
    fn inside(&mut self, around: Option<RangeModule<'a>>, name: NameId) -> Option<RangeModule<'a>> {
        let key = (around, name);
        if let Some(known) = self.known.get(&key) {
            return known.or(around);
        }
        let text = self.timeline.name(name);
        let below = |around: RangeModule<'a>| {
            let path = self.paths.get(format!("{}.{text}", around.path).as_str()).copied()?;
            Some(RangeModule { path, ..around })
        };
        let whole = self.paths.get(text).map(|path| RangeModule { path, by_number: false });
        let numbered = || self.layers.as_ref()?.named(text).map(|path| RangeModule { path, by_number: true });
        let found = whole.or_else(|| around.and_then(below)).or_else(numbered);
        self.known.insert(key, found);
        found.or(around)
    }
}
