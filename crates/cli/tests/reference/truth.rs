//! What is true of a trace, and what would be false.

use crate::imported::{Imported, list};

/// What is said of a trace and what is not.
pub(crate) struct Truth {
    pub(crate) file: &'static str,
    pub(crate) kind: &'static str,
    /// The rules that fire first, in order.
    pub(crate) first: &'static [&'static str],
    /// Rules that must not fire.
    pub(crate) silent: &'static [&'static str],
    /// What the pages or the terminal say.
    pub(crate) says: &'static [&'static str],
    /// What none of them may say, in any case.
    pub(crate) never: &'static [&'static str],
}

impl Truth {
    /// What of it does not hold; `never` is what else may not be said.
    pub(crate) fn broken(&self, imported: &Imported, never: &[&str]) -> Vec<String> {
        let Imported { metrics, pages, terminal } = imported;
        let mut broken = Vec::new();
        let mut check = |holds: bool, what: String| {
            if !holds {
                broken.push(format!("{}: {what}", self.file));
            }
        };
        let rules: Vec<_> = list(metrics, "findings").iter().filter_map(|finding| finding["rule"].as_str()).collect();
        check(metrics["trace"]["kind"]["kind"] == self.kind, metrics["trace"]["kind"].to_string());
        check(rules.starts_with(self.first), format!("{rules:?}"));
        check(self.silent.iter().all(|rule| !rules.contains(rule)), format!("{rules:?}"));
        let all = format!("{pages}\n{terminal}");
        for line in self.says {
            check(all.contains(line), format!("does not say `{line}`"));
        }
        for line in self.never.iter().chain(never) {
            // Names of kernels, operators and files are the trace's own words.
            let says = all.lines().find(|text| without_names(&text.to_lowercase()).contains(line));
            check(says.is_none(), format!("says `{line}`: {}", says.unwrap_or_default()));
        }
        broken
    }
}

/// A line of Markdown without its code.
fn without_names(line: &str) -> String {
    line.split('`').step_by(2).collect()
}
