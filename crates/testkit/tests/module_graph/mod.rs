//! Which module of a crate uses which: an arrow from each module to those whose names its code says.
//!
//! Arrows run between neighbours: modules with the same parent. What a module far below one of them uses counts for it. A
//! parent may use and re-export its children, and they may use what stands in its own file, so neither is an arrow, and
//! `lib.rs` is no module. A re-exported name stands for the module it comes from.

mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use source::{NamedPath, Source};

/// Path of a module below the crate's root.
type Module = Vec<String>;

/// The arrows between the modules of one crate.
#[derive(Debug, Default)]
pub(crate) struct ModuleGraph {
    /// Parent; then from which child to which, with the lines of code that say so.
    arrows: BTreeMap<Module, BTreeMap<(String, String), Vec<String>>>,
}

/// Neighbours each of which reaches all others.
#[derive(Debug, PartialEq)]
pub(crate) struct Circle {
    /// The modules in the order of their names, each with its path: `region::roll`.
    pub(crate) modules: Vec<String>,
    /// For each arrow among them a line: `roll -> tree: src/region/roll.rs:7`.
    pub(crate) lines: Vec<String>,
}

impl ModuleGraph {
    /// Reads all sources of the crate in a folder.
    pub(crate) fn of_crate(folder: &Path) -> Self {
        let mut files = Vec::new();
        rust_files(&folder.join("src"), &mut files);
        files.sort();
        let read = |path: &PathBuf| {
            let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let shown = path.strip_prefix(folder).unwrap();
            (shown.display().to_string(), text)
        };
        let texts: Vec<_> = files.iter().map(read).collect();
        Self::of_texts(texts.iter().map(|(path, text)| (path.as_str(), text.as_str())))
    }

    /// Reads sources, each with its path below the crate's folder.
    pub(crate) fn of_texts<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let read = |(path, text): (&'a str, &str)| {
            let module = module_of(path)?;
            let source = Source::read(text, &module).unwrap_or_else(|error| panic!("{path}: {error}"));
            Some((path, module, source))
        };
        let sources: Vec<_> = files.into_iter().filter_map(read).collect();
        let for_tests: BTreeSet<_> = sources.iter().flat_map(|(_, _, source)| source.test_modules.clone()).collect();
        let only_tests = |module: &[String]| (1..=module.len()).any(|length| for_tests.contains(&module[..length]));
        let kept = || sources.iter().filter(|(_, module, _)| !only_tests(module));

        let mut names = Names::default();
        for (_, module, source) in kept() {
            names.modules.insert(module.clone());
            names.items.extend(source.items.iter().cloned());
            for path in source.paths.iter().filter(|path| path.import.is_some()) {
                names.imports.entry(path.module.clone()).or_default().push(path.clone());
            }
        }
        let mut graph = Self::default();
        for (file, module, source) in kept() {
            for path in &source.paths {
                if let Some(target) = names.target(&path.module, &path.segments, 0) {
                    graph.add(module, &target, format!("{file}:{}", path.line));
                }
            }
        }
        graph
    }

    fn add(&mut self, from: &[String], to: &[String], place: String) {
        let shared = from.iter().zip(to).take_while(|(one, other)| one == other).count();
        if let (Some(one), Some(other)) = (from.get(shared), to.get(shared)) {
            let arrows = self.arrows.entry(from[..shared].to_vec()).or_default();
            let places = arrows.entry((one.clone(), other.clone())).or_default();
            if places.last() != Some(&place) {
                places.push(place);
            }
        }
    }

    /// All circles, those between top-level modules first.
    pub(crate) fn circles(&self) -> Vec<Circle> {
        let mut parents: Vec<_> = self.arrows.iter().collect();
        parents.sort_by_key(|(parent, _)| parent.len());
        parents.into_iter().flat_map(|(parent, arrows)| circles_below(parent, arrows)).collect()
    }
}

