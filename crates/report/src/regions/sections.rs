//! `ncu/regions/<folder>/sections.txt`: the sections of a region as plain text.

use std::fmt::Write as _;

use types::{Region, RegionTotals};

use super::parts::totals;
use super::value::value;
use crate::table::{Column, Table, printable};

/// The sections of a region, each rolled up by the rule beside it.
pub fn sections_text(region: &Region) -> String {
    let mut text = format!("{}\n", printable(&region.path));
    match totals(region) {
        Some(found) => add(&mut text, found),
        None => {
            for part in &region.parts {
                let process = part.process.map_or("-".to_owned(), |process| process.to_string());
                let device = part.device.as_ref().map_or("-".to_owned(), ToString::to_string);
                let _ = writeln!(text, "\nprocess {process}, device {device}");
                add(&mut text, &part.totals);
            }
        }
    }
    text
}

fn add(text: &mut String, totals: &RegionTotals) {
    if totals.sections.is_empty() {
        text.push_str("\nNo section was collected.\n");
    }
    for section in &totals.sections {
        let id = section.id.as_ref().map(|id| format!(" [{id}]")).unwrap_or_default();
        let _ = writeln!(text, "\n{}{id}", printable(&section.title));
        let mut table = Table::new([Column::text("metric"), Column::number("value"), Column::text("rule")]);
        for metric in &section.metrics {
            table.row([metric.name.clone(), value(metric.value, &metric.unit), metric.rule.words().to_owned()]);
        }
        text.extend(table.plain().lines().map(|line| format!("  {line}\n")));
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn sections_stand_one_below_the_other() {
        insta::assert_snapshot!(sections_text(&sample::report().regions[0]));
    }

    #[test]
    fn a_region_without_sections_says_so() {
        assert_eq!(sections_text(&sample::report().regions[1]), "A::A1\n\nNo section was collected.\n");
    }
}
