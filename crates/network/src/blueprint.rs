//! The blueprint: every module and parameter of a network, without a backend and without a checkpoint.

use std::collections::HashMap;
use std::sync::Arc;

use types::{DType, Shape, Stage};

use crate::weight_format::WeightFormat;

/// Handle of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Module(u32);

/// Handle of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Param(u32);

/// How the children of a container run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Repetition {
    /// One after the other.
    Sequential,
    /// Side by side on parts of the input, as experts do.
    Parallel,
}

/// A constructor parameter, as the published class takes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// Its value, as text.
    pub value: String,
}

/// One module.
#[derive(Clone, Debug, PartialEq)]
pub struct ModuleEntry {
    /// Path as in the checkpoint; empty for the root.
    pub path: String,
    /// Last part of the path.
    pub name: String,
    /// Class name of the published model.
    pub class: &'static str,
    /// The module it is part of.
    pub parent: Option<Module>,
    /// The stage that begins here.
    pub stage: Option<Stage>,
    /// Name of the NVTX range around it.
    pub range: Option<&'static str>,
    /// How its children run, for containers.
    pub repetition: Option<Repetition>,
    /// Constructor parameters.
    pub settings: Vec<Setting>,
}

/// One parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamEntry {
    /// Path as in the checkpoint.
    pub path: String,
    /// The module that owns it.
    pub module: Module,
    /// Its shape.
    pub shape: Shape,
    /// Element type where the network fixes it; otherwise the workload's.
    pub dtype: Option<DType>,
    /// Whether the checkpoint keeps it beside the parameters: it is stored and read, but not counted as one.
    pub buffer: bool,
    /// How the checkpoint keeps it, where that is not in the model's own element type.
    pub format: Option<Arc<WeightFormat>>,
}

/// All modules and parameters, parents before children.
#[derive(Clone, Debug, Default)]
pub struct Blueprint {
    modules: Vec<ModuleEntry>,
    params: Vec<ParamEntry>,
    by_path: HashMap<String, Module>,
}

/// Fills a blueprint; knows the module under construction.
#[derive(Debug)]
pub struct Builder {
    blueprint: Blueprint,
    open: Vec<Module>,
}

impl Blueprint {
    /// Every module with its handle, parents before children.
    pub fn modules(&self) -> impl ExactSizeIterator<Item = (Module, &ModuleEntry)> {
        self.modules.iter().enumerate().map(|(index, entry)| (Module(index as u32), entry))
    }

    /// Every parameter with its handle.
    pub fn params(&self) -> impl ExactSizeIterator<Item = (Param, &ParamEntry)> {
        self.params.iter().enumerate().map(|(index, entry)| (Param(index as u32), entry))
    }

    /// The entry of a module of this blueprint.
    pub fn module(&self, module: Module) -> &ModuleEntry {
        &self.modules[module.index()]
    }

    /// The entry of a parameter of this blueprint.
    pub fn param(&self, param: Param) -> &ParamEntry {
        &self.params[param.index()]
    }

    /// The network itself, which every builder puts first.
    pub fn root(&self) -> Module {
        Module(0)
    }

    /// The module at `path`.
    pub fn find(&self, path: &str) -> Option<Module> {
        self.by_path.get(path).copied()
    }

    /// Number of parameters' elements under `path`, the module itself included.
    pub fn parameters_under(&self, path: &str) -> u64 {
        let inside = |param: &&ParamEntry| {
            path.is_empty() || param.path.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'))
        };
        let counted = self.params.iter().filter(|param| !param.buffer).filter(inside);
        counted.map(|param| param.shape.elements()).fold(0, u64::saturating_add)
    }

    /// The direct part of `outer` that `inner` is, or lies in; absent for `outer` itself and for what lies elsewhere.
    pub fn part_of(&self, outer: Module, inner: Module) -> Option<Module> {
        let around = std::iter::successors(Some(inner), |module| self.module(*module).parent);
        around.take_while(|module| *module != outer).find(|module| self.module(*module).parent == Some(outer))
    }

    /// The decoder layer `module` is or is inside; no vision module is.
    pub fn decoder_layer(&self, module: Module) -> Option<Module> {
        if self.stage_of(module).is_some_and(|stage| stage != Stage::Prefill) {
            return None;
        }
        let around = std::iter::successors(Some(module), |module| self.module(*module).parent);
        let repeated = |module: &Module| {
            let parent = self.module(*module).parent;
            parent.is_some_and(|parent| self.module(parent).repetition == Some(Repetition::Sequential))
        };
        around.filter(repeated).last()
    }

    /// The same modules, with every parameter kept as `format` says; absent is in the model's own element type.
    pub(crate) fn stored(mut self, format: impl Fn(&Self, &ParamEntry) -> Option<Arc<WeightFormat>>) -> Self {
        let formats: Vec<_> = self.params.iter().map(|param| format(&self, param)).collect();
        for (param, format) in self.params.iter_mut().zip(formats) {
            param.format = format;
        }
        self
    }

    /// The stage `module` belongs to: its own, or that of the nearest module around it.
    pub fn stage_of(&self, module: Module) -> Option<Stage> {
        let mut next = Some(module);
        while let Some(module) = next {
            let entry = self.module(module);
            if entry.stage.is_some() {
                return entry.stage;
            }
            next = entry.parent;
        }
        None
    }
}

impl Builder {
    /// A blueprint with nothing but a root of that class.
    pub fn new(class: &'static str) -> Self {
        let mut builder = Self { blueprint: Blueprint::default(), open: Vec::new() };
        let root = builder.push(String::new(), String::new(), class);
        builder.open.push(root);
        builder
    }

