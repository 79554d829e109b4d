//! `compare`: two sides of runs read from their folders and laid beside each other.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

pub use analysis::GateLimits;
use analysis::{RunRecords, Sides};
use collect::run::StoredRun;
pub use report::pages::compare::terminal;
use report::words::Spoken;
use types::{Comparison, Document, ForecastTime, Metrics, RunState, UserError};

use crate::pipeline::model::analytic::REPORT;
use crate::pipeline::recorded::earlier::{self, RunPurpose};
use crate::pipeline::recorded::provenance;

/// What to compare.
#[derive(Clone, Debug)]
pub struct CompareRequest {
    /// Folder that holds runs, for those given by name.
    pub root: PathBuf,
    /// Runs of the first side: names, folders, or files with metrics.
    pub base: Vec<OsString>,
    /// Runs of the second side.
    pub with: Vec<OsString>,
    /// A remedy that the one run of the first side tried: its baseline and it are the two sides.
    pub tried: Option<String>,
    /// Most a side may be slower; no gate when absent.
    pub fail_over: Option<GateLimits>,
}

/// Reads the runs and compares them.
pub fn compare(request: &CompareRequest) -> Result<Comparison, UserError> {
    let base = side(&request.root, &request.base)?;
    if let (Some(remedy), [run]) = (&request.tried, base.as_slice()) {
        let Some([base, with]) = analysis::try_sides(run, remedy) else {
            let tries = run.metrics.trials.tries.iter().filter(|one| !one.turns.is_empty());
            let tried: Vec<String> = tries.map(|one| one.remedy.to_string()).collect();
            let hint = if tried.is_empty() {
                "it tried nothing; try remedies with `llm-perf profile --try auto`".to_owned()
            } else {
                format!("it tried {}", tried.join(", "))
            };
            return Err(UserError::usage(format!("{} did not try `{remedy}`", run.path)).hint(hint));
        };
        return Ok(compared(&[base], &[with], request.fail_over.clone()));
    }
    let with = side(&request.root, &request.with)?;
    Ok(compared(&base, &with, request.fail_over.clone()))
}

fn compared(base: &[RunRecords], with: &[RunRecords], fail_over: Option<GateLimits>) -> Comparison {
    analysis::compare(Sides { base, with }, fail_over).spoken()
}

/// What changed from one run to another of the same thing, stage by stage, for a terminal.
pub fn stages(first: &Metrics, second: &Metrics) -> String {
    let run = |metrics: &Metrics| RunRecords {
        path: metrics.run.id.clone(),
        state: None,
        reasons: Vec::new(),
        metrics: metrics.clone(),
        environment: None,
        inputs: None,
        forecasts: BTreeMap::new(),
    };
    let comparison = compared(&[run(first)], &[run(second)], None);
    report::pages::compare::stages_terminal(&comparison)
}

/// The comparison as a Markdown page.
pub fn markdown(comparison: &Comparison, most_rows: usize) -> String {
    report::pages::compare::page(comparison, most_rows).markdown()
}

/// Writes a page to a file.
pub fn write_page(path: &Path, page: &str) -> Result<(), UserError> {
    std::fs::write(path, page).map_err(UserError::io("write", path))
}

fn side(root: &Path, selectors: &[OsString]) -> Result<Vec<RunRecords>, UserError> {
    let mut seen = BTreeSet::new();
    let mut runs = Vec::new();
    for selector in selectors {
        let (place, run) = read(root, selector)?;
        if !seen.insert(std::fs::canonicalize(&place).unwrap_or_else(|_| place.clone())) {
            return Err(UserError::usage(format!("{} is given twice on the same side", place.display())));
        }
        runs.push(run);
    }
    Ok(runs)
}

/// One run and the file or folder it was read from.
fn read(root: &Path, selector: &OsStr) -> Result<(PathBuf, RunRecords), UserError> {
    let path = Path::new(selector);
    if path.is_file() {
        let folder = path.parent().unwrap_or(Path::new("."));
        return Ok((path.to_owned(), records(path, folder, None)?));
    }
    // A folder that someone else made, say to keep a baseline, may hold metrics and nothing that says how the run went.
    let bare = path.join("metrics.json");
    if bare.is_file() && !path.join("manifest.json").exists() {
        return Ok((path.to_owned(), records(&bare, path, None)?));
    }
    let run = earlier::find(root, selector, RunPurpose::Compare)?;
    let file = run.path().join("metrics.json");
    if !file.exists() {
        let (state, reasons) = run.state();
        let (path, state, reasons) = (run.path().display(), word(state), listed(&reasons));
        return Err(UserError::failed(format!("{path} has no metrics.json: the run is {state}{reasons}"))
            .hint("write one with `llm-perf profile`; list the runs with `llm-perf runs`"));
    }
    Ok((run.path().to_owned(), records(&file, run.path(), Some(&run))?))
}

fn records(metrics: &Path, folder: &Path, run: Option<&StoredRun>) -> Result<RunRecords, UserError> {
    let (state, reasons) = run.map(StoredRun::state).map_or((None, Vec::new()), |(state, why)| (Some(state), why));
    let environment = folder.join("env.json");
    let inputs = folder.join("inputs.yaml");
    Ok(RunRecords {
        path: run.map_or(metrics, StoredRun::path).display().to_string(),
        state,
        reasons,
        metrics: json(metrics, "metrics")?,
        environment: environment.exists().then(|| json(&environment, "environment")).transpose()?,
        inputs: inputs.exists().then(|| read_as(&inputs, "a list of inputs", provenance::read)).transpose()?,
        forecasts: forecasts(&folder.join(REPORT))?,
    })
}

/// What the analytic model of a run forecasts of its stages.
fn forecasts(report: &Path) -> Result<BTreeMap<String, ForecastTime>, UserError> {
    #[derive(serde::Deserialize)]
    struct Stages {
        stages: BTreeMap<String, ForecastTime>,
    }
    if !report.exists() {
        return Ok(BTreeMap::new());
    }
    let read = |text: &str| serde_json::from_slice(text.as_bytes()).map_err(|error| error.to_string());
    let Stages { stages } = read_as(report, "an analytic report", read)?;
    Ok(stages.into_iter().filter(|(_, time)| time.forecast_ns.is_some_and(|time| time.get() > 0)).collect())
}

fn json<D: Document>(path: &Path, expected: &str) -> Result<D, UserError> {
    read_as(path, expected, |text| D::from_json(text.as_bytes()).map_err(|error| error.to_string()))
}

fn read_as<T>(path: &Path, expected: &str, read: fn(&str) -> Result<T, String>) -> Result<T, UserError> {
    let text = collect::document::read_text(path).map_err(UserError::io("read", path))?;
    read(&text).map_err(|error| {
        let path = path.display();
        UserError::failed(format!("cannot read {path} as {expected}: {error}"))
            .hint(format!("check it with `llm-perf validate {path}`"))
    })
}

fn word(state: RunState) -> &'static str {
    match state {
        RunState::Complete => "complete, but it measures nothing",
        RunState::Running => "still running",
        state => state.name(),
    }
}

fn listed(reasons: &[String]) -> String {
    if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join("; ")) }
}