fn circles_below(parent: &[String], arrows: &BTreeMap<(String, String), Vec<String>>) -> Vec<Circle> {
    let names: BTreeSet<&String> = arrows.keys().flat_map(|(from, to)| [from, to]).collect();
    let reach: BTreeMap<_, _> = names.iter().map(|name| (*name, reached(name, arrows))).collect();
    let mut circles = Vec::new();
    let mut settled = BTreeSet::new();
    for name in names {
        let members: BTreeSet<_> = reach[name].iter().copied().filter(|other| reach[*other].contains(name)).collect();
        if members.len() < 2 || !settled.insert(members.clone()) {
            continue;
        }
        let within = arrows.iter().filter(|((from, to), _)| members.contains(from) && members.contains(to));
        let lines = within.map(|((from, to), places)| format!("{from} -> {to}: {}", places.join(", "))).collect();
        let path = |name: &&String| parent.iter().chain([*name]).cloned().collect::<Vec<_>>().join("::");
        circles.push(Circle { modules: members.iter().map(path).collect(), lines });
    }
    circles
}

/// Every module that arrows lead to from this one, itself only by way of another.
fn reached<'a>(start: &str, arrows: &'a BTreeMap<(String, String), Vec<String>>) -> BTreeSet<&'a String> {
    let mut reached = BTreeSet::new();
    let mut open = vec![start];
    while let Some(from) = open.pop() {
        for (_, to) in arrows.keys().filter(|(source, _)| source == from) {
            if reached.insert(to) {
                open.push(to);
            }
        }
    }
    reached
}

/// What the names of a crate stand for.
#[derive(Default)]
struct Names {
    modules: BTreeSet<Module>,
    items: BTreeSet<(Module, String)>,
    imports: BTreeMap<Module, Vec<NamedPath>>,
}

impl Names {
    /// The module of this crate that a path leads into; none for a path into another crate.
    fn target(&self, module: &[String], segments: &[String], depth: usize) -> Option<Module> {
        let mut at = module.to_vec();
        let mut rest = segments;
        match rest.first().map(String::as_str)? {
            "crate" => (at, rest) = (Module::new(), &rest[1..]),
            "self" => rest = &rest[1..],
            "super" => {
                while let [first, tail @ ..] = rest
                    && first == "super"
                {
                    at.pop();
                    rest = tail;
                }
            }
            first => {
                self.modules.get(&child(&at, first))?;
            }
        }
        while let [name, tail @ ..] = rest {
            let below = child(&at, name);
            if self.modules.contains(&below) {
                (at, rest) = (below, tail);
                continue;
            }
            return Some(self.imported(&at, name, tail, depth).unwrap_or(at));
        }
        Some(at)
    }

    /// The module that a name which another one imports comes from: by its name, or with all that a module has.
    fn imported(&self, module: &Module, name: &String, tail: &[String], depth: usize) -> Option<Module> {
        const DEEPEST: usize = 8;
        if depth == DEEPEST || self.items.contains(&(module.clone(), name.clone())) {
            return None;
        }
        let imports = || self.imports.get(module).into_iter().flatten();
        if let Some(path) = imports().find(|path| path.import.as_ref() == Some(name)) {
            return self.target(&path.module, &[path.segments.as_slice(), tail].concat(), depth + 1);
        }
        imports().filter(|path| path.import.as_deref() == Some("*")).find_map(|path| {
            let from = self.target(&path.module, &path.segments, depth + 1)?;
            let is_there = self.items.contains(&(from.clone(), name.clone()));
            if is_there { Some(from) } else { self.imported(&from, name, tail, depth + 1) }
        })
    }
}

fn child(module: &[String], name: &str) -> Module {
    module.iter().cloned().chain([name.to_owned()]).collect()
}

/// The module that a file holds: none of programs, the crate's root for `lib.rs`.
fn module_of(path: &str) -> Option<Module> {
    let below = path.strip_prefix("src/")?.strip_suffix(".rs")?;
    let mut module: Module = below.split('/').map(str::to_owned).collect();
    match module.last().map(String::as_str)? {
        "main" | "build" if module.len() == 1 => return None,
        "lib" if module.len() == 1 => module.clear(),
        "mod" => _ = module.pop(),
        _ if module[0] == "bin" => return None,
        _ => {}
    }
    Some(module)
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}