    /// The module under construction.
    pub fn current(&self) -> Module {
        self.open.last().copied().unwrap_or_else(|| self.blueprint.root())
    }

    /// Adds module `name` to the one under construction and lets `build` fill it.
    pub fn module<L>(
        &mut self,
        name: impl Into<String>,
        class: &'static str,
        build: impl FnOnce(&mut Self, Module) -> L,
    ) -> L {
        let name = name.into();
        let path = self.path_of(&name);
        let module = self.push(path, name, class);
        self.open.push(module);
        let layer = build(self, module);
        self.open.pop();
        layer
    }

    /// Adds a container whose `count` children `build` makes, one after the other.
    pub fn list<L>(
        &mut self,
        name: &str,
        repetition: Repetition,
        count: u64,
        mut build: impl FnMut(&mut Self, u64) -> L,
    ) -> (Module, Vec<L>) {
        self.module(name, "ModuleList", |builder, list| {
            builder.entry(list).repetition = Some(repetition);
            (list, (0..count).map(|index| build(builder, index)).collect())
        })
    }

    /// Adds a parameter to the module under construction.
    pub fn param(&mut self, name: &str, shape: impl Into<Shape>) -> Param {
        let param = Param(self.blueprint.params.len() as u32);
        self.blueprint.params.push(ParamEntry {
            path: self.path_of(name),
            module: self.current(),
            shape: shape.into(),
            dtype: None,
            buffer: false,
            format: None,
        });
        param
    }

    /// Adds a tensor that the checkpoint holds beside the parameters.
    pub fn buffer(&mut self, name: &str, shape: impl Into<Shape>) -> Param {
        let param = self.param(name, shape);
        self.blueprint.params[param.index()].buffer = true;
        param
    }

    /// Records a constructor parameter of the module under construction.
    pub fn setting(&mut self, name: &'static str, value: impl ToString) {
        let setting = Setting { name, value: value.to_string() };
        let current = self.current();
        self.entry(current).settings.push(setting);
    }

    /// Says that `stage` begins at the module under construction, with an NVTX range of its name.
    pub fn stage(&mut self, stage: Stage) {
        let current = self.current();
        let entry = self.entry(current);
        entry.stage = Some(stage);
        entry.range = Some(stage.name());
    }

    /// Puts an NVTX range of that name around the module under construction.
    pub fn range(&mut self, name: &'static str) {
        let current = self.current();
        self.entry(current).range = Some(name);
    }

    /// Puts an NVTX range of that name around a module that is finished already.
    pub fn range_of(&mut self, module: Module, name: &'static str) {
        self.entry(module).range = Some(name);
    }

    /// The finished blueprint. Containers are constructed with what they hold.
    pub fn finish(mut self) -> Blueprint {
        // Runs of children of one class, by the module that holds them.
        let mut held: Vec<Vec<(u64, &'static str)>> = vec![Vec::new(); self.blueprint.modules.len()];
        for child in &self.blueprint.modules {
            let Some(parent) = child.parent else { continue };
            let runs = &mut held[parent.index()];
            match runs.last_mut() {
                Some((count, class)) if *class == child.class => *count += 1,
                _ => runs.push((1, child.class)),
            }
        }
        let run = |(count, class): &(u64, &str)| match count {
            1 => (*class).to_owned(),
            count => format!("{count} x {class}"),
        };
        let held = |module: Module| held[module.index()].iter().map(run).collect::<Vec<_>>().join(", ");
        let is_container = |entry: &ModuleEntry| matches!(entry.class, "ModuleList" | "Sequential");
        let containers: Vec<(Module, String)> = self
            .blueprint
            .modules()
            .filter(|(_, entry)| is_container(entry))
            .map(|(module, _)| (module, held(module)))
            .collect();
        for (module, value) in containers {
            self.entry(module).settings.push(Setting { name: "modules", value });
        }
        self.blueprint
    }

    fn entry(&mut self, module: Module) -> &mut ModuleEntry {
        &mut self.blueprint.modules[module.index()]
    }

    fn path_of(&self, name: &str) -> String {
        match self.open.last().map(|parent| self.blueprint.module(*parent).path.as_str()) {
            None | Some("") => name.to_owned(),
            Some(parent) => format!("{parent}.{name}"),
        }
    }

    fn push(&mut self, path: String, name: String, class: &'static str) -> Module {
        let module = Module(self.blueprint.modules.len() as u32);
        self.blueprint.by_path.insert(path.clone(), module);
        self.blueprint.modules.push(ModuleEntry {
            path,
            name,
            class,
            parent: self.open.last().copied(),
            stage: None,
            range: None,
            repetition: None,
            settings: Vec::new(),
        });
        module
    }
}

impl Module {
    /// Its place in the blueprint.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl Param {
    /// Its place in the blueprint.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_join_with_dots_and_the_root_has_none() {
        let mut builder = Builder::new("Root");
        builder.module("model", "Model", |builder, _| {
            builder.stage(Stage::Sam);
            builder.list("layers", Repetition::Sequential, 2, |builder, index| {
                builder.module(index.to_string(), "Layer", |builder, _| builder.param("weight", [2, 3]))
            });
        });
        let blueprint = builder.finish();
        let paths: Vec<_> = blueprint.params().map(|(_, entry)| entry.path.as_str()).collect();
        assert_eq!(paths, ["model.layers.0.weight", "model.layers.1.weight"]);
        assert_eq!(blueprint.parameters_under("model.layers.1"), 6);
        assert_eq!(blueprint.parameters_under(""), 12);
        let layer = blueprint.find("model.layers.1").unwrap();
        assert_eq!(blueprint.stage_of(layer), Some(Stage::Sam));
        assert_eq!(blueprint.stage_of(blueprint.find("").unwrap()), None);
    }
}
