//! `report.html`: everything a run knows in one file that opens offline, prints and can be mailed.
//!
//! Pictures come first; the words and tables below are those of the Markdown pages beside it.

mod analytic;
mod answers;
mod bars;
mod capacity;
mod columns;
mod comparison;
mod counters;
mod critical_path;
mod details;
mod documents;
mod flame;
mod fleet;
mod forecast;
mod gather;
mod illustration;
mod inputs;
mod lanes;
mod latencies;
mod lettering;
mod masthead;
mod names;
mod origin;
mod palette;
mod picture;
mod plot;
mod point;
mod ranks;
mod regions;
mod repeats;
mod requests;
mod roofline;
mod rows;
mod seen;
mod series;
mod shares;
mod sheet;
mod shell;
mod stack;
mod summary;
mod sweep;
mod tries;
mod waterfall;

use types::RunManifest;
use types::view::RunView;

use crate::pages::run::profiled_pass;
use crate::render::Page;
use crate::render::text::{capital, sentence};
use crate::words::caveat::READ_FIRST;

pub use analytic::analytic_page;
pub use capacity::{capacity_page, layouts_chart, layouts_page};
pub use comparison::comparison_page;
pub use documents::Documents;
pub use fleet::fleet_page;
pub use illustration::illustrated;
pub use inputs::Thumbnail;
pub use lanes::{Drawn, MOST_EVENTS, Recorded};
pub use picture::Picture;
pub use sweep::{sweep_chart, sweep_page};

use masthead::Notice;
use sheet::Sheet;
use shell::Section;

/// A Markdown page of a run, which the file holds too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunPageKind {
    /// `report.md`.
    Report,
    /// `operators.md`.
    Operators,
    /// `kernels.md`.
    Kernels,
    /// `ncu/regions/report.md`.
    Regions,
    /// `stakeholder_summary.md`.
    Summary,
    /// `assumptions.md`.
    Assumptions,
}

impl RunPageKind {
    /// Every page, in the order the file holds them.
    pub const ALL: [Self; 6] =
        [Self::Report, Self::Operators, Self::Kernels, Self::Regions, Self::Summary, Self::Assumptions];

    /// Its anchor; the name of its file without `.md`, where that stands in the run folder itself.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Report => "report",
            Self::Operators => "operators",
            Self::Kernels => "kernels",
            Self::Regions => "regions",
            Self::Summary => "stakeholder_summary",
            Self::Assumptions => "assumptions",
        }
    }

    /// Its file in the run folder.
    pub fn file(self) -> String {
        match self {
            Self::Regions => "ncu/regions/report.md".to_owned(),
            _ => format!("{}.md", self.id()),
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Report => "Report",
            Self::Operators => "Operators",
            Self::Kernels => "Kernels",
            Self::Regions => "Regions",
            Self::Summary => "Summary in plain words",
            Self::Assumptions => "Assumptions",
        }
    }
}

/// The pictures of a run that stay as they are, each with its name, its title, and what it is of. They are the same in the page
/// and as files.
pub fn pictures(run: &RunView<'_>, documents: &Documents<'_>) -> Vec<Picture> {
    let one = |drawn: Option<String>| drawn.map(|svg| (String::new(), svg)).into_iter().collect::<Vec<_>>();
    let drawn = [
        ("lost-time", "From roofline to measured", waterfall::waterfalls(run)),
        ("latencies", "Latencies of requests", one(latencies::histograms(run))),
        ("stages", "Stages", one(bars::stage_bars(run))),
        ("repeats", "Stages over repeats", one(repeats::repeats(run))),
        ("device-time", "Device time", bars::device_bars(run).into_iter().collect()),
        ("shares", "Time by kernel and module", shares::share_charts(run)),
        ("roofline", "Roofline", one(roofline::roofline(run, documents))),
        ("forecast", "Forecast and measured", one(documents.modelled.and_then(forecast::forecast_chart))),
        ("critical-path", "Critical path", one(critical_path::critical_path(run))),
        ("tries", "Remedies tried: predicted and realised", one(tries::tries_chart(run))),
        ("steps", "Time of each step", one(series::step_chart(run))),
        ("memory", "Memory over time", series::memory_charts(run)),
        ("ranks", "Ranks", ranks::rank_charts(run)),
    ];
    let picture = |(id, title, drawn): (&'static str, &'static str, Vec<(String, String)>)| {
        let note = if id == "roofline" { roofline::sources(run).unwrap_or_default() } else { String::new() };
        drawn.into_iter().map(move |(caption, svg)| Picture { id, title, caption, note: note.clone(), svg })
    };
    drawn.into_iter().flat_map(picture).collect()
}

