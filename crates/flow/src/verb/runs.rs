//! `runs`: what earlier runs left.

use std::path::Path;

pub use collect::run::{DEFAULT_ROOT, StoredRun};
use collect::run::{RunIndex, list_runs_with};
use types::{InputSet, RunList, SchemaTag};

use crate::CollectError;
pub use crate::pipeline::earlier::{RunPurpose, find, is_repeatable};
use crate::pipeline::provenance::INPUTS;

/// The runs beneath a folder and those that `--out` put elsewhere, newest first.
pub fn list(root: &Path) -> Result<RunList, CollectError> {
    let runs = list_runs_with(root, RunIndex::of_user().as_ref())?;
    Ok(RunList { schema: SchemaTag::new(), root: root.display().to_string(), runs })
}

/// The inputs that a run recorded.
pub fn recorded_inputs(run: &StoredRun) -> Result<InputSet, String> {
    let text = std::fs::read_to_string(run.path().join(INPUTS)).map_err(|error| error.to_string())?;
    serde_saphyr::from_str(&text).map_err(|error| error.to_string())
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
            (None, _) if used => Some(format!("input {name} is not there any more")),
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
