//! A comparison as a page: what changed in pictures, then the Markdown page of it.

use types::{CaveatKind, Change, ChangeVerdict, ComparedRun, Comparison, Nanos};

use super::masthead::Notice;
use super::rows::{Bar, Row, nanoseconds, with_key};
use super::sheet::Sheet;
use super::shell::Section;
use super::summary::{FirstScreen, Number};
use super::{answers::Answer, canvas, flame, masthead};
use crate::pages::compare::{self, Comparability};
use crate::render::text::{capital, code, prose};
use crate::words::caveat::READ_FIRST;
use crate::words::number::{known, signed};

/// Changes drawn of each kind.
const CHANGES: usize = 12;

/// The page, with so many rows in each table of changes.
pub fn comparison_page(comparison: &Comparison, most_rows: usize) -> String {
    let sides = [&comparison.base, &comparison.with].map(|runs| runs.iter().map(name).collect::<Vec<_>>().join(", "));
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
    let drawn = parts.into_iter().filter_map(|(id, title, changes)| {
        let most = changes.iter().filter(|change| change.change.is_some()).max_by_key(|change| size(change));
        let seen = most.map(|change| format!("Largest change: {}, {}.", code(&compare::name(change)), sizes(change)));
        Section::drawn(id, title, seen, changed_bars(title, changes, judged, &sides))
    });
    let mut sections: Vec<Section> = drawn.collect();
    let flame = flame::difference(&comparison.modules);
    if flame.is_some() {
        let of = "of time by module on both sides, as wide as the longer side, in the colour of the change";
        sections.push(canvas("difference", "Difference flame graph of modules", of));
    }
    let body = compare::page(comparison, most_rows).html_below("comparison", READ_FIRST);
    sections.push(Section::new("comparison", "Figures", body));
    let notice = |text: &String| Notice::new(CaveatKind::NotComparable, text);
    Sheet {
        title: format!("{} compared with {}", sides[0], sides[1]),
        document: "llm-perf compare --json",
        notices: compare::caveats(comparison).iter().map(notice).collect(),
        about: about(comparison),
        screen: first_screen(comparison),
        sections,
        data: flame.map(|flame| ("difference", flame)).into_iter().collect(),
        ..Sheet::default()
    }
    .html()
}

/// The runs of both sides.
fn about(comparison: &Comparison) -> masthead::About {
    let side = |what: &str, runs: &[ComparedRun]| {
        let run = |run: &ComparedRun| format!("{} ({})", prose(&run.path), code(&run.id));
        (!runs.is_empty()).then(|| format!("{what}: {}", runs.iter().map(run).collect::<Vec<_>>().join(", ")))
    };
    vec![("first side", side("first", &comparison.base)), ("second side", side("second", &comparison.with))]
}

/// The verdict, and how much longer what matters most takes on the second side.
fn first_screen(comparison: &Comparison) -> FirstScreen {
    let mut verdicts = compare::conclusions(comparison).into_iter();
    let headline = verdicts.next().map(|first| format!("**{}.**", capital(first.trim_end_matches('.'))));
    let more: Vec<String> = verdicts.collect();
    let rows = [&comparison.requests, &comparison.stages, &comparison.steps];
    let number = |change: &Change| {
        let ratio = signed(change.change?);
        let [base, with] = [change.base.time_ns, change.with.time_ns].map(known);
        Some(Number::new(compare::name(change).into_owned(), ratio, format!("{base} → {with}"), &["stages", "steps"]))
    };
    let top = |change: &&Change| compare::depth(change) == 0;
    FirstScreen {
        headline: headline.unwrap_or_default(),
        source: &["comparison-stages", "comparison"],
        numbers: rows.into_iter().flatten().filter(top).filter_map(number).collect(),
        answers: (!more.is_empty())
            .then(|| Answer { question: "What else?", text: more.join("\n"), more: &["comparison"] })
            .into_iter()
            .collect(),
    }
}

/// What a user calls a run: its folder.
fn name(run: &ComparedRun) -> &str {
    let folder = run.path.trim_end_matches("/metrics.json").rsplit('/').next();
    folder.filter(|folder| !folder.is_empty() && *folder != "metrics.json").unwrap_or(&run.id)
}

/// How much longer or shorter one side takes.
fn size(change: &Change) -> i64 {
    let [base, with] = [change.base.time_ns, change.with.time_ns].map(Option::unwrap_or_default);
    (with - base).get().abs()
}

/// `191 ms → 120 ms (-37.3%)`.
fn sizes(change: &Change) -> String {
    match (change.base.time_ns, change.with.time_ns) {
        (Some(base), None) => format!("{base}, first side only"),
        (None, Some(with)) => format!("{with}, second side only"),
        (base, with) => {
            let ratio = change.change.map(|change| format!(" ({})", signed(change))).unwrap_or_default();
            format!("{} → {}{ratio}", known(base), known(with))
        }
    }
}

/// Both sides of each change, one above the other, in the colour of the verdict where there may be one. Absent where one of the
/// sides has no time at all: what it does not record is no change.
fn changed_bars(title: &str, changes: &[Change], judged: bool, [base, with]: &[String; 2]) -> Option<String> {
    let class = |change: &Change| match change.verdict {
        ChangeVerdict::Faster if judged => "c-least",
        ChangeVerdict::Slower if judged => "c-lost",
        _ => "c-0",
    };
    let row = |change: &Change| {
        // A side without it has an empty bar, so that the other keeps its place.
        let bar = |side: &str, time: Option<Nanos>, class: &str| Bar::of_time(time.unwrap_or_default(), class, side);
        let stage = change.stage.map(|stage| format!(" ({stage})")).filter(|_| change.name != known(change.stage));
        Row {
            name: format!("{}{}", compare::name(change), stage.unwrap_or_default()),
            bars: vec![bar(base, change.base.time_ns, "c-base"), bar(with, change.with.time_ns, class(change))],
            figure: sizes(change),
        }
    };
    let has = |side: fn(&Change) -> Option<Nanos>| changes.iter().any(|change| side(change).is_some());
    if !has(|change| change.base.time_ns) || !has(|change| change.with.time_ns) {
        return None;
    }
    let timed = |change: &&Change| change.base.time_ns.max(change.with.time_ns) > Some(Nanos::ZERO);
    let mut sorted: Vec<&Change> = changes.iter().filter(timed).collect();
    if !["Requests", "Stages"].contains(&title) {
        sorted.sort_by_key(|change| std::cmp::Reverse(size(change)));
    }
    sorted.truncate(CHANGES);
    let verdict = |of: &str| match of {
        "c-least" => "significantly faster",
        "c-lost" => "significantly slower",
        _ if judged => "no evidence of change",
        _ => "no verdict, because the runs are not directly comparable",
    };
    let mut key = vec![("c-base".to_owned(), format!("first side: {base}"))];
    let classes = ["c-least", "c-lost", "c-0"].into_iter();
    let classes = classes.filter(|of| sorted.iter().any(|change| class(change) == *of));
    key.extend(classes.map(|of| (of.to_owned(), format!("second side: {with}; {}", verdict(of)))));
    let drawn: Vec<Row> = sorted.into_iter().map(row).collect();
    with_key(title, &drawn, ("time", nanoseconds), &key)
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
        let banner = page.find("<strong>Not comparable.");
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
