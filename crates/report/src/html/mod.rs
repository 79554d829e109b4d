//! `report.html`: everything a run knows in one file that opens offline, prints and can be mailed.
//!
//! Pictures come first; the words and tables below are those of the Markdown pages beside it.

mod answers;
mod bars;
mod chart;
mod columns;
mod comparison;
mod critical_path;
mod flame;
mod fleet;
mod forecast;
mod lanes;
mod lettering;
mod origin;
mod prose;
mod ranks;
mod roofline;
mod series;
mod shell;
mod summary;
mod treemap;
mod tries;
mod waterfall;

use types::AnalyticReport;
use types::view::RunView;

use crate::markdown::sentence;

pub use comparison::comparison_page;
pub use fleet::fleet_page;
pub use lanes::{MOST_EVENTS, lanes};

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

/// The pictures of a run that stay as they are, each with its name, its title, and what it is of. They are the same in the page
/// and as files.
pub fn pictures(run: &RunView<'_>, modelled: Option<&AnalyticReport>) -> Vec<Picture> {
    let mut pictures = Vec::new();
    let mut add = |id, title, drawn: Vec<(String, String)>| {
        pictures.extend(drawn.into_iter().map(|(caption, svg)| Picture { id, title, caption, svg }));
    };
    let one = |drawn: Option<String>| drawn.map(|svg| (String::new(), svg)).into_iter().collect();
    add("stages", "Stages", one(bars::stage_bars(run)));
    add("device-time", "Device time", bars::device_bars(run).into_iter().collect());
    add("treemap", "Treemap of time", treemap::treemaps(run));
    let falls = waterfall::waterfalls(run).into_iter().map(|(stage, svg)| (stage.to_string(), svg)).collect();
    add("lost-time", "From roofline to measured", falls);
    add("roofline", "Roofline", one(roofline::roofline(run)));
    add("forecast", "Forecast and measured", one(modelled.and_then(forecast::forecast_chart)));
    add("critical-path", "Critical path", one(critical_path::critical_path(run)));
    add("tries", "Remedies tried: predicted and realised", one(tries::tries_chart(run)));
    add("steps", "Time of each step", one(series::step_chart(run)));
    add("memory", "Memory over time", series::memory_charts(run));
    add("ranks", "Ranks side by side", ranks::rank_charts(run));
    pictures
}

/// A picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// The section it belongs to, which is also the beginning of its file's name.
    pub id: &'static str,
    title: &'static str,
    /// What it is of, where a section has several.
    pub caption: String,
    /// The drawing.
    pub svg: String,
}

impl Picture {
    /// A name for its file: `lost-time-decode.svg`.
    pub fn file_name(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let caption: String = self.caption.chars().map(plain).take(60).collect();
        let caption = caption.split('-').filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-");
        if caption.is_empty() { format!("{}.svg", self.id) } else { format!("{}-{caption}.svg", self.id) }
    }

    /// The drawing with its colours, as a file of its own.
    pub fn file(&self) -> String {
        self.svg.replacen('>', &format!(">\n<style>{}</style>", shell::STYLE), 1)
    }
}

/// What the page of a run is made of.
#[derive(Clone, Copy, Debug)]
pub struct RunPage<'a> {
    /// The run.
    pub run: &'a RunView<'a>,
    /// The analytic model of its first input, where there is one.
    pub modelled: Option<&'a AnalyticReport>,
    /// Its Markdown pages.
    pub pages: &'a [(MarkdownPage, String)],
    /// Columns of its timeline, see [`lanes()`], or why it has none.
    pub lanes: Result<&'a str, &'a str>,
}

