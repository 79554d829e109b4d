//! The module tree of a report. Experts are all alike, so the first stands for all under the name `*`.

use std::collections::BTreeMap;

use network::{Blueprint, Class, Model, Module, Repetition};
use types::{ModuleNode, ModuleStage, RepetitionKind, Stage};

use crate::Prediction;

/// Which modules a report shows, under which names.
pub(super) struct ModuleTree<'a> {
    blueprint: &'a Blueprint,
    /// By module: the one that stands for it.
    representative: Vec<Module>,
    /// By module: its name in the report; absent for those another one stands for.
    ids: Vec<Option<String>>,
    /// By module: whether it runs at prefill and at decode.
    runs: Vec<[bool; 2]>,
}

impl<'a> ModuleTree<'a> {
    pub(super) fn new(blueprint: &'a Blueprint, prediction: &Prediction) -> Self {
        let mut representative: Vec<Module> = Vec::with_capacity(blueprint.modules().len());
        let mut ids: Vec<Option<String>> = Vec::with_capacity(blueprint.modules().len());
        for (module, entry) in blueprint.modules() {
            let Some(parent) = entry.parent else {
                representative.push(module);
                ids.push(Some("(root)".to_owned()));
                continue;
            };
            let alike = blueprint.module(parent).repetition == Some(Repetition::Parallel);
            let around = representative[parent.index()];
            let stands_for_itself = around == parent && (!alike || entry.name == "0");
            let stand_in = if stands_for_itself {
                module
            } else {
                let name = if alike { "0" } else { entry.name.as_str() };
                let path = join(&blueprint.module(around).path, name);
                blueprint.find(&path).unwrap_or(module)
            };
            let id = (stand_in == module).then(|| {
                let parent = ids[around.index()].as_deref().filter(|id| *id != "(root)").unwrap_or_default();
                join(parent, if alike { "*" } else { &entry.name })
            });
            representative.push(stand_in);
            ids.push(id);
        }
        let ran = |pass: Option<&crate::Pass>, module: Module| {
            pass.is_some_and(|pass| pass.modules[module.index()].is_some())
        };
        let decode = prediction.decode.as_ref().map(|decode| &decode.first);
        let mut runs: Vec<_> = blueprint
            .modules()
            .map(|(module, _)| [ran(Some(&prediction.prefill), module), ran(decode, module)])
            .collect();
        // Containers and the root are not entered themselves; they run when a part of them does.
        for (module, entry) in blueprint.modules().collect::<Vec<_>>().into_iter().rev() {
            if let Some(parent) = entry.parent {
                let [prefill, decode] = runs[module.index()];
                let around = &mut runs[parent.index()];
                *around = [around[0] | prefill, around[1] | decode];
            }
        }
        Self { blueprint, representative, ids, runs }
    }

    /// The module that stands for `module` in the report.
    pub(super) fn representative(&self, module: Module) -> Module {
        self.representative[module.index()]
    }

    /// Modules the report shows, parents before children, with their names.
    pub(super) fn shown(&self) -> impl DoubleEndedIterator<Item = (Module, &str)> + '_ {
        let shown = self.blueprint.modules().map(|(module, _)| module).collect::<Vec<_>>();
        shown.into_iter().filter_map(|module| Some((module, self.ids[module.index()].as_deref()?)))
    }

    /// Whether `module` is, or is inside, a stand-in for several.
    pub(super) fn stands_for_several(&self, module: Module) -> bool {
        self.ids[module.index()].as_deref().is_some_and(|id| id.split('.').any(|part| part == "*"))
    }

    pub(super) fn nodes(&self, model: &Model) -> Vec<ModuleNode> {
        let mut children: BTreeMap<Module, Vec<String>> = BTreeMap::new();
        for (module, id) in self.shown() {
            if let Some(parent) = self.blueprint.module(module).parent {
                children.entry(parent).or_default().push(id.to_owned());
            }
        }
        let mut held = vec![0u64; self.runs.len()];
        for parent in self.blueprint.modules().filter_map(|(_, entry)| entry.parent) {
            held[parent.index()] += 1;
        }
        self.shown()
            .map(|(module, id)| {
                let entry = self.blueprint.module(module);
                let repeated = entry.repetition.map(|_| held[module.index()]);
                ModuleNode {
                    module_id: id.to_owned(),
                    name: id.rsplit('.').next().unwrap_or(id).to_owned(),
                    qualified_class_name: Class::find(entry.class)
                        .map_or_else(|| entry.class.to_owned(), Class::qualified),
                    stage: self.stage(model, module),
                    parent_id: entry.parent.and_then(|parent| self.ids[parent.index()].clone()),
                    children: children.remove(&module).unwrap_or_default(),
                    repetition: match entry.repetition {
                        None => RepetitionKind::None,
                        Some(Repetition::Sequential) => RepetitionKind::For,
                        Some(Repetition::Parallel) => RepetitionKind::Parfor,
                    },
                    repetition_count: repeated,
                    constructor_params: entry
                        .settings
                        .iter()
                        .map(|setting| (setting.name.to_owned(), setting.value.clone()))
                        .collect(),
                }
            })
            .collect()
    }

    fn stage(&self, model: &Model, module: Module) -> ModuleStage {
        match (model.blueprint().stage_of(module), self.runs[module.index()]) {
            (_, [false, false]) => ModuleStage::Other,
            (Some(Stage::Projector), _) => ModuleStage::Projector,
            (Some(Stage::Vision | Stage::Sam | Stage::Clip), _) => ModuleStage::Vision,
            (_, [_, true]) => ModuleStage::Decode,
            _ => ModuleStage::Prefill,
        }
    }
}

fn join(parent: &str, name: &str) -> String {
    if parent.is_empty() { name.to_owned() } else { format!("{parent}.{name}") }
}
