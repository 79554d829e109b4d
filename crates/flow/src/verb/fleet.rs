//! `fleet`: many ranks of a job, and many runs over time.
//!
//! Ranks come from Parquet tables; traces that have none yet are imported into the run first, one by one. Of each rank only its small
//! tables are read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use analysis::fleet::{RankFacts, RunQuantities};
use collect::run::{RunFolder, StoredRun};
use rayon::prelude::*;
pub use report::pages::fleet::terminal;
use report::words::Spoken;
use serde::Deserialize;
use types::view::RankLane;
use types::{
    Aggregates, CommandFacts, Environment, Fleet, Metrics, PeakMemory, RunHeader, SchemaTag, Stage, Statistics, Steps,
    UserError,
};

use crate::RunRequest;
use crate::pipeline::device::hardware;
use crate::pipeline::folder::documents::document;
use crate::pipeline::folder::run::{EndedRun, run};
use crate::pipeline::recorded::recording;
use crate::pipeline::subject::NamedSubject;
use crate::pipeline::subject::imported;
use crate::pipeline::tables::files::{TableFiles, some_table_files, table_files};
use crate::pipeline::tables::{self, TablesRequest};
use crate::pipeline::trace::regions::RegionChoice;
use crate::pipeline::trace::{MEMORY, TraceFiles};

/// Endings of files that may be traces.
const TRACES: [&str; 7] = [".json", ".json.gz", ".json.zst", ".sqlite", ".sqlite.gz", ".nsys-rep", ".wire"];

/// What to look at.
#[derive(Debug)]
pub struct FleetRequest {
    /// Folders of tables, or of traces; with `runs`, of runs.
    pub folders: Vec<PathBuf>,
    /// Whether runs over time are wanted, not ranks.
    pub runs: bool,
    /// What traces are of, where they are imported.
    pub subject: NamedSubject,
    /// Which regions of pages of counters are kept.
    pub regions: RegionChoice,
}

/// Looks at all ranks, or all runs, together and writes what it finds into a run folder.
pub fn fleet(
    request: &FleetRequest,
    run_request: RunRequest,
    progress: &mut dyn FnMut(&str),
) -> Result<EndedRun<Fleet>, UserError> {
    let found = found(request)?;
    run(run_request, |folder| {
        let (Ranks { fleet, lanes }, missing) = match found {
            Found::Ranks(files) => (of_ranks(request, &files, progress)?, Vec::new()),
            Found::Traces(files) => of_traces(folder, request, &files, progress)?,
            Found::Runs(runs) => of_runs(&runs, progress)?,
        };
        folder.write_json("fleet.json", &fleet)?;
        folder.write_file("report.md", report::pages::fleet::page(&fleet).markdown().as_bytes())?;
        let html = report::html::fleet_page(&fleet, &lanes, Some(folder.manifest()));
        folder.write_file("report.html", html.as_bytes())?;
        folder.end_step("fleet")?;
        Ok((fleet, missing))
    })
}

/// What ranks, or runs, show together.
struct Ranks {
    fleet: Fleet,
    /// Of the first job, on one clock.
    lanes: Vec<RankLane>,
}

enum Found {
    Ranks(TableFiles),
    Traces(Vec<PathBuf>),
    Runs(Vec<StoredRun>),
}

/// What the folders hold; checked before a run folder is made.
fn found(request: &FleetRequest) -> Result<Found, UserError> {
    if request.runs {
        let mut runs = Vec::new();
        for folder in &request.folders {
            let before = runs.len();
            look_for_runs(folder, 3, &mut runs);
            if runs.len() == before {
                return Err(UserError::usage(format!("{} contains no run with metrics", folder.display()))
                    .hint("pass a folder of runs, such as tmp/profile-output"));
            }
        }
        return Ok(Found::Runs(runs));
    }
    if let Some(files) = table_files(&request.folders)? {
        return Ok(Found::Ranks(files));
    }
    let mut traces = Vec::new();
    for folder in &request.folders {
        let before = traces.len();
        look_for_traces(folder, &mut traces)?;
        if traces.len() == before {
            return Err(UserError::usage(format!("{} contains neither tables nor traces", folder.display()))
                .hint("write tables with `llm-perf import FILE --tables DIR`, one command per rank"));
        }
    }
    Ok(Found::Traces(traces))
}