/// What the page of a run is made of.
#[derive(Clone, Copy, Debug)]
pub struct RunPage<'a> {
    /// The run.
    pub run: &'a RunView<'a>,
    /// What is known of it as a whole; absent where a page is made of documents alone.
    pub manifest: Option<&'a RunManifest>,
    /// What it has beside its metrics.
    pub documents: Documents<'a>,
    /// Small pictures of its inputs.
    pub thumbnails: &'a [Thumbnail],
    /// Its Markdown pages.
    pub pages: &'a [(RunPageKind, Page)],
    /// What is drawn of its timelines, or why there is none.
    pub recorded: Result<&'a Recorded, &'a str>,
    /// Whether its events are served beside it, see [`Drawn::events`].
    pub served: bool,
}

/// The file.
pub fn run_page(page: &RunPage<'_>) -> String {
    let RunPage { run, manifest, documents, thumbnails, pages, recorded, served } = *page;
    let seen = |section| shell::seen(seen::of_section(section, run, &documents));
    let (mut sections, mut data) = (Vec::new(), Vec::new());
    if let Some(requests) = requests::requests(run) {
        sections.push(requests::section(run));
        data.push(("requests", requests));
    }
    for picture in pictures(run, &documents) {
        let caption = [picture.caption.as_str(), &picture.note].into_iter().filter(|text| !text.is_empty());
        let figure = shell::figure(&caption.collect::<Vec<_>>().join(", "), &picture.svg);
        match sections.last_mut().filter(|last: &&mut Section| last.id == picture.id) {
            Some(section) => section.body += &figure,
            None => sections.push(Section::new(picture.id, picture.title, seen(picture.id) + &figure)),
        }
    }
    let of_regions = documents.regions.and_then(|report| {
        Section::drawn("time-of-regions", "Time of each region", regions::seen(report), regions::chart(report))
    });
    sections.extend(of_regions);
    if served {
        data.push((shell::SERVER, String::new()));
    }
    let mut draw = |id: &'static str, title: &str, datum: String, of: &str, open| {
        let section = canvas(id, title, of);
        data.push((id, datum));
        sections.push(Section { body: seen(id) + &section.body, open, ..section });
    };
    if let Ok(recorded) = recorded {
        draw("timeline", "Timeline", recorded.lanes.clone(), "of streams and threads", true);
    }
    let stacks = recorded.ok().and_then(|recorded| recorded.stacks.clone());
    if let Some([flame, inverted]) = flame::flames(run, stacks.is_none()) {
        let pass = profiled_pass(run.metrics).map(|pass| format!(", {pass}")).unwrap_or_default();
        let what = if run.metrics.breakdown.modules.is_empty() { "ranges" } else { "modules" };
        let of = format!("of time, layers together, longest first{pass}");
        draw("flame", &format!("Flame graph of {what}"), flame, &of, true);
        let of = format!("of self time, what takes it above what it is part of{pass}");
        draw("callers", &format!("{} by self time", capital(what)), inverted, &of, false);
    }
    if let Some([stacks, inverted]) = stacks {
        let of = "of device time by the ranges, operators and functions that launched it";
        draw("stacks", "Flame graph of operators", stacks, of, true);
        let of = "of device time by kernel, above what launched it";
        draw("launchers", "Kernels by what launched them", inverted, of, false);
    }
    if let Some(counters) = documents.kernels.and_then(counters::counters).filter(|_| recorded.is_ok()) {
        data.push(("counters", counters));
    }
    sections.extend(inputs::gallery(run, thumbnails).map(|list| Section::new("inputs", "Inputs", list)));
    sections.extend(pages.iter().map(|(page, text)| Section {
        open: matches!(page, RunPageKind::Report | RunPageKind::Regions),
        ..Section::new(page.id(), page.title(), text.html_below(page.id(), READ_FIRST))
    }));
    let missing =
        recorded.err().map(|reason| format!("This page has no timeline: {}.", sentence(reason.trim_end_matches('.'))));
    let mut notices = masthead::notices(&run.metrics.caveats);
    // Counters of regions alone are no run with times: they have a first screen of their own.
    let counted = documents.regions.filter(|_| run.stages.is_empty() && run.device_time.is_empty());
    let (title, screen) = counted.map_or_else(
        || (summary::title(run, manifest), summary::of_run(run)),
        |report| (regions::title(report), regions::first_screen(report)),
    );
    // What limits counters of regions is in no caveat of the run.
    let limits = documents.regions.map(crate::pages::regions::caveats).unwrap_or_default();
    notices.extend(limits.iter().map(|text| Notice::plain(text)));
    Sheet {
        title,
        document: "metrics.json",
        notices,
        about: masthead::of_run(run.metrics),
        manifest,
        screen,
        missing: missing.unwrap_or_default(),
        sections,
        data,
    }
    .html()
}

