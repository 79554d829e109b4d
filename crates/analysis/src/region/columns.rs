//! Which columns of a page the configured metrics are, and their rules.

use std::collections::BTreeSet;

use regex::Regex;
use types::counter::{CounterTable, CounterUnit};
use types::{MetricRule, RollUp};

use super::rule;

/// Endings that a counter named without one stands for.
const ENDINGS: [&str; 4] = ["sum", "avg", "min", "max"];

/// The columns that `wanted` names, each once and in that order. What no page has is listed without a unit, and counts
/// nowhere.
pub(super) fn chosen(wanted: &[String], pages: &[&CounterTable]) -> Vec<MetricRule> {
    let mut rules: Vec<MetricRule> = Vec::new();
    let mut taken = BTreeSet::new();
    for text in wanted {
        for name in names(text, pages) {
            if !taken.insert(name.clone()) {
                continue;
            }
            let unit = pages.iter().find_map(|page| page.column(&name)).map(|column| column.unit().clone());
            let rule = rule::of_counter(&name, unit.as_ref().unwrap_or(&CounterUnit::Plain));
            rules.push(MetricRule { name, unit: unit.map(|unit| unit.to_string()), rule });
        }
    }
    rules
}

fn names(text: &str, pages: &[&CounterTable]) -> Vec<String> {
    let is_there = |name: &str| pages.iter().any(|page| page.column(name).is_some());
    if let Some(pattern) = text.strip_prefix("regex:") {
        let Ok(pattern) = Regex::new(pattern) else { return vec![text.to_owned()] };
        let all = pages.iter().flat_map(|page| page.columns()).map(|column| column.name());
        let found: Vec<String> = all.filter(|name| pattern.is_match(name)).map(str::to_owned).collect();
        return if found.is_empty() { vec![text.to_owned()] } else { found };
    }
    if is_there(text) {
        return vec![text.to_owned()];
    }
    let with_endings: Vec<String> =
        ENDINGS.iter().map(|ending| format!("{text}.{ending}")).filter(|name| is_there(name)).collect();
    if with_endings.is_empty() { vec![text.to_owned()] } else { with_endings }
}

/// Whether values under this rule can be taken apart again: what is in a region less what is nested inside.
pub(super) fn subtracts(rule: RollUp) -> bool {
    rule == RollUp::Sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_found_by_name_by_base_and_by_pattern() {
        let mut page = CounterTable::default();
        for name in ["dram__bytes.sum", "dram__bytes.avg", "sm__throughput.avg.pct_of_peak_sustained_elapsed"] {
            page.add_column(name, CounterUnit::Plain, "");
        }
        let found = |wanted: &str| -> Vec<String> {
            chosen(&[wanted.to_owned()], &[&page]).into_iter().map(|metric| metric.name).collect()
        };
        assert_eq!(found("dram__bytes.sum"), ["dram__bytes.sum"]);
        assert_eq!(found("dram__bytes"), ["dram__bytes.sum", "dram__bytes.avg"]);
        assert_eq!(found("regex:^dram"), ["dram__bytes.sum", "dram__bytes.avg"]);
        let missing = chosen(&["flop_count_sp.sum".to_owned()], &[&page]);
        assert_eq!((missing[0].name.as_str(), &missing[0].unit), ("flop_count_sp.sum", &None));
    }
}
