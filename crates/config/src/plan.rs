//! Which files make up a configuration, in which order, and where each is mounted.
//!
//! Responsible for following defaults lists and for the overrides that choose groups. It reads files but does not merge
//! them. Choices are applied one after the other, each seeing the result of those before it, so that
//! `model/llm@model=alt model/llm=other` means what it says.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::defaults::{self, Item};
use super::error::{ConfigError, list};
use super::groups::{Document, Groups, ROOT};
use super::overrides::Overrides;
use super::overriding::{Action, Override, unquote};
use super::source::Span;
use super::suggestion::did_you_mean;

/// A group at a place in the configuration, and the option chosen for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Mount {
    /// The group.
    pub group: String,
    /// The key it is put at.
    pub package: String,
    /// The option, or none chosen.
    pub option: Option<String>,
    /// Where that was chosen.
    pub at: Span,
}

/// One file and the key its own keys are put at.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) document: Rc<Document>,
    pub(crate) package: String,
}

/// Files in merging order, and what is mounted where.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) steps: Vec<Step>,
    pub(crate) mounts: Vec<Mount>,
}

impl Mount {
    /// The key it is put at, as one writes it after `@`.
    pub fn place(&self) -> &str {
        if self.package.is_empty() { defaults::GLOBAL } else { &self.package }
    }
}

impl Plan {
    fn mounted_at(&self, package: &str) -> Option<&Mount> {
        self.mounts.iter().find(|mount| mount.package == package)
    }
}

/// Makes a plan; remembers files, since every choice needs the plan so far.
pub(crate) struct Planner<'a> {
    groups: &'a Groups,
    documents: RefCell<BTreeMap<String, Rc<Document>>>,
    /// By package: what an override mounts there instead, or that nothing is.
    choices: BTreeMap<String, Option<Choice>>,
    /// Packages mounted by overrides alone, in order.
    added: Vec<String>,
}

#[derive(Debug, Clone)]
struct Choice {
    group: String,
    option: String,
    group_at: Span,
    option_at: Span,
}

impl<'a> Planner<'a> {
    pub(crate) fn new(groups: &'a Groups) -> Self {
        Self { groups, documents: RefCell::default(), choices: BTreeMap::new(), added: Vec::new() }
    }

    /// Applies the overrides that choose groups and gives the plan, with the overrides that are left: those of values.
    pub(crate) fn plan(mut self, overrides: &Overrides) -> Result<(Plan, Vec<&Override>), ConfigError> {
        let mut values = Vec::new();
        for one in overrides.iter() {
            if self.chooses_group(one) {
                self.choose(one)?;
            } else if let Some(error) = self.names_folder(one) {
                return Err(error);
            } else {
                values.push(one);
            }
        }
        let plan = self.expand()?;
        // A later choice may have taken away the file that mounted what an earlier one chose.
        for (package, choice) in &self.choices {
            if let (Some(choice), None) = (choice, plan.mounted_at(package)) {
                return Err(nothing_at(&plan, &choice.group_at, package, None));
            }
        }
        Ok((plan, values))
    }

    /// A name with `/` or `@` can only be a group; any other is one when a folder of that name holds options. A map can
    /// only be a value: `workload={batch: 2, logits: last}`.
    fn chooses_group(&self, one: &Override) -> bool {
        let is_map = one.value.as_ref().is_some_and(|value| value.text().starts_with('{'));
        let name = one.name.text();
        one.package.is_some() || name.contains('/') || (self.groups.is_group(name) && !is_map)
    }

    /// A folder of groups has no options of its own: `+profiling=stage2` would add a key that nothing reads.
    fn names_folder(&self, one: &Override) -> Option<ConfigError> {
        let name = one.name.text();
        let groups = self.groups.list();
        let inside: Vec<&str> = groups.keys().copied().filter(|group| group.split('/').next() == Some(name)).collect();
        let is_word = one.value.as_ref().is_some_and(|value| !value.text().starts_with(['{', '[']));
        let adds = matches!(one.action, Action::Add | Action::Put);
        let hint = format!("its groups are {}; write, for example, {}=OPTION", list(&inside), inside.first()?);
        (adds && is_word).then(|| ConfigError::UnknownGroup {
            at: one.name.clone(),
            group: name.to_owned(),
            hints: vec![hint],
        })
    }

