//! `ncu/regions/<folder>/sections.txt`: the sections of a region as plain text.

use std::fmt::Write as _;

use types::{Region, RegionTotals};

use super::parts::{section, totals};
use crate::render::table::printable;
use crate::words::number::known;

/// The sections of a region, each rolled up by the rule beside it.
pub fn sections_text(region: &Region) -> String {
    let mut text = format!("{}\n", printable(&region.path));
    match totals(region) {
        Some(found) => add(&mut text, found),
        None => {
            for part in &region.parts {
                let (process, device) = (known(part.process), known(part.device.as_ref()));
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
    for one in &totals.sections {
        let id = one.id.as_ref().map(|id| format!(" [{id}]")).unwrap_or_default();
        let _ = writeln!(text, "\n{}{id}", printable(&one.title));
        text.extend(section(one).to_string().lines().map(|line| format!("  {line}\n")));
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