/// The file.
pub fn run_page(page: &RunPage<'_>) -> String {
    let RunPage { run, modelled, pages, lanes } = *page;
    let mut sections: Vec<Section> = Vec::new();
    for picture in pictures(run, modelled) {
        let figure = shell::figure(&picture.caption, &picture.svg);
        match sections.last_mut().filter(|last| last.id == picture.id) {
            Some(section) => section.body += &figure,
            None => sections.push(Section::new(picture.id, picture.title, figure)),
        }
    }
    let flame = flame::flame(run);
    let mut data = Vec::new();
    if let Ok(lanes) = lanes {
        data.push(("lanes", lanes));
        sections.push(canvas("timeline", "Timeline", "lanes", "of streams and threads"));
    }
    if let Some(flame) = &flame {
        data.push(("frames", flame));
        sections.push(canvas("flame", "Flame graph", "frames", "of time by module or range, longest first"));
    }
    let pictures = sections.len();
    sections.extend(pages.iter().map(|(page, text)| Section {
        open: *page == MarkdownPage::Report,
        ..Section::new(page.id(), page.title(), prose::html(text, page.id()))
    }));
    let has = |anchor: &str| {
        let attribute = format!("id=\"{anchor}\"");
        sections.iter().any(|section| section.id == anchor || section.body.contains(&attribute))
    };
    let find = |anchors: &[&'static str]| anchors.iter().copied().find(|anchor| has(anchor));
    let missing = match lanes {
        Ok(_) => String::new(),
        Err(reason) => prose::html(&format!("This page has no timeline: {}.", sentence(reason)), "t"),
    };
    let top = summary::html(run, find) + &missing;
    let sources: Vec<String> = sections[..pictures].iter().map(|section| origin::html(section.id, find)).collect();
    for (section, source) in sections.iter_mut().zip(sources) {
        section.body += &source;
    }
    shell::document(&summary::title(run), &top, &sections, &data)
}

/// A section that the script draws into.
fn canvas(id: &'static str, title: &str, data: &str, of: &str) -> Section {
    let body = format!(
        "<div class=\"view\" data-of=\"{data}\"><div class=\"tools\"><label>search <input class=\"find\" type=\"search\"></label>\
         <button class=\"all\" type=\"button\">show all</button><output class=\"sum\" aria-live=\"polite\"></output></div>\
         <canvas tabindex=\"0\" role=\"img\" aria-label=\"{} {of}\"></canvas>\
         <p class=\"m\">Drag to select and sum; double click to zoom in on an event; wheel or + and - to zoom; shift and drag or the \
         arrow keys to move; Escape for the whole. <span class=\"about\"></span></p><noscript>This needs scripts.</noscript></div>\n",
        title.to_lowercase()
    );
    Section::new(id, title, body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::sample;

    fn page(change: impl FnOnce(&mut types::Metrics)) -> String {
        let mut metrics = sample::metrics();
        change(&mut metrics);
        let view = analysis::view::run(&metrics);
        let pages = [(MarkdownPage::Report, crate::profile::report_markdown(&view, &sample::environment()))];
        run_page(&RunPage { run: &view, modelled: None, pages: &pages, lanes: Err("nothing was recorded") })
    }

    #[test]
    fn the_first_screen_answers_and_the_pictures_add_up() {
        let page = page(|_| {});
        assert!(page.contains("<dt>time to first token</dt>"), "{page}");
        assert!(page.contains("What to do first?</a>") && page.contains("Estimated saving: "), "{page}");
        assert!(page.contains("<a href=\"#report-aggregates\">"), "a number leads to its table: {page}");
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
        let run = analysis::view::run(&metrics);
        let page = run_page(&RunPage { run: &run, modelled: None, pages: &[], lanes: Err("a <b> reason") });
        assert!(page.starts_with("<!doctype html>") && !page.contains("<svg"), "{page}");
        assert!(page.contains("No rule found enough evidence"), "{page}");
        assert!(page.contains("This page has no timeline: a &lt;b&gt; reason."), "{page}");
    }

    #[test]
    fn pictures_are_files_of_their_own_with_names_of_their_own() {
        let metrics = sample::metrics();
        let pictures = pictures(&analysis::view::run(&metrics), None);
        let mut names: Vec<String> = pictures.iter().map(Picture::file_name).collect();
        assert!(names.iter().any(|name| name == "lost-time-decode.svg"), "{names:?}");
        names.dedup();
        assert_eq!(names.len(), pictures.len());
        assert!(pictures.iter().all(|one| one.file().starts_with("<svg ") && one.file().contains("<style>:root")));
    }

    #[test]
    fn a_waterfall_is_left_out_where_causes_hold_more_than_there_is() {
        let mut metrics = sample::metrics();
        for lost in &mut metrics.conclusions.lost_time {
            lost.lost_ns = types::Nanos::new(i64::MAX / 1_000);
        }
        assert_eq!(waterfall::waterfalls(&analysis::view::run(&metrics)), []);
    }
}