    fn choose(&mut self, one: &Override) -> Result<(), ConfigError> {
        let group = one.name.text();
        let plan = self.expand()?;
        if !self.groups.is_group(group) {
            self.groups.check(group, "", &one.name, &one.name)?;
        }
        let package = match &one.package {
            Some(package) if package.text() == defaults::GLOBAL => String::new(),
            Some(package) => package.text().to_owned(),
            None => match self.package_of(&plan, group, one)? {
                Some(package) => package,
                None if matches!(one.action, Action::Add | Action::Put) => defaults::package_of(group),
                None => {
                    let problem = format!("the group `{group}` is not mounted");
                    return Err(not_mounted(&plan, &one.name, problem, self.place_for(&plan, one)));
                }
            },
        };
        match (one.action, plan.mounted_at(&package)) {
            (Action::Add, Some(first)) => {
                return Err(ConfigError::MountedTwice { at: one.name.clone(), package, first: first.at.clone() });
            }
            (Action::Change | Action::Remove, None) => {
                let at = one.package.as_ref().unwrap_or(&one.name);
                let added = (one.action == Action::Change).then(|| format!("to mount it there, write +{one}"));
                return Err(nothing_at(&plan, at, &package, added));
            }
            (Action::Remove, Some(mount)) if mount.group != group => {
                let problem = format!("the group `{group}` is not mounted at `{package}`");
                let hint = format!("`{0}` is mounted there; to remove it, write ~{0}@{package}", mount.group);
                return Err(not_mounted(&plan, &one.name, problem, Some(hint)));
            }
            (Action::Add | Action::Put, None) => self.added.push(package.clone()),
            _ => {}
        }
        let choice = match &one.value {
            None => None,
            Some(value) => {
                let option = unquote(value.text());
                self.groups.check(group, option, &one.name, value)?;
                let (group_at, option_at) = (one.name.clone(), value.clone());
                Some(Choice { group: group.to_owned(), option: option.to_owned(), group_at, option_at })
            }
        };
        self.choices.insert(package, choice);
        Ok(())
    }

    /// The one place a group is mounted at.
    fn package_of(&self, plan: &Plan, group: &str, one: &Override) -> Result<Option<String>, ConfigError> {
        let packages: Vec<String> =
            plan.mounts.iter().filter(|mount| mount.group == group).map(|mount| mount.package.clone()).collect();
        match packages.as_slice() {
            [] => Ok(None),
            [package] => Ok(Some(package.clone())),
            _ => Err(ConfigError::AmbiguousGroup { at: one.name.clone(), group: group.to_owned(), packages }),
        }
    }

    /// Where a group that is not mounted could go: in the place of a group with the same kind of options.
    fn place_for(&self, plan: &Plan, one: &Override) -> Option<String> {
        let group = one.name.text();
        let value = one.value.as_ref().map_or("", Span::text);
        let kind = group.rsplit('/').next();
        let same_kind = |mount: &&Mount| mount.group.contains('/') && mount.group.rsplit('/').next() == kind;
        let same_root = |mount: &&Mount| Some(mount.package.as_str()) == group.split('/').next();
        let place = plan.mounts.iter().find(same_kind).or_else(|| plan.mounts.iter().find(same_root));
        let mount = place.filter(|_| one.action == Action::Change)?;
        Some(format!("to replace `{}`, write {group}@{}={value}", mount.group, mount.package))
    }

    fn expand(&self) -> Result<Plan, ConfigError> {
        let mut plan = Plan::default();
        self.follow(ROOT, "", None, &mut Vec::new(), &mut plan)?;
        for package in &self.added {
            // A place that was emptied and filled again keeps its turn in the defaults.
            if let (Some(Some(choice)), None) = (self.choices.get(package), plan.mounted_at(package)) {
                self.mount(choice.clone(), package, &mut Vec::new(), &mut plan)?;
            }
        }
        Ok(plan)
    }

