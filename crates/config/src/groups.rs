//! Which configuration files there are: the built-in ones, and those of `--config-dir` on top.
//!
//! Responsible for finding and reading files. A group is a folder, an option of it a file; a file in the folder given by
//! the user replaces the built-in one of the same path. What the files mean together is the plan's business.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use include_dir::{Dir, include_dir};

use super::defaults;
use super::error::ConfigError;
use super::node::{Node, Value};
use super::reader::{check_names, read};
use super::source::{Source, Span};
use super::suggestion::did_you_mean;

/// The files that ship with the program.
static EMBEDDED: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../conf");

/// The path of the root file, without its ending.
pub(crate) const ROOT: &str = "config";

/// The folder in `--config-dir` with a user's own devices, which are no options of a group.
const DEVICES: &str = "hardware";

/// Configuration larger than this is something else.
const LARGEST_FILE: u64 = 1 << 20;

/// Every configuration file by its path without `.yaml`, such as `workload/dsocr-base-1024`.
#[derive(Debug, Clone)]
pub(crate) struct Groups {
    files: BTreeMap<String, Location>,
}

#[derive(Debug, Clone)]
enum Location {
    Embedded(&'static str),
    Folder(PathBuf),
}

/// One file, read: its own keys and its defaults list.
#[derive(Debug)]
pub(crate) struct Document {
    /// The keys, without `defaults`.
    pub(crate) keys: Node,
    /// The value of `defaults`.
    pub(crate) defaults: Option<Node>,
}

impl Groups {
    /// The built-in files, with those of a folder added or replaced.
    pub(crate) fn new(folder: Option<&Path>) -> Result<Self, ConfigError> {
        let mut groups = Self { files: BTreeMap::new() };
        groups.add_embedded(&EMBEDDED);
        if let Some(folder) = folder {
            groups.add_folder(folder, "", 0)?;
        }
        Ok(groups)
    }

    fn add_embedded(&mut self, folder: &Dir<'static>) {
        for file in folder.files() {
            let path = file.path().to_str().and_then(|path| path.strip_suffix(".yaml"));
            if let (Some(path), Some(text)) = (path, file.contents_utf8()) {
                self.files.insert(path.to_owned(), Location::Embedded(text));
            }
        }
        folder.dirs().for_each(|folder| self.add_embedded(folder));
    }

