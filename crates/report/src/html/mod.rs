//! `report.html`: everything a run knows in one file that opens offline, prints and can be mailed.
//!
//! Pictures come first; the words and tables below are those of the Markdown pages beside it.

mod bars;
mod lanes;
mod prose;
mod roofline;
mod shell;
mod summary;
mod waterfall;

use types::view::RunView;

pub use bars::{device_bars, stage_bars};
pub use lanes::{MOST_EVENTS, lanes};
pub use roofline::roofline;
pub use waterfall::waterfalls;

use shell::Section;

/// A Markdown page of a run, which the file holds too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkdownPage {
    /// `report.md`.
    Report,
    /// `operators.md`.
    Operators,
    /// `kernels.md`.
    Kernels,
    /// `stakeholder_summary.md`.
    Summary,
    /// `assumptions.md`.
    Assumptions,
}

impl MarkdownPage {
    /// Every page, in the order the file holds them.
    pub const ALL: [Self; 5] = [Self::Report, Self::Operators, Self::Kernels, Self::Summary, Self::Assumptions];

    /// The name of its file without `.md`, which is also its anchor.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Report => "report",
            Self::Operators => "operators",
            Self::Kernels => "kernels",
            Self::Summary => "stakeholder_summary",
            Self::Assumptions => "assumptions",
        }
    }

    /// Its file in the run folder.
    pub fn file(self) -> String {
        format!("{}.md", self.id())
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Report => "Report",
            Self::Operators => "Operators",
            Self::Kernels => "Kernels",
            Self::Summary => "Summary in plain words",
            Self::Assumptions => "Assumptions",
        }
    }
}

/// The file. `lanes` are those of its timeline, see [`lanes()`].
pub fn run_page(run: &RunView<'_>, pages: &[(MarkdownPage, String)], lanes: Option<&str>) -> String {
    let mut sections = Vec::new();
    let mut add = |id, title: &str, body: Option<String>| {
        if let Some(body) = body {
            sections.push(Section {
                id,
                title: title.to_owned(),
                body: format!("<figure>{body}</figure>\n"),
                open: true,
            });
        }
    };
    add("stages", "Stages", stage_bars(run));
    add("device-time", "Device time", device_bars(run));
    let falls = waterfalls(run);
    let falls: String = falls.iter().map(|(stage, svg)| format!("<figcaption>{stage}</figcaption>{svg}")).collect();
    add("lost-time", "From roofline to measured", (!falls.is_empty()).then_some(falls));
    add("roofline", "Roofline", roofline(run));
    if lanes.is_some() {
        sections.push(Section { id: "timeline", title: "Timeline".to_owned(), body: TIMELINE.to_owned(), open: true });
    }
    sections.extend(pages.iter().map(|(page, text)| Section {
        id: page.id(),
        title: page.title().to_owned(),
        body: prose::html(text, page.id()),
        open: *page == MarkdownPage::Report,
    }));
    shell::document(&summary::title(run), &summary::html(run), &sections, lanes)
}

/// What the script draws the timeline into.
const TIMELINE: &str = "<div id=\"view\"><div class=\"tools\"><label>search <input id=\"find\" type=\"search\"></label>\
    <button id=\"all\" type=\"button\">whole recording</button><output id=\"sum\" aria-live=\"polite\"></output></div>\
    <canvas id=\"canvas\" tabindex=\"0\" role=\"img\" aria-label=\"timeline of streams and threads\"></canvas>\
    <p class=\"m\">Drag to select and sum; wheel or + and - to zoom, shift and drag or the arrow keys to move, double click or \
    Escape for the whole. <span id=\"about\"></span></p><noscript>The timeline needs scripts.</noscript></div>\n";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::sample;

    fn page(change: impl FnOnce(&mut types::Metrics)) -> String {
        let mut metrics = sample::metrics();
        change(&mut metrics);
        let view = analysis::view::run(&metrics);
        let pages = [(MarkdownPage::Report, crate::profile::report_markdown(&view, &sample::environment()))];
        run_page(&view, &pages, None)
    }

    #[test]
    fn the_first_screen_answers_and_the_pictures_add_up() {
        let page = page(|_| {});
        assert!(page.contains("<dt>time to first token</dt>"), "{page}");
        assert!(page.contains("<strong>First: "), "{page}");
        assert!(
            page.contains("aria-label=\"Stages of the run\"") && page.contains("aria-label=\"roofline\""),
            "{page}"
        );
        assert!(page.contains("decode from roofline to measured"), "{page}");
        let drawn = page.split("<script>").next().unwrap();
        assert!(!drawn.contains("NaN") && !drawn.contains("inf\""), "{drawn}");
    }

    #[test]
    fn nothing_is_asked_for_and_no_name_gets_out_of_its_place() {
        let hostile = "</title><script>alert(1)</script><img src=x onerror=alert(1)>\"'`|";
        let page = page(|metrics| {
            metrics.run.model = Some(hostile.to_owned());
            for operator in &mut metrics.breakdown.operators {
                operator.name = hostile.repeat(100);
            }
        });
        assert_eq!(page.matches("<script>").count(), 1, "only our own");
        for forbidden in ["<img", "onerror=alert(1)>", " style=", "http://", "https://", "src=\""] {
            let found = page.replace("http://www.w3.org/2000/svg", "").contains(forbidden);
            assert!(!found, "{forbidden}");
        }
    }

    #[test]
    fn a_run_without_anything_still_has_a_page() {
        let metrics = sample::empty();
        let page = run_page(&analysis::view::run(&metrics), &[], None);
        assert!(page.starts_with("<!doctype html>") && !page.contains("<svg"), "{page}");
        assert!(page.contains("No rule found enough evidence"), "{page}");
    }

    #[test]
    fn a_waterfall_is_left_out_where_causes_hold_more_than_there_is() {
        let mut metrics = sample::metrics();
        for lost in &mut metrics.conclusions.lost_time {
            lost.lost_ns = types::Nanos::new(i64::MAX / 1_000);
        }
        assert_eq!(waterfalls(&analysis::view::run(&metrics)), []);
    }
}
