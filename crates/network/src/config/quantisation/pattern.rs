//! Names of modules as quantisation tools write them: paths, parts of paths, globs, and regular expressions.

use std::collections::HashSet;
use std::sync::OnceLock;

use regex::{Regex, RegexSet};

use crate::config::fields::{ConfigProblem, Fields};

/// A list of names.
#[derive(Clone, Debug, Default)]
pub(super) struct Patterns {
    /// Whole components of a path, anywhere in it; or a class.
    plain: HashSet<String>,
    /// Whether those name modules themselves, not also what is inside them.
    whole: bool,
    expressions: Vec<String>,
    /// All of them in one automaton: a mixture of experts has a hundred thousand modules, and lists have hundreds of names.
    /// Absent where it would be too large.
    automaton: OnceLock<Option<RegexSet>>,
}

impl Patterns {
    /// The names under the first of these fields that is there; none where all are absent.
    pub(super) fn read(fields: &Fields<'_>, names: &[&str]) -> Result<Self, ConfigProblem> {
        let mut all = Self::default();
        for name in names {
            for text in fields.text_list(name)? {
                all.add(fields, name, &text)?;
            }
        }
        Ok(all)
    }

    /// The same, each a module itself, however long the path in front of it is.
    pub(super) fn whole(self) -> Self {
        Self { whole: true, ..self }
    }

    /// Whether any of these fields is there.
    pub(super) fn stated(fields: &Fields<'_>, names: &[&str]) -> bool {
        names.iter().any(|name| fields.states(name) && fields.text_list(name).is_ok_and(|list| !list.is_empty()))
    }

    /// Adds a name: `re:` begins a regular expression from the beginning of a path, `*` stands for any text.
    pub(super) fn add(&mut self, fields: &Fields<'_>, field: &str, text: &str) -> Result<(), ConfigProblem> {
        // A decoder that is modelled without the rest has shorter paths than in the whole.
        for outer in ["model.language_model.", "language_model.model.", "language_model."] {
            if let Some(inner) = text.strip_prefix(outer) {
                self.add(fields, field, inner)?;
            }
        }
        let expression = match text.strip_prefix("re:") {
            Some(expression) => format!("^(?:{expression})"),
            None if text.contains('*') => {
                let parts: Vec<_> = text.split('*').map(regex::escape).collect();
                format!("^(?:.*\\.)?{}(?:$|\\.)", parts.join(".*"))
            }
            None => {
                self.plain.insert(text.trim_matches('.').to_owned());
                return Ok(());
            }
        };
        self.add_expression(fields, field, &expression)
    }

    /// Adds a regular expression.
    pub(super) fn add_expression(
        &mut self,
        fields: &Fields<'_>,
        field: &str,
        expression: &str,
    ) -> Result<(), ConfigProblem> {
        if Regex::new(expression).is_err() {
            return Err(fields.wrong(field, format!("\"{expression}\""), "a regular expression without look-around"));
        }
        self.expressions.push(expression.to_owned());
        self.automaton = OnceLock::new();
        Ok(())
    }

    /// Whether a module of that path and class is named.
    pub(super) fn matches(&self, path: &str, class: &str) -> bool {
        self.plain.contains(class) || self.has_run(path) || self.has_expression(path)
    }

    fn has_expression(&self, path: &str) -> bool {
        match self.automaton.get_or_init(|| RegexSet::new(&self.expressions).ok()) {
            Some(all) => all.is_match(path),
            // One by one is slow and says the same.
            None => self.expressions.iter().any(|text| Regex::new(text).is_ok_and(|known| known.is_match(path))),
        }
    }

    /// Whether any run of whole components of `path` is in the list.
    fn has_run(&self, path: &str) -> bool {
        if self.plain.is_empty() {
            return false;
        }
        let inside = path.match_indices('.').filter(|_| !self.whole).map(|(at, _)| at);
        let ends = || inside.clone().chain([path.len()]);
        let starts = std::iter::once(0).chain(path.match_indices('.').map(|(at, _)| at + 1));
        starts
            .into_iter()
            .any(|start| ends().filter(|end| *end > start).any(|end| self.plain.contains(&path[start..end])))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn patterns(list: &[&str]) -> Patterns {
        let value = json!({ "ignore": list });
        let fields = Fields::new(value.as_object().unwrap());
        Patterns::read(&fields, &["ignore"]).unwrap()
    }

    #[test]
    fn a_name_matches_whole_components_anywhere_in_a_path() {
        let list = patterns(&["gate", "model.layers.3.mlp", "visual"]);
        assert!(list.matches("model.layers.0.mlp.gate", "Router"));
        assert!(list.matches("model.layers.3.mlp.up_proj", "Linear"));
        assert!(list.matches("model.visual.blocks.0.attn.qkv", "Linear"));
        assert!(!list.matches("model.layers.30.mlp.up_proj", "Linear"));
        assert!(!list.matches("model.layers.0.mlp.gate_proj", "Linear"));
    }

    #[test]
    fn names_of_modules_themselves_leave_what_is_inside_them() {
        let list = patterns(&["model.layers.3.linear_attn", "lm_head"]).whole();
        assert!(list.matches("model.layers.3.linear_attn", "GatedDelta"));
        assert!(!list.matches("model.layers.3.linear_attn.out_proj", "Linear"));
        assert!(list.matches("language_model.lm_head", "Linear"));
    }

    #[test]
    fn globs_regular_expressions_and_classes_match_as_their_tools_match_them() {
        let list = patterns(&["model.layers.*.self_attn", "re:.*mlp.router$", "Conv2d", "*lm_head"]);
        assert!(list.matches("model.layers.11.self_attn.q_proj", "Linear"));
        assert!(list.matches("model.layers.11.mlp.router", "Router"));
        assert!(!list.matches("model.layers.11.mlp.router_2", "Router"));
        assert!(list.matches("anything", "Conv2d"));
        assert!(list.matches("lm_head", "Linear"));
        assert!(!list.matches("model.layers.11.mlp.up_proj", "Linear"));
    }

    #[test]
    fn an_expression_that_cannot_be_read_names_its_field() {
        let value = json!({ "ignore": ["re:(?!x)"] });
        let fields = Fields::new(value.as_object().unwrap());
        let error = Patterns::read(&fields, &["ignore"]).unwrap_err().to_string();
        assert!(error.contains("`ignore`") && error.contains("look-around"), "{error}");
    }
}
