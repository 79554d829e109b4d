//! The pages of a run, for people; `metrics.json` is beside them already.

use std::path::Path;

use collect::run::RunFolder;
use report::Page;
use report::html::{Picture, RunPage, RunPageKind};
use report::pages::run::Assumptions;
use types::{Environment, KernelReport, Metrics, RunManifest, UserError};

use crate::pipeline::folder::documents::RunDocuments;
use crate::pipeline::folder::thumbnails;
use crate::pipeline::recorded::provenance::{self, NATIVE_TRACE};
use crate::pipeline::recorded::recording::NOTHING_RECORDED;
use crate::pipeline::trace::{self, Placed, Recorded};

/// Bytes of traces that are worth reading a second time for the page; larger ones would double the time of a run.
const READ_AGAIN: u64 = 64 << 20;
/// Why a page has no timeline yet.
const DRAWN_LATER: &str = "`llm-perf report RUN` draws it";

/// What the pages are made of.
pub(crate) struct Bundle<'a> {
    pub(crate) metrics: &'a Metrics,
    pub(crate) environment: &'a Environment,
    pub(crate) assumptions: Assumptions,
    /// Kernels with their counters, where they were read.
    pub(crate) kernels: Option<&'a KernelReport>,
    /// Rows of each table of operators, where the user says how many.
    pub(crate) operator_rows: Option<usize>,
    /// What was recorded elsewhere.
    pub(crate) timelines: &'a [Placed],
}

/// Writes every page the run has something for. The analytic model is there before, and is on the page beside what was measured.
pub(crate) fn write(folder: &mut RunFolder, bundle: &Bundle<'_>) -> Result<(), UserError> {
    let Bundle { metrics, environment, assumptions, kernels, operator_rows, timelines } = bundle;
    let documents = RunDocuments::read(folder.path());
    let view = analysis::view::run(metrics);
    let pictures = report::html::pictures(&view, &documents.shown());
    let (mut pages, charts) = self::pages(metrics, environment, *kernels, *operator_rows, &pictures);
    let regions = documents.shown().regions.map(report::pages::regions::overview_page);
    pages.extend(regions.map(|page| (RunPageKind::Regions, page)));
    pages.push((RunPageKind::Assumptions, report::pages::run::assumptions_page(assumptions)));
    for (page, text) in &pages {
        folder.write_file(&page.file(), text.markdown().as_bytes())?;
    }
    for (file, svg) in &charts {
        folder.write_file(file, svg.as_bytes())?;
    }
    let own = if timelines.is_empty() { self::recorded(folder.path(), metrics) } else { Err(NOTHING_RECORDED) };
    let reason = own.as_ref().err().copied().unwrap_or("the timeline of this run is empty");
    if let [only] = timelines {
        provenance::write_modules(folder, &only.modules)?;
    }
    let shown = own.as_deref().unwrap_or(timelines);
    let recorded = trace::recorded(shown, report::html::MOST_EVENTS, &metrics.run.id);
    // A page that is made again has the text alone.
    for (_, page) in pages.iter_mut().filter(|(kind, _)| *kind == RunPageKind::Assumptions) {
        *page = Page::verbatim(&page.markdown());
    }
    write_page(folder, metrics, &pages, recorded.as_ref().ok_or(reason))
}

/// The timelines that a run keeps in its own folder: what its engine wrote down, or its traces.
fn recorded(folder: &Path, metrics: &Metrics) -> Result<Vec<Placed>, &'static str> {
    let Some(trace) = &metrics.conditions.trace else {
        let native = folder.join(NATIVE_TRACE);
        let found = if native.is_file() { trace::placed(&[native], None).ok() } else { None };
        return found.filter(|placed| !placed.is_empty()).ok_or(NOTHING_RECORDED);
    };
    let files: Vec<_> = trace.sources.iter().map(|source| folder.join(&source.path)).collect();
    let is_small = trace.sources.iter().map(|source| source.bytes.get()).sum::<u64>() <= READ_AGAIN;
    if files.is_empty() || !is_small || !files.iter().all(|file| file.is_file()) {
        return Err(DRAWN_LATER);
    }
    let found = trace::placed(&files, metrics.run.model.as_deref());
    let mut found = found.ok().filter(|found| !found.is_empty()).ok_or(DRAWN_LATER)?;
    if let [only] = found.as_mut_slice() {
        only.modules = provenance::modules(folder);
    }
    Ok(found)
}

/// Writes the one page that holds all others.
pub(crate) fn write_page(
    folder: &mut RunFolder,
    metrics: &Metrics,
    pages: &[(RunPageKind, Page)],
    recorded: Result<&Recorded, &str>,
) -> Result<(), UserError> {
    let html = page(folder.path(), folder.manifest(), metrics, pages, recorded, false);
    folder.write_file("report.html", html.as_bytes())
}

/// The one page of a run folder, of what the folder holds and of these; a served one asks for its events.
pub(crate) fn page(
    folder: &Path,
    manifest: &RunManifest,
    metrics: &Metrics,
    pages: &[(RunPageKind, Page)],
    recorded: Result<&Recorded, &str>,
    served: bool,
) -> String {
    let documents = RunDocuments::read(folder);
    report::html::run_page(&RunPage {
        run: &analysis::view::run(metrics),
        manifest: Some(manifest),
        documents: documents.shown(),
        thumbnails: &thumbnails::read(folder),
        pages,
        recorded,
        served,
    })
}

/// Name and text of a picture.
pub(crate) type ChartFile = (String, String);

/// Every page that is made of documents alone, and the files of the pictures in them.
pub(crate) fn pages(
    metrics: &Metrics,
    environment: &Environment,
    kernels: Option<&KernelReport>,
    operator_rows: Option<usize>,
    pictures: &[Picture],
) -> (Vec<(RunPageKind, Page)>, Vec<ChartFile>) {
    let view = analysis::view::run(metrics);
    let is_command = metrics.conditions.command.is_some();
    let has_trace = metrics.conditions.trace.is_some();
    let mut pages = Vec::new();
    let report = if is_command {
        report::pages::run::command_page(&view, environment)
    } else {
        report::pages::run::report_page(&view, environment)
    };
    let (report, charts) = report::html::illustrated(report, pictures);
    pages.push((RunPageKind::Report, report));
    if !is_command {
        pages.push((RunPageKind::Operators, report::pages::run::operators_page(&view, operator_rows)));
    }
    if has_trace {
        pages.push(match kernels {
            Some(kernels) => (RunPageKind::Kernels, report::pages::deep::kernels_page(&view, kernels)),
            None => (RunPageKind::Kernels, report::pages::run::kernels_page(&view)),
        });
    }
    if has_trace || !is_command {
        pages.push(match kernels {
            Some(kernels) => (RunPageKind::Summary, report::pages::deep::summary_page(&view, kernels, environment)),
            None => (RunPageKind::Summary, report::pages::run::summary_page(&view, environment)),
        });
    }
    (pages, charts)
}
