//! What measured ranges have for themselves, without what is nested in them.

use std::collections::HashMap;

use types::{Nanos, QualityCounter, RegionTotals, Severity};

use super::columns::subtracts;
use super::totals::Pages;
use super::tree::{Node, Tree};

/// What ranges have for themselves: what was measured, less what was measured inside. Only where all that is inside was
/// measured, which only a survey tells.
pub(super) fn take_apart(
    tree: &Tree,
    pages: &Pages<'_>,
    totals: &mut HashMap<Node, RegionTotals>,
    is_surveyed: bool,
) -> Option<QualityCounter> {
    let mut negative = 0;
    let nodes: Vec<Node> = totals.keys().copied().collect();
    for node in nodes {
        let children: Vec<Node> = tree.children(node).collect();
        let inside: Option<Vec<&RegionTotals>> = children.iter().map(|child| totals.get(child)).collect();
        let Some(inside) = inside.filter(|_| is_surveyed) else { continue };
        if !totals[&node].instances_exact {
            continue;
        }
        if inside.is_empty() {
            // With nothing inside, all of it is its own, whatever the rule.
            let Some(totals) = totals.get_mut(&node) else { continue };
            totals.total_ns_exclusive = totals.total_ns_inclusive;
            totals.metrics.values_mut().for_each(|value| value.exclusive = value.inclusive);
            continue;
        }
        let less = |whole: Option<f64>, parts: Option<f64>| Some(whole? - parts?);
        let time = |totals: &RegionTotals| totals.total_ns_inclusive.map(|time| time.get() as f64);
        let own_time = less(time(&totals[&node]), inside.iter().map(|child| time(child)).sum());
        let own: Vec<(String, Option<f64>)> = pages
            .metrics
            .iter()
            .filter(|metric| subtracts(metric.rule))
            .map(|metric| {
                let value = |totals: &RegionTotals| totals.metrics.get(&metric.name)?.inclusive;
                (metric.name.clone(), less(value(&totals[&node]), inside.iter().map(|child| value(child)).sum()))
            })
            .collect();
        let Some(totals) = totals.get_mut(&node) else { continue };
        let positive = |value: f64| value >= 0.0;
        negative += own.iter().filter(|(_, value)| value.is_some_and(|value| !positive(value))).count() as u64;
        totals.total_ns_exclusive = own_time.filter(|time| positive(*time)).map(|time| Nanos::new(time.round() as i64));
        for (name, value) in own {
            if let Some(rolled) = totals.metrics.get_mut(&name) {
                rolled.exclusive = value.filter(|value| positive(*value));
            }
        }
    }
    QualityCounter::some("region_values_below_nested_ones", Severity::Warning, negative)
}
