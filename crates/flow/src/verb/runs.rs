//! `runs`: what earlier runs left, and which of them a verb can go on with.

use std::path::Path;

pub use collect::run::{DEFAULT_ROOT, StoredRun};
use collect::run::{Fitness, RunIndex, find_fitting_run, list_runs_with};
use types::{InputSet, RunList, RunState, SchemaTag};

use crate::CollectError;
use crate::pipeline::provenance::INPUTS;

/// What a run is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunPurpose {
    /// To look at it.
    Show,
    /// To run its model again.
    Repeat,
    /// To finish it.
    Resume,
    /// To read the timeline that it recorded.
    Export,
}

impl RunPurpose {
    fn fitness(self) -> Fitness {
        match self {
            Self::Show => Fitness { wanted: "can be read", fits: |_| true },
            Self::Repeat => Fitness {
                wanted: "`profile` made with a model",
                fits: |run| is_repeatable(run) && run.has_file("config.yaml") && run.has_file("metrics.json"),
            },
            Self::Resume => Fitness {
                wanted: "`deep` made and did not complete",
                fits: |run| {
                    let is_open = !matches!(run.state().0, RunState::Complete | RunState::Running);
                    run.manifest().verb == "deep" && run.has_file("plan.json") && is_open
                },
            },
            Self::Export => Fitness {
                wanted: "recorded or imported a timeline",
                fits: |run| {
                    let is_trace = |path: &str| path.starts_with("trace/") || path.ends_with(".sqlite");
                    run.has_file("metrics.json")
                        && (run.manifest().verb == "import"
                            || run.manifest().files.iter().any(|file| is_trace(&file.path)))
                },
            },
        }
    }
}

/// Whether `profile --from` can run the same again: a model was run, by `profile`.
pub fn is_repeatable(run: &StoredRun) -> bool {
    run.manifest().verb == "profile" && run.manifest().model.is_some()
}

/// The run that `selector` names, among those in `root` and those that `--out` put elsewhere; `latest` is the newest that serves the
/// purpose.
pub fn find(root: &Path, selector: &str, purpose: RunPurpose) -> Result<StoredRun, CollectError> {
    find_fitting_run(root, RunIndex::of_user().as_ref(), selector, &purpose.fitness())
}

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
