//! Configuration that is composed: groups of files, mounted at keys, changed by overrides, with interpolation.
//!
//! Responsible for going from files and overrides to one resolved tree in which every value knows where it came from.
//! What the values mean is left to whoever reads them with [`Config::get`]; arguments and terminals are the command
//! line's business. The guide is `docs/guides/configuration.md`.
//!
//! ```text
//! overrides -> plan (which files, where) -> tree (merge, then change values) -> resolver -> Config
//! ```

mod defaults;
mod error;
mod explanation;
mod groups;
mod interpolation;
mod node;
mod overrides;
mod overriding;
mod plan;
mod reader;
mod reads;
mod resolver;
mod source;
mod suggestion;
mod tree;

use std::path::Path;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use serde::de::DeserializeOwned;

pub use error::ConfigError;
pub use explanation::{Explanation, Origin};
pub use node::{Entry, Map, Node, Value, to_yaml};
pub use overrides::Overrides;
pub use overriding::Override;
pub use plan::Mount;
pub use source::{OverrideSource, Source, SourceKind, Span};

use groups::Groups;
use plan::{Plan, Planner};
use reads::Reads;

/// Makes configurations from the built-in groups and, over them, those of one folder.
#[derive(Debug, Clone)]
pub struct Composer {
    groups: Groups,
    now: Zoned,
}

/// This moment; after the year 9999, which dates are not written for, the last that can be.
fn moment() -> Zoned {
    let now = Timestamp::try_from(std::time::SystemTime::now());
    now.unwrap_or(Timestamp::MAX).to_zoned(TimeZone::system())
}

/// A group and what can be chosen from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its name, such as `profiling/ncu`.
    pub name: String,
    /// Its options by name, each with the file it is in.
    pub options: Vec<(String, String)>,
}

/// A composed configuration: one tree, every interpolation resolved.
#[derive(Debug, Clone)]
pub struct Config {
    root: Node,
    mounts: Vec<Mount>,
    reads: Reads,
}

impl Composer {
    /// The built-in groups, with the files of `config_dir` added or in their place.
    pub fn new(config_dir: Option<&Path>) -> Result<Self, ConfigError> {
        Ok(Self { groups: Groups::new(config_dir)?, now: moment() })
    }

    /// The same with another time for `${now:...}`, which is otherwise the moment of creation.
    pub fn with_now(mut self, now: Zoned) -> Self {
        self.now = now;
        self
    }

    /// Composes the root file under the given overrides, applied in order.
    pub fn compose(&self, overrides: &Overrides) -> Result<Config, ConfigError> {
        let (plan, values) = Planner::new(&self.groups).plan(overrides)?;
        let mut root = tree::merge(&plan)?;
        for one in values {
            tree::apply(&mut root, one).map_err(|error| self.point_to_group(error, &plan))?;
        }
        Ok(Config { root: resolver::resolve(&root, &self.now)?, mounts: plan.mounts, reads: Reads::default() })
    }

    /// A text where a group is mounted is most likely meant as an option.
    fn point_to_group(&self, mut error: ConfigError, plan: &Plan) -> ConfigError {
        if let ConfigError::WrongType { at, key, hint, .. } = &mut error
            && plan.mounts.iter().any(|mount| mount.package == *key)
        {
            let choices = self.groups.having(at.text()).into_iter().map(|group| format!("{group}@{key}={}", at.text()));
            let choices = error::alternatives(choices);
            *hint = (!choices.is_empty()).then(|| format!("to choose an option, write {choices}"));
        }
        error
    }

    /// Every group and its options, sorted by name.
    pub fn groups(&self) -> Vec<Group> {
        let located = |group: &str, option: &str| {
            let file = self.groups.location(&format!("{group}/{option}")).unwrap_or_default();
            (option.to_owned(), file)
        };
        let groups = self.groups.list().into_iter();
        groups
            .map(|(name, options)| Group {
                name: name.to_owned(),
                options: options.into_iter().map(|option| located(name, option)).collect(),
            })
            .collect()
    }
}

impl Config {
    /// A configuration that was resolved before, as a run folder keeps it; `file` is what errors call it.
    pub fn from_resolved(file: &str, text: &str, overrides: &Overrides) -> Result<Self, ConfigError> {
        let root = reader::read(&Source::file(file, text))?;
        Self { root, mounts: Vec::new(), reads: Reads::default() }.with(overrides)
    }

    /// The same with some values changed; no group is chosen anew.
    pub fn with(mut self, overrides: &Overrides) -> Result<Self, ConfigError> {
        for one in overrides.iter() {
            tree::apply(&mut self.root, one)?;
        }
        Ok(self)
    }

