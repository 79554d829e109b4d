//! `report`: the page of a finished run made again from its documents, and a comparison as a page.
//!
//! A run keeps its metrics, its Markdown pages, and what was recorded or where the imported file is. The page is made of those and
//! of nothing else, and the run stays as it is. A timeline that cannot be read again is left out, and the page says why.

mod served;

use std::path::{Path, PathBuf};

use collect::run::StoredRun;
use report::Page;
use report::html::RunPageKind;
use types::{Comparison, Metrics, UserError};

use crate::pipeline::folder::bundle;
use crate::pipeline::folder::documents::{RunDocuments, document};
use crate::pipeline::recorded::provenance::{self, NATIVE_TRACE};
use crate::pipeline::recorded::recording;
use crate::pipeline::trace::{self, Drawn, Placed};

pub use served::ServedPage;

/// Rows of each table of changes in the page of a comparison.
const CHANGES: usize = 50;

/// A page, and what it lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunPage {
    /// The text of the file.
    pub html: String,
    /// Why it has no timeline, where it has none.
    pub no_timeline: Option<String>,
}

/// The page of a run. With `full`, its timeline holds every event, however many there are.
pub fn of_run(run: &StoredRun, full: bool) -> Result<RunPage, UserError> {
    let metrics = recording::metrics(run)?;
    let pages = pages(run, &metrics);
    let most = if full { usize::MAX } else { report::html::MOST_EVENTS };
    let recorded = timelines(run, &metrics).and_then(|timelines| {
        let recorded = trace::recorded(&timelines, most, &metrics.run.id);
        recorded.ok_or_else(|| "the timeline of this run is empty".to_owned())
    });
    let shown = recorded.as_ref().map_err(String::as_str);
    let html = bundle::page(run.path(), run.manifest(), &metrics, &pages, shown, false);
    Ok(RunPage { html, no_timeline: recorded.err() })
}

/// The page of a run that asks for its events, and what answers it.
fn to_serve(run: &StoredRun) -> Result<(String, Drawn), UserError> {
    let metrics = recording::metrics(run)?;
    let pages = pages(run, &metrics);
    let no_timeline = |reason: String| {
        let id = &run.manifest().run_id;
        UserError::usage(format!("{id} has no timeline to serve: {reason}"))
            .hint(format!("open its page: `llm-perf report {id} --open`"))
    };
    let timelines = timelines(run, &metrics).map_err(no_timeline)?;
    let most = report::html::MOST_EVENTS;
    let drawn = trace::drawn(&timelines, most, &metrics.run.id);
    let both = drawn.and_then(|drawn| Some((drawn.overview(most)?, drawn)));
    let (recorded, drawn) = both.ok_or_else(|| no_timeline("it is empty".to_owned()))?;
    Ok((bundle::page(run.path(), run.manifest(), &metrics, &pages, Ok(&recorded), true), drawn))
}

/// Writes the pictures of a run that stay as they are to a folder, as SVG files; their names.
pub fn write_charts(run: &StoredRun, folder: &Path) -> Result<Vec<PathBuf>, UserError> {
    let metrics = recording::metrics(run)?;
    let documents = RunDocuments::read(run.path());
    std::fs::create_dir_all(folder).map_err(unwritable(folder))?;
    let mut files = Vec::new();
    for picture in report::html::pictures(&analysis::view::run(&metrics), &documents.shown()) {
        let path = folder.join(picture.file_name());
        collect::write_whole(&path, picture.file().as_bytes()).map_err(unwritable(&path))?;
        files.push(path);
    }
    Ok(files)
}

/// A comparison as a page.
pub fn of_comparison(comparison: &Comparison) -> String {
    report::html::comparison_page(comparison, CHANGES)
}

/// Writes the page.
pub fn write(path: &Path, html: &str) -> Result<(), UserError> {
    collect::write_whole(path, html.as_bytes()).map_err(unwritable(path))
}

fn unwritable(path: &Path) -> impl Fn(std::io::Error) -> UserError {
    let error = UserError::io("write", path);
    move |reason| error(reason).hint("choose a file in another folder with `--out FILE`")
}

/// Every page, from the documents of the run. What it assumed is kept as text alone, and shown as that.
fn pages(run: &StoredRun, metrics: &Metrics) -> Vec<(RunPageKind, Page)> {
    let documents = RunDocuments::read(run.path());
    let shown = documents.shown();
    let environment = document(run.path(), "env.json");
    let pages = environment.map(|environment| bundle::pages(metrics, &environment, shown.kernels, None, &[]).0);
    let regions = shown.regions.map(report::pages::regions::overview_page);
    let assumptions = run.read_text(&RunPageKind::Assumptions.file()).ok().map(|text| Page::verbatim(&text));
    let mut pages = pages.unwrap_or_default();
    pages.extend(regions.map(|page| (RunPageKind::Regions, page)));
    pages.extend(assumptions.map(|page| (RunPageKind::Assumptions, page)));
    pages.sort_by_key(|(kind, _)| RunPageKind::ALL.iter().position(|known| known == kind));
    pages
}

fn timelines(run: &StoredRun, metrics: &Metrics) -> Result<Vec<Placed>, String> {
    let files = match metrics.conditions.trace {
        Some(_) => recording::files(run, metrics).map_err(|error| error.to_string())?,
        // What our own engine wrote down when it ran.
        None if run.has_file(NATIVE_TRACE) => vec![run.path().join(NATIVE_TRACE)],
        None => return Err(recording::NOTHING_RECORDED.to_owned()),
    };
    let mut timelines = trace::placed(&files, metrics.run.model.as_deref()).map_err(|error| error.to_string())?;
    match timelines.as_mut_slice() {
        [] => return Err("the sources of this run contain only sums and counters".to_owned()),
        [only] => only.modules = provenance::modules(run.path()),
        _ => {}
    }
    Ok(timelines)
}
