//! A comparison as a page: what changed in pictures, then the Markdown page of it.

use types::{CaveatKind, Change, ChangeVerdict, ComparedRun, Comparison, Nanos};

use super::masthead::{self, Notice};
use super::rows::{Bar, Row, nanoseconds, rows};
use super::shell::{self, Section};
use super::{canvas, flame};
use crate::pages::compare::{self, Comparability};
use crate::render::text::{code, prose};
use crate::words::caveat::READ_FIRST;
use crate::words::number::{known, signed};

/// Changes drawn of each kind.
const CHANGES: usize = 12;

/// The page, with so many rows in each table of changes.
pub fn comparison_page(comparison: &Comparison, most_rows: usize) -> String {
    let side = |runs: &[ComparedRun]| runs.iter().map(name).collect::<Vec<_>>().join(", ");
    let title = format!("{} compared with {}", side(&comparison.base), side(&comparison.with));
    let judged = compare::comparability(comparison) == Comparability::Comparable;
    let parts = [
        ("requests", "Requests", &comparison.requests),
        ("request-parts", "Where requests of the recorded load spend their time (means)", &comparison.request_parts),
        ("stages", "Stages", &comparison.stages),
        ("steps", "Steps", &comparison.steps),
        ("device-time", "Device time", &comparison.device_time),
        ("modules", "Modules", &comparison.modules),
        ("operators", "Operators", &comparison.operators),
        ("kernels", "Kernels", &comparison.kernels),
    ];
    let mut sections: Vec<Section> = parts
        .into_iter()
        .filter_map(|(id, title, changes)| {
            Some(Section::new(id, title, shell::figure("", &changed_bars(title, changes, judged)?)))
        })
        .collect();
    let flame = flame::difference(&comparison.modules);
    let data: Vec<_> = flame.iter().map(|flame| ("difference", flame.as_str())).collect();
    if !data.is_empty() {
        let of = "of time by module on both sides, as wide as the longer side, in the colour of the change";
        sections.push(canvas("difference", "Difference flame graph of modules", "difference", of));
    }
    let body = compare::page(comparison, most_rows).html_below("comparison", READ_FIRST);
    sections.push(Section::new("comparison", "Figures", body));
    let notices: Vec<Notice> =
        compare::caveats(comparison).iter().map(|text| Notice::new(CaveatKind::NotComparable, text)).collect();
    let conclusions = compare::verdicts_page(comparison);
    let colours = if judged {
        ": green where it is significantly faster, red where it is significantly slower, else blue"
    } else {
        "; colours show no verdict, because the runs are not directly comparable"
    };
    let key =
        format!("<p class=\"m\">In each row the upper bar is the first side, the lower bar the second{colours}.</p>\n");
    let top = format!("<div class=\"verdict\">{}</div>\n{key}", conclusions.html("v"));
    let top = masthead::banner(&notices) + &masthead::about(about(comparison)) + &top;
    shell::document(&title, &top, &sections, &data)
}

/// The runs of both sides.
fn about(comparison: &Comparison) -> masthead::About {
    let side = |runs: &[ComparedRun]| {
        let run = |run: &ComparedRun| format!("{} ({})", code(&run.id), prose(&run.path));
        (!runs.is_empty()).then(|| runs.iter().map(run).collect::<Vec<_>>().join(", "))
    };
    vec![("first side", side(&comparison.base)), ("second side", side(&comparison.with))]
}

/// What a user calls a run: its folder.
fn name(run: &ComparedRun) -> &str {
    let folder = run.path.trim_end_matches("/metrics.json").rsplit('/').next();
    folder.filter(|folder| !folder.is_empty() && *folder != "metrics.json").unwrap_or(&run.id)
}

/// Both sides of each change, one above the other, in the colour of the verdict where there may be one. Absent where one of the sides has no time
/// at all.
fn changed_bars(title: &str, changes: &[Change], judged: bool) -> Option<String> {
    let row = |change: &Change| {
        let class = match change.verdict {
            _ if !judged => "c-0",
            ChangeVerdict::Faster => "c-least",
            ChangeVerdict::Slower => "c-lost",
            ChangeVerdict::NoEvidence => "c-0",
        };
        let (base, with) = (change.base.time_ns, change.with.time_ns);
        // A side without it has an empty bar, so that the other keeps its place.
        let bar = |side: &str, time: Option<Nanos>, class: &str| Bar {
            from: 0.0,
            to: time.map_or(0.0, |time| time.get() as f64),
            class: class.to_owned(),
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
        Some(Row { name: format!("{}{}", compare::name(change), stage.unwrap_or_default()), bars, figure })
    };
    // What changed most first.
    let size = |change: &&Change| {
        let [base, with] = [change.base.time_ns, change.with.time_ns].map(Option::unwrap_or_default);
        std::cmp::Reverse((with - base).get().abs())
    };
    // What one side does not record at all is no change.
    let has = |side: fn(&Change) -> Option<Nanos>| changes.iter().any(|change| side(change).is_some());
    if !has(|change| change.base.time_ns) || !has(|change| change.with.time_ns) {
        return None;
    }
    let mut sorted: Vec<&Change> = changes.iter().collect();
    if !["Requests", "Stages"].contains(&title) {
        sorted.sort_by_key(size);
    }
    let drawn: Vec<Row> = sorted.into_iter().filter_map(row).take(CHANGES).collect();
    (!drawn.is_empty()).then(|| rows(title, &drawn, ("time, both sides", nanoseconds)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::compare::sample;

    #[test]
    fn runs_that_do_not_compare_get_no_colour_of_a_verdict() {
        let coloured = |page: &str| page.contains("class=\"c-least\"") || page.contains("class=\"c-lost\"");
        assert!(coloured(&comparison_page(&sample::runs(), 5)));
        let page = comparison_page(&sample::repeats(), 5);
        assert!(!coloured(&page), "{page}");
        let banner = page.find("<strong>Not comparable.</strong>");
        assert!(banner.is_some() && banner < page.find("not directly comparable"), "{page}");
    }

    #[test]
    fn a_comparison_is_one_page_with_both_sides_drawn() {
        for comparison in [sample::repeats(), sample::runs(), sample::apart()] {
            let page = comparison_page(&comparison, 5);
            assert!(page.contains("<svg") && page.contains("class=\"c-base\""), "{page}");
            assert_eq!(page.matches("<script>").count(), 1);
        }
        let page = comparison_page(&sample::empty(), 5);
        assert!(page.starts_with("<!doctype html>") && !page.contains("<svg"), "{page}");
    }
}