    /// Adds a file, and what its defaults name, in order.
    fn follow(
        &self,
        path: &str,
        package: &str,
        at: Option<&Span>,
        chain: &mut Vec<String>,
        plan: &mut Plan,
    ) -> Result<(), ConfigError> {
        chain.push(path.to_owned());
        if let (Some(at), true) = (at, chain[..chain.len() - 1].iter().any(|seen| seen == path)) {
            return Err(ConfigError::DefaultsCycle { at: at.clone(), chain: chain.clone() });
        }
        let document = self.document(path)?;
        let group = path.rsplit_once('/').map_or("", |(group, _)| group);
        for item in defaults::read(document.defaults.as_ref(), group, package)? {
            match item {
                Item::Own => plan.steps.push(Step { document: Rc::clone(&document), package: package.to_owned() }),
                Item::Include { path, package, at } => {
                    self.check_file(&path, &at)?;
                    self.follow(&path, &package, Some(&at), chain, plan)?;
                }
                Item::Mount { group, package, option, optional, group_at, option_at } => {
                    match (self.choices.get(&package), option) {
                        (Some(None), _) => {}
                        (Some(Some(choice)), _) => self.mount(choice.clone(), &package, chain, plan)?,
                        (None, None) => self.claim(group, package, None, &group_at, plan)?,
                        (None, Some(option)) if optional && !self.groups.contains(&format!("{group}/{option}")) => {
                            self.claim(group, package, None, &group_at, plan)?;
                        }
                        (None, Some(option)) => {
                            self.groups.check(&group, &option, &group_at, &option_at)?;
                            self.mount(Choice { group, option, group_at, option_at }, &package, chain, plan)?;
                        }
                    }
                }
            }
        }
        chain.pop();
        Ok(())
    }

    fn mount(
        &self,
        choice: Choice,
        package: &str,
        chain: &mut Vec<String>,
        plan: &mut Plan,
    ) -> Result<(), ConfigError> {
        let path = format!("{}/{}", choice.group, choice.option);
        self.claim(choice.group, package.to_owned(), Some(choice.option), &choice.group_at, plan)?;
        self.follow(&path, package, Some(&choice.option_at), chain, plan)
    }

    fn check_file(&self, path: &str, at: &Span) -> Result<(), ConfigError> {
        match path.rsplit_once('/') {
            _ if self.groups.contains(path) => Ok(()),
            Some((group, option)) => self.groups.check(group, option, at, at),
            None => Err(ConfigError::Defaults { at: at.clone(), problem: format!("file `{path}.yaml` not found") }),
        }
    }

    /// One place holds one group, so that an override can name either.
    fn claim(
        &self,
        group: String,
        package: String,
        option: Option<String>,
        at: &Span,
        plan: &mut Plan,
    ) -> Result<(), ConfigError> {
        if let Some(first) = plan.mounted_at(&package) {
            return Err(ConfigError::MountedTwice { at: at.clone(), package, first: first.at.clone() });
        }
        plan.mounts.push(Mount { group, package, option, at: at.clone() });
        Ok(())
    }

    fn document(&self, path: &str) -> Result<Rc<Document>, ConfigError> {
        if let Some(known) = self.documents.borrow().get(path) {
            return Ok(Rc::clone(known));
        }
        let document = Rc::new(self.groups.load(path)?);
        self.documents.borrow_mut().insert(path.to_owned(), Rc::clone(&document));
        Ok(document)
    }
}

fn nothing_at(plan: &Plan, at: &Span, package: &str, hint: Option<String>) -> ConfigError {
    let near = types::nearest(package, plan.mounts.iter().map(|mount| mount.package.as_str()));
    let hint = did_you_mean(near.as_slice()).or(hint);
    not_mounted(plan, at, format!("nothing is mounted at `{package}`"), hint)
}

fn not_mounted(plan: &Plan, at: &Span, problem: String, hint: Option<String>) -> ConfigError {
    let packages: Vec<&str> = plan.mounts.iter().map(Mount::place).collect();
    let everywhere = format!("groups are mounted at {}", list(&packages));
    ConfigError::NotMounted { at: at.clone(), problem, hints: hint.into_iter().chain([everywhere]).collect() }
}
