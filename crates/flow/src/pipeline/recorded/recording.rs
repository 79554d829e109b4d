//! The timeline of an earlier run: where it was recorded, checked against what the run has of it.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use collect::run::{SOURCES, StoredRun, digest_like};
use types::{Bytes, Document, InputDigest, InputFile, InputRole, InputSet, Metrics, UserError};

use crate::pipeline::recorded::provenance::{self, INPUTS};

/// Why a run without a trace has no timeline.
pub(crate) const NOTHING_RECORDED: &str = "nothing was recorded";

/// A run that recorded nothing, and what it has instead.
pub(crate) fn no_timeline(run: &str, reason: &str) -> UserError {
    UserError::usage(format!("{run} has no timeline: {reason}")).hint(
        "record a device timeline with `llm-perf profile -- COMMAND` on a GPU, or import one with `llm-perf import`",
    )
}

/// A source that is not what it was: it `was moved or deleted`, or `has changed`.
pub(crate) fn source_gone(path: &Path, state: &str, run: &str) -> UserError {
    UserError::failed(format!("{} {state} since {run} was written", path.display()))
        .hint("restore the file, or import it again")
}

/// A file of the run that cannot be read.
pub(crate) fn unreadable(path: &Path, reason: &dyn Display) -> UserError {
    UserError::failed(format!("cannot read {}: {reason}", path.display()))
}

/// What a run measured, and the files that its timeline was read from.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) metrics: Metrics,
    pub(crate) files: Vec<PathBuf>,
}

impl Recording {
    /// Finds the files of a run.
    pub(crate) fn of(run: &StoredRun) -> Result<Self, UserError> {
        let metrics = metrics(run)?;
        let files = files(run, &metrics)?;
        Ok(Self { metrics, files })
    }
}

/// A file that a run was read from.
pub(crate) struct Source {
    /// As the run names it.
    pub(crate) name: String,
    /// Size.
    pub(crate) bytes: Bytes,
    /// Digest.
    pub(crate) digest: InputDigest,
    /// Where it is; absent where it is gone or has changed.
    pub(crate) place: Option<PathBuf>,
}

/// The files that a run was read from, however many are still there.
pub(crate) fn sources(run: &StoredRun) -> Vec<Source> {
    let named = |file: InputFile| {
        let digest = file.digest()?;
        Some((file.name, file.bytes?, digest)).filter(|_| file.role == InputRole::Trace)
    };
    let files = inputs(run).map(|inputs| inputs.files).unwrap_or_default();
    let source = |(name, bytes, digest): (String, Bytes, InputDigest)| {
        let place = place(run, &name, &digest);
        let is_same = place.metadata().is_ok_and(|found| found.is_file() && found.len() == bytes.get())
            && digest_like(&digest, &place).is_ok_and(|found| found == digest);
        Source { place: is_same.then_some(place), name, bytes, digest }
    };
    files.into_iter().filter_map(named).map(source).collect()
}

/// What a run was given.
fn inputs(run: &StoredRun) -> Option<InputSet> {
    provenance::read(&run.read_text(INPUTS).ok()?).ok()
}

/// Where a run that was packed keeps a file it was read from: under its digest, and under its own name, because formats show in
/// names too.
pub(crate) fn packed_path(digest: &InputDigest, name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_');
    let file = name.rsplit('/').next().unwrap_or_default();
    let file: String = file.chars().map(|c| if plain(c) { c } else { '_' }).take(100).collect();
    let file = if file.trim_matches('.').is_empty() { "source".to_owned() } else { file };
    let digest: String = digest.digits().chars().filter(char::is_ascii_hexdigit).take(16).collect();
    format!("{SOURCES}/{digest}/{file}")
}

/// Where a source of a run is: packed with the run, in the run, where it was when it was read, or, seen from another folder, at its
/// whole path.
fn place(run: &StoredRun, source: &str, digest: &InputDigest) -> PathBuf {
    let recorded = || {
        let file = inputs(run)?.files.into_iter().find(|file| file.name == source)?;
        Some(PathBuf::from(file.path)).filter(|path| path.is_file())
    };
    let near = [run.path().join(packed_path(digest, source)), run.path().join(source), PathBuf::from(source)];
    near.into_iter().find(|path| path.is_file()).or_else(recorded).unwrap_or_else(|| PathBuf::from(source))
}

/// What a run measured.
pub fn metrics(run: &StoredRun) -> Result<Metrics, UserError> {
    measured(run, Metrics::from_json)
}

/// What a run measured, or a part of it.
pub(crate) fn measured<T>(run: &StoredRun, read: fn(&[u8]) -> serde_json::Result<T>) -> Result<T, UserError> {
    let file = run.path().join("metrics.json");
    if !run.has_file("metrics.json") && !file.exists() {
        let manifest = run.manifest();
        let (run, verb) = (&manifest.run_id, &manifest.verb);
        return Err(UserError::usage(format!("{run} has no metrics: it is a `{verb}` run"))
            .hint(format!("list its files with `llm-perf runs {run}`")));
    }
    let text = run.read_text("metrics.json").map_err(|error| unreadable(&file, &error))?;
    read(text.as_bytes()).map_err(|error| unreadable(&file, &error))
}

/// The files that the timeline of a run was read from, each with the digest that the run has of it.
pub(crate) fn files(run: &StoredRun, metrics: &Metrics) -> Result<Vec<PathBuf>, UserError> {
    let id = &run.manifest().run_id;
    let trace = metrics.conditions.trace.as_ref().ok_or_else(|| no_timeline(id, NOTHING_RECORDED))?;
    let mut files = Vec::new();
    for source in &trace.sources {
        let digest = source.digest().ok_or_else(|| no_timeline(id, "its metrics have no digest of the trace"))?;
        let path = place(run, &source.path, &digest);
        let found = digest_like(&digest, &path).map_err(|_| source_gone(&path, "was moved or deleted", id))?;
        if found != digest {
            return Err(source_gone(&path, "has changed", id));
        }
        files.push(path);
    }
    Ok(files)
}