    fn add_folder(&mut self, folder: &Path, prefix: &str, depth: usize) -> Result<(), ConfigError> {
        let refuse = |path: &Path, problem: String| Err(ConfigError::Folder { path: path.to_owned(), problem });
        // A link back to a parent would go on for ever.
        if depth > 16 {
            return refuse(folder, "folders are nested more than 16 deep".into());
        }
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => return refuse(folder, error.to_string()),
        };
        for entry in entries {
            let path = match entry {
                Ok(entry) => entry.path(),
                Err(error) => return refuse(folder, error.to_string()),
            };
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
                return refuse(&path, "the name is not valid UTF-8".into());
            };
            if name.starts_with('.') || (depth == 0 && name == DEVICES) {
                continue;
            }
            if path.is_dir() {
                self.add_folder(&path, &format!("{prefix}{name}/"), depth + 1)?;
            } else if let Some(stem) = name.strip_suffix(".yaml") {
                self.files.insert(format!("{prefix}{stem}"), Location::Folder(path));
            } else if name.ends_with(".yml") {
                return refuse(&path, "configuration files must end in .yaml".into());
            }
        }
        Ok(())
    }

    /// Every group with its options, both sorted. The root file is in no group.
    pub(crate) fn list(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut groups: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for path in self.files.keys() {
            if let Some((group, option)) = path.rsplit_once('/') {
                groups.entry(group).or_default().insert(option);
            }
        }
        groups
    }

    /// Whether a folder of that name holds options.
    pub(crate) fn is_group(&self, name: &str) -> bool {
        !self.options(name).is_empty()
    }

    /// The options of one group, sorted.
    pub(crate) fn options(&self, group: &str) -> Vec<&str> {
        let prefix = format!("{group}/");
        self.files
            .range(prefix.clone()..)
            .map_while(|(path, _)| path.strip_prefix(&prefix))
            .filter(|option| !option.contains('/'))
            .collect()
    }

    /// The groups that have an option of that name.
    pub(crate) fn having(&self, option: &str) -> Vec<&str> {
        self.list().into_iter().filter(|(_, options)| options.contains(option)).map(|(group, _)| group).collect()
    }

    /// Where an option's file is, as shown to the user.
    pub(crate) fn location(&self, path: &str) -> Option<String> {
        Some(match self.files.get(path)? {
            Location::Embedded(_) => format!("conf/{path}.yaml"),
            Location::Folder(file) => file.display().to_string(),
        })
    }

    /// Whether there is such a file.
    pub(crate) fn contains(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    /// Checks that a group has an option; the error names the nearest of either.
    pub(crate) fn check(
        &self,
        group: &str,
        option: &str,
        group_at: &Span,
        option_at: &Span,
    ) -> Result<(), ConfigError> {
        if self.contains(&format!("{group}/{option}")) {
            return Ok(());
        }
        let options = self.options(group);
        if options.is_empty() {
            let hints = self.group_hints(group);
            return Err(ConfigError::UnknownGroup { at: group_at.clone(), group: group.into(), hints });
        }
        // Options often repeat the tool's name: `ncu.high` in `profiling/ncu`.
        let longer = options.iter().copied().find(|name| name.ends_with(&format!(".{option}")) && !option.is_empty());
        let near = longer.or_else(|| types::nearest(option, options.iter().copied()));
        let mut hints: Vec<String> = did_you_mean(near.as_slice()).into_iter().collect();
        hints.push(format!("options of {group}: {}", options.join(", ")));
        Err(ConfigError::UnknownOption { at: option_at.clone(), group: group.into(), option: option.into(), hints })
    }

    fn group_hints(&self, group: &str) -> Vec<String> {
        let groups = self.list();
        let inside: Vec<&str> = groups.keys().filter(|name| name.starts_with(&format!("{group}/"))).copied().collect();
        if !inside.is_empty() {
            return vec![format!("groups inside {group}: {}", inside.join(", "))];
        }
        did_you_mean(types::nearest(group, groups.keys().copied()).as_slice())
            .into_iter()
            .chain(["list all groups and their options with `llm-perf config --groups`".to_owned()])
            .collect()
    }

    /// Reads one file.
    pub(crate) fn load(&self, path: &str) -> Result<Document, ConfigError> {
        let name = self.location(path).unwrap_or_else(|| format!("{path}.yaml"));
        let unreadable = |problem: String| ConfigError::Unreadable { path: PathBuf::from(&name), problem };
        let text = match self.files.get(path) {
            None => return Err(unreadable("file not found".into())),
            Some(Location::Embedded(text)) => (*text).to_owned(),
            Some(Location::Folder(file)) => {
                let found = fs::metadata(file).map_err(|error| unreadable(error.to_string()))?;
                if !found.is_file() {
                    // Opening a pipe waits for a writer, and reading a device may never end.
                    return Err(unreadable("it is a device or pipe, not a file".to_owned()));
                }
                // What lies in some folders says that it is empty, and has no end either.
                let mut text = String::new();
                let opened = fs::File::open(file).map_err(|error| unreadable(error.to_string()))?;
                let read = opened.take(LARGEST_FILE + 1).read_to_string(&mut text);
                read.map_err(|error| unreadable(error.to_string()))?;
                if text.len() as u64 > LARGEST_FILE {
                    return Err(unreadable(format!(
                        "it is larger than {LARGEST_FILE} bytes, the most a configuration file may have"
                    )));
                }
                text
            }
        };
        Document::read(&Source::file(name, text))
    }
}

impl Document {
    fn read(source: &Arc<Source>) -> Result<Self, ConfigError> {
        let mut keys = read(source)?;
        let map = match &mut keys.value {
            Value::Map(map) => map,
            Value::Null => return Ok(Self { keys, defaults: None }),
            other => return Err(ConfigError::NotAMap { got: other.kind(), at: keys.span }),
        };
        let at = map.0.iter().position(|entry| entry.key == defaults::KEY);
        let defaults = at.map(|at| map.0.remove(at).node);
        check_names(&keys)?;
        Ok(Self { keys, defaults })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_and_every_embedded_file_can_be_read() {
        let groups = Groups::new(None).expect("the built-in files");
        assert!(groups.contains(ROOT));
        for path in groups.files.keys() {
            let document = groups.load(path).unwrap_or_else(|error| panic!("{path}: {error}"));
            assert!(!document.keys.value.is_null(), "{path} holds keys");
        }
    }

    #[test]
    fn a_folder_adds_and_replaces_files() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir_all(folder.path().join("workload")).expect("a folder");
        fs::write(folder.path().join("workload/mine.yaml"), "batch: 1\n").expect("a file");
        fs::write(folder.path().join("workload/dsocr-base-1024.yaml"), "batch: 2\n").expect("a file");
        fs::write(folder.path().join("README.md"), "not configuration").expect("a file");
        let groups = Groups::new(Some(folder.path())).expect("readable");
        assert!(groups.options("workload").contains(&"mine"));
        assert!(groups.options("workload").contains(&"dsocr-standard-v1"));
        let replaced = groups.load("workload/dsocr-base-1024").expect("readable");
        assert_eq!(replaced.keys.at("batch").map(|node| &node.value), Some(&Value::Int(2)));
    }

    #[test]
    fn a_folder_of_groups_is_not_itself_a_group() {
        let groups = Groups::new(None).expect("the built-in files");
        assert!(!groups.is_group("model"));
        assert!(groups.is_group("model/llm"));
        assert!(!groups.is_group(""));
    }
}
