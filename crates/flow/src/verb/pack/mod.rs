//! `pack`: a run as one file that can be passed on.
//!
//! A run is packed as it is, with the files that it was imported from, or redacted: then a copy without the values that identify
//! the machine, its user and the inputs is made first, and that is packed.

mod document;
mod json_text;
mod redaction;
mod scrubber;
mod words;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use collect::run::{BUNDLE_ENDING, MANIFEST, SOURCES, StoredRun, digest, write_bundle};
use types::{BundleFile, BundleIndex, LeftOutFile, RunState, SchemaTag, UserError};

use crate::pipeline::recorded::recording;
use redaction::RedactedRun;

/// A file that takes a while.
const LARGE: u64 = 32 << 20;

/// A bundle that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedRun {
    /// The file.
    pub path: PathBuf,
    /// What it has.
    pub index: BundleIndex,
}

/// Packs a run into `out`, or into a file of its own name in the working folder.
pub fn pack(
    run: &StoredRun,
    out: Option<&Path>,
    redact: bool,
    doing: &mut dyn FnMut(&str),
) -> Result<PackedRun, UserError> {
    if run.state().0 == RunState::Running {
        return Err(collect::still_running(run.path()));
    }
    let path = out.map_or_else(|| PathBuf::from(format!("{}.{BUNDLE_ENDING}", run.listing().id)), Path::to_owned);
    if path.symlink_metadata().is_ok() {
        return Err(collect::bundle_exists(&path));
    }
    doing("checking the run");
    if let Some(problem) = run.verify()?.problems.into_iter().next() {
        let run = run.path().display();
        return Err(UserError::failed(format!("{run}/{}: {}", problem.path, problem.detail))
            .hint(format!("list the changed files with `llm-perf runs {run} --verify`")));
    }
    let mut doing_file = |file: &BundleFile| {
        if file.bytes.get() >= LARGE {
            doing(&format!("packing {}", file.path));
        }
    };
    let index = if redact {
        let redacted = RedactedRun::of(run)?;
        let mut index = index_of(&redacted.run)?;
        index.redacted = redacted.run.manifest().redacted.clone();
        index.left_out = redacted.left_out;
        write_bundle(&path, &index, |file| redacted.run.path().join(&file.path), &mut doing_file)?;
        index
    } else {
        let mut index = index_of(run)?;
        index.left_out = left_out(run)?;
        let places = sources(run, &mut index)?;
        let place = |file: &BundleFile| places.get(&file.path).cloned().unwrap_or_else(|| run.path().join(&file.path));
        write_bundle(&path, &index, place, &mut doing_file)?;
        index
    };
    Ok(PackedRun { path, index })
}

/// The files that a manifest lists, behind the manifest itself.
fn index_of(run: &StoredRun) -> Result<BundleIndex, UserError> {
    let manifest = run.path().join(MANIFEST);
    let (bytes, sha256) = digest(&manifest).map_err(UserError::io("read", &manifest))?;
    let listed = run.manifest().files.iter().map(|file| BundleFile {
        path: file.path.clone(),
        bytes: file.bytes,
        sha256: file.sha256.clone(),
    });
    Ok(BundleIndex {
        schema: SchemaTag::new(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        run_id: run.manifest().run_id.clone(),
        redacted: None,
        files: [BundleFile { path: MANIFEST.to_owned(), bytes, sha256 }].into_iter().chain(listed).collect(),
        sources: Vec::new(),
        left_out: Vec::new(),
    })
}

/// Files of the folder that its manifest does not list.
fn left_out(run: &StoredRun) -> Result<Vec<LeftOutFile>, UserError> {
    Ok(run
        .unlisted()?
        .into_iter()
        .map(|path| LeftOutFile { path, bytes: None, reason: "not listed in the manifest".to_owned() })
        .collect())
}

/// Adds what the run was imported from to the index; where each file is.
fn sources(run: &StoredRun, index: &mut BundleIndex) -> Result<BTreeMap<String, PathBuf>, UserError> {
    let mut places = BTreeMap::new();
    for source in recording::sources(run) {
        let Some(place) = source.place.filter(|place| !place.starts_with(run.path()) || is_kept(run, place)) else {
            if !index.files.iter().any(|file| file.path == source.name) {
                let reason = "deleted or changed since the run was written".to_owned();
                index.left_out.push(LeftOutFile { path: source.name, bytes: Some(source.bytes), reason });
            }
            continue;
        };
        let path = recording::packed_path(&source.digest, &source.name);
        let (bytes, sha256) = digest(&place).map_err(UserError::io("read", &place))?;
        if places.insert(path.clone(), place).is_none() {
            index.sources.push(BundleFile { path, bytes, sha256 });
        }
    }
    Ok(places)
}

/// Whether a place in the run's folder is one of the sources that came with it.
fn is_kept(run: &StoredRun, place: &Path) -> bool {
    place.starts_with(run.path().join(SOURCES))
}
