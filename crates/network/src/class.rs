//! Module classes of the published models: what each computes, where it is defined, what else it is called.

use std::sync::LazyLock;

use crate::config::{Row, tables};

/// One class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// Its name.
    pub name: &'static str,
    /// File or package that defines it.
    pub home: &'static str,
    /// What it computes.
    pub definition: &'static str,
    /// Other classes that are the same module with another kernel.
    pub aliases: &'static [&'static str],
}

/// The lines of a part of `classes.txt`, in their cells.
fn part(name: &str) -> impl Iterator<Item = Vec<&'static str>> {
    let is_head = |line: &&str| line.starts_with('[');
    let lines = include_str!("classes.txt").lines().filter(|line| !line.is_empty());
    let name = format!("[{name}]");
    lines
        .skip_while(move |line| *line != name)
        .skip(1)
        .take_while(move |line| !is_head(line))
        .map(|line| line.split(" | ").collect())
}

/// Every class a network here is made of, each once.
pub fn classes() -> &'static [Class] {
    static ALL: LazyLock<Vec<Class>> = LazyLock::new(|| {
        let fixed = part("fixed").filter_map(|cells| {
            let [name, home, definition] = *cells.first_chunk()?;
            let aliases = cells.get(3).map_or(Vec::new(), |names| names.split(' ').collect()).leak();
            Some(Class { name, home, definition, aliases })
        });
        let mut all: Vec<Class> = fixed.collect();
        for (rows, name) in tables() {
            let columns: Vec<_> = part(name).collect();
            for class in rows.iter().flat_map(|row| of_row(row, &columns)) {
                if all.iter().all(|known| known.name != class.name) {
                    all.push(class);
                }
            }
        }
        all
    });
    &ALL
}

/// The classes that a family names.
fn of_row(row: &Row, columns: &[Vec<&'static str>]) -> Vec<Class> {
    let (mut classes, home) = (Vec::new(), row.home().unwrap_or_default());
    for column in columns {
        let [key, definition] = [0, 1].map(|at| column.get(at).copied().unwrap_or_default());
        // One of several names that stand together, or all of them.
        let (key, place) = match key.rsplit_once('.').and_then(|(key, at)| Some((key, at.parse::<usize>().ok()?))) {
            Some((key, at)) => (key, Some(at)),
            None => (key, None),
        };
        let names: &[&str] = row.get(key).unwrap_or_default();
        let definition = if definition.starts_with("define.") { row.get(definition) } else { Some(definition) };
        let wanted = |(at, _): &(usize, &&str)| place.is_none_or(|place| place == *at);
        for (_, name) in names.iter().enumerate().filter(wanted) {
            classes.push(Class { name, home, definition: definition.unwrap_or_default(), aliases: &[] });
        }
    }
    classes
}

impl Class {
    /// The class of that name, or the one it is an alias of.
    pub fn find(name: &str) -> Option<&'static Self> {
        classes().iter().find(|class| class.name == name || class.aliases.contains(&name))
    }

    /// Name with the file or package that defines it.
    pub fn qualified(&self) -> String {
        format!("{}.{}", self.home, self.name)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{Model, PRESETS};

    #[test]
    fn every_class_of_every_network_is_described_once() {
        for preset in PRESETS {
            let model = Model::new(&preset.config().unwrap());
            let names: BTreeSet<_> = model.blueprint().modules().map(|(_, entry)| entry.class).collect();
            for name in names {
                let found = classes().iter().filter(|class| class.name == name).count();
                assert_eq!(found, 1, "{name} of {}", preset.name);
            }
        }
    }

    #[test]
    fn every_definition_of_a_family_is_that_of_a_column() {
        for (rows, name) in tables() {
            let defined: Vec<_> = part(name).map(|cells| cells[1]).collect();
            // Encoders of both kinds stand in one table.
            let shared = ["define.core", "define.layer"];
            for key in rows.iter().flat_map(|row| row.definitions()) {
                assert!(defined.contains(&key) || shared.contains(&key), "{name}: {key}");
            }
        }
    }

    #[test]
    fn attention_kernels_are_aliases_of_one_module() {
        assert_eq!(Class::find("LlamaFlashAttention2").unwrap().name, "LlamaAttention");
    }
}
