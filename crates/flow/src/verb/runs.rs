//! `runs`: what earlier runs left.

use std::path::Path;

pub use collect::run::{DEFAULT_ROOT, StoredRun};
use collect::run::{RunIndex, digest_like, list_runs_with, runs_with};
use types::{FileProblem, FileProblemKind, InputSet, RunList, RunState, SchemaTag, UserError, Verification};

pub use crate::pipeline::recorded::earlier::{RunPurpose, find, is_repeatable};
use crate::pipeline::recorded::provenance::{self, INPUTS};
use crate::pipeline::recorded::recording;

/// The runs beneath a folder and those that `--out` put elsewhere, newest first.
pub fn list(root: &Path) -> Result<RunList, UserError> {
    let runs = list_runs_with(root, RunIndex::of_user().as_ref())?;
    Ok(RunList { schema: SchemaTag::new(), root: root.display().to_string(), runs })
}

/// Compares every file of a run with its manifest, and every source that came with it in a bundle with what the run was read from.
pub fn verify(run: &StoredRun) -> Result<Verification, UserError> {
    let mut found = run.verify()?;
    for source in recording::sources(run) {
        let path = recording::packed_path(&source.digest, &source.name);
        let place = run.path().join(&path);
        if place.symlink_metadata().is_err() {
            continue;
        }
        found.checked += 1;
        let problem = match digest_like(&source.digest, &place) {
            Ok(found) if found == source.digest => continue,
            Ok(found) => (FileProblemKind::Changed, format!("expected {}, found {}", source.digest, found.digits())),
            Err(error) => (FileProblemKind::Unreadable, error.to_string()),
        };
        found.problems.push(FileProblem { path, kind: problem.0, detail: problem.1 });
    }
    Ok(found)
}

/// Deletes the folder of a run that has ended and holds nothing else.
pub fn delete(run: &StoredRun) -> Result<(), UserError> {
    let path = run.path().display();
    if run.state().0 == RunState::Running {
        return Err(UserError::failed(format!("{path} is still running")));
    }
    // What a killed run left under a temporary name is its own.
    let foreign = run.unlisted()?.into_iter().find(|file| !file.contains(".tmp") && !file.starts_with("logs/"));
    if let Some(file) = foreign {
        let message = format!("{path} contains files that are not part of the run, such as {file}");
        return Err(UserError::failed(message).hint("move them elsewhere first; nothing was deleted"));
    }
    run.delete()
}

/// The runs that are left to delete where the newest `keep` beneath a folder stay: those that have ended, oldest first.
pub fn beyond(root: &Path, keep: usize) -> Result<Vec<StoredRun>, UserError> {
    let old = runs_with(root, None)?.into_iter().skip(keep).rev();
    Ok(old.filter(|(listing, _)| listing.state != RunState::Running).filter_map(|(_, run)| run).collect())
}

/// The inputs that a run recorded.
pub fn recorded_inputs(run: &StoredRun) -> Result<InputSet, String> {
    let text = run.read_text(INPUTS).map_err(|error| error.to_string())?;
    provenance::read(&text)
}

/// What differs between the inputs that a run recorded and those that are there now, in words: another content, or no longer there.
pub fn changed_inputs(recorded: &InputSet, now: &InputSet) -> Vec<String> {
    let of = |set: &InputSet| {
        let images = set.images.iter().map(|one| (one.name.clone(), one.sha256.clone(), one.used));
        let prompts = set.prompts.iter().map(|one| (one.name.clone(), one.sha256.clone(), one.used));
        images.chain(prompts).collect::<Vec<_>>()
    };
    let now = of(now);
    let difference = |(name, before, used): (String, Option<String>, bool)| {
        let found = now.iter().find(|(other, ..)| *other == name);
        match (found, before) {
            (None, _) if used => Some(format!("input {name} no longer exists")),
            (Some((_, Some(after), _)), Some(before)) if *after != before => Some(format!(
                "input {name} has changed since that run: SHA-256 was {}, is {}",
                short(&before),
                short(after)
            )),
            _ => None,
        }
    };
    of(recorded).into_iter().filter_map(difference).collect()
}

/// Enough of a digest to tell two apart by eye.
fn short(sha256: &str) -> &str {
    sha256.get(..12).unwrap_or(sha256)
}