/// A section that the script draws into. Its keys are those of Perfetto.
fn canvas(id: &'static str, title: &str, of: &str) -> Section {
    let name = title.to_lowercase();
    let body = format!(
        "<div class=\"view\" data-of=\"{id}\"><div class=\"tools\"><label>search <input class=\"find\" type=\"search\"></label>\
         <button class=\"before\" type=\"button\">previous</button><button class=\"next\" type=\"button\">next</button>\
         <output class=\"hits\" aria-live=\"polite\"></output><button class=\"all\" type=\"button\">show all</button></div>\
         <output class=\"sum\" aria-live=\"polite\"></output>\
         <p class=\"wheel callout\" hidden>Click the chart first, or hold Ctrl, to zoom with the wheel.</p>\
         <canvas tabindex=\"0\" role=\"img\" aria-label=\"{name} {of}\"></canvas><ul class=\"legend\"></ul>\
         <div class=\"panel\"></div><div class=\"more\"><details class=\"tracks\"><summary>Lanes: fold and pin</summary><ul></ul></details>\
         <details class=\"keys\"><summary>Mouse and keys</summary>{KEYS}</details>\
         <p class=\"m\"><span class=\"about\"></span></p></div><noscript>This chart needs JavaScript.</noscript></div>\n"
    );
    Section::new(id, title, body)
}

/// What mouse and keys do in a chart that the script draws.
const KEYS: &str = "<dl class=\"facts\"><div><dt>click</dt><dd>details of an event; on the name of a lane: fold it</dd></div>\
    <div><dt>drag</dt><dd>select a range and sum it up</dd></div><div><dt>shift and drag</dt><dd>pan</dd></div>\
    <div><dt>double-click, F</dt><dd>zoom in on an event</dd></div><div><dt>wheel (with Ctrl, or after a click), W, S, + and -</dt><dd>zoom</dd></div>\
    <div><dt>A, D, left and right</dt><dd>pan</dd></div><div><dt>comma and full stop</dt><dd>event before, event after</dd></div>\
    <div><dt>up and down</dt><dd>lane above, lane below</dd></div><div><dt>M</dt><dd>select the time of an event</dd></div>\
    <div><dt>/, N and P</dt><dd>search, next hit, previous hit</dd></div><div><dt>Escape</dt><dd>start again</dd></div></dl>";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::run::sample;

    fn page(change: impl FnOnce(&mut types::Metrics)) -> String {
        let mut metrics = sample::metrics();
        change(&mut metrics);
        let view = analysis::view::run(&metrics);
        let pages = [(RunPageKind::Report, crate::pages::run::report_page(&view, &sample::environment()))];
        run_page(&RunPage {
            run: &view,
            manifest: None,
            documents: Documents::default(),
            thumbnails: &[],
            pages: &pages,
            recorded: Err("nothing was recorded"),
            served: false,
        })
    }

    #[test]
    fn the_first_screen_answers_and_the_pictures_add_up() {
        let page = page(|_| {});
        assert!(page.contains("<dt>time to first token</dt>"), "{page}");
        assert!(page.contains("What to do?</a>") && page.contains("saves "), "{page}");
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
    fn every_element_type_has_its_roof_with_its_source() {
        let page = page(|metrics| {
            let peak = metrics.utilisation.peak.clone().unwrap();
            let faster = types::PeakUsed {
                dtype: types::DType::Fp8,
                flops: types::FlopsPerSecond::new(peak.flops.get() * 2.0),
                source: "a <datasheet>".to_owned(),
                ..peak.clone()
            };
            metrics.utilisation.peaks = vec![faster, peak];
        });
        assert_eq!(page.matches("class=\"roof\"").count(), 2);
        assert!(page.contains(" in fp8, ") && page.contains(": a &lt;datasheet&gt;</title></polyline>"), "{page}");
        for kind in ["p-stage", "p-module"] {
            assert!(page.contains(&format!("class=\"{kind}\"><title>")), "{kind}");
        }
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
        let page = run_page(&RunPage {
            run: &run,
            manifest: None,
            documents: Documents::default(),
            thumbnails: &[],
            pages: &[],
            recorded: Err("a <b> reason"),
            served: false,
        });
        assert!(page.starts_with("<!doctype html>") && !page.contains("<svg"), "{page}");
        assert!(page.contains("no rule found enough evidence"), "{page}");
        assert!(page.contains("This page has no timeline: a &lt;b&gt; reason."), "{page}");
    }

    #[test]
    fn pictures_are_files_of_their_own_with_names_of_their_own() {
        let metrics = sample::metrics();
        let pictures = pictures(&analysis::view::run(&metrics), &Documents::default());
        let mut names: Vec<String> = pictures.iter().map(Picture::file_name).collect();
        assert!(names.iter().any(|name| name == "lost-time-decode.svg"), "{names:?}");
        names.dedup();
        assert_eq!(names.len(), pictures.len());
        assert!(pictures.iter().all(|one| one.file().starts_with("<svg ") && one.file().contains("\n:root{")));
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