    /// The same without these keys and all that is below them, for a reader that does not use them.
    pub fn without(mut self, keys: &[&str]) -> Self {
        for key in keys {
            let (parent, last) = key.rsplit_once('.').unwrap_or(("", key));
            if let Some(Node { value: Value::Map(map), .. }) = tree::find(&mut self.root, parent) {
                map.0.retain(|entry| entry.key != last);
            }
        }
        self
    }

    /// The same with only those values below a key that the user set; without the key where none was.
    pub fn only_set_below(mut self, key: &str) -> Self {
        if !self.is_set(key) {
            return self.without(&[key]);
        }
        if let Some(Node { value: Value::Map(map), .. }) = tree::find(&mut self.root, key) {
            map.0.retain(|entry| entry.node.is_from_user());
        }
        self
    }

    /// Whether the user set the value at a key, or one below it. Values of a group that the user chose do not count.
    pub fn is_set(&self, key: &str) -> bool {
        self.root.at(key).is_some_and(Node::is_from_user)
    }

    /// The keys directly below a key that the user set.
    pub fn set_below(&self, key: &str) -> Vec<&str> {
        match self.root.at(key).map(|node| &node.value) {
            Some(Value::Map(map)) => {
                map.0.iter().filter(|entry| entry.node.is_from_user()).map(|entry| entry.key.as_str()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The option of the group that is mounted at a key.
    pub fn mounted(&self, package: &str) -> Option<&str> {
        self.mounts.iter().find(|mount| mount.package == package)?.option.as_deref()
    }

    /// The same, where the user chose it.
    pub fn chosen(&self, package: &str) -> Option<&str> {
        let chosen = self.mounts.iter().find(|mount| mount.package == package && mount.at.is_from_user());
        chosen?.option.as_deref()
    }

    /// The whole tree.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// The groups that are mounted, in merging order.
    pub fn mounts(&self) -> &[Mount] {
        &self.mounts
    }

    /// The value at a dotted key in the type asked for; the empty key is the whole tree. The error points at the value
    /// that does not fit.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Result<T, ConfigError> {
        let node = self.root.at(key).ok_or_else(|| ConfigError::Missing { key: key.to_owned() })?;
        let json = serde_json::to_value(node);
        let mut ignored = Vec::new();
        let read = json.map_err(|error| (key.to_owned(), error)).and_then(|json| {
            let mut track = serde_path_to_error::Track::new();
            let tracked = serde_path_to_error::Deserializer::new(json, &mut track);
            let note = |path: serde_ignored::Path<'_>| {
                ignored.push(node::join(
                    key,
                    &path.to_string().split('.').filter(|part| *part != "?").collect::<Vec<_>>().join("."),
                ));
            };
            serde_ignored::deserialize(tracked, note).map_err(|error| {
                let path = track.path().to_string().replace('[', ".").replace(']', "");
                let inside = if path == "." { "" } else { path.trim_start_matches('.') };
                (node::join(key, inside), error)
            })
        });
        self.reads.note(key, node, &ignored);
        read.map_err(|(key, error)| {
            let problem = error.to_string();
            // A field too many or too few is about names; anything else is about the value.
            let about_names = problem.starts_with("unknown field") || problem.starts_with("missing field");
            let at = self.root.nearest_span(&key, about_names);
            ConfigError::Invalid { at, key, problem }
        })
    }

    /// Every key that holds a value, in order.
    pub fn keys(&self) -> Vec<String> {
        reads::leaves("", &self.root)
    }

    /// Whether the value at a key, or one below it, was read with [`Self::get`].
    pub fn was_read(&self, key: &str) -> bool {
        self.reads.touch(key)
    }

    /// The same, where what was read of an earlier composition counts as read.
    pub fn read_as(self, earlier: &Self) -> Self {
        self.reads.add(&earlier.reads);
        self
    }

    /// What the user typed and nobody has read: settings without an effect.
    pub fn unread<'a>(&self, typed: &'a Overrides) -> Vec<&'a Override> {
        let mounted = |one: &Override| {
            let mount = self.mounts.iter().find(|mount| one.names_group(&mount.group) && mount.at.is_from_user());
            mount.map(|mount| mount.package.clone())
        };
        let is_read = |one: &&Override| one.removes() || self.was_read(&mounted(one).unwrap_or_else(|| one.path()));
        typed.iter().filter(|one| one.source() == OverrideSource::Typed && !is_read(one)).collect()
    }

    /// The tree as YAML, keys in merging order: the same configuration gives the same text.
    pub fn to_yaml(&self) -> String {
        node::to_yaml(&self.root)
    }

    /// Every leaf with its value and where that came from, in order.
    pub fn explain(&self) -> Vec<Explanation> {
        explanation::explain(&self.root)
    }
}
