//! A comparison as a page: what changed in pictures, then the Markdown page of it.

use types::view::{ChangesView, ComparisonView};
use types::{Change, ChangeVerdict, ComparedRun, Nanos};

use super::chart::{Bar, Row, rows};
use super::shell::{self, Section};
use crate::pages::compare;
use crate::words::number::{known, signed};

/// Changes drawn of each kind.
const CHANGES: usize = 12;

/// The page, with so many rows in each table of changes.
pub fn comparison_page(view: &ComparisonView<'_>, most_rows: usize) -> String {
    let side = |runs: &[ComparedRun]| runs.iter().map(name).collect::<Vec<_>>().join(", ");
    let title = format!("{} compared with {}", side(&view.comparison.base), side(&view.comparison.with));
    let parts = [
        ("stages", "Stages", &view.stages),
        ("steps", "Steps", &view.steps),
        ("device-time", "Device time", &view.device_time),
        ("modules", "Modules", &view.modules),
        ("operators", "Operators", &view.operators),
        ("kernels", "Kernels", &view.kernels),
    ];
    let mut sections: Vec<Section> = parts
        .into_iter()
        .filter_map(|(id, title, changes)| {
            Some(Section::new(id, title, shell::figure("", &changed_bars(title, changes)?)))
        })
        .collect();
    let body = compare::page(view, most_rows).html("comparison");
    sections.push(Section::new("comparison", "Figures", body));
    let conclusions = compare::conclusions_page(view);
    let key = "<p class=\"m\">In each row the upper bar is the first side and the lower bar the second: green where it is faster \
               beyond doubt, red where it is slower beyond doubt, blue where neither is shown.</p>\n";
    let top = format!("<div class=\"verdict\">{}</div>\n{key}", conclusions.html("v"));
    shell::document(&title, &top, &sections, &[])
}

/// What a user calls a run: its folder.
fn name(run: &ComparedRun) -> &str {
    let folder = run.path.trim_end_matches("/metrics.json").rsplit('/').next();
    folder.filter(|folder| !folder.is_empty() && *folder != "metrics.json").unwrap_or(&run.id)
}

/// Both sides of each change, one above the other. Absent where neither side has a time.
pub(super) fn changed_bars(title: &str, changes: &ChangesView<'_>) -> Option<String> {
    let row = |(name, change): &(std::borrow::Cow<'_, str>, &Change)| {
        let class = match change.verdict {
            ChangeVerdict::Faster => "c-least",
            ChangeVerdict::Slower => "c-lost",
            ChangeVerdict::NoEvidence => "c-0",
        };
        let (base, with) = (change.base.time_ns, change.with.time_ns);
        // A side without it has an empty bar, so that the other keeps its place.
        let bar = |side: &str, time: Option<Nanos>, class| Bar {
            from: 0.0,
            to: time.map_or(0.0, |time| time.get() as f64),
            class,
            hint: format!("{side}: {}", known(time)),
            interval: None,
        };
        let bars = vec![bar("base", base, "c-base"), bar("with", with, class)];
        let stage = change.stage.map(|stage| format!(" ({stage})")).filter(|_| change.name != known(change.stage));
        let figure = match (base, with) {
            (Some(base), Some(with)) => match change.change {
                Some(change) => format!("{base} → {with} ({})", signed(change)),
                None => format!("{base} → {with}"),
            },
            (Some(base), None) => format!("{base}, first side only"),
            (None, Some(with)) => format!("{with}, second side only"),
            (None, None) => return None,
        };
        Some(Row { name: format!("{name}{}", stage.unwrap_or_default()), bars, figure })
    };
    let drawn: Vec<Row> = changes.rows.iter().filter_map(row).take(CHANGES).collect();
    (!drawn.is_empty()).then(|| rows(title, &drawn))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::compare::sample;

    #[test]
    fn a_comparison_is_one_page_with_both_sides_drawn() {
        for comparison in [sample::repeats(), sample::runs(), sample::apart()] {
            let page = comparison_page(&analysis::view::comparison(&comparison), 5);
            assert!(page.contains("<svg") && page.contains("class=\"c-base\""), "{page}");
            assert_eq!(page.matches("<script>").count(), 1);
        }
        let page = comparison_page(&analysis::view::comparison(&sample::empty()), 5);
        assert!(page.starts_with("<!doctype html>") && !page.contains("<svg"), "{page}");
    }
}