fn look_for_traces(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), UserError> {
    let io = |reason| UserError::failed(format!("{}: {reason}", folder.display()));
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(io)? {
        let path = entry.map_err(io)?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if path.is_file() && TRACES.iter().any(|ending| name.ends_with(ending)) && !name.starts_with('.') {
            files.push(path);
        }
    }
    files.sort();
    found.extend(files);
    Ok(())
}

fn look_for_runs(folder: &Path, depth: usize, found: &mut Vec<StoredRun>) {
    if let Ok(run) = StoredRun::open(folder) {
        if run.has_file("metrics.json") {
            found.push(run);
        }
        return;
    }
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut folders: Vec<_> = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    for path in folders.iter().filter(|_| depth > 0) {
        look_for_runs(path, depth - 1, found);
    }
}

/// Reads the small tables of every rank.
fn of_ranks(request: &FleetRequest, files: &TableFiles, progress: &mut dyn FnMut(&str)) -> Result<Ranks, UserError> {
    let catalogue = hardware::catalogue(request.subject.config_dir.as_deref())?;
    let mut jobs: BTreeMap<&str, Vec<(&Path, RankFacts)>> = BTreeMap::new();
    let count = files.ranks().count();
    for (number, (job, folder)) in files.ranks().enumerate() {
        progress(&format!("reading rank {} of {count}", number + 1));
        let mut facts = ::tables::rank_facts(&mut |table| {
            let path = folder.join(table.file_name());
            path.is_file().then(|| tables::read(&path, table)).transpose()
        })?;
        let device = facts.device_name.as_deref().and_then(|name| catalogue.find(name).ok());
        facts.link = device.and_then(types::Hardware::link_bytes_per_second);
        let ranks = jobs.entry(job).or_default();
        let same = ranks.iter().find(|(_, other)| other.rank.is_some() && other.rank == facts.rank);
        if let (Some((one, _)), Some(rank)) = (same, facts.rank) {
            let [one, other] = [*one, folder].map(Path::display);
            return Err(UserError::usage(format!("duplicate rank {rank} of {job}: {one} and {other}"))
                .hint("give each job its own name: `llm-perf import FILE --tables DIR --job NAME`"));
        }
        ranks.push((folder, facts));
    }
    progress("comparing ranks");
    let job = |(name, ranks): (&str, Vec<(&Path, RankFacts)>)| {
        analysis::fleet::job_and_lanes(name, ranks.into_iter().map(|(_, facts)| facts).collect())
    };
    let (jobs, lanes): (Vec<_>, Vec<_>) = jobs.into_iter().map(job).unzip();
    let fleet = Fleet { schema: SchemaTag::default(), jobs, trends: Vec::new() }.spoken();
    Ok(Ranks { fleet, lanes: lanes.into_iter().next().unwrap_or_default() })
}

/// Imports every trace into the run, then goes on as with tables. A trace that cannot be read is named, and the rest go on.
fn of_traces(
    folder: &mut RunFolder,
    request: &FleetRequest,
    files: &[PathBuf],
    progress: &mut dyn FnMut(&str),
) -> Result<(Ranks, Vec<String>), UserError> {
    let named = request.subject.named_hardware()?;
    let place = folder.path().join("tables");
    collect::spill::start(folder.path(), MEMORY);
    let mut missing = Vec::new();
    let mut last = None;
    for file in files {
        let mut one = || -> Result<Vec<String>, UserError> {
            let opened = TraceFiles::open(std::slice::from_ref(file), progress)?;
            let traces = opened.read(request.subject.model_id().as_deref(), &request.regions, progress)?;
            let imported =
                imported::analyse(folder.id(), traces, &request.subject, named.as_ref(), &request.regions, None)?;
            let tables = TablesRequest::new(&place, None, file)?;
            tables::write(&tables, &imported.traces.placed, &imported.traces.sources, &imported.metrics)?;
            Ok(imported.traces.missing)
        };
        match one() {
            Ok(parts) => missing.extend(parts),
            Err(error) => {
                missing.push(format!("{}: {error}", file.display()));
                last = Some(error);
            }
        }
    }
    let ranks = match (some_table_files(std::slice::from_ref(&place)), last) {
        (Ok(files), _) => files,
        (Err(_), Some(error)) => return Err(error),
        (Err(error), None) => return Err(error),
    };
    // The run folder may be named by a path that is not the one the system knows.
    let root = std::fs::canonicalize(folder.path()).unwrap_or_else(|_| folder.path().to_owned());
    for file in ranks.files.values().flatten() {
        if let Ok(inside) = file.path.strip_prefix(&root) {
            folder.adopt(&inside.to_string_lossy())?;
        }
    }
    folder.end_step("import")?;
    Ok((of_ranks(request, &ranks, progress)?, missing))
}

/// Quantities of every run, over time.
fn of_runs(runs: &[StoredRun], progress: &mut dyn FnMut(&str)) -> Result<(Ranks, Vec<String>), UserError> {
    progress(&format!("reading {} runs", runs.len()));
    let read: Vec<_> = runs
        .par_iter()
        .map(|run| Ok(of_run(run, recording::measured(run, |json| serde_json::from_slice(json))?)))
        .collect();
    let (mut quantities, mut missing) = (Vec::new(), Vec::new());
    for one in read {
        match one {
            Ok(one) => quantities.push(one),
            Err::<_, UserError>(error) => missing.push(error.to_string()),
        }
    }
    let trends = analysis::fleet::trends(quantities);
    let fleet = Fleet { schema: SchemaTag::default(), jobs: Vec::new(), trends };
    Ok((Ranks { fleet, lanes: Vec::new() }, missing))
}

/// Of the metrics of a run what is looked at over time. All of them are a thousand times as much, and there are thousands of runs.
#[derive(Deserialize)]
struct Measured {
    #[serde(rename = "schema")]
    _schema: SchemaTag<Metrics>,
    run: RunHeader,
    aggregates: Aggregates,
    steps: Option<Steps>,
    command: Option<CommandFacts>,
    memory: Option<PeakMemory>,
}

fn of_run(run: &StoredRun, metrics: Measured) -> RunQuantities {
    let manifest = run.manifest();
    let command = metrics.command.as_ref();
    let of_stage = |(stage, times): (&Stage, &Statistics)| (format!("{stage}, ms"), times.median);
    let known = [
        ("step, ms", metrics.steps.as_ref().and_then(|steps| Some(steps.wall_ms?.median))),
        ("command, ms", command.and_then(|command| Some(command.wall_ms?.median))),
        ("peak memory, MB", metrics.memory.and_then(|memory| Some(memory.allocated_bytes?.as_f64() / 1e6))),
    ];
    let known = known.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let quantities = metrics.aggregates.stage_ms.iter().map(of_stage).chain(known).collect();
    let what = command.map(|command| command.command.clone()).or_else(|| manifest.model.clone());
    let device = manifest.device.clone().or_else(|| metrics.run.device.as_ref().map(ToString::to_string));
    let subject = [Some(manifest.verb.clone()), what, device].into_iter().flatten().collect::<Vec<_>>().join(", ");
    let mut facts = BTreeMap::from([("llm-perf".to_owned(), manifest.tool_version.clone())]);
    if let Some(environment) = document::<Environment>(run.path(), "env.json") {
        let tools = &environment.tools;
        let known = [
            ("driver", tools.driver.clone()),
            ("CUDA", tools.cuda_driver.clone()),
            ("torch", environment.frameworks.torch.clone()),
            ("transformers", environment.frameworks.transformers.clone()),
            ("commit", environment.git.as_ref().map(|git| git.revision.clone())),
            ("GPU", environment.gpus.first().and_then(|gpu| gpu.name.clone())),
            ("processor", environment.cpu.model.clone()),
        ];
        facts.extend(known.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    }
    if let Ok(config) = run.read("config.yaml") {
        facts.insert("config.yaml".to_owned(), collect::run::sha256(&config)[..12].to_owned());
    }
    RunQuantities { run: manifest.run_id.clone(), started_at: manifest.started_at.clone(), subject, quantities, facts }
}
